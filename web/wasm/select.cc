// Bindings of the view Select: files, norms, verdicts, attention weights, and what its pictures need:
// principal directions, the fan of winners around the plane, the edges of a hull in space.
#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "bridge.h"
#include "normscope/keys.h"
#include "normscope/norm.h"
#include "normscope/tensor_file.h"
#include "normscope/version.h"

namespace normscope::web {
namespace {

template <class Index>
val indices(const std::vector<Index>& list) {
  val result = val::array();
  for (std::size_t i = 0; i < list.size(); ++i) result.set(i, list[i]);
  return result;
}

val terms(const std::vector<CoverTerm>& cover) {
  val list = val::array();
  for (std::size_t i = 0; i < cover.size(); ++i) {
    val term = val::object();
    term.set("index", cover[i].index);
    term.set("weight", cover[i].weight);
    list.set(i, term);
  }
  return list;
}

val counts(const KeyCounts& count) {
  val result = val::object();
  result.set("selectable", count.selectable);
  result.set("tied", count.tied);
  result.set("unselectable", count.unselectable);
  return result;
}

val verdict(const KeyVerdict& key) {
  val result = val::object();
  result.set("verdict", std::string(name_of(key.verdict)));
  result.set("robust", key.robust);
  result.set("margin", key.margin);
  result.set("depth", key.depth);
  result.set("witness", numbers(key.witness));
  result.set("exactWitness", indices(key.exact_witness));
  result.set("cover", terms(key.cover));
  result.set("tiedWith", indices(key.tied_with));
  result.set("exactPath", key.exact_path);
  return result;
}

// keys: n × d. unit_roundoff: of the dtype the keys came in.
val decide(const val& keys, std::size_t n, std::size_t d, double unit_roundoff) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d);
    KeyOptions options;
    options.unit_roundoff = unit_roundoff;
    const KeySet set = decide_keys(rows.view(), {}, options, Executor(1));
    val result = val::object();
    result.set("rank", set.rank);
    result.set("counts", counts(set.counts));
    result.set("robustCounts", counts(set.robust_counts));
    val list = val::array();
    for (std::size_t i = 0; i < set.keys.size(); ++i) list.set(i, verdict(set.keys[i]));
    result.set("keys", list);
    return result;
  });
}

// bytes: a Uint8Array with a .npy or .safetensors file; label names it in messages.
val read_array(const val& bytes, const std::string& label) {
  return answer([&] {
    const auto values = emscripten::convertJSArrayToNumberVector<unsigned char>(bytes);
    const auto* first = reinterpret_cast<const std::byte*>(values.data());
    ReadLimits limits;
    limits.max_bytes = std::uint64_t{256} << 20;
    const Tensor tensor = TensorFile::from_bytes({first, first + values.size()}, label, limits).read();
    val result = val::object();
    result.set("shape", indices(tensor.shape));
    result.set("dtype", std::string(name_of(tensor.dtype)));
    result.set("unitRoundoff", unit_roundoff(tensor.dtype));
    result.set("values", numbers(tensor.values));
    return result;
  });
}

val normalize(const val& keys, std::size_t n, std::size_t d, const std::string& name) {
  return answer([&] {
    Matrix<double> rows = matrix(keys, n, d);
    const NormCounts count =
        norm_forward<double>(parse_norm(name, norm_names_without_normals()), {}, rows.view(), rows.view());
    val result = val::object();
    result.set("values", numbers(rows.values()));
    result.set("zeroRows", count.zero_rows);
    result.set("constantRows", count.constant_rows);
    return result;
  });
}

// Scores q·k_i and weights softmax(q·k_i / temperature).
val attention(const val& keys, std::size_t n, std::size_t d, const val& query, double temperature) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d);
    const Matrix<double> q = matrix(query, 1, d);
    if (!(temperature > 0)) throw InputError("The temperature must be positive.");
    std::vector<double> scores(n), weights(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < d; ++c) scores[i] += q(0, c) * rows(i, c);
    const double top = n == 0 ? 0 : *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += weights[i] = std::exp((scores[i] - top) / temperature);
    for (double& weight : weights) weight /= sum;
    val result = val::object();
    result.set("scores", numbers(scores));
    result.set("weights", numbers(weights));
    return result;
  });
}

struct Principal {
  Eigen::RowVectorXd mean;
  Eigen::MatrixXd directions;   // d × shown, orthonormal columns where the keys spread
  Eigen::MatrixXd coordinates;  // n × shown
  double share = 1;             // of the variance
};

