#pragma once
// Wolfe's corral: the affinely independent points whose hull holds the current nearest point to the origin
// (P. Wolfe, Finding the nearest point in a polytope, 1976). A corral may also hold the downward ray of the
// problem with offsets, a direction whose weight does not count in the sum.
//
// With rows A = [p, σ·a] (a = 1 for a point, 0 for the ray) it keeps H = (A Aᵀ)⁻¹ up to date by bordering, so the
// nearest point of the affine hull has weights H a / (aᵀ H a). H also gives the distances to the facets: row p of
// the barycentric map has squared norm H_pp.
#include <cstddef>
#include <span>
#include <vector>

namespace normscope {

class Corral {
 public:
  static constexpr std::size_t kRay = static_cast<std::size_t>(-2);

  explicit Corral(std::size_t dimension)
      : dimension_(dimension), capacity_(dimension + 2), points_(capacity_ * dimension),
        counted_(capacity_), weights_(capacity_), target_(capacity_), column_(capacity_), gram_(capacity_ * capacity_),
        inverse_(capacity_ * capacity_), nearest_(dimension) {
    members_.reserve(capacity_);
  }

  // Starts anew from one point.
  void start(std::size_t member, std::span<const double> point);
  // Adds a member and moves to the nearest point of the new hull. False if numerically that brings no progress
  // (the point is affinely dependent on the corral, say): the search has then reached the end of its precision.
  bool add(std::size_t member, std::span<const double> point);

  std::size_t size() const { return members_.size(); }
  std::size_t dimension() const { return dimension_; }
  bool contains(std::size_t member) const;
  bool spans() const { return size() == dimension_ + 1; }  // a full simplex: the origin's place is decided
  std::span<const std::size_t> members() const { return members_; }
  std::span<const double> weights() const { return {weights_.data(), size()}; }
  std::span<const double> nearest() const { return nearest_; }
  double squared_distance() const { return squared_distance_; }
  double scale() const { return scale_; }  // σ², the size of squared distances in this problem

  // For a full simplex: whether the origin lies inside it for any points within `error` (a norm) of these, and
  // the radius of a ball around the origin inside the simplex (0 if not proven).
  struct Enclosure {
    bool proven = false;
    double radius = 0;
  };
  Enclosure enclosure(double error) const;

 private:
  const double* point(std::size_t slot) const { return points_.data() + slot * dimension_; }
  double product(std::size_t slot, std::span<const double> point, bool counted) const;
  bool border(std::size_t member, std::span<const double> point);
  void remove(std::size_t slot);
  bool settle();
  void place();
  void refresh();

  std::size_t dimension_, capacity_;
  std::vector<std::size_t> members_;
  std::vector<double> points_;                     // capacity × dimension
  std::vector<double> counted_, weights_, target_, column_;
  std::vector<double> gram_, inverse_;             // capacity × capacity, row stride capacity
  std::vector<double> nearest_;
  double squared_distance_ = 0, scale_ = 1;
  std::size_t updates_ = 0;  // of the inverse since it was last computed from the Gram matrix
};

}  // namespace normscope
