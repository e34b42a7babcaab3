#pragma once
// Tensors in files: .npy (versions 1.0, 2.0, 3.0), .npz and .safetensors, from a path or from standard input.
// The format is told by the first bytes, never by the extension. Files are treated as hostile: every size is
// checked against the bytes that are really there before anything large is allocated, and whatever is wrong
// becomes an InputError of one sentence that names the file. NaN and Inf are read like any other value.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace normscope {

enum class DType {
  float16,
  bfloat16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean
};

const char* name_of(DType dtype);
std::span<const DType> values_of(DType);  // "float16", "bfloat16", …, "bool"
std::size_t size_of(DType dtype);         // bytes of one element
// Largest relative rounding error of a normal number: 2^-p for p significant bits, so 2^-11 for float16, 2^-8
// for bfloat16, 2^-24 for float32, 2^-53 for float64. Integers are held exactly; the double that carries them
// counts: 2^-53.
double unit_roundoff(DType dtype);
// Half the smallest positive number, which is what rounding does to numbers near 0; 0 for float64, whose half
// is no double, and for integers.
double smallest_rounding(DType dtype);

struct TensorInfo {
  std::string name;  // empty for the one array of a .npy file; without ".npy" for a member of an .npz
  DType dtype = DType::float64;
  std::vector<std::size_t> shape;  // empty: a scalar
};

struct Tensor {
  std::string name;
  DType dtype = DType::float64;  // of the file; every dtype above converts to double exactly
  std::vector<std::size_t> shape;
  std::vector<double> values;  // row-major whatever the order in the file
};

// A tensor that is well formed but holds no numbers that convert to double (strings, objects, complex
// numbers, 8-bit floats, …). It does not stand in the way of the others; reading it throws `reason`.
struct UnreadableTensor {
  std::string name;
  std::string reason;
};

struct ReadLimits {
  // Of one tensor as double, and of a stream held in memory.
  std::uint64_t max_bytes = std::uint64_t{16} << 30;
};

// An open file. Only headers are read on opening, so a huge file lists at once. A member of an .npz is any
// entry whose name ends in ".npy"; other entries are passed over. In a .npy header '<V2' and '|V2' are read
// as bfloat16: NumPy has no name for it, and it is the only two-byte type that ml_dtypes saves that way. Not
// for use by two threads at once.
class TensorFile {
 public:
  // "-" is standard input. Pipes and other paths that cannot seek are held in memory.
  static TensorFile open(const std::string& path, const ReadLimits& limits = {});
  // `label` names the bytes in messages.
  static TensorFile from_bytes(std::vector<std::byte> bytes, const std::string& label,
                               const ReadLimits& limits = {});

  TensorFile(TensorFile&&) noexcept;
  TensorFile& operator=(TensorFile&&) noexcept;
  ~TensorFile();

  const std::vector<TensorInfo>& tensors() const;  // in the order of their data in the file
  const std::vector<UnreadableTensor>& unreadable() const;
  const std::map<std::string, std::string>& metadata() const;  // __metadata__ of a safetensors file

  // Without a name the file must hold exactly one tensor; otherwise the error lists the names (the first 20).
  Tensor read(const std::optional<std::string>& name = std::nullopt) const;

  // Rows first, first + 1, … of a tensor (its place in tensors()) as float, as many as `into` holds; a row is
  // what one index of the first dimension leaves, and a scalar has one. Wider numbers are rounded, beyond the
  // range of float to infinity. Of a .safetensors file only those bytes are read, and several threads may do
  // so at once. Throws InputError if the tensor has no such rows or `into` ends within one.
  void read_rows(std::size_t tensor, std::size_t first, std::span<float> into) const;

  struct Format;

 private:
  TensorFile(std::string label, std::unique_ptr<Format> format, const ReadLimits& limits);
  std::string label_;
  std::unique_ptr<Format> format_;
  ReadLimits limits_;
};

std::vector<TensorInfo> list_tensors(const std::string& path, const ReadLimits& limits = {});
Tensor read_tensor(const std::string& path, const std::optional<std::string>& name = std::nullopt,
                   const ReadLimits& limits = {});

// A tensor of float32 that somebody else holds.
struct FloatTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::span<const float> values;
};

// Values are rounded to the tensor's dtype, to nearest even; a finite value beyond a float's range or a value
// that is not exactly an integer of the dtype is an InputError. The target is replaced whole or not at all:
// the bytes go to a temporary beside it, are synced, and the temporary is renamed. A full disk is an Error.
// The name of the tensor is not stored; bfloat16 is written as '<V2', as ml_dtypes does.
void write_npy(const std::string& path, const Tensor& tensor);
// Names must be distinct, valid UTF-8 and not "__metadata__". Data stand in the order given, wider dtypes
// first so that every tensor is aligned.
void write_safetensors(const std::string& path, std::span<const Tensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});
// The same without a copy of the values.
void write_safetensors(const std::string& path, std::span<const FloatTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace normscope
