#pragma once
// Keys in the plane, the hull of them, and who can be selected.
#include <span>
#include <string>

#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

struct KeyPlaneFigure {
  MatrixView<const double> keys;      // n × 2
  std::span<const Verdict> verdicts;  // without score offsets
  std::string title, caption;
};
// One unit is as long across as up. Verdicts differ by colour and by shape. If all keys have the same length, the circle
// they lie on is drawn. What is not finite, or far too large to draw, is left out.
std::string key_plane_svg(const KeyPlaneFigure& figure);

}  // namespace normscope
