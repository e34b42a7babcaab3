#pragma once
// Numbers that nobody changes any more, which the processes of a job that are on one machine hold once.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/pack.h"
#include "normscope/executor.h"
#include "normscope/matrix.h"
#include "normscope/pieces.h"

namespace normscope {

template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::vector<T> own) {  // NOLINT(google-explicit-constructor): the same numbers
    auto held = std::make_shared<const std::vector<T>>(std::move(own));
    values_ = *held;
    held_ = std::move(held);
  }
  SharedArray(std::shared_ptr<const void> held, std::span<const T> values)
      : held_(std::move(held)), values_(values) {}

  const T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  const T& operator[](std::size_t at) const { return values_[at]; }
  std::span<const T> values() const { return values_; }
  HeldBytes bytes() const {
    return {held_, {reinterpret_cast<const char*>(values_.data()), values_.size_bytes()}};
  }

 private:
  std::shared_ptr<const void> held_;
  std::span<const T> values_;
};

// As Matrix, to be read only.
class SharedMatrix {
 public:
  SharedMatrix() = default;
  SharedMatrix(Matrix<double> own) {  // NOLINT(google-explicit-constructor): the same numbers
    auto held = std::make_shared<const Matrix<double>>(std::move(own));
    rows_ = held->rows(), cols_ = held->cols();
    const std::span<const double> values = held->values();
    values_ = {std::move(held), values};
  }
  SharedMatrix(std::size_t rows, std::size_t cols, SharedArray<double> values)
      : rows_(rows), cols_(cols), values_(std::move(values)) {}

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::span<const double> operator[](std::size_t row) const { return {values_.data() + row * cols_, cols_}; }
  const double& operator()(std::size_t row, std::size_t col) const {
    return values_.data()[row * cols_ + col];
  }
  const SharedArray<double>& values() const { return values_; }
  MatrixView<const double> view() const { return {values_.data(), rows_, cols_}; }

 private:
  std::size_t rows_ = 0, cols_ = 0;
  SharedArray<double> values_;
};

// Below so many numbers sharing them takes longer than it is worth.
inline constexpr std::size_t kWorthSharing = std::size_t{1} << 17;

inline bool shares_memory(const Executor& executor) {
  return executor.pieces() != nullptr && executor.pieces()->processes() > 1;
}

// What one process of each machine makes, in all of them; those come here together.
template <class Make>
auto told_on_machine(const Executor& executor, const Make& make) {
  using Value = decltype(make());
  if (!shares_memory(executor)) return make();
  const HeldBytes told = executor.pieces()->once_per_machine([&]() -> HeldBytes {
    auto bytes = std::make_shared<const std::string>(packed(make()));
    return {bytes, *bytes};
  });
  return unpacked<Value>(told.bytes);
}

// The same of numbers, std::vector<T> or SharedArray<T>, which are not copied but held once.
template <class T, class Make>
SharedArray<T> once_per_machine(const Executor& executor, const Make& make) {
  if (!shares_memory(executor)) return make();
  HeldBytes held = executor.pieces()->once_per_machine([&] { return SharedArray<T>(make()).bytes(); });
  return {std::move(held.held),
          {reinterpret_cast<const T*>(held.bytes.data()), held.bytes.size() / sizeof(T)}};
}
// And of a Matrix.
template <class Make>
SharedMatrix once_per_machine(const Executor& executor, const Make& make) {
  if (!shares_memory(executor)) return SharedMatrix(make());
  std::pair<std::uint64_t, std::uint64_t> size;
  auto values = once_per_machine<double>(executor, [&] {
    const SharedMatrix made(make());
    size = {made.rows(), made.cols()};
    return made.values();
  });
  size = told_on_machine(executor, [&] { return size; });
  return {static_cast<std::size_t>(size.first), static_cast<std::size_t>(size.second), std::move(values)};
}

}  // namespace normscope
