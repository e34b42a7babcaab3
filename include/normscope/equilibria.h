#pragma once
// Where deep attention with a norm ends: the dynamical system of Wu et al. (2024), Theorem 3 and Fig. 1
// and 5.
//
// N tokens in d dimensions, the rows of X, pass through layers of causal attention without scores
// (W_Q = W_K = 0), a value matrix and scaling to norm 1:
//
//   X⁺ = D A X W,   A_ij = 1/i for j ≤ i,   W = I + w·(1 above the diagonal),   D = diag(1/‖row‖₂).
//
// With S_i = X_1 + … + X_i the factor 1/i does not matter: X_i⁺ = S_i W / ‖S_i W‖, (s W)_j = s_j + w·s_{j−1}.
//
// Zero rows. S_i W may be 0, as for tokens (0, 1) and (0, −1): there D is not defined. Such a row stays 0 in
// that layer, is counted and reported; the next layer attends to the other tokens again.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "normscope/executor.h"
#include "normscope/matrix.h"

namespace normscope {

struct EquilibriumLimits {
  static constexpr std::size_t most_size = 60;             // of N and of d: counts stay exact
  static constexpr std::size_t most_enumerated_rank = 12;  // beyond it equilibria are counted, not built
  static constexpr double most_w = 1e6;
};

// Throw InputError, in a sentence: unless 1 < w ≤ 1e6; unless N and d are from 1 to 60.
void require_equilibrium_weight(double w);
void require_equilibrium_size(std::size_t n, std::size_t d);

// One layer, in place; returns the number of rows that became 0. A row counts as 0 if it is no longer than
// the rounding of what cancelled in it, 2⁻⁵² (1 + w) i for row i. scale = false leaves D out.
std::size_t equilibrium_layer(double w, MatrixView<double> x, bool scale = true);

// collapsed: the tokens end together; apart: they do not; zero_row: a row became 0 on the way.
enum class Fate { collapsed, apart, zero_row, unsettled };
const char* name_of(Fate fate);

// Two tokens, layer by layer: x1, y1, x2, y2; the start first. Rows of the start are taken as they are.
struct TokenPath {
  std::vector<std::array<double, 4>> steps;
  std::size_t zero_rows = 0;  // over all layers
  // After the last layer, to 0.1: token 2 beside token 1, or at B for the side where token 1 is.
  Fate fate = Fate::unsettled;
};
// cos and sin, exact at the four ends of the axes: the singular point is one of them. Throws InputError if
// the angle is not finite.
std::array<double, 2> direction(double degrees);
TokenPath token_path(double w, const std::array<double, 4>& start, std::size_t layers, bool scale = true);

// --- N = 2, d = 2 ---
//
// Token 1 does not see token 2 and goes to (0, ±1), like 1/(wt). With token 1 at (0, sign), token 2 has
//
//   A = sign·(−1/w, √(1 − 1/w²))    multiplier 1 + √(1 − 1/w²): repels
//   B = sign·(−1/w, −√(1 − 1/w²))   multiplier 1 − √(1 − 1/w²): attracts, and the tokens stay apart
//   C = (0, sign)                   multiplier 1/2: attracts, and the tokens collapse
//   S = (0, −sign)                  singular: the rows cancel
//
// and goes to B from the open arc from A over (−sign, 0) and B to S, whose share of the circle is
// ½ − arcsin(1/w)/2π; from the other open arc to C.
enum class PointKind { attracting, repelling, singular };
const char* name_of(PointKind kind);
struct FixedPoint {
  char name;
  PointKind kind;
  double x, y;
  double multiplier;  // of a small distance along the circle, per layer; NaN for S
};
std::array<FixedPoint, 4> fixed_points(double w, int sign = 1);  // A, B, C, S

// The fate of token 2 at the angle (radians from the x axis) while token 1 stays at (0, sign): iterated until
// it is within 10⁻⁶ of B or C.
Fate fate_beside_fixed_token(double w, int sign, double angle);
// What the arcs say: whether the angle lies in the open arc that leads to B.
bool in_arc_of_b(double w, int sign, double angle);
double arc_share(double w);  // ½ − arcsin(1/w)/2π

struct ArcBasin {
  double w = 0;
  std::size_t angles = 0;  // (i + ½)·2π/angles, with token 1 at (0, 1)
  std::size_t apart = 0, collapsed = 0, zero_rows = 0, unsettled = 0;
  std::size_t mismatches = 0;  // angles whose fate the arcs do not tell
  double share = 0, formula = 0;
};
ArcBasin arc_basin(double w, std::size_t angles, const Executor& executor);

// Fates of both tokens moving, over cells × cells angles at the middles of equal squares: the angle of token
// 1 grows along a row, that of token 2 from row to row. Fates as in final_ranks: apart is rank 2. Opposite
// tokens cancel in the first layer; an odd number of cells meets none of them.
std::vector<Fate> coupled_map(double w, std::size_t cells, std::size_t layers, const Executor& executor);

// --- random starts ---
//
// Rows uniform on the sphere, start s of a seed on the random stream s. The rank after the last layer counts
// the singular values above rank_tolerance times the largest. Token 1 converges only like 1/t, so a start is
// settled if from half the layers to all of them the rank stayed, none of the values that count moved by more
// than settled_change, and the last layer moved no entry by more than settled_step / layers.
struct RankOptions {
  static constexpr double rank_tolerance = 1e-9, settled_change = 0.01, settled_step = 0.05;
  static constexpr std::size_t most_starts = 1u << 30, most_layers = 1u << 24;
  std::size_t n = 2, d = 2;
  double w = 2;
  std::size_t starts = 10'000, layers = 2'000;
  std::uint64_t seed = 0;
};
struct FinalRanks {
  std::size_t starts = 0;
  std::vector<std::size_t> ranks;  // starts that settled at rank k, k from 0 to min(N, d), without a zero row
  std::size_t zero_rows = 0;       // starts that met a zero row
  std::size_t unsettled = 0;
};
FinalRanks final_ranks(const RankOptions& options, const Executor& executor,
                       const std::function<void(std::size_t done, std::size_t total)>& progress = {});

// --- equilibria of Theorem 3 ---
//
// Rank k ≤ min(N, d), signs ε_1 … ε_k, m = N − k + 1 leading tokens that are equal:
//
//   X_1 = … = X_m = ε_1 e_d,
//   X_{m+1} = −(m/w)·(X_m moved one entry to the left), last entry ε_2 √(1 − m²/w²),
//   X_{i+1} = −(1/w)·(X_i moved one entry to the left), last entry ε √(1 − 1/w²), for i > m.
//
// Then S_m W = m X_m and S_i W = X_i for i > m. They exist if m ≤ w (or k = 1), and are 2ᵏ if m < w; at m = w
// the two signs of ε_2 are one.
double second_entry_squared(std::size_t n, double w, std::size_t rank);  // 1 − m²/w²
std::uint64_t equilibrium_count(std::size_t n, std::size_t d, double w, std::size_t rank);
// Throws InputError if there is none, or signs has other entries than 1 and −1.
Matrix<double> equilibrium(std::size_t n, std::size_t d, double w, std::span<const int> signs);

// Largest entry of |X⁺ − X|.
double residual(double w, MatrixView<const double> x);
// ‖X‖_F² / ‖X‖₂²
double stable_rank(MatrixView<const double> x);
// N / (N − (N − 1)/w²), as published. ‖X‖₂ ≥ ‖X e_d‖ proves it for k = N; for 1 < k < N the same argument
// gives own_bound, N / (N − (m² + k − 2)/w²), and the published one is exceeded.
double published_bound(std::size_t n, double w);
double own_bound(std::size_t n, double w, std::size_t rank);

// Derivative of X⁺ by X, Nd × Nd, at rows of norm 1: the block of token i by token j ≤ i is
// (I − X_i⁺ᵀX_i⁺) Wᵀ / ‖S_i W‖. Throws InputError at a zero row.
Matrix<double> layer_jacobian(double w, MatrixView<const double> x);

// The spectrum of that derivative on the tangent space of the product of spheres, at an equilibrium. The
// derivative is block triangular, so it is that of the tokens' own blocks. A token whose first z entries are
// 0 has the eigenvalue 1/‖S_i W‖ z times (d − 1 times at ±e_d), from the Jordan block W itself. For token 1
// and for those beyond m it is exactly 1: there the linear part decides nothing. Token 1 comes back from one
// side only, like 1/t, and goes round to the other end from the other. They are counted as marginal; the
// radius is that of all other eigenvalues.
struct Stability {
  double radius = 0;         // 0 if there are no others
  std::size_t marginal = 0;  // eigenvalues 1
  bool stable() const { return radius < 1 - 1e-12; }
};
Stability stability(double w, MatrixView<const double> x);

// All equilibria of one rank.
struct RankSummary {
  std::size_t rank = 0;
  std::uint64_t count = 0;                       // 0: 1 − m²/w² < 0
  double second_entry_squared = 0;               // 1 − m²/w²; 1 for rank 1
  bool enumerated = false;                       // all of them were built; what follows is NaN or 0 if not
  double residual = 0;                           // the largest
  std::size_t least_rank = 0, largest_rank = 0;  // as their leading entries tell, exactly
  double stable_rank = 0;                        // the largest
  double published_bound = 0, own_bound = 0;
  std::uint64_t stable = 0;
  double least_radius = 0, largest_radius = 0;
  std::vector<int> least_signs;  // of the equilibrium of least radius, the first if several
  std::size_t marginal = 0;      // the same for all
};
// k = 1 … min(N, d).
std::vector<RankSummary> equilibria_by_rank(std::size_t n, std::size_t d, double w, const Executor& executor);

}  // namespace normscope
