#pragma once
// Bytes of files that are to be text.
#include <cstdint>
#include <string>
#include <string_view>

namespace normscope::corpus {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Throws InputError that names the first byte that is not UTF-8, or is zero; `offset`: where in the file the
// bytes begin.
void check_utf8(std::string_view bytes, const std::string& label, std::uint64_t offset);
bool is_utf8(std::string_view bytes);

// \r\n and \r become \n.
std::string with_plain_line_ends(std::string text);

std::string from_latin1(std::string_view bytes);

// Every `from`, which is not empty, becomes `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace normscope::corpus
