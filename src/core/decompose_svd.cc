// Singular values: as much to compile as all other decompositions together.
#include <Eigen/SVD>

#include "core/decompose.h"

namespace normscope {

Eigen::VectorXd singular_values(const Eigen::MatrixXd& a) {
  return Eigen::BDCSVD<Eigen::MatrixXd>(a).singularValues();
}

RightSvd right_svd(const Eigen::MatrixXd& a) {
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(a, Eigen::ComputeThinV);
  return {svd.singularValues(), svd.matrixV()};
}

Eigen::VectorXd jacobi_singular_values(const Eigen::MatrixXd& a) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(a).singularValues();
}

Eigen::VectorXd jacobi_singular_values(const RowMatrix& a) {
  return Eigen::JacobiSVD<RowMatrix>(a).singularValues();
}

ThinSvd jacobi_svd(const Eigen::MatrixXd& a) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(a, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.singularValues(), svd.matrixU(), svd.matrixV()};
}

}  // namespace normscope
