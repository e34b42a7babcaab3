#include "normscope/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "io/bytes.h"
#include "io/file_errors.h"
#include "io/format.h"

namespace normscope {
namespace {

using io::Bytes;
using io::quoted_name;
using io::reject;

// Files people have at hand that are none of the three, and what to do about them.
struct Lookalike {
  std::string_view start;
  const char* what;
  const char* advice;
};
constexpr Lookalike kLookalikes[] = {
    {"version https://git-lfs", "is a Git LFS pointer, not the tensor file itself",
     "fetch it with git lfs pull"},
    {"\x80\x02", "is a Python pickle, which only Python can load",
     "convert it with safetensors.torch.save_file"},
    {"\x80\x03", "is a Python pickle, which only Python can load",
     "convert it with safetensors.torch.save_file"},
    {"\x80\x04", "is a Python pickle, which only Python can load",
     "convert it with safetensors.torch.save_file"},
    {"\x80\x05", "is a Python pickle, which only Python can load",
     "convert it with safetensors.torch.save_file"},
    {"\x89HDF", "is an HDF5 file, which is not read", "convert it to .npy or .safetensors"},
    {"GGUF", "is a GGUF file, which is not read", "convert it to .safetensors"},
    {"\x1f\x8b", "is compressed with gzip", "decompress it with gunzip first"}};

std::string first_bytes(const Bytes& bytes) {
  std::string start(std::min<std::uint64_t>(bytes.size(), 32), '\0');
  bytes.read(0, std::as_writable_bytes(std::span(start)));
  return start;
}

[[noreturn]] void reject_unknown(const std::string& label, std::string_view start) {
  for (const Lookalike& lookalike : kLookalikes)
    if (start.starts_with(lookalike.start)) reject(label, lookalike.what, lookalike.advice);
  std::string shown;
  for (const char byte : start.substr(0, 8))
    shown += fmt::format(" {:02x}", static_cast<unsigned char>(byte));
  reject(label, fmt::format("is not a .npy, .npz or .safetensors file: it begins with the bytes{}", shown),
         "save it with numpy.save, numpy.savez or a safetensors library");
}

// The extension only chooses which complaint is made about bytes that fit no format.
std::unique_ptr<TensorFile::Format> open_format(std::unique_ptr<Bytes> bytes, const std::string& label,
                                                std::string_view path) {
  if (bytes->size() == 0)
    reject(label, "is empty (0 bytes)", "a .npy, .npz or .safetensors file is expected");
  const std::string start = first_bytes(*bytes);
  if (start.starts_with("\x93NUMPY")) return io::open_npy(std::move(bytes), label);
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06"))
    return io::open_npz(std::move(bytes), label);
  const bool json_header = start.size() > 8 && start[8] == '{';
  const bool lookalike = std::any_of(std::begin(kLookalikes), std::end(kLookalikes),
                                     [&](const Lookalike& known) { return start.starts_with(known.start); });
  if (json_header || (path.ends_with(".safetensors") && !lookalike))
    return io::open_safetensors(std::move(bytes), label);
  reject_unknown(label, start);
}

std::vector<std::string> names_of(const TensorFile::Format& format) {
  std::vector<std::string> names;
  for (const TensorInfo& info : format.tensors) names.push_back(info.name);
  for (const UnreadableTensor& tensor : format.unreadable) names.push_back(tensor.name);
  return names;
}

// The name to read when none was given.
std::string only_name(const TensorFile::Format& format, const std::string& label) {
  const std::vector<std::string> names = names_of(format);
  if (names.empty()) reject(label, "holds no tensors", "name another file");
  if (names.size() > 1)
    reject(label, fmt::format("holds {} tensors: {}", names.size(), io::quoted_names(names)),
           "name one of them");
  return names.front();
}

}  // namespace

TensorFile::TensorFile(std::string label, std::unique_ptr<Format> format, const ReadLimits& limits)
    : label_(std::move(label)), format_(std::move(format)), limits_(limits) {}
TensorFile::TensorFile(TensorFile&&) noexcept = default;
TensorFile& TensorFile::operator=(TensorFile&&) noexcept = default;
TensorFile::~TensorFile() = default;

TensorFile TensorFile::open(const std::string& path, const ReadLimits& limits) {
  const std::string label = io::label_of(path);
  return {label, open_format(io::open_bytes(path, limits.max_bytes), label, path), limits};
}

TensorFile TensorFile::from_bytes(std::vector<std::byte> bytes, const std::string& label,
                                  const ReadLimits& limits) {
  const std::string shown = io::quoted_path(label);
  return {shown, open_format(io::bytes_in_memory(std::move(bytes), shown), shown, label), limits};
}

const std::vector<TensorInfo>& TensorFile::tensors() const {
  return format_->tensors;
}
const std::vector<UnreadableTensor>& TensorFile::unreadable() const {
  return format_->unreadable;
}
const std::map<std::string, std::string>& TensorFile::metadata() const {
  return format_->metadata;
}

Tensor TensorFile::read(const std::optional<std::string>& name) const {
  if (name && !format_->named)
    reject(
        label_,
        fmt::format("is a .npy file, whose one array has no name, but {} was asked for", quoted_name(*name)),
        "leave the name out");
  const std::string wanted = name ? *name : only_name(*format_, label_);
  const auto& infos = format_->tensors;
  const auto found =
      std::find_if(infos.begin(), infos.end(), [&](const TensorInfo& info) { return info.name == wanted; });
  if (found != infos.end()) {
    const auto index = static_cast<std::size_t>(found - infos.begin());
    return {found->name, found->dtype, found->shape, format_->values(index, limits_)};
  }
  for (const UnreadableTensor& tensor : format_->unreadable)
    if (tensor.name == wanted) throw InputError(tensor.reason);
  const std::vector<std::string> names = names_of(*format_);
  reject(label_, fmt::format("holds no tensor {}", quoted_name(wanted)),
         names.empty() ? "it holds none at all" : "it holds " + io::quoted_names(names));
}

void TensorFile::read_rows(std::size_t tensor, std::size_t first, std::span<float> into) const {
  if (tensor >= format_->tensors.size())
    reject(label_,
           fmt::format("holds {} tensors, but number {} was asked for", format_->tensors.size(), tensor),
           "count from 0");
  const TensorInfo& info = format_->tensors[tensor];
  const std::string where = fmt::format("{} (tensor {})", label_, quoted_name(info.name));
  const std::size_t rows = info.shape.empty() ? 1 : info.shape.front();
  const std::uint64_t width = rows == 0 ? 0 : *io::element_count(info.shape) / rows;
  if (into.empty()) return;
  if (width == 0 || into.size() % width != 0)
    reject(where, fmt::format("has rows of {} numbers, but {} were asked for", width, into.size()),
           "ask for whole rows");
  if (first > rows || into.size() / width > rows - first)
    reject(where, fmt::format("has {} rows, but row {} was asked for", rows, first + into.size() / width - 1),
           "ask for rows it has");
  format_->floats(tensor, first * width, into, limits_);
}

std::vector<TensorInfo> list_tensors(const std::string& path, const ReadLimits& limits) {
  return TensorFile::open(path, limits).tensors();
}

Tensor read_tensor(const std::string& path, const std::optional<std::string>& name,
                   const ReadLimits& limits) {
  return TensorFile::open(path, limits).read(name);
}

}  // namespace normscope