Principal principal_directions(MatrixView<const double> rows, Eigen::Index shown) {
  using Values = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Values> x(rows.data, static_cast<Eigen::Index>(rows.rows),
                                   static_cast<Eigen::Index>(rows.cols));
  Principal result;
  result.mean = x.colwise().mean();
  const Eigen::MatrixXd centred = x.rowwise() - result.mean;
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(centred, Eigen::ComputeThinV);
  const Eigen::Index kept = std::min<Eigen::Index>(shown, svd.matrixV().cols());
  result.directions = Eigen::MatrixXd::Zero(x.cols(), shown);
  result.directions.leftCols(kept) = svd.matrixV().leftCols(kept);
  result.coordinates = centred * result.directions;
  const double total = svd.singularValues().squaredNorm();
  if (total > 0) result.share = svd.singularValues().head(kept).squaredNorm() / total;
  return result;
}

val principal(const val& keys, std::size_t n, std::size_t d, std::size_t shown) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d);
    const Principal found = principal_directions(rows.view(), static_cast<Eigen::Index>(shown));
    std::vector<double> coordinates;
    for (Eigen::Index i = 0; i < found.coordinates.rows(); ++i)
      for (Eigen::Index c = 0; c < found.coordinates.cols(); ++c)
        coordinates.push_back(found.coordinates(i, c));
    val result = val::object();
    result.set("coordinates", numbers(coordinates));
    result.set("share", found.share);
    return result;
  });
}

using Point = std::array<double, 2>;

// Keys at one place, by their first; keys of verdict `tied` that share no place with another lie inside an
// edge.
struct Corner {
  Point at;
  std::vector<std::size_t> keys;
};

// Which key wins in each direction of a plane, keys in its coordinates. The corners of the hull come from the
// verdicts, so that the picture cannot contradict them; the arc of a corner runs between the outward normals
// of its two edges. Directions in radians; every arc has to >= from.
val fan(const val& keys, std::size_t n, const val& verdicts) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, 2);
    const std::vector<double> kinds = doubles(verdicts);
    if (kinds.size() != n) throw InputError("The page passed a verdict for another number of keys.");
    std::vector<Corner> corners, inside_edges;
    for (std::size_t i = 0; i < n; ++i) {
      if (kinds[i] == 2) continue;
      const Point at = {rows(i, 0), rows(i, 1)};
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
        return kinds[corner.keys.front()] == 0 || corner.keys.size() > 1;
      });
      inside_edges.assign(alone, corners.end());
      corners.erase(alone, corners.end());
    }
    Point centre = {0, 0};
    for (const Corner& corner : corners)
      for (std::size_t c = 0; c < 2; ++c) centre[c] += corner.at[c] / static_cast<double>(corners.size());
    const auto angle = [&](const Point& at) { return std::atan2(at[1] - centre[1], at[0] - centre[0]); };
    std::sort(corners.begin(), corners.end(),
              [&](const Corner& a, const Corner& b) { return angle(a.at) < angle(b.at); });
    constexpr double turn = 2 * std::numbers::pi;
    val arcs = val::array(), polygon = val::array();
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
      val arc = val::object();
      arc.set("keys", indices(corner.keys));
      arc.set("from", from);
      arc.set("to", to);
      arcs.set(i, arc);
      polygon.set(i, corner.keys.front());
    }
    val result = val::object();
    result.set("arcs", arcs);
    result.set("polygon", polygon);
    return result;
  });
}

// Edges of the hull of keys in space (n × 3) or in a plane of it, as pairs of keys: for the picture only, by
// trying every plane through three keys.
val hull_edges(const val& keys, std::size_t n) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, 3);
    using Vector = Eigen::Vector3d;
    const auto at = [&](std::size_t i) { return Vector(rows(i, 0), rows(i, 1), rows(i, 2)); };
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
    val edges = val::array();
    std::size_t count = 0;
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
      val edge = val::array();
      edge.set(0, pair.first);
      edge.set(1, pair.second);
      edges.set(count++, edge);
    }
    return edges;
  });
}

// The key with the highest score in each direction (m × d); -1 where several share it.
val winners(const val& keys, std::size_t n, std::size_t d, const val& directions, std::size_t m) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d), q = matrix(directions, m, d);
    std::vector<double> result(m);
    for (std::size_t a = 0; a < m; ++a) {
      double top = -std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < n; ++i) {
        double score = 0;
        for (std::size_t c = 0; c < d; ++c) score += q(a, c) * rows(i, c);
        if (score > top) {
          top = score;
          result[a] = static_cast<double>(i);
        } else if (score == top) {
          result[a] = -1;
        }
      }
    }
    return numbers(result);
  });
}

std::string about() {
  return "normscope " + version() + " (" + commit() + "), " + instruction_set();
}

}  // namespace

EMSCRIPTEN_BINDINGS(select) {
  emscripten::function("decideKeys", &decide);
  emscripten::function("readArray", &read_array);
  emscripten::function("normalize", &normalize);
  emscripten::function("attention", &attention);
  emscripten::function("principal", &principal);
  emscripten::function("fan", &fan);
  emscripten::function("hullEdges", &hull_edges);
  emscripten::function("winners", &winners);
  emscripten::function("about", &about);
}

}  // namespace normscope::web
