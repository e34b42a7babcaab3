// The layer, two tokens in the plane, and random starts. The equilibria of Theorem 3 are in
// equilibria_theorem.cc.
#include "normscope/equilibria.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/decompose.h"
#include "core/run_pieces.h"
#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Singular values, largest first.
std::vector<double> singular_values(const Matrix<double>& x) {
  const Eigen::Map<const RowMatrix> view(x.data(), static_cast<Eigen::Index>(x.rows()),
                                         static_cast<Eigen::Index>(x.cols()));
  const Eigen::VectorXd values = jacobi_singular_values(Eigen::MatrixXd(view));
  return {values.begin(), values.end()};
}

std::size_t rank_of(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::count_if(values.begin(), values.end(), [&](double value) {
    return value > RankOptions::rank_tolerance * values.front();
  }));
}

double largest_change(const Matrix<double>& a, const Matrix<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i)
    largest = std::max(largest, std::fabs(a.values()[i] - b.values()[i]));
  return largest;
}

struct End {
  bool zero_row = false, settled = false;
  std::size_t rank = 0;
};

End run_layers(double w, Matrix<double> x, std::size_t layers) {
  End end;
  Matrix<double> before = x;
  std::vector<double> halfway;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (layer == layers / 2) halfway = singular_values(x);
    if (layer + 1 == layers) before = x;
    if (equilibrium_layer(w, x.view()) > 0) {
      end.zero_row = true;
      return end;
    }
  }
  const std::vector<double> values = singular_values(x);
  end.rank = rank_of(values);
  end.settled = end.rank == rank_of(halfway) &&
                largest_change(x, before) * static_cast<double>(layers) <= RankOptions::settled_step;
  for (std::size_t i = 0; i < end.rank; ++i) {
    end.settled =
        end.settled && std::fabs(values[i] - halfway[i]) <= RankOptions::settled_change * halfway[i];
  }
  return end;
}

Matrix<double> random_start(std::size_t n, std::size_t d, std::uint64_t seed, std::uint64_t stream) {
  Random random(seed, stream);
  Matrix<double> x(n, d);
  for (std::size_t i = 0; i < n; ++i) {
    double squares = 0;
    while (!(squares > 0)) {
      squares = 0;
      for (double& value : x[i]) {
        value = random.normal();
        squares += value * value;
      }
    }
    for (double& value : x[i]) value /= std::sqrt(squares);
  }
  return x;
}

void require_sign(int sign) {
  if (sign != 1 && sign != -1)
    throw InputError(fmt::format("Token 1 ends at (0, 1) or (0, −1): a sign is 1 or −1, not {}.", sign));
}

// Token 2 beside token 1 at (0, sign): the same arithmetic as the layer, without moving token 1.
bool turn_token2(double w, int sign, double& x, double& y) {
  const double sum = y + sign, next_x = x, next_y = sum + w * x;
  const double length = std::hypot(next_x, next_y);
  if (length <= 0x1p-52 * (1 + w) * 2) return false;
  x = next_x / length;
  y = next_y / length;
  return true;
}

}  // namespace

void require_equilibrium_weight(double w) {
  if (w > 1 && w <= EquilibriumLimits::most_w) return;
  throw InputError(fmt::format(
      "w must be above 1 and at most {:g}, not {:g}{}", EquilibriumLimits::most_w, w,
      w <= 1 ? ": the points A and B = (−1/w, ±√(1 − 1/w²)) exist and differ only if w > 1." : "."));
}

void require_equilibrium_size(std::size_t n, std::size_t d) {
  const auto require = [](std::size_t size, const char* what) {
    if (size < 1 || size > EquilibriumLimits::most_size) {
      throw InputError(fmt::format("The number of {} must be from 1 to {}, not {}.", what,
                                   EquilibriumLimits::most_size, size));
    }
  };
  require(n, "tokens N");
  require(d, "dimensions d");
}

std::size_t equilibrium_layer(double w, MatrixView<double> x, bool scale) {
  require_equilibrium_size(x.rows, x.cols);
  std::array<double, EquilibriumLimits::most_size> sum;
  std::fill_n(sum.begin(), x.cols, 0.0);
  std::size_t zero_rows = 0;
  for (std::size_t i = 0; i < x.rows; ++i) {
    double* row = &x(i, 0);
    double left = 0, squares = 0;
    for (std::size_t j = 0; j < x.cols; ++j) {
      sum[j] += row[j];
      row[j] = sum[j] + w * left;
      left = sum[j];
      squares += row[j] * row[j];
    }
    const auto tokens = static_cast<double>(i + 1);
    const double length = std::sqrt(squares);
    const bool zero = scale && length <= 0x1p-52 * (1 + w) * tokens;
    const double factor = !scale ? 1 / tokens : zero ? 0 : 1 / length;
    for (std::size_t j = 0; j < x.cols; ++j) row[j] *= factor;
    zero_rows += zero;
  }
  return zero_rows;
}

