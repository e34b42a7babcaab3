#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/layer_head.h"
#include "unit/markup.h"

namespace normscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

LayerHeadFigure figure_of(std::size_t layers, std::size_t heads, double value) {
  LayerHeadFigure figure;
  figure.layers = layers;
  figure.heads = heads;
  figure.scale = "share of keys";
  figure.panels = {{"model <space>", std::vector<double>(layers * heads, value)}};
  return figure;
}

TEST(LayerHeadFigure, DrawsEveryCellWithItsHint) {
  LayerHeadFigure figure = figure_of(3, 4, 0.5);
  figure.panels[0].values[5] = kNan;
  figure.percent = true;
  figure.low = 0;
  figure.high = 1;
  const std::string svg = layer_head_svg(figure);
  EXPECT_TRUE(balanced(svg));
  EXPECT_EQ(count(svg, "<title>layer "), 12u);
  EXPECT_EQ(count(svg, "<title>layer 1, head 1: n/a</title>"), 1u);
  EXPECT_EQ(count(svg, "<title>layer 2, head 3: 50 %</title>"), 1u);
  EXPECT_EQ(count(svg, "model &lt;space&gt;"), 2u);  // the title and the cells' name
  EXPECT_EQ(layer_head_csv(figure).find("panel,layer,head,value\nmodel <space>,0,0,0.5\n"), 0u);
  EXPECT_NE(layer_head_csv(figure).find("model <space>,1,1,\n"), std::string::npos);
}

// Beside a larger model, what a smaller one does not have is not drawn as if it were unknown.
TEST(LayerHeadFigure, APanelHasTheHeadsOfItsOwnModel) {
  LayerHeadFigure figure = figure_of(3, 4, 0.5);
  figure.panels.push_back({"small", {0.1, 0.2, 0.3, 0.4}, 2});
  const std::string svg = layer_head_svg(figure);
  EXPECT_EQ(count(svg, "<title>layer "), 16u);
  EXPECT_EQ(count(svg, "n/a"), 0u);
  EXPECT_EQ(count(svg, "data-columns=\"2\""), 1u);
  EXPECT_NE(layer_head_csv(figure).find("small,1,0,0.3\n"), std::string::npos);
  EXPECT_EQ(layer_head_csv(figure).find("small,2,"), std::string::npos);
}

TEST(LayerHeadFigure, SizesAndOddValuesAreDefined) {
  for (const std::size_t layers : {0, 1, 12, 200}) {
    for (const std::size_t heads : {0, 1, 12, 200}) {
      for (const double value : {kNan, 0.0, 1.0, -1e308, 1e308, 5e-324}) {
        LayerHeadFigure figure = figure_of(layers, heads, value);
        figure.panels.push_back({"short", {value}});
        figure.panels.push_back({"none", {}});
        const std::string svg = layer_head_svg(figure);
        EXPECT_TRUE(balanced(svg)) << layers << " × " << heads;
        EXPECT_EQ(count(svg, "\"nan"), 0u) << layers << " × " << heads << " " << value;
        EXPECT_EQ(count(svg, "inf"), 0u) << layers << " × " << heads << " " << value;
      }
    }
  }
  EXPECT_TRUE(balanced(layer_head_svg({})));
}

}  // namespace
}  // namespace normscope
