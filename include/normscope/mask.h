#pragma once
// Attention masks as directed graphs (Wu et al. 2024, §3): nodes are the n tokens, an edge (j, i) says that
// token i attends to token j, so that information flows from j to i.
//
//   centre       a token that reaches every token
//   quasi-strongly connected    there is a centre;    strongly connected    every token is one
//   radius       least, over the centres, of the greatest distance to any token: after that many layers some
//                token has reached all
//   diameter     greatest distance between two tokens; infinite unless strongly connected
//
// Stored by rows as runs of consecutive tokens: O(n) for full, causal and window masks of any width.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/matrix.h"

namespace normscope {

class Mask {
 public:
  static constexpr std::size_t most_tokens = 1u << 24;
  static constexpr std::size_t most_runs = 1u << 27;  // of all rows: 1 GiB

  // Tokens first, …, last − 1.
  struct Run {
    std::uint32_t first = 0, last = 0;
    bool operator==(const Run&) const = default;
  };

  Mask() = default;
  // rows[i]: what token i attends to, as runs in any order that may overlap; runs are clipped to [0, n).
  // Throws InputError if there are no rows, or too many rows or runs.
  explicit Mask(const std::vector<std::vector<Run>>& rows);
  // The same, row by row: fill(i, runs) puts the runs of token i into an empty vector.
  static Mask from_rows(std::size_t n, const std::function<void(std::size_t, std::vector<Run>&)>& fill);
  // allowed(i, j) ≠ 0: token i attends to token j. Throws InputError unless square.
  static Mask from_dense(MatrixView<const std::uint8_t> allowed);

  std::size_t n() const { return starts_.empty() ? 0 : starts_.size() - 1; }
  // What token i attends to: ascending, disjoint, with a gap between two runs.
  std::span<const Run> row(std::size_t i) const {
    return std::span(runs_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }
  bool attends(std::size_t i, std::size_t j) const;
  std::uint64_t edges() const;
  // The least range of tokens that rows first, …, last − 1 attend to; {0, 0} if they attend to none.
  Run reach(std::size_t first, std::size_t last) const;
  bool operator==(const Mask&) const = default;

 private:
  std::vector<std::size_t> starts_;  // n + 1
  std::vector<Run> runs_;
};

// Both throw InputError unless the masks have as many tokens.
Mask unite(const Mask& a, const Mask& b);
Mask intersect(const Mask& a, const Mask& b);
// Token j attends to i where i attended to j. Throws InputError if that needs more than most_runs.
Mask transpose(const Mask& mask);

// A mask by its name, for n tokens; what token i attends to:
//
//   full          every j                     causal       j ≤ i
//   window:w      |i − j| ≤ w                 onesided:w   i − w ≤ j ≤ i
//   prefix:k      j ≤ i or j < k; k ≤ n      block:b      j of the same block of b tokens
//   dilated:w,s   j = i + ms with |m| ≤ w     strided:s    i − s < j ≤ i or j = i − ms
//   global:g      the first g attend to all and are attended to by all, and each to itself; 1 ≤ g ≤ n
//   star          global:1                    self         j = i
//   random:p      each j ≠ i with probability p, drawn from the seed, and itself
//
// `a+b` is the union, `a&b` the intersection, which binds tighter; `global+window` stands for
// global:1+window:1. The k-th `random` of a name has its own numbers. Throws InputError on an unknown name
// (with the nearest one), a missing or impossible number, n = 0, and more than most_runs runs.
std::span<const std::string_view> mask_names();
Mask parse_mask(std::string_view name, std::size_t n, std::uint64_t seed = 0);

struct MaskProperties {
  std::size_t n = 0;
  std::uint64_t edges = 0;
  double density = 0;                   // edges / n²; sparsity is 1 − density
  std::size_t self_loops = 0;           // tokens that attend to themselves
  std::size_t empty_rows = 0;           // tokens that attend to nothing: softmax over no score, defined as 0
  std::size_t components = 0;           // strongly connected
  std::vector<std::uint32_t> centres;   // ascending; empty: not quasi-strongly connected
  std::optional<std::size_t> radius;    // none without a centre
  std::optional<std::size_t> diameter;  // none unless strongly connected
  bool strongly_connected() const { return components == 1; }
  bool quasi_strongly_connected() const { return !centres.empty(); }
};
// Exact. O(runs) for masks whose rows are single runs around the token with ascending ends (full, causal,
// windows, prefix, …); otherwise searches from single tokens, O(runs) each, until bounds on the distances
// meet.
MaskProperties mask_properties(const Mask& mask);

// Distances from token `from` along the edges, in layers; unreachable: max of the type. Throws InputError if
// there is no such token.
std::vector<std::uint32_t> distances_from(const Mask& mask, std::size_t from);

}  // namespace normscope
