#include "io/format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <span>
#include <stdexcept>

#include "io/dtype.h"
#include "io/file_errors.h"

namespace normscope {

void TensorFile::Format::floats(std::size_t index, std::uint64_t first, std::span<float> into,
                                const ReadLimits& limits) {
  const std::vector<double> all = values(index, limits);
  std::transform(all.begin() + static_cast<std::ptrdiff_t>(first),
                 all.begin() + static_cast<std::ptrdiff_t>(first + into.size()), into.begin(),
                 [](double value) { return static_cast<float>(value); });
}

namespace io {
namespace {

constexpr std::size_t kChunkElements = std::size_t{1} << 16;

// Walks a row-major array in Fortran order: the first index runs fastest.
class FortranWalk {
 public:
  explicit FortranWalk(const std::vector<std::size_t>& shape)
      : shape_(shape), stride_(shape.size()), index_(shape.size()) {
    std::size_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) stride_[axis] = stride;
  }
  void scatter(std::span<const double> chunk, std::vector<double>& values) {
    for (const double value : chunk) {
      values[position_] = value;
      advance();
    }
  }

 private:
  void advance() {
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      position_ += stride_[axis];
      if (++index_[axis] < shape_[axis]) return;
      position_ -= stride_[axis] * shape_[axis];
      index_[axis] = 0;
    }
  }
  const std::vector<std::size_t>& shape_;
  std::vector<std::size_t> stride_, index_;
  std::size_t position_ = 0;
};

std::vector<double> allocate(std::uint64_t count, const std::string& where) {
  try {
    return std::vector<double>(count);
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(
      fmt::format("{} needs {} bytes of memory as double, which this machine does not give; read a smaller "
                  "tensor",
                  where, count * sizeof(double)));
}

}  // namespace

std::optional<std::uint64_t> bit_count(const std::vector<std::size_t>& shape,
                                       std::uint64_t bits_per_element) {
  std::uint64_t product = bits_per_element;
  bool empty = false;
  for (const std::size_t extent : shape) {
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(product, std::uint64_t{extent}, &product)) return std::nullopt;
  }
  return empty ? 0 : product;
}

std::optional<std::uint64_t> element_count(const std::vector<std::size_t>& shape) {
  return bit_count(shape, 1);
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  constexpr std::size_t kShown = 8;
  if (shape.size() <= kShown)
    return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  return fmt::format("({}, … {} dimensions)", fmt::join(shape.begin(), shape.begin() + kShown, ", "),
                     shape.size());
}

std::vector<double> read_values(const Layout& layout, const ByteStream& stream, const std::string& where,
                                const ReadLimits& limits) {
  const std::uint64_t count = element_count(layout.shape).value();  // checked when the header was read
  if (count > limits.max_bytes / sizeof(double))
    reject(where,
           fmt::format("has shape {}: {} numbers are more than the {} bytes allowed as double",
                       shape_text(layout.shape), count, limits.max_bytes),
           "save the part you need, or raise the limit");
  std::vector<double> values = allocate(count, where);
  const std::size_t element = size_of(layout.dtype);
  std::vector<std::byte> raw(std::min<std::uint64_t>(count, kChunkElements) * element);
  std::vector<double> chunk(layout.fortran_order ? raw.size() / element : 0);
  FortranWalk walk(layout.shape);
  for (std::size_t done = 0; done < count;) {
    const std::size_t now = std::min<std::size_t>(kChunkElements, count - done);
    const std::span<std::byte> bytes = std::span(raw).first(now * element);
    const std::span<double> target =
        layout.fortran_order ? std::span(chunk).first(now) : std::span(values).subspan(done, now);
    stream.next(bytes);
    decode(layout.dtype, layout.big_endian, bytes, target, done, where);
    if (layout.fortran_order) walk.scatter(target, values);
    done += now;
  }
  return values;
}

}  // namespace io
}  // namespace normscope
