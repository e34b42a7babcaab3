#pragma once
// Texts whose tokens are marked.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace normscope {

// A text, token by token, with what was measured of each. Spaces and line breaks are kept, characters that do
// not show are made visible, every token is isolated from the writing direction of its neighbours, and long
// ones are shortened.
struct TextFigure {
  struct Token {
    std::string text;
    std::optional<double> value = {};  // in [0, 1]: how strongly it is coloured
    std::string kind = {};             // its class, told by colour and by underline; empty: none
    std::string hint = {};

    static void describe(auto& visit, auto& self) {
      visit("text", self.text, "");
      visit("value", self.value, "how strongly it is coloured");
      visit("kind", self.kind, "its class");
      visit("hint", self.hint, "");
    }
  };
  static constexpr std::size_t most_tokens = 20'000;   // shown; the CSV has all
  static constexpr std::size_t most_characters = 200;  // of a token that is shown whole
  std::vector<Token> tokens;
  std::string value_name = "value";

  static void describe(auto& visit, auto& self) {
    visit("value_name", self.value_name, "what the colours mean");
    visit("tokens", self.tokens, "in order");
  }
};
std::string text_html(const TextFigure& figure);
// token,text,value,kind,hint
std::string text_csv(const TextFigure& figure);

}  // namespace normscope
