#include "keys/ball_search.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/decompose.h"

namespace normscope {
namespace {

// A pivot of the bordered inverse below this share of the new diagonal means: affinely dependent.
constexpr double kDependent = 1e-12;
constexpr double kZeroWeight = 1e-14;
// Upper and lower bound that agree to this share of the scores' size have met.
constexpr double kMet = 1e-12;
constexpr int kMostUpdates = 40;

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

}  // namespace

// Affinely independent p_j with their c_j and weights, and H = (P Pᵀ + σ²11ᵀ)⁻¹ kept by bordering. Over the
// affine hull, Σ λ = 1, with h = H1, w = Hc, b = 1ᵀh, a = cᵀh, e = cᵀw:
//   u = w − (a/b) h       is the shift that takes c into account: the query −Pᵀu, of squared norm κ = e −
//                         a²/b, is the shortest that scores all members alike, at a/b
//   z = Pᵀh/b             is the hull's nearest point to 0, at distance δ
//   R² > κ:               λ = h/b + t u, t = δ/√(R² − κ), is the minimiser; its query is −Pᵀu − z √(R² −
//                         κ)/δ
//   R² ≤ κ:               φ falls without end along u.
class BallSearch::Corral {
 public:
  explicit Corral(std::size_t dimension)
      : dimension_(static_cast<Index>(dimension)),
        capacity_(dimension_ + 3),
        points_(dimension_, capacity_),
        inverse_(capacity_, capacity_),
        gram_(capacity_, capacity_),
        offsets_(capacity_),
        weights_(capacity_) {
    members_.reserve(dimension + 3);
  }

  void start(std::size_t member, const VectorXd& p, double c, double radius) {
    radius_ = radius;
    members_.clear();
    const double squares = p.squaredNorm();
    scale_ = squares > 0 ? squares : 1.0;
    updates_ = 0;
    append(member, p, c, 1.0);
    gram_(0, 0) = squares + scale_;
    inverse_(0, 0) = 1 / gram_(0, 0);
    solve();
  }

  // False if numerically that brings no progress.
  bool add(std::size_t member, const VectorXd& p, double c) {
    if (!border(member, p, c) && !exchange(member, p, c)) return false;
    return settle();
  }

  bool contains(std::size_t member) const {
    return std::find(members_.begin(), members_.end(), member) != members_.end();
  }
  std::span<const std::size_t> members() const { return members_; }
  double weight(std::size_t slot) const { return weights_[static_cast<Index>(slot)]; }

  // φ(λ) of the weights as they are, whatever their rounding.
  double value() const {
    const Index m = size();
    const double total = weights_.head(m).sum();
    return (radius_ * (points_.leftCols(m) * weights_.head(m)).norm() -
            offsets_.head(m).dot(weights_.head(m))) /
           total;
  }

  // Of the affine minimiser, cut to the ball.
  VectorXd query() const {
    const Index m = size();
    return cut(-(points_.leftCols(m) * shift_), points_.leftCols(m) * (ones_ / b_));
  }

  // The same from the points themselves: the Gram matrix squares their condition number.
  VectorXd precise_query() const {
    const Index m = size();
    if (m == 1) return cut(VectorXd::Zero(dimension_), points_.col(0));
    const MatrixXd edges = points_.block(0, 1, dimension_, m - 1).colwise() - points_.col(0);
    const Qr qr = householder_qr(edges);
    // The shortest query with q·edge = −(c_j − c_0): q = Q y, Rᵀ y = −(c_j − c_0).
    VectorXd y = offsets_[0] - offsets_.segment(1, m - 1).array();
    qr.packed.topRows(m - 1).triangularView<Eigen::Upper>().transpose().solveInPlace(y);
    VectorXd shortest = VectorXd::Zero(dimension_);
    shortest.head(m - 1) = y;
    VectorXd nearest = qr.q_transposed_times(points_.col(0));
    nearest.head(m - 1).setZero();
    return cut(qr.q_times(shortest), qr.q_times(nearest));
  }

  // Computes afresh what updates have blurred.
  bool repair() {
    refresh();
    return settle();
  }

 private:
  bool spans() const { return size() > dimension_; }  // 0 lies in the affine hull

