#pragma once
// Values held against what their description says of them: for files that people may have changed.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <type_traits>

#include "normscope/error.h"
#include "result/present_only.h"

namespace normscope {

// A visitor of describe.h. Throws InputError that names the first number out of its range, by its place
// ("config.json.settings.layers").
class RangeCheck : public PresentOnly<RangeCheck> {
 public:
  explicit RangeCheck(std::string place) : place_(std::move(place)) {}

  template <class Field>
  void operator()(const char* name, const Field& field, const char*, const Facts& facts = {}) {
    check(field, fmt::format("{}.{}", place_, name), facts);
  }

  template <class T>
  static void check(const T& value, const std::string& place, const Facts& facts) {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      RangeCheck inside(place);
      T::describe(inside, value);
    } else if constexpr (Kind::optional) {
      if (value) check(*value, place, facts);
    } else if constexpr (Kind::named) {
      for (const auto& [name, each] : value) check(each, fmt::format("{}.{}", place, name), facts);
    } else if constexpr (Kind::list) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        const typename Kind::Inner& each = value[i];
        check(each, fmt::format("{}[{}]", place, i), facts);
      }
    } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const auto number = static_cast<double>(value);
      const bool bounded = std::isfinite(facts.low) || std::isfinite(facts.high) || facts.finite;
      if (!bounded || (std::isnan(number) && facts.or_null)) return;
      if (std::isfinite(number) && number >= facts.low && number <= facts.high) return;
      throw InputError(fmt::format("{} is {}, but takes {}.", place, value, range_words(facts)));
    }
  }

 private:
  static std::string range_words(const Facts& facts) {
    if (std::isfinite(facts.low) && std::isfinite(facts.high))
      return fmt::format("{} to {}", facts.low, facts.high);
    if (std::isfinite(facts.low)) return fmt::format("at least {}", facts.low);
    return std::isfinite(facts.high) ? fmt::format("at most {}", facts.high) : "a finite number";
  }

  std::string place_;
};

// label: what holds the value, in messages.
template <Described T>
void require_in_ranges(const T& value, const std::string& label) {
  RangeCheck::check(value, label, {});
}

}  // namespace normscope
