// A stranger's text stays text, whatever it holds.
#include <gtest/gtest.h>

#include "report/text.h"
#include "unit/markup.h"

namespace normscope {
namespace {

TextFigure figure_of(std::vector<TextFigure::Token> tokens) {
  TextFigure figure;
  figure.tokens = std::move(tokens);
  return figure;
}

TEST(TextFigure, MarkupIsText) {
  const auto figure = figure_of({{"<script>alert(1)</script>", 0.5, "\"><b>", "'<i>"}});
  const std::string html = text_html(figure);
  EXPECT_TRUE(balanced(html));
  EXPECT_EQ(count(html, "<script"), 0u);
  EXPECT_EQ(count(html, "<b>"), 0u);
  EXPECT_EQ(count(html, "<i>"), 0u);
  EXPECT_EQ(count(html, "&lt;script&gt;alert(1)&lt;/script&gt;"), 1u);
}

TEST(TextFigure, SpacesAndLinesAreKeptAndInvisibleCharactersShown) {
  const std::string html = text_html(figure_of({{"a  b\n"}, {"\t\x01"}, {"x\u202Ey\u200B"}, {"\xff"}}));
  EXPECT_NE(html.find("a  b<span class=\"control\">↵</span>\n"), std::string::npos);
  for (const char* sign : {"⇥", "U+0001", "U+202E", "U+200B"})
    EXPECT_EQ(count(html, std::string("<span class=\"control\">") + sign), 1u) << sign;
  EXPECT_EQ(count(html, "\u202E"), 0u);
  EXPECT_EQ(count(html, "\uFFFD"), 1u);
}

TEST(TextFigure, EveryTokenIsIsolated) {
  EXPECT_EQ(count(text_html(figure_of({{"שלום"}, {"abc"}, {"مرحبا"}})), "<bdi class=\"token\">"), 3u);
}

TEST(TextFigure, LongTokensAreShortenedAndSayTheirLength) {
  std::string word;
  for (int i = 0; i < 1'000'000; ++i) word += "é";
  const auto figure = figure_of({{word}});
  const std::string html = text_html(figure);
  EXPECT_LT(html.size(), 2000u);
  EXPECT_NE(html.find("… 1000000 characters …"), std::string::npos);
  EXPECT_EQ(count(html, "\uFFFD"), 0u);
  EXPECT_GT(text_csv(figure).size(), 2'000'000u);  // the data are whole
  EXPECT_EQ(count(text_html(figure_of({{std::string(200, 'a')}})), "characters"), 0u);
}

TEST(TextFigure, ManyTokensAreCutAndItIsSaid) {
  TextFigure figure;
  figure.tokens.resize(TextFigure::most_tokens + 5, {"w "});
  const std::string html = text_html(figure);
  EXPECT_EQ(count(html, "<bdi"), TextFigure::most_tokens);
  EXPECT_EQ(count(html, "The first 20000 of 20005 tokens are shown"), 1u);
  EXPECT_EQ(count(text_csv(figure), "\n"), TextFigure::most_tokens + 6);
}

TEST(TextFigure, ValuesAndKindsAreToldInMoreThanColour) {
  auto figure =
      figure_of({{"a", 0.25, "unselectable", "head 3"}, {"b", 7.0, "tied", ""}, {"c"}, {"d", -1.0}});
  figure.value_name = "margin";
  const std::string html = text_html(figure);
  EXPECT_EQ(count(html, "title=\"unselectable, margin 0.25\nhead 3\""), 1u);
  EXPECT_EQ(count(html, "--value:1.000"), 1u);
  EXPECT_EQ(count(html, "--value:0.000"), 1u);
  EXPECT_EQ(count(html, "<li class=\"entry\""), 2u);
  EXPECT_EQ(text_csv(figure),
            "token,text,value,kind,hint\n0,a,0.25,unselectable,head 3\n1,b,7,tied,\n2,c,,,\n3,d,-1,,\n");
}

TEST(TextFigure, NoTextIsSaid) {
  EXPECT_NE(text_html({}).find("There is no text"), std::string::npos);
}

}  // namespace
}  // namespace normscope
