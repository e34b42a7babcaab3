#pragma once
// The table of training ops. A row is one op at one shape: its arrays, the equation it must follow, and the
// real layer at work in float and in double. The modes of train_ops run over the rows.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "normscope/matrix.h"

namespace normscope::ops {

using Array = Matrix<double>;  // activations: features × tokens
struct Named {
  std::string name;
  Array value;
};
using Arrays = std::vector<Named>;

// A row's layer with its values, in one precision and for one instruction set.
class Work {
 public:
  virtual ~Work() = default;
  virtual void forward() = 0;
  virtual Array output() const = 0;
  virtual void seed(const Array& gradient) = 0;         // ∂L/∂output
  virtual void backward() = 0;                          // once, after forward
  virtual Arrays gradients() const = 0;                 // of the row's arrays, in their order
  virtual std::string complaint() const { return {}; }  // what else is wrong after backward
};

struct Row {
  std::string name, shape;
  // A row without `grad` is one whose output has kinks or steps at the values tested.
  bool test = true, grad = true, perf = false;
  double operations =
      0;          // of forward and backward: multiplications, additions, functions, as the equation has
  Arrays arrays;  // input, if any, and parameters; every number is a float
  std::function<Array(const Arrays&)> reference;
  std::function<void(Array&)> adjust_seed;  // of ∂L/∂output, where not any will do; may be empty
  std::function<std::unique_ptr<Work>(const Arrays&)> in_float, in_double;
};

// The rows for the instruction set that highway currently chooses; layer_target() names it.
std::vector<Row> layer_rows();
std::vector<Row> transformer_rows();
std::int64_t layer_target();
std::vector<Row> encoder_rows();

// Values of an array by what its name says: gains and α near 1, matrices of weights over √columns.
Array random_array(const std::string& name, std::size_t rows, std::size_t cols, const std::string& seed);

}  // namespace normscope::ops
