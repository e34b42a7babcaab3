#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normscope/error.h"
#include "report/heatmap_page.h"
#include "unit/markup.h"

namespace normscope {
namespace {

const std::string kAttack = "</script><script>alert(1)</script><img src=x onerror=\"alert('2')\">&amp;";

Page hostile_page() {
  Page page;
  page.title = page.verdict = page.footer = kAttack;
  page.paragraphs = {kAttack};
  page.tables = {{kAttack, {{kAttack, "b"}, {kAttack, "2"}}}};
  page.figures = {{kAttack, kAttack, kAttack, "<svg></svg>", kAttack}};
  page.data = nlohmann::json{{kAttack, kAttack}}.dump();
  return page;
}

TEST(Report, NothingFromOutsideBecomesMarkup) {
  const std::string html = render_html(hostile_page());
  EXPECT_EQ(count(html, "alert(1)</script>"), 0u);
  EXPECT_EQ(count(html, "<script>alert"), 0u);
  EXPECT_EQ(count(html, "<img"), 0u);
  EXPECT_EQ(count(html, "<script"), 3u);  // the data, the figure's CSV, and the page's own
  EXPECT_EQ(count(html, "</script>"), 3u);
}

TEST(Report, DataSurvivesItsEscaping) {
  const std::string html = render_html(hostile_page());
  const auto data = nlohmann::json::parse(between(html, "id=\"data\">", "</script>"));
  EXPECT_EQ(data[kAttack], kAttack);
  const auto csv = nlohmann::json::parse(
      between(html, "Download CSV</button><script type=\"application/json\">", "</script>"));
  EXPECT_EQ(csv, kAttack);
}

TEST(Report, DataMustBeJson) {
  Page page;
  page.data = "</script>";
  EXPECT_THROW(render_html(page), Error);
}

TEST(Report, FetchesNothing) {
  std::string html = render_html(hostile_page());
  for (const char* word : {"http:", "https:", "@import", "url(", " src=\"", "<link"}) {
    // A namespace is a name, not an address; a clip path is in the page itself.
    const std::size_t harmless = std::string_view(word) == "http:"
                                     ? count(html, "\"http://www.w3.org/2000/svg\"")
                                 : std::string_view(word) == "url(" ? count(html, "url(#")
                                                                    : 0;
    EXPECT_EQ(count(html, word), harmless) << word;
  }
}

TEST(Report, EscapesAndRepairsText) {
  EXPECT_EQ(escape_markup("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape_markup("é√𝕏"), "é√𝕏");
  EXPECT_EQ(escape_markup("\xff|\xc3|\xed\xa0\x80|\x01"), "\uFFFD|\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD");
}

TEST(Report, FiguresAreNamedDescribedAndListed) {
  Page page;
  for (int i = 0; i < 4; ++i) {
    Figure figure{"same", "Title <" + std::to_string(i) + ">", "caption", "<svg width=\"300\"></svg>",
                  "a,b\n1,2\n"};
    figure.settings = "seed 7 & more";
    page.figures.push_back(figure);
  }
  const std::string html = render_html(page);
  EXPECT_EQ(count(html, "<nav class=\"contents\" aria-label=\"Contents\">"), 1u);
  for (const char* id : {"same", "same-2", "same-3", "same-4"}) {
    EXPECT_EQ(count(html, "<figure id=\"" + std::string(id) + "\""), 1u) << id;
    EXPECT_EQ(count(html, "href=\"#" + std::string(id) + "\""), 1u) << id;
    EXPECT_EQ(count(html, "<svg role=\"img\" aria-labelledby=\"" + std::string(id) + "-title\""), 1u) << id;
  }
  EXPECT_EQ(count(html, "<p class=\"settings\">seed 7 &amp; more</p>"), 4u);
  EXPECT_EQ(count(html, "<figcaption>caption</figcaption>"), 4u);
  page.figures.resize(3);
  EXPECT_EQ(count(render_html(page), "<nav"), 0u);
}

TEST(Report, SectionsHaveHeadingsLinksAndFiguresOfTheirOwn) {
  Page page;
  page.figures = {{"a", "First", "", "<svg></svg>", ""}};
  PageSection section{"run <1>"};
  section.verdict = "holds";
  section.figures = {{"a", "Second", "", "<svg></svg>", ""}};
  section.link = "javascript:alert(1)/\"x\"/report.html";
  page.sections = {section};
  const std::string html = render_html(page);
  EXPECT_EQ(count(html, "<h2>run &lt;1&gt;</h2>"), 1u);
  EXPECT_EQ(count(html, "<h3 id=\"a-2-title\">Second</h3>"), 1u);
  // A name with a colon is a path, not a script.
  EXPECT_EQ(count(html, "href=\"./javascript%3Aalert%281%29/%22x%22/report.html\""), 1u);
}

TEST(Report, SettingsNameSeedAndVersion) {
  EXPECT_EQ(settings_text({"1.2", "abc", "avx2", 7, 1}), "seed 7 · normscope 1.2 (abc, avx2, 1 thread)");
  EXPECT_EQ(settings_text({"1.2", "abc", "avx2", 7, 2}, "10 draws"),
            "10 draws · seed 7 · normscope 1.2 (abc, avx2, 2 threads)");
}

HeatmapFigure small_figure() {
  HeatmapFigure figure{
      .x_label = "n <keys>", .y_label = "d", .x = {3, 4, 5}, .y = {2, 3}, .rows = {}, .caption = "c"};
  const std::vector<std::string> hints = {"a", "b", "<c>", "d", "e", "f"};
  figure.rows = {
      {"row", "scale", {{"panel", {0, 0.1, 0.5, 0.9, 1, 0}, hints}, {"zero", {0, 0, 0, 0, 0, 0}, hints}}}};
  return figure;
}

TEST(HeatmapSvg, DrawsEveryCellOnce) {
  const std::string svg = heatmap_svg(small_figure());
  EXPECT_TRUE(balanced(svg));
  EXPECT_EQ(count(svg, "<title>"), 12u);
  EXPECT_EQ(count(svg, "&lt;c&gt;"), 2u);
  EXPECT_EQ(count(svg, "n &lt;keys&gt;"), 2u);
  EXPECT_EQ(count(svg, "0 in all 6 cells"), 1u);
}

TEST(HeatmapSvg, ExactlyZeroHasAColourOfItsOwn) {
  const std::string svg = heatmap_svg(small_figure());
  EXPECT_EQ(count(svg, "class=\"zero\""), 2u + 6u + 1u);  // two cells, the zero panel, the legend
}

TEST(HeatmapSvg, WithoutHintsNeighboursThatLookAlikeAreOneShape) {
  HeatmapFigure figure = small_figure();
  figure.x_column = "n";
  figure.y_column = "d";
  figure.rows[0].panels.resize(1);
  figure.rows[0].panels[0] = {"panel", {0, 0, 0.5, 0.5, 0.5, 1}, {}, "norm=<x>"};
  const std::string svg = heatmap_svg(figure);
  EXPECT_TRUE(balanced(svg));
  const std::string cells = between(svg, "<g class=\"cells\"", "</g>");
  EXPECT_EQ(count(cells, "<rect"), 4u);
  EXPECT_EQ(count(cells, "width=\"2.01\""), 2u);
  EXPECT_EQ(count(cells, "data-where=\"norm=&lt;x&gt;\" data-axes=\"n d\" data-xs=\"3 4 5\" data-ys=\"2 3\""),
            1u);
}

TEST(HeatmapSvg, TakesEmptyAndSingleCells) {
  EXPECT_TRUE(balanced(heatmap_svg({})));
  HeatmapFigure figure{.x_label = "n", .y_label = "d", .x = {7}, .y = {9}, .rows = {}, .caption = ""};
  figure.rows = {{"row", "scale", {{"panel", {0.25}, {}}}}};
  EXPECT_TRUE(balanced(heatmap_svg(figure)));
}

TEST(Viridis, RunsFromDarkToLight) {
  const auto luminance = [](double share) {
    const Colour colour = viridis(share);
    return 0.2126 * colour.red + 0.7152 * colour.green + 0.0722 * colour.blue;
  };
  for (int i = 0; i < 100; ++i) EXPECT_LT(luminance(i / 100.0), luminance((i + 1) / 100.0)) << i;
  EXPECT_EQ(viridis(-1).red, 0x44);
  EXPECT_EQ(viridis(2).red, 0xfd);
}

// One cell of 10 draws of 4 keys.
HeatmapRun run_with(std::size_t unselectable, std::size_t robust) {
  HeatmapCell cell{.n = 4, .d = 3, .draws = 10};
  cell.unselectable = unselectable;
  cell.robust_unselectable = robust;
  cell.fraction = static_cast<double>(unselectable) / 40;
  cell.any = unselectable > 0 ? 0.5 : 0;
  HeatmapRun run;
  run.grids = {{"none", {{4}, {3}, {cell}}}, {"layernorm", {{4}, {3}, {cell}}}};
  run.draws = 10;
  return run;
}

TEST(HeatmapPage, TheVerdictFollowsTheNumbers) {
  EXPECT_NE(heatmap_verdict(run_with(0, 0)).find("\u201d is not contradicted by these draws"),
            std::string::npos);
  EXPECT_NE(heatmap_verdict(run_with(2, 0)).find("\u201d is contradicted by float32 rounding alone"),
            std::string::npos);
  EXPECT_NE(heatmap_verdict(run_with(2, 2)).find("\u201d does not hold on"), std::string::npos);
}

TEST(HeatmapPage, SaysWhereTheReadingsDiffer) {
  EXPECT_NE(heatmap_readings(run_with(2, 2))
                .find("n = 4, d = 3 (no norm): 5.0 % of the keys, but 50.0 % of the draws"),
            std::string::npos);
  EXPECT_NE(heatmap_readings(run_with(0, 0)).find("the two agree"), std::string::npos);
}

TEST(HeatmapPage, RendersWithItsData) {
  const std::string html = render_html(heatmap_page(run_with(2, 2), "{\"cells\":[]}"));
  EXPECT_NE(html.find("{\"cells\":[]}"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

TEST(HeatmapCsv, HasAHeaderAndARowPerCell) {
  const std::string csv = heatmap_csv(run_with(2, 1));
  EXPECT_EQ(csv.substr(0, 13), "norm,n,d,draw");
  EXPECT_EQ(count(csv, "\n"), 3u);
  EXPECT_NE(csv.find("\nlayernorm,4,3,10,0.05,"), std::string::npos);
}

TEST(HeatmapPage, NoneOfSoManyIsNotNone) {
  const std::string sentence = heatmap_verdict(run_with(0, 0));
  EXPECT_NE(sentence.find("none of 40 keys is unselectable, in any of 10 draws; at most 31 % of such draws"),
            std::string::npos)
      << sentence;
  HeatmapRun one = run_with(0, 0);
  one.draws = 1;
  for (HeatmapRun::Grid& grid : one.grids) {
    grid.heatmap.cells.resize(1);
    grid.heatmap.cells.front().draws = 1;
  }
  const std::string alone = heatmap_verdict(one);
  EXPECT_NE(alone.find(" is unselectable, in one draw; at most "), std::string::npos) << alone;
}

}  // namespace
}  // namespace normscope
