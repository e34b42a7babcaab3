#include "normscope/mask.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>

#include "background.h"
#include "bindings.h"

namespace py = pybind11;

namespace normscope::python {
namespace {

py::array_t<bool> dense(const Mask& mask) {
  const auto n = static_cast<py::ssize_t>(mask.n());
  py::array_t<bool> allowed({n, n});
  bool* row = allowed.mutable_data();
  for (std::size_t i = 0; i < mask.n(); ++i, row += n) {
    std::fill_n(row, n, false);
    for (const Mask::Run& run : mask.row(i)) std::fill(row + run.first, row + run.last, true);
  }
  return allowed;
}

py::dict mask(const std::string& spec, std::size_t n, std::uint64_t seed, bool with_dense) {
  struct Made {
    Mask mask;
    MaskProperties properties;
  };
  const auto made = std::make_shared<Made>();
  run_in_background([made, spec, n, seed](Watch&) {
    made->mask = parse_mask(spec, n, seed);
    made->properties = mask_properties(made->mask);
  });
  const MaskProperties& properties = made->properties;
  py::dict result;
  result["tokens"] = properties.n;
  result["edges"] = properties.edges;
  result["density"] = properties.density;
  result["self_loops"] = properties.self_loops;
  result["empty_rows"] = properties.empty_rows;
  result["components"] = properties.components;
  result["strongly_connected"] = properties.strongly_connected();
  result["quasi_strongly_connected"] = properties.quasi_strongly_connected();
  result["centres"] = py::array_t<std::uint32_t>(static_cast<py::ssize_t>(properties.centres.size()),
                                                 properties.centres.data());
  result["radius"] = properties.radius;
  result["diameter"] = properties.diameter;
  if (with_dense) result["allowed"] = dense(made->mask);
  return result;
}

std::string documentation() {
  std::string names;
  for (const std::string_view name : mask_names()) names += (names.empty() ? "" : ", ") + std::string(name);
  return R"(An attention mask as a graph: who attends to whom, and how far information has to go.

spec    )" +
         names + R"(, a union 'a+b' or an intersection 'a&b'
n       tokens
seed    of 'random:p'
dense   whether to add 'allowed', the (n, n) bool array: allowed[i, j] if token i attends to token j

Returns a dict: tokens, edges, density, self_loops, empty_rows, components, strongly_connected,
quasi_strongly_connected, centres (tokens that reach all), radius (None without a centre) and diameter (None unless
strongly connected).)";
}

}  // namespace

void add_mask(py::module_& module) {
  module.def("mask_graph", &mask, documentation().c_str(), py::arg("spec"), py::arg("n"), py::kw_only(),
             py::arg("seed") = 0, py::arg("dense") = true);
}

}  // namespace normscope::python
