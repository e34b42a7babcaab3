#pragma once
// Tiny checkpoints as open_checkpoint reads them, or refuses them.
#include <gtest/gtest.h>

#include <string>

#include "normscope/checkpoint.h"
#include "support/message.h"
#include "support/tiny_checkpoint.h"

namespace normscope {

inline Checkpoint opened(const TinyCheckpoint& model) {
  const TemporaryDirectory directory;  // the files stay readable once open
  return open_checkpoint(model.write(directory));
}

inline std::string refusal(const TinyCheckpoint& model) {
  const TemporaryDirectory directory;
  const std::string path = model.write(directory);
  return message_of([&] { open_checkpoint(path); });
}

// W of a map that is stored out × in stands in `columns` of `weights` from `first` on.
inline void expect_map(const TinyCheckpoint& model, const std::string& name, const Matrix<float>& weights,
                       std::size_t first = 0) {
  const std::size_t out = model.tensors.at(name).shape[0], in = model.tensors.at(name).shape[1];
  ASSERT_EQ(weights.rows(), in);
  ASSERT_GE(weights.cols(), first + out);
  for (std::size_t i = 0; i < in; ++i)
    for (std::size_t j = 0; j < out; ++j)
      ASSERT_EQ(weights(i, first + j), model.entry(name, i, j)) << name << " at " << i << ", " << j;
}

}  // namespace normscope
