#pragma once
// Where the tensors of a model come from, by the names of the Hugging Face library.
#include <cstddef>
#include <span>
#include <string>

#include "normscope/tensor_file.h"

namespace normscope::checkpoint {

// May be used from several threads at once.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Null if there is no such tensor. Throws InputError if there is one that holds no numbers we read.
  virtual const TensorInfo* find(const std::string& name) const = 0;
  // Rows first, first + 1, … of a tensor that `find` knows, as many as `into` holds.
  virtual void read_rows(const std::string& name, std::size_t first, std::span<float> into) const = 0;
  // The file, or the files, as messages name them; and that of one tensor.
  virtual std::string label() const = 0;
  virtual std::string label_of(const std::string& name) const = 0;
};

// The same as read_rows; throws InputError that names tensor and row if a number is NaN or infinite.
void read_finite_rows(const TensorSource& source, const std::string& name, std::size_t first,
                      std::span<float> into);

}  // namespace normscope::checkpoint
