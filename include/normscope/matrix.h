#pragma once
// Row-major matrices: a non-owning view and an owner. Rows are tokens (keys), columns are dimensions.
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace normscope {

template <class T>
struct MatrixView {
  T* data = nullptr;
  std::size_t rows = 0, cols = 0;
  std::size_t stride = 0;  // elements between the starts of two rows

  MatrixView() = default;
  MatrixView(T* data_, std::size_t rows_, std::size_t cols_) : MatrixView(data_, rows_, cols_, cols_) {}
  MatrixView(T* data_, std::size_t rows_, std::size_t cols_, std::size_t stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}

  std::span<T> operator[](std::size_t row) const { return {data + row * stride, cols}; }
  T& operator()(std::size_t row, std::size_t col) const { return data[row * stride + col]; }
  MatrixView first_rows(std::size_t count) const { return {data, count, cols, stride}; }

  operator MatrixView<const T>() const  // NOLINT(google-explicit-constructor): adding const is always safe
      requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }
};

template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols) : rows_(rows), cols_(cols), values_(rows * cols) {}
  Matrix(std::size_t rows, std::size_t cols, std::vector<T> values)
      : rows_(rows), cols_(cols), values_(std::move(values)) {}

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  std::span<T> operator[](std::size_t row) { return {values_.data() + row * cols_, cols_}; }
  std::span<const T> operator[](std::size_t row) const { return {values_.data() + row * cols_, cols_}; }
  T& operator()(std::size_t row, std::size_t col) { return values_[row * cols_ + col]; }
  const T& operator()(std::size_t row, std::size_t col) const { return values_[row * cols_ + col]; }
  const std::vector<T>& values() const { return values_; }

  MatrixView<T> view() { return {values_.data(), rows_, cols_}; }
  MatrixView<const T> view() const { return {values_.data(), rows_, cols_}; }

 private:
  std::size_t rows_ = 0, cols_ = 0;
  std::vector<T> values_;
};

}  // namespace normscope
