// A text as HTML, token by token. The text is a stranger's: it may hold markup, characters that turn the
// writing direction of what follows, and words without end.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/utf8.h"
#include "report/draw.h"
#include "report/page.h"
#include "report/text.h"
#include "result/columns.h"

namespace normscope {
namespace {

struct Character {
  char32_t code;
  std::size_t bytes;
};

// The first character; what is not UTF-8 is taken byte by byte, as U+FFFD.
Character first_of(std::string_view text) {
  if (!first_sequence(text).valid) return {0xFFFD, 1};
  std::size_t bytes = 0;
  const char32_t code = next_character(text, bytes);
  return {code, bytes};
}

// Has no ink, or moves that of others: controls, writing direction, joiners, fillers, tags, lines of their
// own.
bool invisible(char32_t code) {
  constexpr std::pair<char32_t, char32_t> ranges[] = {
      {0x00, 0x1F},     {0x7F, 0x9F},      {0xAD, 0xAD},     {0x034F, 0x034F}, {0x061C, 0x061C},
      {0x115F, 0x1160}, {0x17B4, 0x17B5},  {0x180B, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},
      {0x2060, 0x206F}, {0x3164, 0x3164},  {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0},
      {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF}};
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const auto& range) { return code >= range.first && code <= range.second; });
}

std::string shown(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const auto [code, bytes] = first_of(text);
    const auto control = [&](const std::string& sign) {
      html += "<span class=\"control\">" + sign + "</span>";
    };
    if (code == '\n') {
      control("↵");
      html += "\n";
    } else if (code == '\t') {
      control("⇥");
      html += "\t";
    } else if (invisible(code)) {
      control(fmt::format("U+{:04X}", static_cast<std::uint32_t>(code)));
    } else {
      html += escape_markup(text.substr(0, bytes));
    }
    text.remove_prefix(bytes);
  }
  return html;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// The place of the count-th character.
std::size_t place_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; count > 0 && at < text.size(); --count) at += first_of(text.substr(at)).bytes;
  return at;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t begin = 120, end = 40;
  const std::size_t count = characters(text);
  if (count <= TextFigure::most_characters) return shown(text);
  std::size_t last = text.size();
  for (std::size_t left = end; left > 0 && last > 0; --left) {
    do --last;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80);
  }
  return fmt::format("{}<span class=\"control\">… {} characters …</span>{}",
                     shown(text.substr(0, place_of(text, begin))), count, shown(text.substr(last)));
}

std::string hint_of(const TextFigure& figure, const TextFigure::Token& token) {
  std::string words = token.kind;
  if (token.value && std::isfinite(*token.value))
    words += fmt::format("{}{} {:.4g}", words.empty() ? "" : ", ", figure.value_name, *token.value);
  if (!token.hint.empty()) words += (words.empty() ? "" : "\n") + token.hint;
  return words;
}

// A line of its CSV.
struct TokenRow {
  std::size_t index = 0;
  TextFigure::Token token = {};

  static void describe(auto& visit, auto& self) {
    visit("token", self.index, "counted from 0");
    TextFigure::Token::describe(visit, self.token);
  }
};

}  // namespace

std::string text_html(const TextFigure& figure) {
  draw::Names kinds;
  std::string html;
  const std::size_t count = std::min(figure.tokens.size(), TextFigure::most_tokens);
  for (std::size_t i = 0; i < count; ++i) {
    const TextFigure::Token& token = figure.tokens[i];
    const std::string hint = hint_of(figure, token);
    html += "<bdi class=\"token";
    if (!token.kind.empty()) html += fmt::format(" kind-{}", kinds.index_of(token.kind) % 6);
    html += "\"";
    if (!token.kind.empty()) html += draw::named(token.kind);
    if (token.value && std::isfinite(*token.value))
      html += fmt::format(" style=\"--value:{:.3f}\"", std::clamp(*token.value, 0.0, 1.0));
    if (!hint.empty()) html += draw::attribute("title", hint);
    html += ">" + shortened(token.text) + "</bdi>";
  }
  std::string legend;
  for (std::size_t k = 0; k < kinds.all().size(); ++k) {
    legend +=
        fmt::format("<li class=\"entry\"{}><span class=\"token kind-{}\">{}</span></li>",
                    draw::attribute("data-toggle", kinds.all()[k]), k % 6, escape_markup(kinds.all()[k]));
  }
  if (!legend.empty()) legend = "<ul class=\"kinds\">" + legend + "</ul>\n";
  std::string note;
  if (figure.tokens.empty()) note = "<p class=\"note\">There is no text.</p>\n";
  if (count < figure.tokens.size())
    note = fmt::format("<p class=\"note\">The first {} of {} tokens are shown; the CSV has all.</p>\n", count,
                       figure.tokens.size());
  return legend + "<div class=\"text\" tabindex=\"0\" role=\"group\" aria-label=\"the text\">" + html +
         "</div>\n" + note;
}

std::string text_csv(const TextFigure& figure) {
  Csv<TokenRow> csv;
  for (std::size_t i = 0; i < figure.tokens.size(); ++i) csv.add({i, figure.tokens[i]});
  return std::move(csv).text();
}

}  // namespace normscope
