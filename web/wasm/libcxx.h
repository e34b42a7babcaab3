#pragma once
// What the core uses of C++20 and the libc++ of Emscripten does not have, or not in every release.
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <version>

namespace std {

#ifndef __cpp_lib_bit_cast
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
#endif

// A decimal number at the start of [first, last), as the standard has it: no white space, no '+', no "0x".
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string text(first, last);
  const size_t digits = text.starts_with('-') ? 1 : 0;
  const auto digit = [&](size_t i) {
    return i < text.size() && isdigit(static_cast<unsigned char>(text[i]));
  };
  const bool number = digit(digits) || (digits < text.size() && text[digits] == '.' && digit(digits + 1));
  const bool word = text.compare(digits, 3, "inf") == 0 || text.compare(digits, 3, "nan") == 0;
  if (!number && !word) return {first, errc::invalid_argument};
  if (text.compare(digits, 2, "0x") == 0 || text.compare(digits, 2, "0X") == 0) {
    value = 0;
    return {first + digits + 1, errc()};
  }
  char* end = nullptr;
  errno = 0;
  const double read = strtod(text.c_str(), &end);
  const char* const stop = first + (end - text.c_str());
  if (errno == ERANGE && (read == 0 || read > 1 || read < -1)) return {stop, errc::result_out_of_range};
  value = read;
  return {stop, errc()};
}

}  // namespace std
