#include "result/options.h"

#include <fmt/format.h>

#include <cmath>

#include "core/printable.h"
#include "core/read_number.h"
#include "normscope/error.h"

namespace normscope {
namespace {

void require_value(std::string_view text, std::string_view name) {
  if (text.empty()) throw InputError(fmt::format("{} needs a value, not an empty one.", name));
}

}  // namespace

std::uint64_t parse_count(std::string_view text, std::string_view what, std::uint64_t low,
                          std::uint64_t high) {
  const auto value = read_number<std::uint64_t>(text);
  if (value && *value >= low && *value <= high) return *value;
  throw InputError(fmt::format("{} takes a whole number from {} to {}, not '{}'.", what, low, high, text));
}

double parse_number(std::string_view text, std::string_view what, double low, double high) {
  const auto value = read_number<double>(text);
  if (value && std::isfinite(*value) && *value >= low && *value <= high) return *value;
  throw InputError(fmt::format("{} takes a number from {:g} to {:g}, not '{}'.", what, low, high, text));
}

double parse_non_negative(std::string_view text, std::string_view what) {
  const auto value = read_number<double>(text);
  if (value && *value >= 0 && std::isfinite(*value)) return *value;
  throw InputError(fmt::format("{} takes a finite number of at least 0, not '{}'.", what, text));
}

std::uint64_t count_option(std::string_view text, std::string_view name, const OptionFacts& facts,
                           std::uint64_t most) {
  require_value(text, name);
  const auto limit = [](double given, std::uint64_t otherwise) {
    return std::isfinite(given) ? static_cast<std::uint64_t>(given) : otherwise;
  };
  return parse_count(text, name, limit(facts.low, 0), limit(facts.high, most));
}

double number_option(std::string_view text, std::string_view name, const OptionFacts& facts) {
  require_value(text, name);
  return facts.low == 0 && std::isinf(facts.high) ? parse_non_negative(text, name)
                                                  : parse_number(text, name, facts.low, facts.high);
}

double number_option(double value, std::string_view name, const OptionFacts& facts) {
  return number_option(fmt::format("{}", value), name, facts);  // which reads back to the same number
}

std::string option_number(double value) {
  return fmt::format("{:g}", value);
}

void require_text(const std::string& text, const std::string& name, const OptionFacts& facts) {
  if (facts.needs != nullptr && text.empty())
    throw InputError(fmt::format("{} needs {}.", name, facts.needs));
}

void refuse_choice(const std::string& text, const std::string& name,
                   const std::vector<std::string>& choices) {
  throw InputError(fmt::format("{} takes {}, not '{}'.", name, fmt::join(choices, " or "), printable(text)));
}

}  // namespace normscope
