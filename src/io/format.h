#pragma once
// What the three formats share: an opened file that lists its tensors and turns one of them into doubles.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/bytes.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"

namespace normscope {

struct TensorFile::Format {
  virtual ~Format() = default;
  virtual std::vector<double> values(std::size_t index, const ReadLimits& limits) = 0;
  // Elements first, first + 1, … in row-major order, which the tensor is known to have. Here: by way of all
  // values.
  virtual void floats(std::size_t index, std::uint64_t first, std::span<float> into,
                      const ReadLimits& limits);

  std::vector<TensorInfo> tensors;
  std::vector<UnreadableTensor> unreadable;
  std::map<std::string, std::string> metadata;
  bool named = true;  // false: .npy, whose array has no name
};

namespace io {

// The tensor is well formed but not made of numbers we read; the other tensors of the file are not affected.
struct UnsupportedDType : InputError {
  using InputError::InputError;
};

// How the elements of a tensor stand in its bytes.
struct Layout {
  DType dtype = DType::float64;
  bool big_endian = false;
  bool fortran_order = false;  // first index fastest
  std::vector<std::size_t> shape;
};

// Product of the shape, and of that with the element size in bits; nothing when it does not fit 64 bits. A
// zero does not excuse the other dimensions: (0, 2^63, 2^63) has no row-major strides.
std::optional<std::uint64_t> element_count(const std::vector<std::size_t>& shape);
std::optional<std::uint64_t> bit_count(const std::vector<std::size_t>& shape, std::uint64_t bits_per_element);
std::string shape_text(const std::vector<std::size_t>& shape);  // "(3, 4)"

// Reads the next element_count(shape) elements of the stream, row-major.
std::vector<double> read_values(const Layout& layout, const ByteStream& stream, const std::string& where,
                                const ReadLimits& limits);

std::unique_ptr<TensorFile::Format> open_npy(std::unique_ptr<Bytes> bytes, const std::string& label);
std::unique_ptr<TensorFile::Format> open_npz(std::unique_ptr<Bytes> bytes, const std::string& label);
std::unique_ptr<TensorFile::Format> open_safetensors(std::unique_ptr<Bytes> bytes, const std::string& label);

}  // namespace io
}  // namespace normscope
