#include "arrays.h"

#include <string>

#include "normscope/tensor_file.h"

namespace py = pybind11;

namespace normscope::python {
namespace {

std::string name_of_dtype(const py::handle& object) {
  return py::str(object.attr("dtype")).cast<std::string>();
}

// DLPack's names of devices whose memory is the machine's own: CPU, and what CUDA and ROCm have pinned there.
bool is_here(std::int64_t device) {
  return device == 1 || device == 3 || device == 11;
}

// NumPy would say this in each library's own words, or read the memory of another device.
void require_here(const py::handle& object, const std::string& what) {
  bool here = !py::hasattr(object, "__cuda_array_interface__");
  std::string place;
  if (py::hasattr(object, "device")) {
    const py::object device = object.attr("device");
    place = py::str(device).cast<std::string>();
    if (py::hasattr(device, "type") && py::isinstance<py::str>(device.attr("type")))
      here = here && device.attr("type").cast<std::string>() == "cpu";
  }
  if (here && py::hasattr(object, "__dlpack_device__")) {
    const py::object device = object.attr("__dlpack_device__")();
    if (py::isinstance<py::tuple>(device) && py::len(device) == 2)
      here = is_here(py::int_(device.cast<py::tuple>()[0]).cast<std::int64_t>());
  }
  if (!here)
    throw py::value_error(what + " lies in the memory of another device" +
                          (place.empty() ? "" : " (" + place + ")") + "; give " + what + ".cpu() instead");
}

py::array view(py::object object, const std::string& what) {
  const py::module_ numpy = py::module_::import("numpy");
  const py::object masked = numpy.attr("ma");
  if (py::isinstance(object, masked.attr("MaskedArray")) && masked.attr("is_masked")(object).cast<bool>()) {
    throw py::value_error(what + " has masked entries; give an array of only those rows that count");
  }
  if (py::isinstance<py::array>(object)) return object.cast<py::array>();
  require_here(object, what);
  // A tensor that records gradients refuses to be viewed.
  if (py::hasattr(object, "detach")) object = object.attr("detach")();
  // NumPy cannot view bfloat16; float32 holds all its numbers.
  if (py::hasattr(object, "dtype") && py::hasattr(object, "float") &&
      name_of_dtype(object) == "torch.bfloat16") {
    object = object.attr("float")();
  }
  if (!py::hasattr(object, "__array__") && py::hasattr(object, "__dlpack__")) {
    return numpy.attr("from_dlpack")(object).cast<py::array>();
  }
  return numpy.attr("asarray")(object).cast<py::array>();
}

// bfloat16 comes as such (ml_dtypes, used by JAX) or under the name PyTorch gives it.
bool holds_bfloat16(const py::handle& object) {
  return py::hasattr(object, "dtype") && name_of_dtype(object).ends_with("bfloat16");
}

// What the numbers were rounded to; integers that float64 holds exactly count as float64.
DType rounding_of(const py::array& array, const std::string& what) {
  const char kind = array.dtype().kind();
  const py::ssize_t bytes = array.dtype().itemsize();
  if (kind == 'f' && bytes == 2) return DType::float16;
  if (kind == 'f' && bytes == 4) return DType::float32;
  if (kind == 'f' && bytes == 8) return DType::float64;
  if (kind == 'b') return DType::float64;
  if (kind == 'i' || kind == 'u') {
    const py::int_ limit(1LL << 53);
    if (array.size() > 0 && (array.attr("max")() > limit || array.attr("min")() < -limit)) {
      throw py::value_error(what + " holds integers beyond 2^53, which float64 cannot hold exactly");
    }
    return DType::float64;
  }
  throw py::type_error(
      what + " must hold real numbers (float16, bfloat16, float32, float64 or integers), but its dtype is " +
      name_of_dtype(array));
}

}  // namespace

Numbers numbers_from(const py::object& object, const std::string& what) {
  const py::array array = view(object, what);
  const DType rounding = holds_bfloat16(object) ? DType::bfloat16 : rounding_of(array, what);
  const auto values = array.attr("astype")("float64", py::arg("order") = "C", py::arg("copy") = false);
  const char* precision = name_of(rounding == DType::bfloat16 ? DType::float32 : rounding);
  return {values.cast<Doubles>(), rounding, unit_roundoff(rounding), smallest_rounding(rounding),
          py::dtype(precision)};
}

}  // namespace normscope::python
