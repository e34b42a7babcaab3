#pragma once
// What Python gives us, as float64 arrays. Anything NumPy can view is taken: arrays of any layout, lists, and
// tensors of other libraries through __array__ or __dlpack__, without importing those libraries.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

#include "normscope/tensor_file.h"

namespace normscope::python {

using Doubles = pybind11::array_t<double, pybind11::array::c_style>;

struct Numbers {
  Doubles values;        // C order
  DType rounding;        // of the dtype the numbers came in; integers count as float64
  double unit_roundoff;  // of the dtype the numbers came in; integers count as float64
  double smallest_rounding;
  pybind11::dtype dtype;  // of results in the same precision: float32 for bfloat16, float64 for integers
};

// `what` names the argument in errors. Throws TypeError for what does not hold real numbers, and ValueError
// for numbers float64 cannot hold exactly or that are masked.
Numbers numbers_from(const pybind11::object& object, const std::string& what);

}  // namespace normscope::python
