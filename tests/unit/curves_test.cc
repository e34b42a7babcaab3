#include "report/curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "report/draw.h"
#include "report/scatter.h"
#include "unit/markup.h"

namespace normscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
const std::string kAttack = "</text><script>alert(1)</script>\"'&amp;";

// Markup that a reader takes, with numbers only.
bool sound(const std::string& svg) {
  std::string lower = svg;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return balanced(svg) && count(lower, "nan") == 0 && count(lower, "inf") == 0;
}

// The attribute of the first element that holds `part`, which may be in its children's text.
std::string attribute(const std::string& svg, const std::string& part, const std::string& name) {
  const std::size_t at = svg.find(part);
  if (at == std::string::npos) return "no " + part;
  const std::size_t begin = svg.rfind("<path", at);
  return between(svg.substr(begin), " " + name + "=\"", "\"");
}

CurveFigure::Curve line(const std::string& name, std::size_t size) {
  CurveFigure::Curve curve{name, {}, {}, {}, {}};
  for (std::size_t i = 0; i < size; ++i) {
    const double x = static_cast<double>(i);
    curve.x.push_back(x);
    curve.y.push_back(1 + x);
    curve.low.push_back(0.5 + x);
    curve.high.push_back(1.5 + x);
  }
  return curve;
}

CurveFigure::Panel panel_of(std::vector<CurveFigure::Curve> curves) {
  CurveFigure::Panel panel;
  panel.title = "panel";
  panel.x_label = "step";
  panel.y_label = "loss";
  panel.curves = std::move(curves);
  return panel;
}

TEST(Curves, DrawsEveryCurveWithItsBandAndHints) {
  CurveFigure figure{{panel_of({line("a", 5), line("b", 7)})}, "caption"};
  const std::string svg = curves_svg(figure);
  EXPECT_TRUE(sound(svg));
  EXPECT_EQ(count(svg, "fill-opacity=\"0.16\""), 2u);
  EXPECT_EQ(count(svg, "<circle class=\"point\""), 12u);
  EXPECT_NE(svg.find("<title>b, x 2: y 3 [2.5 … 3.5]</title>"), std::string::npos);
  for (const char* word : {">step<", ">loss<", ">panel<", ">caption<"}) EXPECT_EQ(count(svg, word), 1u);
}

TEST(Curves, LongCurvesHaveSixtyHintsWithBothEnds) {
  const std::string svg = curves_svg({{panel_of({line("a", 170)})}, ""});
  EXPECT_EQ(count(svg, "<circle class=\"point\""), 60u);
  EXPECT_EQ(count(svg, "<title>a, x 0: "), 1u);
  EXPECT_EQ(count(svg, "<title>a, x 169: "), 1u);
}

TEST(Curves, ElementsNameTheirCurveAndPanelsTheirFrame) {
  auto panel = panel_of({line("a<b", 5)});
  panel.log_y = true;
  panel.marks = {{"a<b", 1, 2, ""}};
  const std::string svg = curves_svg({{panel}, ""});
  for (const char* kind : {"line", "band", "mark"})
    EXPECT_EQ(count(svg, "class=\"" + std::string(kind) + "\" data-name=\"a&lt;b\""), 1u) << kind;
  EXPECT_EQ(count(svg, "<g class=\"entry\" data-toggle=\"a&lt;b\">"), 1u);
  EXPECT_EQ(count(svg, "<g class=\"entry\" data-toggle-class=\"mark\">"), 1u);
  EXPECT_EQ(count(svg, "data-kind=\"xy\" data-title=\"panel\" data-axes=\"step\nloss\""), 1u);
  EXPECT_EQ(count(svg, "data-log=\"y\""), 1u);
  EXPECT_EQ(count(svg, " data-x=\"1\" data-y=\"2\""), 1u);
}

