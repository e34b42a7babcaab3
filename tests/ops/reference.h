#pragma once
// The training ops written straight from the equations of train.h and norm.h, in double, one token at a time.
// Activations are features × tokens: a token is a column.
#include <string>
#include <string_view>
#include <vector>

#include "normscope/matrix.h"
#include "normscope/norm.h"
#include "normscope/train.h"

namespace normscope::ops {

using Array = Matrix<double>;
struct Named {
  std::string name;
  Array value;
};
using Arrays = std::vector<Named>;

// Null if there is none of that name.
const Array* find(const Arrays& arrays, std::string_view name);
const Array& at(const Arrays& arrays, std::string_view name);

namespace reference {

Array linear(const Array& weight, const Array* bias, const Array& x);
// Parameters are `prefix` + gain, bias, normals, alpha.
Array norm(const NormSpec& spec, const Arrays& parameters, const std::string& prefix, const Array& x);
// Down each column.
Array softmax(const Array& scores);
// Softmax weights of one head, keys × queries; q and k are width × tokens.
Array attention_weights(const Array& q, const Array& k, const std::string& mask);
// qkv is 3d × tokens.
Array attention(std::size_t heads, const std::string& mask, const Array& qkv);
Array feed_forward(const Arrays& parameters, const std::string& prefix, const Array& x);
// Row 0: the loss of each column; row 1: 1 where the first highest logit is the label's.
Array cross_entropy(const Array& logits, const std::vector<std::uint16_t>& labels);
Array encoder_layer(const EncoderSpec& spec, const Arrays& parameters, std::size_t layer, const Array& x);
// classes × tokens.
Array encoder_logits(const EncoderSpec& spec, const Arrays& parameters,
                     std::span<const std::uint16_t> tokens);
EncoderMeasures encoder_measures(const EncoderSpec& spec, const Arrays& parameters, const SequenceSet& set);

}  // namespace reference
}  // namespace normscope::ops
