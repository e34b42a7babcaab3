#pragma once
// Messages about files. Names come from strangers: control characters and broken UTF-8 never reach a
// terminal.
#include <string>
#include <string_view>
#include <vector>

namespace normscope::io {

// 'text' with control characters and bytes that are not UTF-8 as \xNN; names are cut after 120 bytes.
// (Not called `quoted`: argument-dependent lookup would find std::quoted for a std::string.)
std::string quoted_path(std::string_view path);
std::string quoted_name(std::string_view name);
std::string quoted_names(const std::vector<std::string>& names);  // the first 20, then how many more

// "<where> <what>; <advice>" as InputError.
[[noreturn]] void reject(const std::string& where, const std::string& what, const std::string& advice);
[[noreturn]] void reject_truncated(const std::string& where, unsigned long long expected,
                                   unsigned long long found);

}  // namespace normscope::io
