#pragma once
// Decompositions of dense matrices, Eigen's, each compiled once: a file that instantiates one itself takes up
// to a minute to compile. Nothing here is checked for NaN.
#include <Eigen/Core>

namespace normscope {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A = Q R by Householder reflections; A is m × n.
struct Qr {
  Eigen::MatrixXd packed;        // R on and above the diagonal, the reflections below
  Eigen::VectorXd coefficients;  // of the reflections

  Eigen::MatrixXd r() const;       // n × n, upper triangular; m ≥ n
  Eigen::MatrixXd q() const;       // m × m
  Eigen::MatrixXd thin_q() const;  // m × n, its first columns; m ≥ n
  Eigen::VectorXd q_times(const Eigen::VectorXd& x) const;
  Eigen::VectorXd q_transposed_times(const Eigen::VectorXd& x) const;
};
Qr householder_qr(Eigen::MatrixXd a);  // in the place of its argument

// A P = Q R with |R₁₁| ≥ |R₂₂| ≥ …
struct PivotedQr {
  Eigen::MatrixXd packed;  // R on and above the diagonal
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic> permutation;
  double largest_pivot = 0;
  Eigen::Index nonzero_pivots = 0;

  Eigen::MatrixXd r(Eigen::Index rank) const;  // rank × n, upper triangular
  // Pivots above so much of the largest.
  Eigen::Index rank(double threshold) const;
};
PivotedQr pivoted_qr(const Eigen::MatrixXd& a);
// The least squares solution of A x = b by pivoted QR, with Eigen's threshold for the rank.
Eigen::VectorXd solve_least_squares(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

// Singular values fall. A = U S Vᵀ with as many columns of U and V as there are singular values.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& a);
struct RightSvd {
  Eigen::VectorXd values;
  Eigen::MatrixXd v;
};
RightSvd right_svd(const Eigen::MatrixXd& a);
// By Jacobi rotations: small singular values as precise as large ones, and slow for large matrices.
Eigen::VectorXd jacobi_singular_values(const Eigen::MatrixXd& a);
Eigen::VectorXd jacobi_singular_values(const RowMatrix& a);
struct ThinSvd {
  Eigen::VectorXd values;
  Eigen::MatrixXd u, v;
};
ThinSvd jacobi_svd(const Eigen::MatrixXd& a);

// Of the symmetric matrix whose values on and below the diagonal are those of A; eigenvalues rise.
struct SymmetricEigen {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;  // columns
};
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& a);
Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& a);
Eigen::VectorXd symmetric_eigenvalues(const RowMatrix& a);
// Moduli of the eigenvalues of any square matrix, in no order.
Eigen::VectorXd eigenvalue_moduli(const Eigen::MatrixXd& a);

// A = L Lᵀ of the symmetric matrix whose values on and below the diagonal are those of A.
struct Cholesky {
  Eigen::MatrixXd packed;  // L on and below the diagonal
  bool positive = false;   // A is positive definite as far as doubles tell; otherwise L means nothing

  Eigen::MatrixXd inverse() const;                              // A⁻¹
  Eigen::VectorXd solve(const Eigen::VectorXd& b) const;        // A⁻¹ b
  Eigen::VectorXd solve_lower(const Eigen::VectorXd& b) const;  // L⁻¹ b
};
Cholesky cholesky(const Eigen::MatrixXd& a);

Eigen::MatrixXd inverse(const Eigen::MatrixXd& a);
// The triangular factor R of a row-major A = Q R, m ≥ n.
RowMatrix triangular_factor(const RowMatrix& a);

}  // namespace normscope