  // The query that scores the members alike, as long as the ball allows: away from the hull.
  VectorXd cut(VectorXd shortest, const VectorXd& nearest) const {
    const double distance = nearest.norm(), rest = radius_ * radius_ - shortest.squaredNorm();
    if (!spans() && distance > 0 && rest > 0) shortest -= nearest * (std::sqrt(rest) / distance);
    if (const double length = shortest.norm(); length > radius_) shortest *= radius_ / length;
    return shortest;
  }

  Index size() const { return static_cast<Index>(members_.size()); }

  void append(std::size_t member, const VectorXd& p, double c, double weight) {
    const Index m = size();
    points_.col(m) = p;
    offsets_[m] = c;
    weights_[m] = weight;
    members_.push_back(member);
  }

  bool border(std::size_t member, const VectorXd& p, double c) {
    const Index m = size();
    if (spans()) return false;
    const VectorXd fresh = (points_.leftCols(m).transpose() * p).array() + scale_;
    const double diagonal = p.squaredNorm() + scale_;
    const VectorXd column = inverse_.topLeftCorner(m, m) * fresh;
    const double pivot = diagonal - column.dot(fresh);
    if (!(pivot > kDependent * diagonal)) return false;
    gram_.col(m).head(m) = fresh;
    gram_.row(m).head(m) = fresh.transpose();
    gram_(m, m) = diagonal;
    inverse_.topLeftCorner(m, m).noalias() += column * (column.transpose() / pivot);
    inverse_.col(m).head(m) = -column / pivot;
    inverse_.row(m).head(m) = -column.transpose() / pivot;
    inverse_(m, m) = 1 / pivot;
    append(member, p, c, 0.0);
    ++updates_;
    return true;
  }

  // A point in the members' affine hull: weight moves to it along the one affine dependence until a member
  // has none left, which gives it its place.
  bool exchange(std::size_t member, const VectorXd& p, double c) {
    const Index m = size();
    const VectorXd fresh = (points_.leftCols(m).transpose() * p).array() + scale_;
    const VectorXd y = inverse_.topLeftCorner(m, m) * fresh;
    Index leaving = m;
    double step = std::numeric_limits<double>::infinity();
    for (Index a = 0; a < m; ++a)
      if (y[a] > 1e-10 && weights_[a] / y[a] < step) step = weights_[a] / y[a], leaving = a;
    if (leaving == m || m == 1) return false;
    weights_.head(m) = (weights_.head(m) - step * y).cwiseMax(0.0);
    remove(leaving);
    if (!border(member, p, c)) return false;
    weights_[size() - 1] = step;
    return true;
  }

  void remove(Index slot) {
    const Index m = size(), last = m - 1;
    const VectorXd gone = inverse_.col(slot).head(m);
    inverse_.topLeftCorner(m, m).noalias() -= gone * (gone.transpose() / gone[slot]);
    if (slot != last) {
      points_.col(slot) = points_.col(last);
      offsets_[slot] = offsets_[last];
      weights_[slot] = weights_[last];
      members_[static_cast<std::size_t>(slot)] = members_[static_cast<std::size_t>(last)];
      for (MatrixXd* matrix : {&gram_, &inverse_}) {
        matrix->row(slot).head(m) = matrix->row(last).head(m).eval();
        matrix->col(slot).head(m) = matrix->col(last).head(m).eval();
      }
    }
    members_.pop_back();
    ++updates_;
  }

  void refresh() {
    const Index m = size();
    inverse_.topLeftCorner(m, m) = cholesky(gram_.topLeftCorner(m, m)).inverse();
    updates_ = 0;
  }

  void solve() {
    const Index m = size();
    const auto inverse = inverse_.topLeftCorner(m, m);
    ones_ = inverse.rowwise().sum();
    shift_ = inverse * offsets_.head(m);
    b_ = ones_.sum();
    shift_ -= (offsets_.head(m).dot(ones_) / b_) * ones_;
    kappa_ = std::max(0.0, offsets_.head(m).dot(shift_));
  }

