#include "io/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "io/file_errors.h"

namespace normscope::io {
namespace {

// NumPy itself refuses headers above 10 000 characters; arrays of numbers need a few hundred.
constexpr std::uint64_t kLongestHeader = 65536;
constexpr std::string_view kMagic = "\x93NUMPY";

struct NamedDType {
  std::string_view code;
  DType dtype;
};
constexpr NamedDType kDTypes[] = {{"f2", DType::float16}, {"f4", DType::float32}, {"f8", DType::float64},
                                  {"i1", DType::int8},    {"i2", DType::int16},   {"i4", DType::int32},
                                  {"i8", DType::int64},   {"u1", DType::uint8},   {"u2", DType::uint16},
                                  {"u4", DType::uint32},  {"u8", DType::uint64},  {"b1", DType::boolean},
                                  {"V2", DType::bfloat16}};

// What stands in an array that is not made of numbers we read.
std::string content_of(std::string_view code) {
  switch (code.empty() ? '\0' : code[0]) {
    case 'O':
      return "Python objects, which only Python can load";
    case 'c':
      return "complex numbers";
    case 'U':
    case 'S':
    case 'a':
      return "strings";
    case 'M':
    case 'm':
      return "dates or times";
    case 'V':
      return "raw records";
    case 'f':
      return "floats wider than 64 bits";
    default:
      return "elements of an unknown dtype";
  }
}

[[noreturn]] void reject_dtype(const std::string& where, std::string_view descr, const std::string& content) {
  throw UnsupportedDType(
      fmt::format("{} has dtype {}: {}; save it as a plain float, integer or bool array, for example with "
                  "numpy.save(path, array.astype('float32'))",
                  where, quoted_name(descr), content));
}

// The header's dict, read left to right. It is a Python literal, of which only what numpy.save writes is
// accepted: the three keys in any order, either quote, a trailing comma, and Python 2's 'L' after an integer.
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Layout layout() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      entry(key);
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) malformed("text after the closing '}'");
    if (!descr_ || !fortran_order_ || !shape_) malformed("'descr', 'fortran_order' or 'shape' is missing");
    return make_layout();
  }

 private:
  [[noreturn]] void malformed(const std::string& what) const {
    reject(where_, fmt::format("has a malformed .npy header: {} (character {})", what, at_),
           "save it again with numpy.save");
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) malformed(fmt::format("'{}' expected", wanted));
  }
  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed("a quoted string expected");
    const std::size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) malformed("a string does not end");
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      peek();
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    malformed("True or False expected");
  }
  std::size_t extent() {
    peek();
    std::uint64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) malformed("a dimension does not fit 64 bits");
    if (error != std::errc()) malformed("a dimension that is 0 or more expected");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }
  std::vector<std::size_t> tuple() {
    std::vector<std::size_t> shape;
    bool comma = true;
    expect('(');
    while (!accept(')')) {
      if (!comma) malformed("',' expected between dimensions");
      shape.push_back(extent());
      comma = accept(',');
    }
    if (shape.size() == 1 && !comma) malformed("a shape of one dimension needs a comma, as in (3,)");
    return shape;
  }
  void entry(std::string_view key) {
    if (key == "descr" && !descr_)
      descr_ = descr();
    else if (key == "fortran_order" && !fortran_order_)
      fortran_order_ = boolean();
    else if (key == "shape" && !shape_)
      shape_ = tuple();
    else
      malformed("unknown or repeated key " + quoted_name(key));
  }
  std::string_view descr() {
    const char first = peek();
    if (first == '[' || first == '(') {
      const std::size_t end = text_.find(first == '[' ? ']' : ')', at_);
      reject_dtype(where_, text_.substr(at_, end == std::string_view::npos ? end : end + 1 - at_),
                   "structured records");
    }
    return string();
  }
  Layout make_layout() {
    const char order = descr_->empty() ? '\0' : descr_->front();
    const bool ordered = order == '<' || order == '>' || order == '|';
    const std::string_view code = ordered ? descr_->substr(1) : *descr_;
    const auto* known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                     [&](const NamedDType& entry) { return entry.code == code; });
    if (known == std::end(kDTypes)) reject_dtype(where_, *descr_, content_of(code));
    const bool big_endian = order == '>';
    const bool bfloat16 = known->dtype == DType::bfloat16;
    if (bfloat16 && big_endian)
      reject_dtype(where_, *descr_, "two-byte records ('<V2' and '|V2' are read as bfloat16, '>V2' is not)");
    if (!ordered || (order == '|' && size_of(known->dtype) > 1 && !bfloat16))
      reject_dtype(where_, *descr_, "numbers without a byte order ('<' or '>' expected)");
    return {known->dtype, big_endian, *fortran_order_, std::move(*shape_)};
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::optional<std::string_view> descr_;
  std::optional<bool> fortran_order_;
  std::optional<std::vector<std::size_t>> shape_;
};

