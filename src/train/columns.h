#pragma once
// Matrices of training. They are feature-major: row = feature (or class, or key), column = token, so that
// every operation on tokens runs along the vector, and sums over features need no sum across its lanes. In
// shapes, T is the number of tokens of a sequence or text, d the width, H the heads, F the width of the
// feed-forward part, C the classes.
#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

#include "normscope/matrix.h"

namespace normscope {

// Columns come in this multiple: one vector of float under AVX2; wider vectors are capped to it. Columns
// beyond the tokens are padding, with zero gradients.
constexpr std::size_t kColumns = 8;
constexpr std::size_t padded_columns(std::size_t tokens) {
  return (tokens + kColumns - 1) / kColumns * kColumns;
}
// Columns of one text of a transformer come in this multiple, and this many are worked on at a time.
constexpr std::size_t kTextColumns = 32;

// Numbers that begin with a line of the cache: of vectors that do not, every other lies across two lines.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <class U>
  explicit LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* values, std::size_t) { ::operator delete(values, kLine); }
  bool operator==(const LineAllocator&) const { return true; }
};
template <class T>
using Aligned = std::vector<T, LineAllocator<T>>;

// Rows that begin `stride` numbers apart.
template <class T>
struct Strided {
  T* data;
  std::size_t stride;

  operator Strided<const T>() const  // NOLINT(google-explicit-constructor): adding const is always safe
      requires(!std::is_const_v<T>) {
    return {data, stride};
  }
};

// rows × columns, the latter padded; how many they are may be known to the compiler.
template <class T, std::size_t kFixed = 0>
class Columns {
 public:
  Columns() = default;
  explicit Columns(std::size_t rows) requires(kFixed > 0) : Columns(rows, kFixed) {}
  Columns(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns, T(0)) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return kFixed > 0 ? kFixed : columns_; }
  std::size_t size() const { return values_.size(); }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  T* row(std::size_t r) { return values_.data() + r * columns(); }
  const T* row(std::size_t r) const { return values_.data() + r * columns(); }
  Strided<T> from(std::size_t row = 0, std::size_t column = 0) {
    return {this->row(row) + column, columns()};
  }
  Strided<const T> from(std::size_t row = 0, std::size_t column = 0) const {
    return {this->row(row) + column, columns()};
  }

 private:
  std::size_t rows_ = 0, columns_ = 0;
  Aligned<T> values_;
};

// The plain version of a layer follows its equation in loops, in double, without padding: what the fast one
// below it is tested against.
namespace reference {
using Array = Matrix<double>;
}

}  // namespace normscope
