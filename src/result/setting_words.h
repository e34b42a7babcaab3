#pragma once
// Settings in a line, for people: "classes 20, length 50, …".
#include <string>
#include <type_traits>

#include "result/json_writer.h"
#include "result/present_only.h"

namespace normscope {

// A visitor of describe.h. What is not there, empty or an object of its own is left out, and long values are cut.
class SettingWords : public PresentOnly<SettingWords> {
 public:
  template <class Field>
  void operator()(const char* name, const Field& field, const char*, const Facts& = {}) {
    constexpr std::size_t longest = 80;
    std::string words = words_of(field);
    if (words.empty()) return;
    if (words.size() > longest) words = words.substr(0, longest) + "…";
    text_ += (text_.empty() ? "" : ", ") + std::string(name) + " " + words;
  }
  std::string text() && { return std::move(text_); }

 private:
  template <class Field>
  static std::string words_of(const Field& field) {
    using Kind = FieldKind<Field>;
    if constexpr (Described<Field> || Kind::named) {
      return "";
    } else if constexpr (Kind::optional) {
      return field ? words_of(*field) : "";
    } else if constexpr (Kind::list) {
      std::string words;
      for (const typename Kind::Inner& each : field) words += (words.empty() ? "" : " ") + words_of(each);
      return words;
    } else if constexpr (NamedEnumeration<Field>) {
      return name_of(field);
    } else if constexpr (std::is_same_v<Field, std::string>) {
      return field;
    } else {
      std::string words;
      JsonWriter writer([&](std::string_view piece) { words += piece; }, -1);
      writer.value(field);
      writer.flush();
      return words == "null" ? "" : words;
    }
  }
  std::string text_;
};

template <Described Settings>
std::string setting_words(const Settings& settings) {
  SettingWords words;
  Settings::describe(words, settings);
  return std::move(words).text();
}

}  // namespace normscope
