#pragma once
// Keywords from the options of a study (result/options.h): what there is, and values put into the struct.
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "result/options.h"

namespace normscope::python {

// A keyword: "query-norm" is query_norm, "3d" in_3d; inputs are in small letters.
inline std::string keyword_of(std::string_view name) {
  std::string word = !name.empty() && name.front() >= '0' && name.front() <= '9' ? "in_" : "";
  for (const char c : name)
    word += c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return word;
}

// As a person writes it, several of them, or a flag.
using OptionValue = std::variant<std::string, std::vector<std::string>, bool>;
using OptionValues = std::map<std::string, OptionValue, std::less<>>;  // by keyword

enum class OptionKind { text, whole, number, flag, choice, list };

struct OptionNote {
  std::string keyword;
  OptionKind kind = OptionKind::text;
  bool input = false, required = false;
  std::string sentence, fallback;             // fallback: the default, as text; empty: none
  std::vector<std::string> choices, several;  // several: the default of a list
  std::string otherwise;                      // the default in words
  std::optional<double> low, high;
};

// A visitor of result/options.h.
class OptionNotes {
 public:
  template <class Field>
  void input(const char* name, const Field& field, const char* sentence, const OptionFacts& facts = {}) {
    add(name, field, sentence, facts);
    notes_.back().input = true;
    notes_.back().required = facts.otherwise == nullptr;
  }
  template <class Field>
  void operator()(const char* name, const Field& field, const char* sentence, const OptionFacts& facts = {}) {
    add(name, field, sentence, facts);
  }
  std::vector<OptionNote> notes() && { return std::move(notes_); }

 private:
  template <class Field>
  static void tell_kind(const Field& field, OptionNote& note) {
    if constexpr (FieldKind<Field>::optional) {
      tell_kind(typename FieldKind<Field>::Inner(), note);
    } else if constexpr (FieldKind<Field>::list) {
      note.kind = OptionKind::list;
      note.several = field;
    } else if constexpr (NamedEnumeration<Field>) {
      note.kind = OptionKind::choice;
      for (const Field value : values_of(field)) note.choices.emplace_back(name_of(value));
    } else if constexpr (std::is_same_v<Field, bool>) {
      note.kind = OptionKind::flag;
    } else if constexpr (std::is_floating_point_v<Field>) {
      note.kind = OptionKind::number;
    } else if constexpr (std::is_integral_v<Field>) {
      note.kind = OptionKind::whole;
    }
  }
  template <class Field>
  void add(const char* name, const Field& field, const char* sentence, const OptionFacts& facts) {
    OptionNote& note = notes_.emplace_back();
    note.keyword = keyword_of(name);
    note.sentence = sentence;
    tell_kind(field, note);
    // What the default of a number is, is not for `otherwise` to decide here: a keyword has a value.
    note.fallback = option_default(field, facts);
    if (facts.otherwise != nullptr) note.otherwise = facts.otherwise;
    if (std::isfinite(facts.low)) note.low = facts.low;
    if (std::isfinite(facts.high)) note.high = facts.high;
  }
  std::vector<OptionNote> notes_;
};

// A visitor that fills an options struct; what is not among the values stays as it is.
class OptionFiller {
 public:
  explicit OptionFiller(const OptionValues& values) : values_(values) {}
  template <class Field>
  void input(const char* name, Field& field, const char* sentence, const OptionFacts& facts = {}) {
    (*this)(name, field, sentence, facts);
  }
  template <class Field>
  void operator()(const char* name, Field& field, const char*, const OptionFacts& facts = {}) {
    const std::string keyword = keyword_of(name);
    const auto found = values_.find(keyword);
    if (found == values_.end()) return;
    if constexpr (std::is_same_v<Field, bool>) {
      if (const auto* given = std::get_if<bool>(&found->second)) field = *given;
    } else if constexpr (FieldKind<Field>::list) {
      if (const auto* given = std::get_if<std::vector<std::string>>(&found->second)) field = *given;
    } else {
      if (const auto* given = std::get_if<std::string>(&found->second))
        take_option(*given, keyword, facts, field);
    }
  }

 private:
  const OptionValues& values_;
};

template <class Options>
Options filled(const OptionValues& values) {
  Options options;
  OptionFiller fill(values);
  Options::describe(fill, options);
  return options;
}

}  // namespace normscope::python
