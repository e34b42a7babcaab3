#pragma once
// What `equilibria` answers.
#include <string>
#include <vector>

#include "normscope/equilibria.h"
#include "normscope/provenance.h"
#include "result/describe.h"

namespace normscope {

inline std::span<const Fate> values_of(Fate) {
  static constexpr Fate all[] = {Fate::collapsed, Fate::apart, Fate::zero_row, Fate::unsettled};
  return all;
}
inline std::span<const PointKind> values_of(PointKind) {
  static constexpr PointKind all[] = {PointKind::attracting, PointKind::repelling, PointKind::singular};
  return all;
}

struct FixedPointResult {
  std::string name;
  double x = 0, y = 0, multiplier = 0;
  PointKind kind = PointKind::attracting;

  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "A, B, C or S, as in the theory");
    visit("x", self.x, "where token 2 is, while token 1 is at (0, 1)", {.finite = true});
    visit("y", self.y, "likewise", {.finite = true});
    visit("multiplier", self.multiplier,
          "of a small distance along the circle, per layer; null where the rows cancel");
    visit("kind", self.kind, "what it does with what is near");
  }
};

struct ArcBasinResult {
  ArcBasin arc;

  static void describe(auto& visit, auto& self) {
    auto& arc = self.arc;
    visit("angles", arc.angles, "of token 2, evenly over the circle", {.low = 1});
    visit("apart", arc.apart, "angles from which the tokens stay apart");
    visit("share", arc.share, "of these in all", {.low = 0, .high = 1});
    visit("formula", arc.formula, "½ − arcsin(1/w)/2π, what the share should be", {.finite = true});
    visit("mismatches", arc.mismatches, "angles whose fate the arcs do not tell");
    visit("zero_rows", arc.zero_rows, "angles from which a row became 0");
    visit("unsettled", arc.unsettled, "angles whose fate was not seen");
  }
};

// Starts that ended at one rank.
struct RankShare {
  std::size_t rank = 0, starts = 0;
  double share = 0, low = 0, high = 0;

  static void describe(auto& visit, auto& self) {
    visit("rank", self.rank, "of the tokens after the last layer");
    visit("starts", self.starts, "starts that settled there");
    visit("share", self.share, "of these in all", {.low = 0, .high = 1});
    visit("low", self.low, "lower end of Clopper and Pearson's 95 % interval of the share", {.finite = true});
    visit("high", self.high, "its upper end", {.finite = true});
  }
};

struct FinalRanksResult {
  std::size_t starts = 0;
  std::vector<RankShare> ranks;
  std::size_t zero_rows = 0, unsettled = 0;

  static void describe(auto& visit, auto& self) {
    visit("starts", self.starts, "random starts");
    visit("ranks", self.ranks, "one entry per rank, from 1");
    visit("zero_rows", self.zero_rows, "starts that met a row that became 0");
    visit("unsettled", self.unsettled, "starts that had not settled after the last layer");
  }
};

struct RankSummaryResult {
  RankSummary summary;

  static void describe(auto& visit, auto& self) {
    auto& rank = self.summary;
    visit("rank", rank.rank, "k: of the equilibria", {.low = 1});
    visit("count", rank.count, "how many there are; 0: the square below is negative");
    visit("second_entry_squared", rank.second_entry_squared,
          "1 − m²/w², the square of the last entry of token m + 1, where m = N − k + 1; 1 for rank 1",
          {.finite = true});
    visit("enumerated", rank.enumerated, "all of them were built; what follows is null or 0 if not");
    visit("residual", rank.residual, "largest change of an entry by one layer, over all of them");
    visit("stable_rank", rank.stable_rank, "the largest ‖X‖_F²/‖X‖₂²");
    visit("published_bound", rank.published_bound, "N/(N − (N − 1)/w²), proven for k = N only");
    visit("own_bound", rank.own_bound, "N/(N − (m² + k − 2)/w²), by the same argument");
    visit("stable", rank.stable, "how many are stable, but for marginal directions");
    visit("least_radius", rank.least_radius,
          "least spectral radius of the layer's derivative, without eigenvalues 1");
    visit("largest_radius", rank.largest_radius, "the largest");
    visit("least_signs", rank.least_signs, "of the equilibrium of least radius, the first if several");
    visit("marginal", rank.marginal, "eigenvalues 1, the same for all of them");
  }
};

struct TokenPathResult {
  std::vector<double> start;
  std::size_t layers = 0;
  std::vector<double> end;
  Fate fate = Fate::unsettled;
  std::size_t zero_rows = 0;

