#include "arrays.h"

#include <bit>
#include <string>
#include <vector>

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

// bfloat16 comes as such (ml_dtypes, used by JAX) or under the name PyTorch gives it.
bool holds_bfloat16(const py::handle& object) {
  return py::hasattr(object, "dtype") && name_of_dtype(object).ends_with("bfloat16");
}

// What lies in a capsule "dltensor" of DLPack, of which NumPy takes all but bfloat16.
struct ExportedTensor {
  void* data;
  std::int32_t device_kind, device;
  std::int32_t axes;
  std::uint8_t kind, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;  // strides in numbers; null: C order
  std::uint64_t offset;           // of the first number from data, in bytes
};
constexpr std::uint8_t kBfloat = 4;

// The numbers of bfloat16 in C order, as float32; none if it holds something else. The capsule lets go of the tensor when it goes itself.
py::object bfloat16_from(const py::object& object) {
  const py::object capsule = object.attr("__dlpack__")();
  const auto* tensor = static_cast<const ExportedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (tensor == nullptr) throw py::error_already_set();
  if (tensor->kind != kBfloat || tensor->bits != 16 || tensor->lanes != 1 || !is_here(tensor->device_kind) ||
      tensor->axes < 0)
    return py::none();
  const auto axes = static_cast<std::size_t>(tensor->axes);
  const std::vector<py::ssize_t> shape(tensor->shape, tensor->shape + axes);
  py::array_t<float> array(shape);
  std::vector<std::int64_t> place(axes, 0);
  const auto* first =
      reinterpret_cast<const std::uint16_t*>(static_cast<const std::byte*>(tensor->data) + tensor->offset);
  float* to = array.mutable_data();
  for (py::ssize_t i = 0; i < array.size(); ++i) {
    std::int64_t from = tensor->strides == nullptr ? i : 0;
    if (tensor->strides != nullptr)
      for (std::size_t axis = 0; axis < axes; ++axis) from += place[axis] * tensor->strides[axis];
    to[i] = std::bit_cast<float>(std::uint32_t{first[from]} << 16U);
    for (std::size_t axis = axes; axis-- > 0 && ++place[axis] == shape[axis];) place[axis] = 0;
  }
  return array;
}

struct View {
  py::array array;
  bool bfloat16;  // before it was viewed
};

View view_through_dlpack(const py::object& object, const std::string& what) {
  try {
    return {py::module_::import("numpy").attr("from_dlpack")(object).cast<py::array>(),
            holds_bfloat16(object)};
  } catch (const py::error_already_set& failure) {
    if (failure.matches(PyExc_KeyboardInterrupt) || failure.matches(PyExc_MemoryError)) throw;
    const py::object numbers = bfloat16_from(object);
    if (!numbers.is_none()) return {numbers.cast<py::array>(), true};
    throw py::type_error(what + " cannot be read through DLPack (" +
                         py::str(failure.value()).cast<std::string>() + "); give it as an array of NumPy");
  }
}

View view(py::object object, const std::string& what) {
  const py::module_ numpy = py::module_::import("numpy");
  const py::object masked = numpy.attr("ma");
  if (py::isinstance(object, masked.attr("MaskedArray")) && masked.attr("is_masked")(object).cast<bool>()) {
    throw py::value_error(what + " has masked entries; give an array of only those rows that count");
  }
  const bool bfloat16 = holds_bfloat16(object);
  if (py::isinstance<py::array>(object)) return {object.cast<py::array>(), bfloat16};
  require_here(object, what);
  // A tensor that records gradients refuses to be viewed.
  if (py::hasattr(object, "detach")) object = object.attr("detach")();
  // NumPy cannot view bfloat16; float32 holds all its numbers.
  if (py::hasattr(object, "dtype") && py::hasattr(object, "float") &&
      name_of_dtype(object) == "torch.bfloat16") {
    object = object.attr("float")();
  }
  if (!py::hasattr(object, "__array__") && py::hasattr(object, "__dlpack__")) {
    return view_through_dlpack(object, what);
  }
  return {numpy.attr("asarray")(object).cast<py::array>(), bfloat16};
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
  const auto [array, bfloat16] = view(object, what);
  const DType rounding = bfloat16 ? DType::bfloat16 : rounding_of(array, what);
  // In C order, of this machine's bytes, where doubles may lie.
  const auto values =
      py::module_::import("numpy").attr("require")(array, "float64", py::make_tuple("C", "A"));
  const char* precision = name_of(rounding == DType::bfloat16 ? DType::float32 : rounding);
  return {values.cast<Doubles>(), rounding, unit_roundoff(rounding), smallest_rounding(rounding),
          py::dtype(precision)};
}

}  // namespace normscope::python
