// Curves of more points than a figure can show.
#include <algorithm>

#include "report/curves.h"
#include "report/draw.h"

namespace normscope {
namespace {

std::vector<std::size_t> kept(const CurveFigure::Curve& curve, std::size_t most) {
  const std::size_t size = draw::length(curve), stretches = std::max<std::size_t>(1, most / 4);
  std::vector<std::size_t> indices;
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t begin = s * size / stretches, end = (s + 1) * size / stretches;
    if (begin == end) continue;
    std::size_t low = begin, high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (curve.y[i] < curve.y[low]) low = i;
      if (curve.y[i] > curve.y[high]) high = i;
    }
    for (const std::size_t i : {begin, std::min(low, high), std::max(low, high), end - 1}) {
      if (indices.empty() || indices.back() < i) indices.push_back(i);
    }
  }
  return indices;
}

}  // namespace

std::size_t thin(CurveFigure& figure, std::size_t most) {
  std::size_t left_out = 0;
  for (CurveFigure::Panel& panel : figure.panels) {
    for (CurveFigure::Curve& curve : panel.curves) {
      const std::size_t size = draw::length(curve);
      if (size <= std::max<std::size_t>(4, most)) continue;
      const std::vector<std::size_t> indices = kept(curve, most);
      for (std::vector<double>* values : {&curve.x, &curve.y, &curve.low, &curve.high}) {
        if (values->size() < size) continue;
        for (std::size_t k = 0; k < indices.size(); ++k) (*values)[k] = (*values)[indices[k]];
        values->resize(indices.size());
      }
      left_out += size - indices.size();
    }
  }
  return left_out;
}

}  // namespace normscope
