#include "normscope/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normscope/error.h"
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
    const std::size_t namespaces =
        std::string_view(word) == "http:" ? count(html, "'http://www.w3.org/2000/svg'") : 0;
    EXPECT_EQ(count(html, word), namespaces) << word;
  }
}

TEST(Report, EscapesAndRepairsText) {
  EXPECT_EQ(escape_markup("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape_markup("é√𝕏"), "é√𝕏");
  EXPECT_EQ(escape_markup("\xff|\xc3|\xed\xa0\x80|\x01"), "\uFFFD|\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD");
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
  EXPECT_EQ(count(svg, "0 everywhere"), 1u);
}

TEST(HeatmapSvg, ExactlyZeroHasAColourOfItsOwn) {
  const std::string svg = heatmap_svg(small_figure());
  EXPECT_EQ(count(svg, "class=\"zero\""), 2u + 6u + 1u);  // two cells, the zero panel, the legend
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
  EXPECT_NE(heatmap_verdict(run_with(0, 0)).find("\u201d holds on"), std::string::npos);
  EXPECT_NE(heatmap_verdict(run_with(2, 0)).find("\u201d holds up to float32 rounding on"),
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

}  // namespace
}  // namespace normscope
