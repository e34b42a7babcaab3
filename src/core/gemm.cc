#include "core/gemm.h"

#include <stdexcept>

#ifdef NORMSCOPE_OPENBLAS
#include <cblas.h>

#include <mutex>
#else
#include <Eigen/Dense>
#endif

namespace normscope {

#ifdef NORMSCOPE_OPENBLAS
namespace {

blasint size(std::size_t value) {
  return static_cast<blasint>(value);
}

void call(CBLAS_TRANSPOSE op, float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
          MatrixView<float> c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, op, size(c.rows), size(c.cols), size(a.cols), alpha, a.data,
              size(a.stride), b.data, size(b.stride), beta, c.data, size(c.stride));
}

void call(CBLAS_TRANSPOSE op, double alpha, MatrixView<const double> a, MatrixView<const double> b,
          double beta, MatrixView<double> c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, op, size(c.rows), size(c.cols), size(a.cols), alpha, a.data,
              size(a.stride), b.data, size(b.stride), beta, c.data, size(c.stride));
}

// OpenBLAS keeps its number of threads per process; these count who wants it to be one.
std::mutex guards_mutex;             // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
int guards = 0, threads_before = 1;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

template <class T>
void multiply(std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
              std::type_identity_t<MatrixView<const T>> b, Transpose transpose_b,
              std::type_identity_t<T> beta, MatrixView<T> c) {
  const bool transposed = transpose_b == Transpose::yes;
  if (a.rows != c.rows || (transposed ? b.rows : b.cols) != c.cols ||
      (transposed ? b.cols : b.rows) != a.cols) {
    throw std::logic_error("multiply: shapes do not fit together");
  }
  if (c.rows == 0 || c.cols == 0) return;
  call(transposed ? CblasTrans : CblasNoTrans, alpha, a, b, beta, c);
}

std::string product_library() {
  return openblas_get_config();
}

OneThreadPerProduct::OneThreadPerProduct() {
  const std::lock_guard lock(guards_mutex);
  if (guards++ == 0) {
    threads_before = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
}

OneThreadPerProduct::~OneThreadPerProduct() {
  const std::lock_guard lock(guards_mutex);
  if (--guards == 0) openblas_set_num_threads(threads_before);
}
#else
std::string product_library() {
  return "Eigen";
}

template <class T>
void multiply(std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
              std::type_identity_t<MatrixView<const T>> b, Transpose transpose_b,
              std::type_identity_t<T> beta, MatrixView<T> c) {
  using Values = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Stride = Eigen::OuterStride<>;
  const auto map = [](MatrixView<const T> m) {
    return Eigen::Map<const Values, 0, Stride>(m.data, m.rows, m.cols, Stride(m.stride));
  };
  const bool transposed = transpose_b == Transpose::yes;
  if (a.rows != c.rows || (transposed ? b.rows : b.cols) != c.cols ||
      (transposed ? b.cols : b.rows) != a.cols) {
    throw std::logic_error("multiply: shapes do not fit together");
  }
  Eigen::Map<Values, 0, Stride> out(c.data, c.rows, c.cols, Stride(c.stride));
  if (beta == 0) {
    out.setZero();
  } else {
    out *= beta;
  }
  if (transposed) {
    out.noalias() += alpha * map(a) * map(b).transpose();
  } else {
    out.noalias() += alpha * map(a) * map(b);
  }
}

OneThreadPerProduct::OneThreadPerProduct() = default;
OneThreadPerProduct::~OneThreadPerProduct() = default;
#endif

template void multiply<float>(float, MatrixView<const float>, MatrixView<const float>, Transpose, float,
                              MatrixView<float>);
template void multiply<double>(double, MatrixView<const double>, MatrixView<const double>, Transpose, double,
                               MatrixView<double>);

}  // namespace normscope
