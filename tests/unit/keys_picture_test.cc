// Keys that are drawn: what the eye sees is what was decided.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "normscope/keys.h"
#include "report/key_plane.h"
#include "report/keys_page.h"
#include "unit/markup.h"

namespace normscope {
namespace {

const std::vector<double> kSquare = {1, 1, 1, -1, -1, 1, -1, -1, 0, 0, 1, 0};

Figure picture(const std::vector<double>& values, std::size_t d, bool projected = false) {
  const MatrixView<const double> keys(values.data(), values.size() / d, d);
  std::vector<Verdict> verdicts;
  for (const KeyVerdict& key : decide_keys(keys, {}, {}, Executor(1)).keys) verdicts.push_back(key.verdict);
  return keys_picture(keys, verdicts, projected, "keys", "settings");
}

TEST(KeysPicture, MarksEveryKeyByItsVerdictAndJoinsTheCorners) {
  const Figure figure = picture(kSquare, 2);
  EXPECT_EQ(count(figure.svg, "<g class=\"key\""), 6u);
  EXPECT_EQ(count(figure.svg, "<g class=\"key\" data-name=\"selectable\""), 4u);
  EXPECT_EQ(count(figure.svg, "key 4: (0, 0), unselectable"), 1u);
  EXPECT_EQ(count(figure.svg, "key 5: (1, 0), tied"), 1u);
  const std::string hull = between(figure.svg, "class=\"hull\" d=\"", "\"");
  EXPECT_EQ(count(hull, "M") + count(hull, "L"), 4u);  // the tied key and the centre are no corners
  EXPECT_EQ(count(figure.svg, "class=\"length\""), 0u);
  EXPECT_TRUE(is_passive_svg(figure.svg));
  EXPECT_EQ(figure.csv.substr(0, figure.csv.find('\n', 20)), "key,x,y,verdict\n0,1,1,selectable");
}

TEST(KeysPicture, DrawsTheCircleThatAllKeysLieOn) {
  std::vector<double> circle;
  for (int i = 0; i < 5; ++i) circle.insert(circle.end(), {std::cos(1.2 * i), std::sin(1.2 * i)});
  EXPECT_EQ(count(picture(circle, 2).svg, "class=\"length\""), 1u);
}

TEST(KeysPicture, LeavesOutWhatIsTooLargeToDraw) {
  const Figure figure = picture({0, 0, 1, 0, 0, 1, 1e305, 1e305}, 2);
  EXPECT_EQ(count(figure.svg, "nan") + count(figure.svg, "inf"), 0u);
  EXPECT_LT(count(figure.svg, "<g class=\"key\""), 4u);
  EXPECT_EQ(count(picture({0, 0}, 2).svg, "<g class=\"key\""), 1u);
}

TEST(KeysPicture, ShowsSpaceAndItsPlaneOrthogonalToOne) {
  const std::vector<double> keys = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0.1, 0.1, 0.1, -1, -1, -1};
  const Figure flat = picture(keys, 3, true);
  EXPECT_EQ(count(flat.svg, "class=\"point\""), 5u);
  EXPECT_EQ(count(flat.svg, "key 3: (0.1, 0.1, 0.1), unselectable"), 1u);
  EXPECT_EQ(count(flat.svg, "class=\"plane\""), 1u);
  EXPECT_EQ(count(picture(keys, 3).svg, "class=\"plane\""), 0u);
}

}  // namespace
}  // namespace normscope
