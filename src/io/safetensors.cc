// .safetensors: 8 bytes of little-endian header length, a JSON header that begins with '{', and the data. The
// header maps each tensor's name to dtype, shape and data_offsets [begin, end); "__metadata__" maps strings
// to strings. The tensors cover the data exactly: no overlap, no hole, nothing after the last.
#include "io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "io/dtype.h"
#include "io/file_errors.h"
#include "io/format.h"

namespace normscope::io {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the limit of the reference reader

// Every dtype of the format. Those without a DType are known by size, so that the other tensors can be read.
struct KnownDType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype;
};
constexpr KnownDType kDTypes[] = {
    {"F64", 64, DType::float64},      {"F32", 32, DType::float32},  {"F16", 16, DType::float16},
    {"BF16", 16, DType::bfloat16},    {"I64", 64, DType::int64},    {"I32", 32, DType::int32},
    {"I16", 16, DType::int16},        {"I8", 8, DType::int8},       {"U64", 64, DType::uint64},
    {"U32", 32, DType::uint32},       {"U16", 16, DType::uint16},   {"U8", 8, DType::uint8},
    {"BOOL", 8, DType::boolean},      {"C64", 64, std::nullopt},    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},     {"F8_E8M0", 8, std::nullopt}, {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt}};

struct HeaderEntry {
  std::string name;
  const KnownDType* dtype = nullptr;
  std::optional<std::vector<std::size_t>> shape;
  std::optional<std::array<std::uint64_t, 2>> offsets;
};

struct Header {
  std::vector<HeaderEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Takes the header's JSON event by event. Unlike a document tree this sees repeated keys, and nesting or junk
// ends the reading at once instead of filling memory.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(std::string label) : label_(std::move(label)) {}
  Header take() { return std::move(header_); }

  bool key(string_t& name) override {
    switch (place_) {
      case Place::header:
        if (!names_.insert(name).second) malformed("the name " + quoted_name(name) + " appears twice");
        key_ = name;
        return true;
      case Place::tensor:
        return tensor_key(name);
      default:
        key_ = name;
        return true;
    }
  }
  bool start_object(std::size_t) override {
    if (place_ == Place::start) return enter(Place::header);
    if (place_ != Place::header) misplaced("an object");
    if (key_ == "__metadata__") return enter(Place::metadata);
    header_.tensors.emplace_back().name = key_;
    return enter(Place::tensor);
  }
  bool end_object() override {
    if (place_ == Place::tensor) check_complete(header_.tensors.back());
    return enter(place_ == Place::header ? Place::end : Place::header);
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || (key_ != "shape" && key_ != "data_offsets")) misplaced("an array");
    numbers_.clear();
    return enter(Place::numbers);
  }
  bool end_array() override {
    HeaderEntry& entry = header_.tensors.back();
    if (key_ == "shape") {
      entry.shape.emplace(numbers_.begin(), numbers_.end());
    } else {
      if (numbers_.size() != 2)
        malformed(fmt::format("data_offsets of tensor {} has {} numbers, but 2 are expected",
                              quoted_name(entry.name), numbers_.size()));
      entry.offsets = {numbers_[0], numbers_[1]};
    }
    return enter(Place::tensor);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::numbers) misplaced("a number");
    numbers_.push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      if (!header_.metadata.emplace(key_, value).second)
        malformed("the key " + quoted_name(key_) + " appears twice in __metadata__");
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") misplaced("a string");
    set_dtype(value);
    return true;
  }
  bool null() override { misplaced("null"); }
  bool boolean(bool) override { misplaced("true or false"); }
  bool number_integer(number_integer_t) override { misplaced("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    misplaced("a number that is not a 64-bit whole number");
  }
  bool binary(binary_t&) override { misplaced("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    malformed(fmt::format("it is not valid JSON at byte {} of the header", position));
  }

 private:
  enum class Place { start, header, metadata, tensor, numbers, end };

  bool enter(Place place) {
    place_ = place;
    return true;
  }
  [[noreturn]] void malformed(const std::string& what) const {
    reject(label_, "has a malformed safetensors header: " + what, "save it again with a safetensors library");
  }
  [[noreturn]] void misplaced(const std::string& what) const {
    switch (place_) {
      case Place::metadata:
        malformed(
            fmt::format("{} for {} in __metadata__, where only strings may stand", what, quoted_name(key_)));
      case Place::tensor:
      case Place::numbers:
        malformed(fmt::format("{} in {} of tensor {}, where it may not stand", what, quoted_name(key_),
                              quoted_name(header_.tensors.back().name)));
      default:
        malformed(fmt::format("{} for {}, where an object is expected", what, quoted_name(key_)));
    }
  }
  bool tensor_key(const std::string& name) {
    const HeaderEntry& entry = header_.tensors.back();
    const bool fresh = (name == "dtype" && entry.dtype == nullptr) || (name == "shape" && !entry.shape) ||
                       (name == "data_offsets" && !entry.offsets);
    if (!fresh)
      malformed(
          fmt::format("unknown or repeated key {} in tensor {}", quoted_name(name), quoted_name(entry.name)));
    key_ = name;
    return true;
  }
  void set_dtype(const std::string& name) {
    HeaderEntry& entry = header_.tensors.back();
    entry.dtype = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                               [&](const KnownDType& known) { return known.name == name; });
    if (entry.dtype == std::end(kDTypes))
      malformed(
          fmt::format("tensor {} has the unknown dtype {}", quoted_name(entry.name), quoted_name(name)));
  }
  void check_complete(const HeaderEntry& entry) const {
    if (entry.dtype == nullptr || !entry.shape || !entry.offsets)
      malformed(fmt::format("tensor {} lacks dtype, shape or data_offsets", quoted_name(entry.name)));
  }

  std::string label_;
  Header header_;
  Place place_ = Place::start;
  std::string key_;
  std::vector<std::uint64_t> numbers_;
  std::unordered_set<std::string> names_;
};

