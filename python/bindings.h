#pragma once
// What the module consists of: one function per file.
#include <pybind11/pybind11.h>

namespace normscope::python {

void add_keys(pybind11::module_& module);  // decide_keys, KeySet
void add_mask(pybind11::module_& module);  // mask
void add_norm(pybind11::module_& module);  // norm

}  // namespace normscope::python
