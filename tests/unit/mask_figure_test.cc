// Masks as pictures: the coarser grid counts every pair once, and markup stays markup.
#include <gtest/gtest.h>

#include "normscope/random.h"
#include "report/mask_page.h"
#include "unit/markup.h"

namespace normscope {
namespace {

TEST(MaskFigure, SharesAreThoseOfTheCells) {
  Random random(8);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random.below(40), rows = 1 + random.below(n), columns = 1 + random.below(n);
    const Mask mask = unite(parse_mask("random:0.4", n, random.bits64()),
                            parse_mask("window:" + std::to_string(random.below(n)), n));
    const std::vector<double> shares = mask_shares(mask, rows, columns);
    ASSERT_EQ(shares.size(), rows * columns);
    for (std::size_t k = 0; k < shares.size(); ++k) {
      const std::size_t r = k / columns, c = k % columns;
      std::size_t allowed = 0, pairs = 0;
      for (std::size_t i = r * n / rows; i < (r + 1) * n / rows; ++i) {
        for (std::size_t j = c * n / columns; j < (c + 1) * n / columns; ++j) {
          allowed += mask.attends(i, j);
          ++pairs;
        }
      }
      EXPECT_DOUBLE_EQ(shares[k], static_cast<double>(allowed) / static_cast<double>(pairs))
          << n << " tokens, cell " << r << ", " << c << " of " << rows << " × " << columns;
    }
  }
}

TEST(MaskFigure, SmallMasksAreGraphsTooAndNamesAreEscaped) {
  for (const std::size_t n : {1, 2, 24, 25, 1000}) {
    MaskFigure figure;
    for (const std::string name : {"causal", "self"}) {
      const Mask mask = parse_mask(name, n);
      figure.panels.push_back({"<" + name + "&\"x\">", mask, mask_properties(mask)});
    }
    const std::string svg = mask_svg(figure);
    EXPECT_TRUE(balanced(svg)) << n;
    EXPECT_EQ(svg.find("<causal"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos) << n;
    EXPECT_EQ(svg.find("<circle") != std::string::npos, n <= MaskFigure::most_nodes) << n;
    EXPECT_LT(svg.size(), 100'000u) << n;
    EXPECT_EQ(mask_csv(figure).find("mask,first_row"), 0u);
    EXPECT_EQ(mask_table(figure).size(), 3u);
    EXPECT_NE(render_html(mask_page(figure, {}, "{}")).find("radius"), std::string::npos);
  }
}

}  // namespace
}  // namespace normscope