  static void describe(auto& visit, auto& self) {
    visit("start", self.start, "x1, y1, x2, y2", {.finite = true, .least = 4, .most = 4});
    visit("layers", self.layers, "passed through", {.low = 1});
    visit("end", self.end, "x1, y1, x2, y2 after the last", {.finite = true, .least = 4, .most = 4});
    visit("fate", self.fate, "what became of the two tokens");
    visit("zero_rows", self.zero_rows, "rows that became 0, over all layers");
  }
};

struct EquilibriaWeightResult {
  double w = 0;
  std::vector<FixedPointResult> fixed_points;
  ArcBasinResult arc;
  FinalRanksResult coupled;
  std::vector<RankSummaryResult> equilibria;
  FinalRanksResult final_ranks;
  std::vector<TokenPathResult> trajectories;

  static void describe(auto& visit, auto& self) {
    visit("w", self.w, "entry above the diagonal of the value matrix", {.finite = true});
    visit("fixed_points", self.fixed_points, "of token 2 while token 1 is at (0, 1)");
    visit("arc", self.arc, "where token 2 goes while token 1 is at (0, 1)");
    visit("coupled", self.coupled, "ranks at the end, two tokens in the plane, both moving");
    visit("equilibria", self.equilibria, "those of Theorem 3, one entry per rank");
    visit("final_ranks", self.final_ranks, "ranks at the end, of as many tokens and dimensions as asked for");
    visit("trajectories", self.trajectories, "two tokens in the plane, followed");
  }
};

struct EquilibriaSettings {
  std::vector<double> w;
  std::size_t tokens = 2, dim = 2, starts = 0, steps = 0, angles = 0;
  std::vector<std::vector<double>> trajectories;

  static void describe(auto& visit, auto& self) {
    visit("w", self.w, "entries above the diagonal of the value matrix");
    visit("tokens", self.tokens, "N");
    visit("dim", self.dim, "d");
    visit("starts", self.starts, "random starts");
    visit("steps", self.steps, "layers from each");
    visit("angles", self.angles, "of token 2 beside a fixed token 1");
    visit("trajectory", self.trajectories, "starts of the two tokens to follow: x1, y1, x2, y2, of norm 1");
  }
};

struct EquilibriaResult {
  std::string command = "equilibria";
  Provenance made;
  double seconds = 0;
  std::size_t tokens = 2, dim = 2, starts = 0, steps = 0;
  std::string zero_row_policy;
  double rank_tolerance = RankOptions::rank_tolerance, settled_change = RankOptions::settled_change,
         settled_step = RankOptions::settled_step;
  std::string verdict;
  std::vector<EquilibriaWeightResult> weights;

  static void describe(auto& visit, auto& self) {
    visit("command", self.command, "the command this answers", {.always = "equilibria"});
    Provenance::describe(visit, self.made);
    visit("seconds", self.seconds, "time to compute everything, without writing", {.low = 0});
    visit("tokens", self.tokens, "N, of equilibria and final ranks", {.low = 1});
    visit("dim", self.dim, "d, of the same", {.low = 1});
    visit("starts", self.starts, "random starts", {.low = 1});
    visit("steps", self.steps, "layers from each", {.low = 1});
    visit("zero_row_policy", self.zero_row_policy, "what happens to rows that cancel, and how many met one");
    visit("rank_tolerance", self.rank_tolerance,
          "a rank counts the singular values above this share of the largest", {.finite = true});
    visit("settled_change", self.settled_change,
          "a start is settled if from half the layers on none of them moved by more than this share",
          {.finite = true});
    visit("settled_step", self.settled_step,
          "and if the last layer moved no entry by more than this divided by the layers", {.finite = true});
    visit("verdict", self.verdict, "what was found, in a sentence");
    visit("weights", self.weights, "one entry per w", {.least = 1});
  }
};

// The system of Wu et al. 2024, Theorem 3: two tokens in the plane, and N tokens in d dimensions, at one or
// more w.
struct EquilibriaRun {
  struct Weight {
    double w = 0;
    ArcBasin arc;
    FinalRanks coupled;                // N = 2, d = 2
    std::vector<RankSummary> by_rank;  // N, d
    FinalRanks ranks;                  // N, d
    std::vector<Fate> map;             // cells × cells
    std::vector<TokenPath> paths;
  };
  std::size_t n = 2, d = 2, starts = 0, layers = 0, cells = 0;
  std::vector<Weight> weights;
  Provenance provenance;
};
std::string equilibria_verdict(const EquilibriaRun& run);
// What happens to rows that cancel, and how many starts met one.
std::string zero_row_policy(const EquilibriaRun& run);

}  // namespace normscope
