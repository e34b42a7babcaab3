#include "scan/key_errors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/gemm.h"
#include "model/rotate.h"

namespace normscope {
namespace {

constexpr double kRoundoff = 0x1p-53;

double length(std::span<const double> values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

}  // namespace

std::vector<double> key_errors(const BlockSpec& block, MatrixView<const float> in,
                               MatrixView<const double> weights, std::span<const double> bias,
                               MatrixView<const double> keys) {
  const std::size_t width = keys.cols;
  Matrix<double> x(in.rows, in.cols), meant(in.rows, width);
  for (std::size_t i = 0; i < in.rows; ++i) {
    std::copy(in[i].begin(), in[i].end(), x[i].begin());
    std::copy(bias.begin(), bias.end(), meant[i].begin());
  }
  multiply<double>(1, x.view(), weights, Transpose::no, 1, meant.view());
  double squares = 0;
  for (std::size_t i = 0; i < weights.rows; ++i) squares += length(weights[i]) * length(weights[i]);
  const double weight_norm = std::sqrt(squares), bias_norm = length(bias);
  const double gamma = 1.01 * static_cast<double>(in.cols + 1) * kRoundoff;
  // Lengths and distances are themselves sums in float64.
  const double slack = 1 + static_cast<double>(in.cols + width + 16) * kRoundoff;
  const auto& frequencies = block.rotary.frequencies;
  double fastest = 0;
  for (const double frequency : frequencies) fastest = std::max(fastest, std::abs(frequency));
  std::vector<double> errors;
  for (std::size_t i = 0; i < in.rows; ++i) {
    double error = gamma * (length(x[i]) * weight_norm + bias_norm) * slack;
    if (block.normalize_query_key) {
      const double before = length(meant[i]);
      NormSpec unit;
      unit.scaling = Scaling::unit_per_head;
      unit.heads = 1;
      const MatrixView<double> row{meant[i].data(), 1, width};
      norm_forward<double>(unit, {}, row, row);
      // Two vectors of norm 1 are never farther apart than 2.
      error = before > 0 ? std::min(2.0, 2 * error / before + static_cast<double>(2 * width + 16) * kRoundoff)
                         : 2.0;
    }
    if (!frequencies.empty()) {
      rotate<double>(block.rotary, width, static_cast<double>(i), meant[i]);
      error += 4 * (4 + static_cast<double>(i) * fastest) * kRoundoff * length(meant[i]);
    }
    double apart = 0;
    for (std::size_t c = 0; c < width; ++c) apart += (keys(i, c) - meant(i, c)) * (keys(i, c) - meant(i, c));
    errors.push_back((std::sqrt(apart) + error) * slack);
  }
  return errors;
}

}  // namespace normscope