std::array<double, 2> direction(double degrees) {
  if (!std::isfinite(degrees)) throw InputError("The angle of a token is a number of degrees.");
  const double turned = degrees - 360 * std::floor(degrees / 360);
  if (turned == 0) return {1, 0};
  if (turned == 90) return {0, 1};
  if (turned == 180) return {-1, 0};
  if (turned == 270) return {0, -1};
  const double angle = turned * std::numbers::pi / 180;
  return {std::cos(angle), std::sin(angle)};
}

TokenPath token_path(double w, const std::array<double, 4>& start, std::size_t layers, bool scale) {
  TokenPath path;
  path.steps.reserve(layers + 1);
  std::array<double, 4> tokens = start;
  path.steps.push_back(tokens);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    path.zero_rows += equilibrium_layer(w, {tokens.data(), 2, 2}, scale);
    path.steps.push_back(tokens);
  }
  constexpr double near = 0.1;
  const double sign = tokens[1] < 0 ? -1 : 1, up = std::sqrt(std::max(0.0, 1 - 1 / (w * w)));
  if (path.zero_rows > 0) {
    path.fate = Fate::zero_row;
  } else if (std::hypot(tokens[2] - tokens[0], tokens[3] - tokens[1]) < near) {
    path.fate = Fate::collapsed;
  } else if (std::hypot(tokens[2] + sign / w, tokens[3] + sign * up) < near) {
    path.fate = Fate::apart;
  }
  return path;
}

const char* name_of(PointKind kind) {
  switch (kind) {
    case PointKind::attracting:
      return "attracts";
    case PointKind::repelling:
      return "repels";
    case PointKind::singular:
      break;
  }
  return "singular";
}

const char* name_of(Fate fate) {
  switch (fate) {
    case Fate::collapsed:
      return "collapsed";
    case Fate::apart:
      return "apart";
    case Fate::zero_row:
      return "zero row";
    case Fate::unsettled:
      break;
  }
  return "not settled";
}

std::array<FixedPoint, 4> fixed_points(double w, int sign) {
  require_equilibrium_weight(w);
  require_sign(sign);
  // (1 − 1/w)(1 + 1/w) keeps its digits for w near 1.
  const double across = 1 / w, up = std::sqrt((1 - across) * (1 + across));
  return {
      {{'A', PointKind::repelling, -sign * across, sign * up, 1 + up},
       {'B', PointKind::attracting, -sign * across, -sign * up, 1 - up},
       {'C', PointKind::attracting, 0, static_cast<double>(sign), 0.5},
       {'S', PointKind::singular, 0, static_cast<double>(-sign), std::numeric_limits<double>::quiet_NaN()}}};
}

Fate fate_beside_fixed_token(double w, int sign, double angle) {
  constexpr double near = 1e-6;
  constexpr int most_layers = 1'000'000;  // at w = 1 + δ the multiplier of B is 1 − √(2δ)
  const auto points = fixed_points(w, sign);
  double x = std::cos(angle), y = std::sin(angle);
  for (int layer = 0; layer < most_layers; ++layer) {
    if (std::hypot(x - points[1].x, y - points[1].y) < near) return Fate::apart;
    if (std::hypot(x - points[2].x, y - points[2].y) < near) return Fate::collapsed;
    if (!turn_token2(w, sign, x, y)) return Fate::zero_row;
  }
  return Fate::unsettled;
}

bool in_arc_of_b(double w, int sign, double angle) {
  require_equilibrium_weight(w);
  require_sign(sign);
  // Counter-clockwise from C: A after arcsin(1/w), S after half a turn.
  const double from_c = angle - sign * std::numbers::pi / 2;
  const double turned = from_c - kTurn * std::floor(from_c / kTurn);
  return turned > std::asin(1 / w) && turned < std::numbers::pi;
}

double arc_share(double w) {
  require_equilibrium_weight(w);
  return 0.5 - std::asin(1 / w) / kTurn;
}

