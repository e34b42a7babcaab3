// Tensors to files: .npy and .safetensors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "io/dtype.h"
#include "io/file_errors.h"
#include "io/format.h"
#include "io/npy.h"
#include "io/replace_file.h"
#include "io/safetensors.h"
#include "normscope/tensor_file.h"

namespace normscope {
namespace {

using io::quoted_name;
using io::quoted_path;
using io::reject;

constexpr std::size_t kNumpyDimensions = 32;  // of NumPy 1; NumPy 2 reads 64

void check_shape(const std::vector<std::size_t>& shape, std::size_t values, const std::string& where) {
  const auto count = io::element_count(shape);
  if (!count || *count != values)
    reject(where, fmt::format("has shape {} but {} values", io::shape_text(shape), values),
           "give as many values as the shape holds");
}

void append_text(const io::Append& append, const std::string& text) {
  append(std::as_bytes(std::span(text)));
}

void append_values(const io::Append& append, const Tensor& tensor, const std::string& where) {
  constexpr std::size_t kChunkElements = std::size_t{1} << 16;
  const std::size_t count = tensor.values.size(), element = size_of(tensor.dtype);
  std::vector<std::byte> raw(std::min(count, kChunkElements) * element);
  for (std::size_t done = 0; done < count; done += kChunkElements) {
    const std::size_t now = std::min(kChunkElements, count - done);
    const std::span<std::byte> bytes = std::span(raw).first(now * element);
    io::encode(tensor.dtype, std::span(tensor.values).subspan(done, now), bytes, done, where);
    append(bytes);
  }
}

std::string where_of(const std::string& path, const std::string& tensor) {
  return fmt::format("{} (tensor {})", quoted_path(path), quoted_name(tensor));
}

std::string json_string(const std::string& text, const std::string& path) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    reject(quoted_path(path), "cannot hold " + quoted_name(text) + ": it is not UTF-8",
           "choose another name");
  }
}

void check_names(const std::string& path, std::span<const TensorInfo> tensors) {
  std::set<std::string_view> names;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name == "__metadata__")
      reject(quoted_path(path), "cannot hold a tensor named '__metadata__'", "choose another name");
    if (!names.insert(tensor.name).second)
      reject(quoted_path(path), fmt::format("cannot hold two tensors named {}", quoted_name(tensor.name)),
             "give them distinct names");
  }
}

}  // namespace

std::string io::safetensors_header(const std::string& path, std::span<const TensorInfo> tensors,
                                   const std::map<std::string, std::string>& metadata) {
  check_names(path, tensors);
  std::vector<std::string> entries, pairs;
  for (const auto& [key, value] : metadata)
    pairs.push_back(fmt::format("{}:{}", json_string(key, path), json_string(value, path)));
  if (!pairs.empty()) entries.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(pairs, ",")));
  std::size_t begin = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::size_t end = begin + element_count(tensor.shape).value_or(0) * size_of(tensor.dtype);
    entries.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                  json_string(tensor.name, path), safetensors_name(tensor.dtype),
                                  fmt::join(tensor.shape, ","), begin, end));
    begin = end;
  }
  std::string json = fmt::format("{{{}}}", fmt::join(entries, ","));
  json.resize((json.size() + 7) / 8 * 8, ' ');  // so that the data begin at a multiple of 8
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  return length + json;
}

void io::append_floats(const Append& append, std::span<const float> values) {
  if constexpr (std::endian::native == std::endian::little) {
    append(std::as_bytes(values));
  } else {
    constexpr std::size_t kChunk = std::size_t{1} << 16;
    for (std::size_t done = 0; done < values.size(); done += kChunk) {
      const auto now = values.subspan(done, std::min(kChunk, values.size() - done));
      const std::vector<double> wide(now.begin(), now.end());
      std::vector<std::byte> raw(now.size_bytes());
      encode(DType::float32, wide, raw, done, "");
      append(raw);
    }
  }
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::string where = quoted_path(path);
  check_shape(tensor.shape, tensor.values.size(), where);
  if (tensor.shape.size() > kNumpyDimensions)
    reject(where,
           fmt::format("cannot hold {} dimensions, NumPy reads {}", tensor.shape.size(), kNumpyDimensions),
           "reshape it");
  io::replace_file(path, [&](const io::Append& append) {
    append_text(append, io::npy_header(tensor.dtype, tensor.shape));
    append_values(append, tensor, where);
  });
}

void write_safetensors(const std::string& path, std::span<const Tensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const Tensor*> ordered;
  for (const Tensor& tensor : tensors) {
    check_shape(tensor.shape, tensor.values.size(), where_of(path, tensor.name));
    ordered.push_back(&tensor);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Tensor* a, const Tensor* b) { return size_of(a->dtype) > size_of(b->dtype); });
  std::vector<TensorInfo> infos;
  infos.reserve(ordered.size());
  for (const Tensor* tensor : ordered) infos.push_back({tensor->name, tensor->dtype, tensor->shape});
  const std::string header = io::safetensors_header(path, infos, metadata);
  io::replace_file(path, [&](const io::Append& append) {
    append_text(append, header);
    for (const Tensor* tensor : ordered) append_values(append, *tensor, where_of(path, tensor->name));
  });
}

void write_safetensors(const std::string& path, std::span<const FloatTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorInfo> infos;
  for (const FloatTensor& tensor : tensors) {
    check_shape(tensor.shape, tensor.values.size(), where_of(path, tensor.name));
    infos.push_back({tensor.name, DType::float32, tensor.shape});
  }
  const std::string header = io::safetensors_header(path, infos, metadata);
  io::replace_file(path, [&](const io::Append& append) {
    append_text(append, header);
    for (const FloatTensor& tensor : tensors) io::append_floats(append, tensor.values);
  });
}

}  // namespace normscope
