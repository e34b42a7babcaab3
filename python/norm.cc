#include "normscope/norm.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrays.h"
#include "background.h"
#include "bindings.h"
#include "normscope/error.h"
#include "normscope/norm_identities.h"

namespace py = pybind11;

namespace normscope::python {
namespace {

// A parameter of the norm, or nothing.
Doubles parameter_from(const py::object& object, const char* what, py::ssize_t dimensions) {
  if (object.is_none()) return Doubles(0);
  Doubles values = numbers_from(object, what).values;
  if (values.ndim() != dimensions) {
    throw InputError(std::string(what) + " must have " + std::to_string(dimensions) +
                     " dimension(s), but has " + std::to_string(values.ndim()));
  }
  return values;
}

std::span<const double> span_of(const Doubles& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

py::object norm(const py::object& x, const std::string& variant, double eps, const py::object& gain,
                const py::object& bias, const py::object& normals, double alpha, bool return_counts) {
  const Numbers numbers = numbers_from(x, "x");
  const Doubles& values = numbers.values;
  if (values.ndim() == 0 || values.shape(values.ndim() - 1) == 0) {
    throw InputError("x must have at least one dimension, and at least one number along the last");
  }
  const Doubles gains = parameter_from(gain, "gain", 1), biases = parameter_from(bias, "bias", 1),
                normal_rows = parameter_from(normals, "normals", 2);

  NormSpec spec = parse_norm(variant);
  spec.eps = eps;
  spec.affine = !gain.is_none() || !bias.is_none();
  NormParameters<double> parameters;
  parameters.gain = span_of(gains);
  parameters.bias = span_of(biases);
  if (!normals.is_none()) {
    parameters.normals = {normal_rows.data(), static_cast<std::size_t>(normal_rows.shape(0)),
                          static_cast<std::size_t>(normal_rows.shape(1))};
  }
  parameters.alpha = alpha;

  const auto d = static_cast<std::size_t>(values.shape(values.ndim() - 1));
  const auto rows = static_cast<std::size_t>(values.size()) / d;
  const double* from = values.data();
  Doubles result(std::vector<py::ssize_t>(values.shape(), values.shape() + values.ndim()));
  double* to = result.mutable_data();
  const auto counted = std::make_shared<NormCounts>();
  const py::object all = py::make_tuple(values, result, gains, biases, normal_rows);
  run_in_background([counted, spec, parameters, from, to, rows, d, roundoff = numbers.unit_roundoff,
                     held = keep_alive(all)](Watch&) {
    *counted = norm_as_in_models(spec, parameters, {from, rows, d}, {to, rows, d}, roundoff);
  });
  const NormCounts& counts = *counted;
  py::object rounded = result.attr("astype")(numbers.dtype, py::arg("copy") = false);
  if (!return_counts) return rounded;
  py::dict reported;
  reported["rows"] = counts.rows;
  reported["zero_rows"] = counts.zero_rows;
  reported["constant_rows"] = counts.constant_rows;
  return py::make_tuple(rounded, reported);
}

// A described struct of numbers.
struct InDict {
  py::dict dict;
  void operator()(const char* name, const auto& value, const char*) { dict[name] = value; }
};

py::dict identities(std::size_t dimension, std::size_t samples, std::uint64_t seed) {
  const auto found = std::make_shared<NormIdentities>();
  run_in_background(
      [found, dimension, samples, seed](Watch&) { *found = norm_identities(dimension, samples, seed); });
  InDict described;
  NormIdentities::describe(described, *found);
  return described.dict;
}

constexpr const char* kIdentities =
    R"(How well LayerNorm as computed keeps the identities of Brody et al. (2023): §2, appendices B and C.

Largest residuals over random vectors, in float64, each over the length of what is compared: orthogonal (eq. 4), length
(eq. 5), scaled (norm sqrt(d)), projected, direction, two_points (eq. 13 to 15: a plane through 1 goes to two points),
undefined (what a multiple of 1 becomes), action, coordinates, inverse, change_of_basis, formula (eq. 16 to 28: the
projection matrix).

dimension  d, from 2 to 2048
samples    random vectors
seed       of the vectors

Example:

>>> import normscope
>>> found = normscope.norm_identities(16)
>>> found["dimension"], found["two_points"] < 1e-13
(16, True)
)";

std::string documentation() {
  std::string names;
  for (const std::string_view name : norm_names()) names += (names.empty() ? "" : ", ") + std::string(name);
  return R"(What a norm makes of each row of x (its last axis).

variant   )" +
         names + R"(, or any projection+scaling, such as 'center+unit'
eps       inside the scaling; with 0, a row that has no direction to scale becomes 0
gain      one number per dimension, and
bias      one number per dimension: the affine part, off unless one of them is given
normals   (k, d), for the variants that project along learned normals
alpha     of 'dyt'

Computed as models do, in float32 for float16, bfloat16 and float32, else in float64, and rounded to the dtype of x
(bfloat16: to float32; integers: float64). With return_counts=True also returns how many rows there were, and how many were zero or constant.

Example:

>>> import normscope
>>> normscope.norm([[1., 2, 3]], "center").tolist()
[[-1.0, 0.0, 1.0]]
)";
}

}  // namespace

void add_norm(py::module_& module) {
  module.def("norm", &norm, documentation().c_str(), py::arg("x"), py::arg("variant") = "layernorm",
             py::kw_only(), py::arg("eps") = 0.0, py::arg("gain") = py::none(), py::arg("bias") = py::none(),
             py::arg("normals") = py::none(), py::arg("alpha") = 0.5, py::arg("return_counts") = false);
  module.def("norm_identities", &identities, kIdentities, py::arg("dimension"), py::kw_only(),
             py::arg("samples") = 100, py::arg("seed") = 0);
}

}  // namespace normscope::python
