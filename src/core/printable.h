#pragma once
#include <string>
#include <string_view>

namespace normscope {

// Text from files or from a command line may hold anything; what reaches a terminal must not move its cursor:
// control characters, and bytes that are not UTF-8, become \xNN.
std::string printable(std::string_view text);

}  // namespace normscope
