#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace normscope {

// The number that the text is, all of it; none if it is anything else or does not fit.
template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace normscope