TEST(Curves, LongLinesAreDrawnWithWhatPixelsCanShow) {
  CurveFigure::Curve curve{"a", {}, {}, {}, {}};
  for (int i = 0; i < 200'000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i == 77'777 ? 50 : std::sin(i * 0.37));
  }
  CurveFigure figure{{panel_of({curve})}, ""};
  const std::string svg = curves_svg(figure);
  EXPECT_TRUE(sound(svg));
  EXPECT_LT(svg.size(), 250'000u);
  // Thinning the data keeps the ends and the peak.
  const std::size_t left_out = thin(figure, 1000);
  EXPECT_EQ(left_out, 200'000u - figure.panels[0].curves[0].x.size());
  const auto& kept = figure.panels[0].curves[0];
  EXPECT_LE(kept.x.size(), 1000u);
  EXPECT_EQ(kept.x.front(), 0);
  EXPECT_EQ(kept.x.back(), 199'999);
  EXPECT_EQ(*std::max_element(kept.y.begin(), kept.y.end()), 50);
  EXPECT_TRUE(std::is_sorted(kept.x.begin(), kept.x.end()));
  EXPECT_EQ(thin(figure, 1000), 0u);
}

TEST(Curves, ANameLooksTheSameInEveryPanel) {
  // "c" is third in the legend; in the second panel it is alone.
  CurveFigure figure{{panel_of({line("a", 3), line("b", 3), line("c", 3)}), panel_of({line("c", 3)})}, ""};
  figure.panels[1].marks = {{"c", 1, 2, "Table 1"}};
  const std::string svg = curves_svg(figure);
  const std::string stroke = "stroke=\"" + std::string(draw::colour(2)) + "\"";
  const std::string dashes = "stroke-dasharray=\"" + std::string(draw::dash(2)) + "\"";
  EXPECT_EQ(count(svg, dashes), 3u);       // legend and two panels
  EXPECT_EQ(count(svg, stroke), 3u + 1u);  // and the mark
  EXPECT_EQ(attribute(svg, "<title>c, in the paper, x 1: y 2\nTable 1</title>", "stroke"), draw::colour(2));
}

TEST(Curves, FiftySixNamesDiffer) {
  std::vector<std::string> looks;
  for (std::size_t i = 0; i < 56; ++i) {
    looks.push_back(std::string(draw::colour(i)) + "|" + std::string(draw::dash(i)));
    // Without colour, neighbours in the legend still differ.
    EXPECT_NE(draw::dash(i), draw::dash(i + 1));
  }
  std::sort(looks.begin(), looks.end());
  EXPECT_EQ(std::unique(looks.begin(), looks.end()), looks.end());
}

TEST(Curves, AMarkOfNoCurveIsDotted) {
  CurveFigure figure{{panel_of({line("a", 3)})}, ""};
  figure.panels[0].marks = {{"a", 1, 2, ""}, {"other", 1, 1, ""}, {"lost", kNan, 1, ""}};
  const std::string svg = curves_svg(figure);
  EXPECT_EQ(attribute(svg, "<title>a, in the paper", "d").substr(0, 1), "M");
  EXPECT_EQ(attribute(svg, "<title>other, in the paper", "stroke-dasharray"), "2 1.6");
  EXPECT_EQ(count(svg, "lost, in the paper"), 0u);
  EXPECT_EQ(count(svg, ">value in the paper<"), 1u);
}

TEST(Curves, WhatIsNotFiniteBreaksTheLine) {
  CurveFigure::Curve curve{"a", {0, 1, 2, 3, 4, 5, 6}, {1, 2, kNan, 4, kInf, 6, 7}, {}, {}};
  const std::string svg = curves_svg({{panel_of({curve})}, ""});
  EXPECT_TRUE(sound(svg));
  const std::string path = attribute(svg.substr(svg.find(">panel<")), "stroke-width=\"1.8\"", "d");
  EXPECT_EQ(count(path, "M"), 2u);
  EXPECT_EQ(count(path, "L"), 2u);
  EXPECT_EQ(count(svg, "r=\"3\""), 1u);  // the point between the gaps
  EXPECT_EQ(count(svg, "class=\"point\""), 5u);
}

TEST(Curves, OddInputIsDefined) {
  const std::vector<double> kOdd = {kNan, kInf,   -kInf, 0,      -0.0,  1,      -1,
                                    1e-9, 5e-324, 1e308, -1e308, 1e300, -1e300, 1 + 1e-15};
  for (const double a : kOdd) {
    for (const double b : kOdd) {
      for (const bool log : {false, true}) {
        auto panel = panel_of({{"a", {a, b, 1}, {b, a, a}, {b, b, b}, {a, a, a}}, {"b", {b}, {a}, {a}, {b}}});
        panel.log_x = panel.log_y = log;
        panel.marks = {{"a", a, b, ""}};
        EXPECT_TRUE(sound(curves_svg({{panel}, ""}))) << a << " " << b << " " << log;
        panel.y_low = a;
        panel.y_high = b;
        EXPECT_TRUE(sound(curves_svg({{panel}, ""}))) << a << " " << b << " " << log;
        panel.y_high.reset();
        EXPECT_TRUE(sound(curves_svg({{panel}, ""}))) << a << " " << b << " " << log;
      }
    }
  }
}

TEST(Curves, EmptyFiguresPanelsAndCurvesAreDefined) {
  EXPECT_TRUE(sound(curves_svg({})));
  const std::string svg = curves_svg(
      {{panel_of({}), panel_of({{"a", {}, {}, {}, {}}}), panel_of({{"b", {1}, {kNan}, {}, {}}})}, ""});
  EXPECT_TRUE(sound(svg));
  EXPECT_EQ(count(svg, "nothing to draw"), 3u);
  // Vectors of unequal length: what has no partner is left out.
  EXPECT_EQ(count(curves_svg({{panel_of({{"c", {1, 2, 3}, {1, 2}, {1}, {2, 3}}})}, ""}), "class=\"point\""),
            2u);
}

TEST(Curves, LimitsCutTheLineWhereItLeaves) {
  auto panel = panel_of({{"a", {0, 1}, {0, 10}, {}, {}}});
  panel.y_low = 0;
  panel.y_high = 5;
  const std::string svg = curves_svg({{panel}, ""});
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0, left = 0, top = 0, bottom = 0, right = 0;
  const std::string path = attribute(svg.substr(svg.find(">panel<")), "stroke-width=\"1.8\"", "d");
  ASSERT_EQ(std::sscanf(path.c_str(), "M%lf %lfL%lf %lf", &x0, &y0, &x1, &y1), 4) << path;
  const std::string frame = attribute(svg, "stroke-opacity=\"0.55\"", "d");
  ASSERT_EQ(std::sscanf(frame.c_str(), "M%lf %lfV%lfH%lf", &left, &top, &bottom, &right), 4) << frame;
  EXPECT_NEAR(y1, top, 0.11);
  EXPECT_NEAR(y0, bottom, 0.11);
  EXPECT_NEAR((x1 - x0) / (right - left), 0.5, 0.02);  // half way, but for the margin
}

TEST(Curves, NamesCannotBecomeMarkup) {
  auto panel = panel_of({line(kAttack, 3)});
  panel.title = panel.x_label = panel.y_label = kAttack;
  panel.marks = {{kAttack + "2", 1, 1, kAttack}};
  const std::string svg = curves_svg({{panel, panel}, kAttack});
  EXPECT_TRUE(sound(svg));
  EXPECT_EQ(count(svg, "<script"), 0u);
  EXPECT_GT(count(svg, "&amp;amp;"), 0u);
}

TEST(Curves, LongNamesWrapAndAreShortened) {
  std::vector<CurveFigure::Curve> curves;
  for (int i = 0; i < 30; ++i)
    curves.push_back(line("a name of some length, number " + std::to_string(i), 2));
  curves.push_back(line(std::string(500, 'W'), 2));
  const std::string svg = curves_svg({{panel_of(std::move(curves))}, std::string(3000, 'x')});
  EXPECT_TRUE(sound(svg));
  EXPECT_EQ(count(svg, "…<title>WWW"), 1u);
  std::size_t at = 0;
  while ((at = svg.find("<g transform=\"translate(", at)) != std::string::npos) {
    EXPECT_LT(std::stod(svg.substr(at + 24)), 1100);
    ++at;
  }
  EXPECT_GT(std::stod(between(svg, "viewBox=\"0 0 1100 ", "\"")), 600);  // the legend has made it higher
}

TEST(Curves, CsvHoldsEveryPointAndMark) {
  CurveFigure figure{{panel_of({line("a", 2), {"b, \"c\"", {1}, {kNan}, {}, {}}})}, ""};
  figure.panels[0].marks = {{"a", 1, 0.25, "hint"}};
  EXPECT_EQ(curves_csv(figure),
            "panel,curve,x,y,low,high\n"
            "panel,a,0,1,0.5,1.5\n"
            "panel,a,1,2,1.5,2.5\n"
            "panel,\"b, \"\"c\"\"\",1,,,\n"
            "panel,published: a,1,0.25,,\n");
}

std::vector<std::string> labels(double low, double high, bool log, double length, bool horizontal) {
  draw::Axis axis{low, high, log, 0, length};
  std::vector<std::string> found;
  for (const auto& tick : draw::ticks(axis, horizontal)) found.push_back(tick.markup);
  return found;
}

TEST(Ticks, AreRound) {
  using List = std::vector<std::string>;
  EXPECT_EQ(labels(0, 1, false, 400, true), (List{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels(-7, 12, false, 200, false), (List{"−5", "0", "5", "10"}));
  EXPECT_EQ(labels(0, 20'000, false, 300, true), (List{"0", "5,000", "10,000", "15,000", "20,000"}));
  EXPECT_EQ(labels(0.5, 60, true, 260, false), (List{"0.5", "1", "2", "5", "10", "20", "50"}));
  EXPECT_EQ(labels(0.0005, 2000, true, 260, false),
            (List{"0.001", "0.01", "0.1", "1", "10", "100", "1,000"}));
  EXPECT_EQ(labels(3.2, 3.9, true, 120, false), (List{"3.2", "3.4", "3.6", "3.8"}));
  EXPECT_NE(labels(1e-12, 1, true, 260, false)[0].find("10<tspan"), std::string::npos);
}

TEST(Ticks, LabelsNeverTouch) {
  for (const bool log : {false, true}) {
    for (double low = 1e-12; low < 1e12; low *= 7.3) {
      for (double factor : {1.0001, 1.3, 2.0, 17.0, 1e3, 1e7, 1e40}) {
        const draw::Axis axis{low, low * factor, log, 0, 430};
        const auto ticks = draw::ticks(axis, true);
        EXPECT_GE(ticks.size(), 2u) << low << " " << factor << " " << log;
        for (std::size_t i = 0; i < ticks.size(); ++i) {
          EXPECT_GE(axis.at(ticks[i].value), -0.01);
          EXPECT_LE(axis.at(ticks[i].value), 430.01);
          if (i == 0) continue;
          const double apart = axis.at(ticks[i].value) - axis.at(ticks[i - 1].value);
          EXPECT_GT(apart, (ticks[i].width + ticks[i - 1].width) / 2) << low << " " << factor << " " << log;
        }
      }
    }
  }
}

ScatterFigure::Panel cloud() {
  ScatterFigure::Panel panel{.title = "panel", .groups = {}, .ones_plane = true};
  panel.groups = {{"keys", {{3, 0, 0, "first"}, {0, 4, 0, ""}, {0, 0, -1, ""}}, false},
                  {"queries", {{1, 1, 1, "upright"}}, true}};
  return panel;
}

TEST(Scatter, DrawsEveryPointWithItsHint) {
  const std::string svg = scatter_svg({{cloud(), cloud()}, "caption"});
  EXPECT_TRUE(sound(svg));
  EXPECT_EQ(count(svg, "class=\"point\""), 8u);
  EXPECT_EQ(count(svg, "<title>first</title>"), 2u);
  EXPECT_EQ(count(svg, "<title>keys: (0, 4, 0)</title>"), 2u);
  EXPECT_EQ(count(svg, "<ellipse"), 2u);
  EXPECT_EQ(count(svg, ">(1, 1, 1)<"), 2u);
  EXPECT_EQ(count(svg, "the largest norm, 4<"), 2u);
  EXPECT_EQ(count(svg, ">queries<"), 1u);  // one legend
}

// Where the tip of the only arrow is, relative to the origin of the panel, in largest norms.
std::pair<double, double> tip_of(double x, double y, double z) {
  const std::string svg = scatter_svg({{{"", {{"q", {{x, y, z, "tip"}}, true}}, false}}, ""});
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  const std::size_t head = svg.find("<title>tip");
  const std::string shaft = svg.substr(0, svg.rfind("<path", head) - 1);
  const std::string path = between(shaft.substr(shaft.rfind("<path")), " d=\"", "\"");
  EXPECT_EQ(std::sscanf(path.c_str(), "M%lf %lfL%lf %lf", &x0, &y0, &x1, &y1), 4) << path;
  const double radius = std::stod(between(svg, " r=\"", "\""));
  return {(x1 - x0) / radius, (y0 - y1) / radius};
}

TEST(Scatter, ThePlaneOfLayerNormLooksFlatButNotALine) {
  EXPECT_NEAR(tip_of(2, 2, 2).first, 0, 0.01);
  EXPECT_GT(tip_of(2, 2, 2).second, 0.95);
  double highest = 0, widest = 0;
  for (int degrees = 0; degrees < 360; degrees += 10) {
    const double a = std::cos(degrees * 0.0174533) / std::sqrt(2),
                 b = std::sin(degrees * 0.0174533) / std::sqrt(6);
    const auto [right, up] = tip_of(a + b, b - a, -2 * b);
    highest = std::max(highest, std::abs(up));
    widest = std::max(widest, std::abs(right));
  }
  EXPECT_GT(highest, 0.08);
  EXPECT_LT(highest, 0.3);
  EXPECT_GT(widest, 0.95);
}

TEST(Scatter, NearPointsArePaintedLastAndLarger) {
  // The viewer is in the direction (0.88, −0.43, −0.19).
  ScatterFigure::Panel panel{"", {{"a", {{1, -1, 0, "near"}, {-1, 1, 0, "far"}}, false}}, false};
  const std::string svg = scatter_svg({{panel}, ""});
  EXPECT_LT(svg.find("<title>far"), svg.find("<title>near"));
  EXPECT_LT(std::stod(attribute(svg, "<title>far", "fill-opacity")),
            std::stod(attribute(svg, "<title>near", "fill-opacity")));
}

TEST(Scatter, OddInputIsDefined) {
  EXPECT_TRUE(sound(scatter_svg({})));
  ScatterFigure::Panel panel{"", {}, true};
  EXPECT_EQ(count(scatter_svg({{panel, panel, panel}, ""}), "nothing to draw"), 3u);
  for (const double value : {kNan, kInf, -kInf, 0.0, 1e308, 1e300, 5e-324, -1.0}) {
    panel.groups = {{"a", {{value, 0, 0, ""}, {value, value, value, ""}}, false},
                    {"b", {{0, value, value, ""}, {0, 0, 0, ""}}, true}};
    EXPECT_TRUE(sound(scatter_svg({{panel}, ""}))) << value;
  }
  panel.groups = {{kAttack, {{1, 2, 3, kAttack}, {1, 2, 3, ""}}, false}};
  panel.title = kAttack;
  const std::string svg = scatter_svg({{panel}, kAttack});
  EXPECT_TRUE(sound(svg));
  EXPECT_EQ(count(svg, "<script"), 0u);
}

TEST(Scatter, CsvHoldsEveryPoint) {
  EXPECT_EQ(scatter_csv({{cloud()}, ""}),
            "panel,group,x,y,z\n"
            "panel,keys,3,0,0\npanel,keys,0,4,0\npanel,keys,0,0,-1\npanel,queries,1,1,1\n");
}

TEST(FigurePage, HintsOfAllShapesAreShown) {
  Page page;
  page.figures = {{"f", "t", "c", scatter_svg({{cloud()}, ""}), ""}};
  EXPECT_NE(render_html(page).find("querySelectorAll(\"* > title\")"), std::string::npos);
}

TEST(Curves, LayersAreCountedInWholeNumbers) {
  CurveFigure figure;
  CurveFigure::Panel& panel = figure.panels.emplace_back();
  panel.title = "layers";
  panel.curves.push_back({"a", {0, 1, 2}, {1, 2, 3}, {}, {}});
  const auto across = [&] {
    const std::string svg = curves_svg(figure);
    return svg.find(">0.5<") != std::string::npos || svg.find(">1.5<") != std::string::npos;
  };
  panel.y_low = 0;
  panel.y_high = 10;
  EXPECT_TRUE(across());  // else this test would say nothing
  panel.whole_x = true;
  EXPECT_FALSE(across());
}

}  // namespace
}  // namespace normscope