  // Wolfe's minor cycles: walk towards the affine minimiser (or downhill without end), dropping members whose
  // weight vanishes.
  bool settle() {
    if (updates_ > kMostUpdates) refresh();
    while (true) {
      const Index m = size();
      solve();
      if (!(b_ > 0) || !std::isfinite(kappa_)) return false;
      const double slack = radius_ * radius_ - kappa_;
      VectorXd direction;
      double step = 1;
      if (slack > 0) {
        const double distance = spans() ? 0 : (points_.leftCols(m) * (ones_ / b_)).norm();
        direction = ones_ / b_ + (distance / std::sqrt(slack)) * shift_ - weights_.head(m);
      } else {
        direction = shift_;
        step = std::numeric_limits<double>::infinity();
      }
      Index leaving = m;
      for (Index a = 0; a < m; ++a) {
        if (!(direction[a] < 0) || weights_[a] + direction[a] * std::min(step, 1e300) > kZeroWeight) continue;
        const double reach = std::max(0.0, weights_[a]) / -direction[a];
        if (leaving == m || reach < step) step = reach, leaving = a;
      }
      if (!std::isfinite(step)) return false;
      weights_.head(m) = (weights_.head(m) + step * direction).cwiseMax(0.0);
      if (leaving == m) return true;
      if (m == 1) return false;
      weights_[leaving] = 0;
      remove(leaving);
    }
  }

  Index dimension_, capacity_;
  std::vector<std::size_t> members_;
  MatrixXd points_;  // dimension × capacity, a column per member
  MatrixXd inverse_, gram_;
  VectorXd offsets_, weights_;
  VectorXd ones_, shift_;  // h, u
  double b_ = 1, kappa_ = 0, radius_ = 0, scale_ = 1;
  int updates_ = 0;  // of the inverse since it was last computed from the Gram matrix
};

BallSearch::BallSearch(const ScoredKeys& keys)
    : keys_(keys), corral_(std::make_unique<Corral>(keys.dimension)) {}
BallSearch::~BallSearch() = default;

BallFound BallSearch::decide(std::size_t key, std::size_t start, Margins margins) {
  const std::size_t f = keys_.dimension;
  const Eigen::Map<const VectorXd> here(keys_.points[key].data(), static_cast<Index>(f + 1));
  VectorXd difference(static_cast<Index>(f + 1)), query(static_cast<Index>(f + 1));
  const auto take_difference = [&](std::size_t rival) {
    difference = Eigen::Map<const VectorXd>(keys_.points[rival].data(), static_cast<Index>(f + 1)) - here;
  };
  BallFound found;
  found.lower = -std::numeric_limits<double>::infinity();
  found.upper = std::numeric_limits<double>::infinity();
  take_difference(start);
  corral_->start(start, difference.head(static_cast<Index>(f)), difference[static_cast<Index>(f)],
                 keys_.radius);
  const std::size_t most_steps = 200 + 20 * (f + 2);
  const double error = keys_.score_error;
  bool repaired = false;
  // False if the answer is there.
  const auto look = [&](const VectorXd& from_corral, TopScore& top) {
    // The value of convex weights errs no more than the score differences they average.
    if (const double upper = corral_->value() + error; upper < found.upper) {
      found.upper = upper;
      found.cover.clear();
      for (std::size_t slot = 0; slot < corral_->members().size(); ++slot)
        if (corral_->weight(slot) > 0)
          found.cover.push_back({corral_->members()[slot], corral_->weight(slot)});
    }
    if (margins == Margins::bound && found.upper < 0) return false;
    query.head(static_cast<Index>(f)) = from_corral;
    query[static_cast<Index>(f)] = 1;
    top = top_score(keys_.all, keys_.all.size(), query.data(), key);
    if (const double lower = query.dot(here) - top.score - error; lower > found.lower) {
      found.lower = lower;
      found.query.assign(query.data(), query.data() + f);
    }
    if (margins == Margins::bound && found.lower > 0) return false;
    return found.upper - found.lower > 2.5 * error + kMet * std::abs(found.upper);
  };
  for (std::size_t step = 0; step < most_steps; ++step) {
    TopScore top{};
    if (!look(repaired ? corral_->precise_query() : corral_->query(), top)) break;
    if (!corral_->contains(top.index)) {
      take_difference(top.index);
      if (corral_->add(top.index, difference.head(static_cast<Index>(f)),
                       difference[static_cast<Index>(f)])) {
        repaired = false;
        continue;
      }
    }
    // No progress: either the end of what doubles resolve, or of what the updated inverse still knows.
    if (repaired || !corral_->repair()) break;
    repaired = true;
  }
  double total = 0;
  for (const CoverTerm& term : found.cover) total += term.weight;
  for (CoverTerm& term : found.cover) term.weight /= total;
  std::sort(found.cover.begin(), found.cover.end(),
            [](const CoverTerm& a, const CoverTerm& b) { return a.index < b.index; });
  return found;
}

}  // namespace normscope
