#include "keys/picture.h"

#include <Eigen/Geometry>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "core/decompose.h"
#include "normscope/error.h"
#include "normscope/norm.h"
#include "normscope/random.h"

namespace normscope {
namespace {

using Point = std::array<double, 2>;

// Keys at one place.
struct Corner {
  Point at;
  std::vector<std::size_t> keys;
};

double score(std::span<const double> query, std::span<const double> key) {
  double sum = 0;
  for (std::size_t c = 0; c < query.size(); ++c) sum += query[c] * key[c];
  return sum;
}

}  // namespace

Attention attention_to(MatrixView<const double> keys, std::span<const double> query, double temperature) {
  if (!(temperature > 0)) throw InputError("The temperature must be positive.");
  Attention result{
      std::vector<double>(keys.rows), std::vector<double>(keys.rows), {}, {keys.rows, keys.cols}};
  for (std::size_t i = 0; i < keys.rows; ++i) result.scores[i] = score(query, keys[i]);
  const double top = keys.rows == 0 ? 0 : *std::max_element(result.scores.begin(), result.scores.end());
  double sum = 0;
  for (std::size_t i = 0; i < keys.rows; ++i)
    sum += result.weights[i] = std::exp((result.scores[i] - top) / temperature);
  for (double& weight : result.weights) weight /= sum;
  for (const double own : result.scores) {
    result.ranks.push_back(
        1 + static_cast<std::size_t>(std::count_if(result.scores.begin(), result.scores.end(),
                                                   [own](double other) { return other > own; })));
  }
  const double squared = score(query, query);
  for (std::size_t i = 0; i < keys.rows && squared > 0; ++i)
    for (std::size_t c = 0; c < keys.cols; ++c) result.shadows(i, c) = result.scores[i] / squared * query[c];
  return result;
}

std::size_t best_rank(MatrixView<const double> keys, std::size_t key, std::size_t tries, std::uint64_t seed) {
  if (key >= keys.rows) throw InputError("There is no such key.");
  Random random(seed);
  std::vector<double> query(keys.cols);
  std::size_t best = keys.rows;
  for (std::size_t i = 0; i < tries && best > 1; ++i) {
    for (double& value : query) value = random.normal();
    best = std::min(best, attention_to(keys, query, 1).ranks[key]);
  }
  return best;
}

std::vector<std::uint8_t> winners_on_sphere(MatrixView<const double> keys, const SphereView& view,
                                            std::size_t size) {
  if (keys.cols != 3 || keys.rows >= kSeveral) throw InputError("The sphere shows up to 250 keys in space.");
  // Scores in the frame of the reader: two products for each pixel and key.
  Matrix<double> seen(keys.rows, 3);
  for (std::size_t i = 0; i < keys.rows; ++i) {
    seen(i, 0) = score(view.right, keys[i]);
    seen(i, 1) = score(view.up, keys[i]);
    seen(i, 2) = score(view.towards, keys[i]);
  }
  std::vector<std::uint8_t> result(size * size, kNobody);
  const double radius = static_cast<double>(size) / 2;
  for (std::size_t row = 0; row < size; ++row) {
    const double up = 1 - (static_cast<double>(row) + 0.5) / radius;
    for (std::size_t column = 0; column < size; ++column) {
      const double right = (static_cast<double>(column) + 0.5) / radius - 1;
      const double squared = 1 - right * right - up * up;
      if (squared < 0) continue;
      const std::array<double, 3> direction = {right, up, std::sqrt(squared)};
      double top = -std::numeric_limits<double>::infinity();
      std::uint8_t& winner = result[row * size + column];
      for (std::size_t i = 0; i < keys.rows; ++i) {
        const double here = score(direction, seen[i]);
        if (here > top) {
          top = here;
          winner = static_cast<std::uint8_t>(i);
        } else if (here == top) {
          winner = kSeveral;
        }
      }
    }
  }
  return result;
}

Matrix<double> partly_normed(MatrixView<const double> keys, double projected, double scaled) {
  if (!(projected >= 0 && projected <= 1 && scaled >= 0 && scaled <= 1))
    throw InputError("A part of a norm is from 0 to 1.");
  const auto towards = [](MatrixView<double> from, const char* norm, double share) {
    if (share == 0) return;
    Matrix<double> end(from.rows, from.cols);
    norm_forward<double>(parse_norm(norm), {}, from, end.view());
    for (std::size_t i = 0; i < from.rows; ++i)
      for (std::size_t c = 0; c < from.cols; ++c)
        from(i, c) = share == 1 ? end(i, c) : from(i, c) + share * (end(i, c) - from(i, c));
  };
  Matrix<double> result(keys.rows, keys.cols);
  for (std::size_t i = 0; i < keys.rows; ++i) std::copy(keys[i].begin(), keys[i].end(), result[i].begin());
  towards(result.view(), "center", projected);
  towards(result.view(), "rmsnorm", scaled);
  return result;
}

std::vector<std::size_t> winners(MatrixView<const double> keys, MatrixView<const double> directions) {
  std::vector<std::size_t> result(directions.rows, kShared);
  for (std::size_t a = 0; a < directions.rows; ++a) {
    double top = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < keys.rows; ++i) {
      const double here = score(directions[a], keys[i]);
      if (here > top) {
        top = here;
        result[a] = i;
      } else if (here == top) {
        result[a] = kShared;
      }
    }
  }
  return result;
}

