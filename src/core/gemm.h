#pragma once
// Products of matrices of any size: OpenBLAS, or Eigen where it is missing (WebAssembly).
#include <string>
#include <type_traits>

#include "normscope/matrix.h"

namespace normscope {

enum class Transpose { no, yes };

// c = alpha·a·op(b) + beta·c, op(b) = b or bᵀ. For float and double. Runs on the calling thread; the result
// does not depend on what other threads do.
template <class T>
void multiply(std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
              std::type_identity_t<MatrixView<const T>> b, Transpose transpose_b,
              std::type_identity_t<T> beta, MatrixView<T> c);

// What they run on, for people: "OpenBLAS 0.3.21 …", or "Eigen".
std::string product_library();

// While one lives, OpenBLAS starts no threads of its own: the pieces of an Executor call it side by side. The
// number it had before comes back with the last one.
class OneThreadPerProduct {
 public:
  OneThreadPerProduct();
  ~OneThreadPerProduct();
  OneThreadPerProduct(const OneThreadPerProduct&) = delete;
  OneThreadPerProduct& operator=(const OneThreadPerProduct&) = delete;
};

}  // namespace normscope
