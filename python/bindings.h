#pragma once
// What normscope._core consists of.
#include <pybind11/pybind11.h>

namespace normscope::python {

void add_keys(pybind11::module_& module);       // decide_keys, KeySet
void add_mask(pybind11::module_& module);       // mask_graph
void add_norm(pybind11::module_& module);       // norm
void add_model(pybind11::module_& module);      // Tokenizer, Model
void add_monitor(pybind11::module_& module);    // MonitorLog
void add_questions(pybind11::module_& module);  // options, ask, load, Answer

}  // namespace normscope::python