std::uint64_t read_header_length(const Bytes& bytes, const std::string& label) {
  if (bytes.size() < kLengthBytes) reject_truncated(label, kLengthBytes, bytes.size());
  std::array<std::byte, kLengthBytes> raw;
  bytes.read(0, raw);
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(raw[i]);
  if (length > kLongestHeader)
    reject(label,
           fmt::format("declares a safetensors header of {} bytes, above the limit of {}", length,
                       kLongestHeader),
           "check that it is a .safetensors file");
  if (length > bytes.size() - kLengthBytes) reject_truncated(label, kLengthBytes + length, bytes.size());
  return length;
}

Header read_header(const Bytes& bytes, std::uint64_t length, const std::string& label) {
  std::string text(length, '\0');
  bytes.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{'))
    reject(label, "has a safetensors header that does not begin with '{'",
           "check that it is a .safetensors file");
  HeaderEvents events(label);
  nlohmann::json::sax_parse(text, &events);
  return events.take();
}

void check_tensor(const HeaderEntry& entry, const std::string& label) {
  const auto [begin, end] = *entry.offsets;
  const auto bits = bit_count(*entry.shape, entry.dtype->bits);
  const std::string where = fmt::format("{} (tensor {})", label, quoted_name(entry.name));
  if (!bits)
    reject(where, fmt::format("has shape {}, whose size overflows 64 bits", shape_text(*entry.shape)),
           "save it again with a safetensors library");
  if (begin > end || *bits % 8 != 0 || *bits / 8 != end - begin)
    reject(where,
           fmt::format("has data_offsets [{}, {}], but shape {} of {} takes {} {}", begin, end,
                       shape_text(*entry.shape), entry.dtype->name, *bits % 8 == 0 ? *bits / 8 : *bits,
                       *bits % 8 == 0 ? "bytes" : "bits"),
           "save it again with a safetensors library");
}

// `tensors` in the order of their offsets.
void check_cover(const std::vector<HeaderEntry>& tensors, std::uint64_t data_begin, std::uint64_t file_size,
                 const std::string& label) {
  const std::uint64_t data_size = file_size - data_begin;
  std::uint64_t covered = 0;
  for (const HeaderEntry& entry : tensors) {
    const auto [begin, end] = *entry.offsets;
    if (begin != covered)
      reject(label,
             fmt::format("{} tensor {}: its data begin at byte {}, but those before it end at {}",
                         begin < covered ? "has an overlap at" : "has a hole before", quoted_name(entry.name),
                         begin, covered),
             "save it again with a safetensors library");
    covered = end;
  }
  if (covered > data_size) {
    if (covered > UINT64_MAX - data_begin)
      reject(label, fmt::format("has data_offsets up to {}, which overflows 64 bits", covered),
             "save it again");
    reject_truncated(label, data_begin + covered, file_size);
  }
  if (covered < data_size)
    reject(label,
           fmt::format("holds {} bytes of data that belong to no tensor (the tensors end at byte {} of {})",
                       data_size - covered, covered, data_size),
           "save it again with a safetensors library");
}

struct SafetensorsFormat : TensorFile::Format {
  SafetensorsFormat(std::unique_ptr<Bytes> bytes_in, std::string label_in)
      : bytes(std::move(bytes_in)), label(std::move(label_in)) {
    const std::uint64_t length = read_header_length(*bytes, label);
    const std::uint64_t data_begin = kLengthBytes + length;
    Header header = read_header(*bytes, length, label);
    for (const HeaderEntry& entry : header.tensors) check_tensor(entry, label);
    std::stable_sort(header.tensors.begin(), header.tensors.end(),
                     [](const HeaderEntry& a, const HeaderEntry& b) { return *a.offsets < *b.offsets; });
    check_cover(header.tensors, data_begin, bytes->size(), label);
    metadata = std::move(header.metadata);
    for (HeaderEntry& entry : header.tensors) add(entry, data_begin);
  }

  std::vector<double> values(std::size_t index, const ReadLimits& limits) override {
    const TensorInfo& info = tensors[index];
    const Layout layout{.dtype = info.dtype, .shape = info.shape};
    const auto [begin, end] = ranges[index];
    return read_values(layout, stream_of(*bytes, begin, end),
                       fmt::format("{} (tensor {})", label, quoted_name(info.name)), limits);
  }

  void floats(std::size_t index, std::uint64_t first, std::span<float> into, const ReadLimits&) override {
    const TensorInfo& info = tensors[index];
    const std::size_t element = size_of(info.dtype);
    const std::uint64_t begin = ranges[index][0] + first * element;
    if (info.dtype == DType::float32 && std::endian::native == std::endian::little)
      return bytes->read(begin, std::as_writable_bytes(into));
    constexpr std::size_t kChunkElements = std::size_t{1} << 14;
    std::vector<std::byte> raw(std::min(into.size(), kChunkElements) * element);
    for (std::size_t done = 0; done < into.size();) {
      const std::size_t now = std::min(into.size() - done, kChunkElements);
      const std::span<std::byte> chunk = std::span(raw).first(now * element);
      bytes->read(begin + done * element, chunk);
      decode(info.dtype, chunk, into.subspan(done, now), first + done,
             fmt::format("{} (tensor {})", label, quoted_name(info.name)));
      done += now;
    }
  }

 private:
  void add(HeaderEntry& entry, std::uint64_t data_begin) {
    if (!entry.dtype->dtype) {
      unreadable.push_back(
          {entry.name, fmt::format("{} (tensor {}) has dtype {}, which is not read; convert it to "
                                   "F32 or BF16",
                                   label, quoted_name(entry.name), entry.dtype->name)});
      return;
    }
    tensors.push_back({std::move(entry.name), *entry.dtype->dtype, std::move(*entry.shape)});
    ranges.push_back({data_begin + (*entry.offsets)[0], data_begin + (*entry.offsets)[1]});
  }

  std::unique_ptr<Bytes> bytes;
  std::string label;
  std::vector<std::array<std::uint64_t, 2>> ranges;  // in the file, of each of `tensors`
};

}  // namespace

std::string_view safetensors_name(DType dtype) {
  const auto* known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](const KnownDType& entry) { return entry.dtype == dtype; });
  return known->name;
}

std::unique_ptr<TensorFile::Format> open_safetensors(std::unique_ptr<Bytes> bytes, const std::string& label) {
  return std::make_unique<SafetensorsFormat>(std::move(bytes), label);
}

}  // namespace normscope::io