std::vector<WinnerArc> winner_fan(MatrixView<const double> keys, std::span<const Verdict> verdicts) {
  const std::size_t n = keys.rows;
  std::vector<Corner> corners;
  for (std::size_t i = 0; i < n; ++i) {
    if (verdicts[i] == Verdict::unselectable) continue;
    const Point at = {keys(i, 0), keys(i, 1)};
    const auto same =
        std::find_if(corners.begin(), corners.end(), [&](const Corner& corner) { return corner.at == at; });
    if (same != corners.end()) {
      same->keys.push_back(i);
    } else {
      corners.push_back({at, {i}});
    }
  }
  // Tied, and alone at its place although there are others: not a corner.
  if (corners.size() > 1) {
    const auto alone = std::stable_partition(corners.begin(), corners.end(), [&](const Corner& corner) {
      return verdicts[corner.keys.front()] == Verdict::selectable || corner.keys.size() > 1;
    });
    corners.erase(alone, corners.end());
  }
  Point centre = {0, 0};
  for (const Corner& corner : corners)
    for (std::size_t c = 0; c < 2; ++c) centre[c] += corner.at[c] / static_cast<double>(corners.size());
  const auto angle = [&](const Point& at) { return std::atan2(at[1] - centre[1], at[0] - centre[0]); };
  std::sort(corners.begin(), corners.end(),
            [&](const Corner& a, const Corner& b) { return angle(a.at) < angle(b.at); });
  constexpr double turn = 2 * std::numbers::pi;
  std::vector<WinnerArc> arcs;
  const std::size_t count = corners.size();
  const auto normal = [](const Point& from,
                         const Point& to) {  // outward, the hull being walked against the clock
    return std::atan2(-(to[0] - from[0]), to[1] - from[1]);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Corner& corner = corners[i];
    double from = 0, to = turn;
    if (count > 1) {
      from = normal(corners[(i + count - 1) % count].at, corner.at);
      to = normal(corner.at, corners[(i + 1) % count].at);
      while (to < from) to += turn;
      // No corner of three or more turns by half a circle: equal keys inside an edge, up to rounding.
      if (count > 2 && to - from > std::numbers::pi) to = from;
    }
    arcs.push_back({corner.keys, from, to});
  }
  return arcs;
}

std::vector<std::pair<std::size_t, std::size_t>> hull_edges(MatrixView<const double> keys) {
  using Vector = Eigen::Vector3d;
  const std::size_t n = keys.rows;
  const auto at = [&](std::size_t i) { return Vector(keys(i, 0), keys(i, 1), keys(i, 2)); };
  double size = 0;
  for (std::size_t i = 0; i < n; ++i) size = std::max(size, (at(i) - at(0)).norm());
  const double flat = 1e-9 * size;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Vector>>
      faces;  // outward normals beside each pair
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      for (std::size_t k = j + 1; k < n; ++k) {
        Vector normal = (at(j) - at(i)).cross(at(k) - at(i));
        if (normal.norm() <= flat * size) continue;
        normal.normalize();
        double lowest = 0, highest = 0;
        for (std::size_t m = 0; m < n; ++m) {
          const double height = normal.dot(at(m) - at(i));
          lowest = std::min(lowest, height);
          highest = std::max(highest, height);
        }
        for (const double side : {1.0, -1.0}) {
          if ((side > 0 ? highest : -lowest) > flat) continue;
          for (const auto& pair : {std::pair(i, j), std::pair(i, k), std::pair(j, k)})
            faces[pair].push_back(side * normal);
        }
      }
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const auto& [pair, beside] : faces) {
    const Vector first = beside.front();
    const auto same_plane = [&](const Vector& other) { return std::abs(first.dot(other)) > 1 - 1e-9; };
    const auto same_face = [&](const Vector& other) { return first.dot(other) > 1 - 1e-9; };
    // A diagonal of a face sees one normal only.
    if (std::all_of(beside.begin(), beside.end(), same_face)) continue;
    // All keys in one plane: both sides of it are faces, and only pairs with all keys on one side are
    // edges.
    if (std::all_of(beside.begin(), beside.end(), same_plane)) {
      const Vector across = first.cross(at(pair.second) - at(pair.first)).normalized();
      bool left = false, right = false;
      for (std::size_t m = 0; m < n; ++m) {
        const double height = across.dot(at(m) - at(pair.first));
        left = left || height > flat;
        right = right || height < -flat;
      }
      if (left && right) continue;
    }
    edges.push_back(pair);
  }
  return edges;
}

PrincipalPicture principal_picture(MatrixView<const double> keys, std::size_t shown) {
  const Eigen::Map<const RowMatrix> x(keys.data, static_cast<Eigen::Index>(keys.rows),
                                      static_cast<Eigen::Index>(keys.cols));
  const Eigen::MatrixXd centred = x.rowwise() - x.colwise().mean();
  const RightSvd svd = right_svd(centred);
  const Eigen::Index kept = std::min(static_cast<Eigen::Index>(shown), svd.v.cols());
  PrincipalPicture result{Matrix<double>(keys.rows, shown), 1};
  const Eigen::MatrixXd coordinates = centred * svd.v.leftCols(kept);
  for (std::size_t i = 0; i < keys.rows; ++i) {
    for (Eigen::Index c = 0; c < kept; ++c)
      result.coordinates(i, static_cast<std::size_t>(c)) = coordinates(static_cast<Eigen::Index>(i), c);
  }
  const double total = svd.values.squaredNorm();
  if (total > 0) result.share = svd.values.head(kept).squaredNorm() / total;
  return result;
}

}  // namespace normscope
