#pragma once
// Options, said once: name, default (the value a new struct has), range and sentence. The command line, `--help`, the
// check of what Python or another caller gives, and the guide's tables take them from a struct's `describe`:
//
//   struct KeysOptions {
//     std::string file;
//     std::optional<double> query_norm;
//     static void describe(auto& visit, auto& self) {
//       visit.input("FILE", self.file, "A .npy file with n × d keys");
//       visit("query-norm", self.query_norm, "Also the largest weight …", OptionFacts{.type = "R", .low = 0});
//     }
//   };
//
// Fields may be words, numbers, flags, enumerations with name_of and values_of, optional ones, and lists of words.
// Visitors: OptionCheck below, option_table.h, cli/options.h, python/options.h.
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "result/describe.h"

namespace normscope {

struct OptionFacts {
  const char* type = nullptr;  // what stands for the value in --help; null: by the kind of the field
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  const char* otherwise =
      nullptr;  // the default in words, where the value does not say it; of an input: it may be left out
  const char* old_name = nullptr;  // goes on working, unlisted
  const char* needs = nullptr;     // of a text that must not be empty: "the name of a directory"
};

// Numbers as a person writes them. All throw InputError that names `what` (e.g. "--draws") and says what it takes.
// A whole decimal number from low to high.
std::uint64_t parse_count(std::string_view text, std::string_view what, std::uint64_t low,
                          std::uint64_t high);
// A finite number of at least 0; one from low to high.
double parse_non_negative(std::string_view text, std::string_view what);
double parse_number(std::string_view text, std::string_view what, double low, double high);
// The value of an option, within its range. most: what its field holds.
std::uint64_t count_option(std::string_view text, std::string_view name, const OptionFacts& facts,
                           std::uint64_t most);
double number_option(std::string_view text, std::string_view name, const OptionFacts& facts);
double number_option(double value, std::string_view name, const OptionFacts& facts);

// What stands for the value in --help.
template <class Field>
constexpr const char* option_type(const OptionFacts& facts) {
  if (facts.type != nullptr) return facts.type;
  if constexpr (FieldKind<Field>::list) return "NAME…";
  if constexpr (std::is_same_v<Field, std::string>) return "TEXT";
  return NamedEnumeration<Field> ? "NAME" : "N";
}

std::string option_number(double value);  // as short as --help tells it
// The default; empty: none, or one that `otherwise` tells.
template <class Field>
std::string option_default(const Field& field, const OptionFacts& facts) {
  if (facts.otherwise != nullptr || FieldKind<Field>::optional || std::is_same_v<Field, bool>) return "";
  if constexpr (NamedEnumeration<Field>) {
    return name_of(field);
  } else if constexpr (std::is_same_v<Field, std::string>) {
    return field;
  } else if constexpr (std::is_floating_point_v<Field>) {
    return option_number(field);
  } else if constexpr (std::is_integral_v<Field>) {
    return std::to_string(field);
  } else {
    return "";
  }
}

// Throws InputError if `text` is empty and must not be.
void require_text(const std::string& text, const std::string& name, const OptionFacts& facts);
[[noreturn]] void refuse_choice(const std::string& text, const std::string& name,
                                const std::vector<std::string>& choices);

// The value of any option but flags and lists, as a person writes it.
template <class Field>
void take_option(const std::string& text, const std::string& name, const OptionFacts& facts, Field& field) {
  if constexpr (FieldKind<Field>::optional) {
    take_option(text, name, facts, field.emplace());
  } else if constexpr (NamedEnumeration<Field>) {
    std::vector<std::string> names;
    for (const Field value : values_of(field)) {
      if (text == name_of(value)) return static_cast<void>(field = value);
      names.emplace_back(name_of(value));
    }
    refuse_choice(text, name, names);
  } else if constexpr (std::is_floating_point_v<Field>) {
    field = number_option(text, name, facts);
  } else if constexpr (std::is_integral_v<Field>) {
    field = static_cast<Field>(count_option(text, name, facts, std::numeric_limits<Field>::max()));
  } else {
    require_text(text, name, facts);
    field = text;
  }
}

// A visitor that holds values against the ranges of their options.
class OptionCheck {
 public:
  void input(const char*, const auto&, const char*, const OptionFacts& = {}) {}
  template <class Field>
  void operator()(const char* name, const Field& field, const char* sentence, const OptionFacts& facts = {}) {
    if constexpr (FieldKind<Field>::optional) {
      if (field) (*this)(name, *field, sentence, facts);
    } else if constexpr (std::is_floating_point_v<Field>) {
      number_option(static_cast<double>(field), std::string("--") + name, facts);
    } else if constexpr (std::is_integral_v<Field> && !std::is_same_v<Field, bool>) {
      count_option(std::to_string(field), std::string("--") + name, facts, std::numeric_limits<Field>::max());
    }
  }
};

// Throws InputError in the sentence that the command line has for an option out of its range: whoever calls a study,
// that is told the same.
template <class Options>
void check_options(const Options& options) {
  OptionCheck check;
  Options::describe(check, options);
}

}  // namespace normscope
