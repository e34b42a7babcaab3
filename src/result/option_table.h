#pragma once
// Options as a table in Markdown, for docs/.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "result/options.h"

namespace normscope {

// A visitor of options.h: a line for each, with what it takes, its default and its sentence.
class OptionTable {
 public:
  template <class Field>
  void input(const char* name, const Field&, const char* sentence, const OptionFacts& facts = {}) {
    const bool named = facts.type != nullptr && *facts.type != '\0';
    add(fmt::format("{}{}", named ? facts.type : name, FieldKind<Field>::list ? "…" : ""), "", "", sentence,
        facts);
  }
  template <class Field>
  void operator()(const char* name, const Field& field, const char* sentence, const OptionFacts& facts = {}) {
    const bool flag = std::is_same_v<Field, bool>;
    add(fmt::format("--{}{}{}", name, flag ? "" : " ", flag ? "" : option_type<Field>(facts)),
        values_text(field, facts), default_text(field, facts), sentence, facts);
  }
  std::string text() const {
    return "| option | takes | default | what it does |\n|---|---|---|---|\n" + lines_;
  }

 private:
  template <class Field>
  static std::string values_text(const Field& field, const OptionFacts& facts) {
    if constexpr (FieldKind<Field>::optional) {
      return values_text(typename FieldKind<Field>::Inner(), facts);
    } else if constexpr (NamedEnumeration<Field>) {
      std::string names;
      for (const Field value : values_of(field))
        names += fmt::format("{}`{}`", names.empty() ? "" : ", ", name_of(value));
      return names;
    } else if constexpr (std::is_arithmetic_v<Field> && !std::is_same_v<Field, bool>) {
      const bool low = std::isfinite(facts.low), high = std::isfinite(facts.high);
      if (low && high) return fmt::format("{} to {}", facts.low, facts.high);
      return low ? fmt::format("at least {}", facts.low) : std::is_integral_v<Field> ? "a whole number" : "";
    } else {
      return "";
    }
  }
  template <class Field>
  static std::string default_text(const Field& field, const OptionFacts& facts) {
    std::string text = option_default(field, facts);
    if constexpr (FieldKind<Field>::list)
      for (const auto& each : field) text += (text.empty() ? "" : " ") + each;
    return text.empty() ? "" : "`" + text + "`";
  }

  void add(const std::string& name, const std::string& takes, const std::string& fallback,
           std::string_view sentence, const OptionFacts& facts) {
    const std::string_view words = facts.otherwise == nullptr ? "" : facts.otherwise;
    lines_ += fmt::format("| {} | {} | {} | {} |\n", cell("`" + name + "`"), cell(takes),
                          cell(fallback.empty() ? words : fallback), cell(sentence));
  }
  // A bar inside a cell would end it.
  static std::string cell(std::string_view words) {
    std::string text;
    for (const char c : words) text += c == '|' ? "\\|" : std::string(1, c);
    return text;
  }

  std::string lines_;
};

template <class Options>
std::string option_table(const Options& options = {}) {
  OptionTable table;
  Options::describe(table, options);
  return table.text();
}

}  // namespace normscope
