#include "study/parse.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include "core/read_number.h"
#include "normscope/error.h"

namespace normscope {
TensorPlace tensor_place(const std::string& text) {
  for (const std::string_view extension : {".npz:", ".safetensors:"}) {
    const std::size_t at = text.find(extension);
    if (at == std::string::npos) continue;
    const std::size_t colon = at + extension.size() - 1;
    return {text.substr(0, colon), text.substr(colon + 1)};
  }
  return {text, std::nullopt};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::uint64_t require_count(std::uint64_t value, std::string_view what, std::uint64_t low,
                            std::uint64_t high) {
  return parse_count(std::to_string(value), what, low, high);
}

std::vector<std::size_t> parse_range(std::string_view text, std::string_view what, std::size_t low,
                                     std::size_t high, std::size_t limit) {
  const auto wrong = [&](std::string_view why) {
    if (low == high) return InputError(fmt::format("{} takes only {}; '{}' {}.", what, low, text, why));
    const std::size_t last = std::min(high, low + 60), middle = low + (last - low + 1) / 2;
    return InputError(
        fmt::format("{} takes numbers from {} to {}: one, a list such as {},{} or a range such as {}:{} or "
                    "{}:{}:{}; '{}' {}.",
                    what, low, high, low, middle, low, last, low, last,
                    std::clamp<std::size_t>((last - low) / 2, 1, 5), text, why));
  };
  const auto number = [&](std::string_view digits, std::size_t least) {
    const auto value = read_number<std::uint64_t>(digits);
    if (!value) throw wrong("is none of these");
    if (*value < least || *value > high) throw wrong("is out of range");
    return static_cast<std::size_t>(*value);
  };
  std::vector<std::size_t> values;
  for (const std::string_view part : split(text, ',')) {
    const auto bounds = split(part, ':');
    if (bounds.size() > 3) throw wrong("has too many colons");
    const std::size_t first = number(bounds[0], low);
    const std::size_t last = bounds.size() > 1 ? number(bounds[1], low) : first;
    const std::size_t step = bounds.size() > 2 ? number(bounds[2], 1) : 1;
    if (first > last) throw wrong("runs backwards");
    if ((last - first) / step >= limit - values.size())
      throw wrong(fmt::format("holds more than {} values", limit));
    for (std::size_t value = first; value <= last; value += step) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace normscope
