#pragma once
#include <span>
#include <vector>

#include "normscope/block.h"
#include "normscope/matrix.h"

namespace normscope {

// How far the keys of one head, computed in float32, are at most from those meant: xW + b, scaled to norm 1
// where the block does that, turned by the angles of the token's place. One number per token, ‖·‖₂.
//
// The distance to the same keys in float64 is measured, and what float64 itself may err is added: a product
// of m terms and a bias errs by at most γ(‖x‖‖W‖_F + ‖b‖), γ = 1.01(m + 1)2⁻⁵³, in any order of its sum;
// turning by an angle of a radians by less than 4(4 + a)2⁻⁵³ of the key's length; scaling doubles the
// relative error.
//
// in: n × d, what attention maps; keys: n × width of a head; weights: d × width; bias: empty or width
// numbers.
std::vector<double> key_errors(const BlockSpec& block, MatrixView<const float> in,
                               MatrixView<const double> weights, std::span<const double> bias,
                               MatrixView<const double> keys);

}  // namespace normscope
