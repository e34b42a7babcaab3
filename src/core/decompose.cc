#include "core/decompose.h"

#include <Eigen/Dense>

namespace normscope {
namespace {

auto reflections(const Qr& qr) {
  return Eigen::householderSequence(qr.packed, qr.coefficients);
}

}  // namespace

Eigen::MatrixXd Qr::r() const {
  return packed.topRows(packed.cols()).triangularView<Eigen::Upper>();
}

Eigen::MatrixXd Qr::q() const {
  return reflections(*this);
}

Eigen::MatrixXd Qr::thin_q() const {
  return reflections(*this) * Eigen::MatrixXd::Identity(packed.rows(), packed.cols());
}

Eigen::VectorXd Qr::q_times(const Eigen::VectorXd& x) const {
  return reflections(*this) * x;
}

Eigen::VectorXd Qr::q_transposed_times(const Eigen::VectorXd& x) const {
  return reflections(*this).adjoint() * x;
}

Qr householder_qr(Eigen::MatrixXd a) {
  Eigen::VectorXd coefficients = Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>>(a).hCoeffs();
  return {std::move(a), std::move(coefficients)};
}

Eigen::MatrixXd PivotedQr::r(Eigen::Index rank) const {
  return packed.topRows(rank).triangularView<Eigen::Upper>();
}

Eigen::Index PivotedQr::rank(double threshold) const {
  const Eigen::VectorXd pivots = packed.diagonal().head(nonzero_pivots).cwiseAbs();
  return (pivots.array() > threshold * largest_pivot).count();
}

PivotedQr pivoted_qr(const Eigen::MatrixXd& a) {
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> factor(a);
  return {factor.matrixR(), factor.colsPermutation(), factor.maxPivot(), factor.nonzeroPivots()};
}

Eigen::VectorXd solve_least_squares(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  return a.colPivHouseholderQr().solve(b);
}

SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& a) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(a);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& a) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(a, Eigen::EigenvaluesOnly).eigenvalues();
}

Eigen::VectorXd symmetric_eigenvalues(const RowMatrix& a) {
  return Eigen::SelfAdjointEigenSolver<RowMatrix>(a, Eigen::EigenvaluesOnly).eigenvalues();
}

Eigen::VectorXd eigenvalue_moduli(const Eigen::MatrixXd& a) {
  return Eigen::EigenSolver<Eigen::MatrixXd>(a, false).eigenvalues().cwiseAbs();
}

Eigen::VectorXd Cholesky::solve(const Eigen::VectorXd& b) const {
  Eigen::VectorXd x = b;
  packed.triangularView<Eigen::Lower>().solveInPlace(x);
  packed.triangularView<Eigen::Lower>().adjoint().solveInPlace(x);
  return x;
}

Eigen::VectorXd Cholesky::solve_lower(const Eigen::VectorXd& b) const {
  return packed.triangularView<Eigen::Lower>().solve(b);
}

Eigen::MatrixXd Cholesky::inverse() const {
  Eigen::MatrixXd x = Eigen::MatrixXd::Identity(packed.rows(), packed.rows());
  packed.triangularView<Eigen::Lower>().solveInPlace(x);
  packed.triangularView<Eigen::Lower>().adjoint().solveInPlace(x);
  return x;
}

Cholesky cholesky(const Eigen::MatrixXd& a) {
  const Eigen::LLT<Eigen::MatrixXd> factor(a);
  return {factor.matrixLLT(), factor.info() == Eigen::Success};
}

Eigen::MatrixXd inverse(const Eigen::MatrixXd& a) {
  return a.inverse();
}

RowMatrix triangular_factor(const RowMatrix& a) {
  const Eigen::HouseholderQR<RowMatrix> factor(a);
  return factor.matrixQR().topRows(factor.cols()).triangularView<Eigen::Upper>();
}

}  // namespace normscope
