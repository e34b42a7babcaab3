// normscope._core, what the Python package `normscope` is made on: NumPy arrays in, NumPy arrays out. The science is the
// library's; this only converts.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "bindings.h"
#include "normscope/error.h"
#include "normscope/version.h"

namespace {

// pybind11 before 2.12 reads NumPy 2's dtypes at the wrong places.
void require_known_numpy() {
#if PYBIND11_VERSION_HEX < 0x020C0000
  const std::string version = pybind11::module_::import("numpy").attr("__version__").cast<std::string>();
  if (version.compare(0, 2, "1.") != 0) {
    PyErr_SetString(PyExc_ImportError,
                    ("this build of normscope works with NumPy 1, but this is NumPy " + version +
                     ": install it with `pip install .`, which takes a pybind11 that knows both")
                        .c_str());
    throw pybind11::error_already_set();
  }
#endif
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  require_known_numpy();
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
  normscope::python::add_model(module);
  normscope::python::add_monitor(module);
  normscope::python::add_questions(module);
}