std::string read_text(const ByteStream& stream, std::size_t length) {
  std::string text(length, '\0');
  stream.next(std::as_writable_bytes(std::span(text)));
  return text;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Where the data begin, and the dict's text.
struct Preamble {
  std::uint64_t data_begin;
  std::string dict;
};

Preamble read_preamble(const ByteStream& stream, const std::string& where) {
  constexpr std::size_t kVersionEnd = 8;
  if (stream.size < kVersionEnd) reject_truncated(where, kVersionEnd, stream.size);
  const std::string start = read_text(stream, kVersionEnd);
  if (start.substr(0, kMagic.size()) != kMagic)
    reject(where, "is not a .npy array: it does not begin with \\x93NUMPY", "save it again with numpy.save");
  const int major = static_cast<unsigned char>(start[6]), minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    reject(where, fmt::format("has .npy version {}.{}, but 1.0, 2.0 and 3.0 are known", major, minor),
           "save it again with numpy.save");
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (stream.size < kVersionEnd + length_bytes)
    reject_truncated(where, kVersionEnd + length_bytes, stream.size);
  const std::uint64_t length = little_endian(read_text(stream, length_bytes));
  const std::uint64_t data_begin = kVersionEnd + length_bytes + length;
  if (length > kLongestHeader)
    reject(where, fmt::format("has a .npy header of {} bytes, above the limit of {}", length, kLongestHeader),
           "save it again with numpy.save");
  if (data_begin > stream.size) reject_truncated(where, data_begin, stream.size);
  return {data_begin, read_text(stream, length)};
}

void check_size(const Layout& layout, std::uint64_t data_begin, std::uint64_t size,
                const std::string& where) {
  const auto bits = bit_count(layout.shape, 8 * size_of(layout.dtype));
  if (!bits || *bits / 8 > UINT64_MAX - data_begin)
    reject(where, fmt::format("has shape {}, whose size overflows 64 bits", shape_text(layout.shape)),
           "save it again with numpy.save");
  const std::uint64_t expected = data_begin + *bits / 8;
  if (size < expected) reject_truncated(where, expected, size);
  if (size > expected)
    reject(where,
           fmt::format("goes on after its array: shape {} of {} ends at byte {}, but {} bytes were found",
                       shape_text(layout.shape), name_of(layout.dtype), expected, size),
           "save one array per file");
}

struct NpyFormat : TensorFile::Format {
  NpyFormat(std::unique_ptr<Bytes> bytes_in, std::string label_in)
      : bytes(std::move(bytes_in)),
        label(std::move(label_in)),
        layout(read_npy_header(stream_of(*bytes, 0, bytes->size()), label)) {
    named = false;
    tensors.push_back({"", layout.dtype, layout.shape});
  }
  std::vector<double> values(std::size_t, const ReadLimits& limits) override {
    // The data end with the file: read_npy_header has checked it.
    const std::uint64_t data = *bit_count(layout.shape, 8 * size_of(layout.dtype)) / 8;
    return read_values(layout, stream_of(*bytes, bytes->size() - data, bytes->size()), label, limits);
  }
  std::unique_ptr<Bytes> bytes;
  std::string label;
  Layout layout;
};

std::string_view descr_of(DType dtype) {
  const auto* entry = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](const NamedDType& named) { return named.dtype == dtype; });
  return entry->code;
}

}  // namespace

Layout read_npy_header(const ByteStream& stream, const std::string& where) {
  const Preamble preamble = read_preamble(stream, where);
  Layout layout = HeaderText(preamble.dict, where).layout();
  check_size(layout, preamble.data_begin, stream.size, where);
  return layout;
}

std::string npy_header(DType dtype, const std::vector<std::size_t>& shape) {
  const char order = size_of(dtype) == 1 ? '|' : '<';
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order,
                                 descr_of(dtype), fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t kPreamble = 10, kAlignment = 64;
  const std::size_t length = (kPreamble + dict.size() + kAlignment) / kAlignment * kAlignment - kPreamble;
  dict.resize(length - 1, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8 & 0xff)};
  return header + dict;
}

std::unique_ptr<TensorFile::Format> open_npy(std::unique_ptr<Bytes> bytes, const std::string& label) {
  return std::make_unique<NpyFormat>(std::move(bytes), label);
}

}  // namespace normscope::io
