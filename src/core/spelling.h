#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normscope {

// The candidate nearest in spelling, if any is near enough to be what was meant.
std::optional<std::string> nearest_spelling(std::string_view word,
                                            const std::vector<std::string>& candidates);

}  // namespace normscope
