#include "io/file_errors.h"

#include <fmt/format.h>

#include <algorithm>

#include "normscope/error.h"

namespace normscope::io {
namespace {

constexpr std::size_t kNamesListed = 20;
constexpr std::size_t kLongestName = 120, kLongestPath = 4096;

unsigned char byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

// Length of the printable character at `i`: 0 for a control character (C0, DEL, C1) or malformed UTF-8.
// Overlong forms and surrogates count as malformed.
std::size_t printable_length(std::string_view text, std::size_t i) {
  const unsigned char lead = byte_at(text, i);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte_at(text, i + k) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte_at(text, i + 1);
  const bool c1 = lead == 0xc2 && second < 0xa0;
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return c1 || overlong || outside ? 0 : length;
}

std::string escaped(std::string_view text, std::size_t longest) {
  std::string out = "'";
  for (std::size_t i = 0; i < text.size();) {
    if (i >= longest) {
      out += "…";
      break;
    }
    const std::size_t length = printable_length(text, i);
    if (length == 0)
      out += fmt::format("\\x{:02x}", byte_at(text, i));
    else
      out += text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return out + "'";
}

}  // namespace

std::string quoted_path(std::string_view path) {
  return escaped(path, kLongestPath);
}
std::string quoted_name(std::string_view name) {
  return escaped(name, kLongestName);
}

std::string quoted_names(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesListed); ++i)
    out += (i == 0 ? "" : ", ") + quoted_name(names[i]);
  if (names.size() > kNamesListed) out += fmt::format(" and {} more", names.size() - kNamesListed);
  return out;
}

void reject(const std::string& where, const std::string& what, const std::string& advice) {
  throw InputError(fmt::format("{} {}; {}", where, what, advice));
}

void reject_truncated(const std::string& where, unsigned long long expected, unsigned long long found) {
  reject(where, fmt::format("is truncated: expected {} bytes, found {}", expected, found),
         "copy or save it again");
}

}  // namespace normscope::io
