// The Python module `normscope`: NumPy arrays in, NumPy arrays out. The science is the library's; this file
// only converts.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "normscope/error.h"
#include "normscope/version.h"

PYBIND11_MODULE(normscope, module) {
  module.doc() = "What normalization and masks do to a transformer's attention, decided exactly.";
  module.attr("__version__") = normscope::version();
  module.attr("__commit__") = normscope::commit();
  module.attr("__instruction_set__") = normscope::instruction_set();
  // The library reports both faulty input and failed runs as sentences; Python knows the first as ValueError.
  pybind11::register_exception<normscope::Error>(module, "Error", PyExc_RuntimeError);
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the signature is pybind11's
  pybind11::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const normscope::InputError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
  normscope::python::add_keys(module);
  normscope::python::add_mask(module);
  normscope::python::add_norm(module);
}