ArcBasin arc_basin(double w, std::size_t angles, const Executor& executor) {
  require_equilibrium_weight(w);
  if (angles < 1) throw InputError("The share of an arc needs at least one angle.");
  constexpr std::size_t piece = 256;
  std::vector<Fate> fates(angles);
  const auto angle_of = [&](std::size_t i) {
    return kTurn * (static_cast<double>(i) + 0.5) / static_cast<double>(angles);
  };
  const PieceWork work{"arc", std::vector<double>((angles + piece - 1) / piece, piece), true, {}, {}};
  const auto parts = run_pieces<std::vector<Fate>>(executor, work, [&](std::size_t index, const Executor&) {
    std::vector<Fate> part;
    for (std::size_t i = index * piece; i < std::min(angles, (index + 1) * piece); ++i)
      part.push_back(fate_beside_fixed_token(w, 1, angle_of(i)));
    return part;
  });
  for (std::size_t i = 0; i < angles; ++i) fates[i] = parts[i / piece][i % piece];
  ArcBasin basin{.w = w, .angles = angles};
  for (std::size_t i = 0; i < angles; ++i) {
    basin.apart += fates[i] == Fate::apart;
    basin.collapsed += fates[i] == Fate::collapsed;
    basin.zero_rows += fates[i] == Fate::zero_row;
    basin.unsettled += fates[i] == Fate::unsettled;
    basin.mismatches += fates[i] != (in_arc_of_b(w, 1, angle_of(i)) ? Fate::apart : Fate::collapsed);
  }
  basin.share = static_cast<double>(basin.apart) / static_cast<double>(angles);
  basin.formula = arc_share(w);
  return basin;
}

std::vector<Fate> coupled_map(double w, std::size_t cells, std::size_t layers, const Executor& executor) {
  require_equilibrium_weight(w);
  const auto angle_of = [&](std::size_t i) {
    return kTurn * (static_cast<double>(i) + 0.5) / static_cast<double>(cells);
  };
  const PieceWork work{"map of fates", std::vector<double>(cells, 1), true, {}, {}};
  const auto rows = run_pieces<std::vector<Fate>>(executor, work, [&](std::size_t row, const Executor&) {
    std::vector<Fate> fates;
    for (std::size_t column = 0; column < cells; ++column) {
      const double one = angle_of(column), two = angle_of(row);
      const End end = run_layers(
          w, Matrix<double>(2, 2, {std::cos(one), std::sin(one), std::cos(two), std::sin(two)}), layers);
      fates.push_back(end.zero_row    ? Fate::zero_row
                      : !end.settled  ? Fate::unsettled
                      : end.rank == 2 ? Fate::apart
                                      : Fate::collapsed);
    }
    return fates;
  });
  std::vector<Fate> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

FinalRanks final_ranks(const RankOptions& options, const Executor& executor,
                       const std::function<void(std::size_t, std::size_t)>& progress) {
  require_equilibrium_weight(options.w);
  require_equilibrium_size(options.n, options.d);
  const auto require = [](std::size_t value, std::size_t least, std::size_t most, const char* what) {
    if (value < least || value > most)
      throw InputError(
          fmt::format("The number of {} must be from {} to {}, not {}.", what, least, most, value));
  };
  require(options.starts, 1, RankOptions::most_starts, "random starts");
  require(options.layers, 2, RankOptions::most_layers, "layers");
  constexpr std::size_t piece = 64;
  const std::size_t pieces = (options.starts + piece - 1) / piece;
  const std::size_t ranks = std::min(options.n, options.d) + 1;
  const auto starts_of = [&](std::size_t index) { return std::min(piece, options.starts - index * piece); };
  std::atomic<std::size_t> done = 0;
  PieceWork work{"final ranks", std::vector<double>(pieces, 1), true, {}, {}};
  work.finished = [&](std::size_t index) {
    const std::size_t finished = done.fetch_add(starts_of(index)) + starts_of(index);
    if (progress) progress(finished, options.starts);
  };
  const auto parts = run_pieces<FinalRanks>(executor, work, [&](std::size_t index, const Executor&) {
    FinalRanks part;
    part.ranks.assign(ranks, 0);
    for (std::size_t s = index * piece; s < index * piece + starts_of(index); ++s) {
      const End end =
          run_layers(options.w, random_start(options.n, options.d, options.seed, s), options.layers);
      ++part.starts;
      part.zero_rows += end.zero_row;
      part.unsettled += !end.zero_row && !end.settled;
      if (!end.zero_row && end.settled) ++part.ranks[end.rank];
    }
    return part;
  });
  FinalRanks total;
  total.ranks.assign(ranks, 0);
  for (const FinalRanks& part : parts) {
    total.starts += part.starts;
    total.zero_rows += part.zero_rows;
    total.unsettled += part.unsettled;
    for (std::size_t k = 0; k < ranks; ++k) total.ranks[k] += part.ranks[k];
  }
  return total;
}

}  // namespace normscope
