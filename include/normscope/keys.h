#pragma once
// Which keys can attention select?
//
// A query q scores key i with s_i(q) = q·k_i + b_i (offsets b default to 0). Over the n keys of a set:
//   selectable    some query gives key i the strictly highest score: k_i is a vertex of the hull of the keys;
//   tied          some query puts it on top, but never alone (equal keys at a vertex; on a face, no vertex);
//   unselectable  every query that distinguishes the keys puts another key strictly above it (relative
//                 interior).
// Queries that score all keys alike do not count. One key alone is selectable; keys that are all equal are
// tied.
//
// Verdicts are exact for the numbers given: floating point proposes a certificate, a rigorous error bound
// accepts it, and rational arithmetic decides whatever the bound cannot.
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/executor.h"
#include "normscope/matrix.h"

namespace normscope {

// undecided: rational arithmetic would have to decide, and would need more memory than it may have.
enum class Verdict { selectable, tied, unselectable, undecided };
const char* name_of(Verdict verdict);
std::span<const Verdict> values_of(Verdict);

struct CoverTerm {
  std::size_t index = 0;
  double weight = 0;

  static void describe(auto& visit, auto& self) {
    visit("index", self.index, "of a key");
    visit("weight", self.weight, "above 0", {.low = 0, .high = 1});
  }
};

struct KeyVerdict {
  Verdict verdict = Verdict::selectable;
  // No change of the keys within the rounding of their dtype (or `noise`) can alter the verdict. Sufficient
  // condition: a key that is not flagged robust may still be.
  bool robust = false;
  // Selectable: max over ‖q‖ ≤ 1 of min_j q·(k_i − k_j), the distance of k_i to the hull of the others (with
  // offsets: of (k_i, b_i) to the others' hull and everything below it). Infinite for a key alone.
  // With Margins::bound a certified lower bound; without certificates it may be 0 where floating point could
  // not decide.
  double margin = 0;
  // If given, exact margins were asked for and this key's was beyond the effort of rational arithmetic:
  // `margin` is then a lower bound and this an upper one. Of an undecided key too: it is not selectable by
  // more.
  std::optional<double> margin_at_most;
  // Unselectable: radius of a ball around the key inside the hull of the others (a certified lower bound of
  // its distance to the hull's boundary); 0 when none was found.
  double depth = 0;
  // Selectable: a query that gives the key the strictly highest score. Tied: a query that puts it on top.
  std::vector<double> witness;
  // Only if no doubles were found that pass the exact test (the witnesses can be a cone narrower than an ulp,
  // and ties are easily lost to rounding): the witness as exact integers or fractions; `witness` is then its
  // rounding.
  std::vector<std::string> exact_witness;
  // Tied, unselectable: convex weights over at most d+1 affinely independent other keys that reproduce the
  // key (with offsets: at most d+2, and with at least its offset).
  std::vector<CoverTerm> cover;
  // Unselectable keys whose cover spans less than the hull: keys with positive weights that reproduce the key
  // and span the hull (the mean of at most rank covers), which proves that no query puts it on top.
  std::vector<CoverTerm> interior;
  // Tied: the other keys that share the top score under `witness`.
  std::vector<std::size_t> tied_with;
  // Largest softmax weight a query with ‖q‖ ≤ query_norm can give the key: attained value, and a proven upper
  // bound on what any such query can attain.
  std::optional<double> max_weight, max_weight_bound;
  // Length of the longest prefix of the keys in which this key is selectable; 0 if there is none.
  std::optional<std::size_t> last_prefix;
  // With `prefix` only: the best verdict of the key in any prefix that holds it (selectable, else tied, else
  // unselectable), and the length of a prefix in which it has it; whether it is unselectable in all of them
  // whatever the errors of the keys.
  std::optional<Verdict> prefix_verdict;
  std::size_t verdict_prefix = 0;
  bool robust_in_prefixes = false;
  bool verified = false;    // the certificate was checked in rational arithmetic
  bool exact_path = false;  // floating point could not decide; rational arithmetic did

  static void describe(auto& visit, auto& self) {
    visit("verdict", self.verdict, "what queries can do with the key");
    visit("robust", self.robust,
          "no change of the keys within the rounding of their dtype (or noise) alters the verdict");
    visit.when(self.verdict == Verdict::selectable, "margin", self.margin,
               "distance to the hull of the others",
               {.low = 0, .or_null = true, .only_if = {"verdict", "selectable"}});
    visit.when(self.margin_at_most.has_value(), "margin_at_most", self.margin_at_most,
               "the margin is no larger, where an exact one was beyond rational arithmetic's effort",
               {.low = 0});
    visit.when(self.verdict == Verdict::unselectable, "depth", self.depth,
               "a lower bound of the distance to the boundary of the others' hull",
               {.low = 0, .only_if = {"verdict", "unselectable"}});
    visit.when(self.max_weight.has_value(), "max_weight", self.max_weight,
               "softmax weight that a query of norm at most R was found to give the key",
               {.low = 0, .high = 1, .with = "max_weight_bound"});
    visit.when(self.max_weight_bound.has_value(), "max_weight_bound", self.max_weight_bound,
               "no query of norm at most R gives it more", {.low = 0, .high = 1, .with = "max_weight"});
    visit.when(!self.witness.empty(), "witness", self.witness, "a query that puts the key on top",
               {.finite = true, .least = 1, .only_if = {"verdict", "selectable|tied"}});
    visit.when(!self.exact_witness.empty(), "exact_witness", self.exact_witness,
               "the witness as integers or fractions, when no doubles pass the exact test",
               {.pattern = "^-?[0-9]+(/[0-9]+)?$", .least = 1, .with = "witness"});
    visit.when(!self.cover.empty(), "cover", self.cover,
               "other keys whose convex combination reproduces the key",
               {.least = 1, .only_if = {"verdict", "tied|unselectable"}});
    visit.when(!self.interior.empty(), "interior", self.interior,
               "keys that reproduce the key and span the hull", {.least = 1, .with = "depth"});
    visit.when(self.verdict == Verdict::tied, "tied_with", self.tied_with,
               "the other keys that share the top score under the witness",
               {.least = 1, .only_if = {"verdict", "tied"}});
    visit.when(
        self.last_prefix.has_value(), "last_prefix", self.last_prefix,
        "length of the longest prefix of the keys in which this key is selectable; 0 if there is none");
  }
};

enum class Margins { bound, exact };
const char* name_of(Margins margins);
std::span<const Margins> values_of(Margins);
enum class RankPolicy { numerical, full };
const char* name_of(RankPolicy policy);
std::span<const RankPolicy> values_of(RankPolicy);

struct KeyOptions {
  RankPolicy rank = RankPolicy::numerical;
  // Unit roundoff of the numbers' dtype: 2^-24 for float32, 2^-53 for float64, 2^-11 float16, 2^-8 bfloat16.
  double unit_roundoff = 0x1p-53;
  // The same of the score offsets' dtype, and half the smallest step of either (which is what
  // rounding does to numbers near 0): both count for `robust` only.
  double offset_roundoff = 0x1p-53;
  double smallest_rounding = 0, smallest_offset_rounding = 0;
  // With `errors` or `noise`: so many directions the keys meant are known not to have, because a norm
  // projected them out. Where more were left out as rounding, unselectable keys are not called robust.
  std::size_t projected_out = 0;
  // If given, one number per key (of a batch: of all its sets in turn): no key is farther than this from the
  // one meant, as the error bound of the product or norm that made it says. `robust` then means: against any
  // such change. Takes the place of the rounding of the dtype.
  std::span<const double> errors = {};
  // If given, `robust` means: against any change of each key by a vector of this norm.
  std::optional<double> noise;
  Margins margins = Margins::exact;
  bool certificates = true;  // false: verdicts, margins and depths only
  bool exact = false;        // verify every certificate in rational arithmetic, repair until it verifies
  bool prefix = false;
  std::optional<double> query_norm;
  // Rational arithmetic, which decides what floating point cannot, takes no more than so many products of
  // 64-bit words for one key (by default some seconds), and 256 MB; a key beyond that is undecided.
  double exact_effort = 0x1p33;
  // Told now and then how many distinct keys of how many have a verdict; from any thread.
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

struct KeyCounts {
  std::size_t selectable = 0, tied = 0, unselectable = 0, undecided = 0;

  KeyCounts& operator+=(const KeyCounts& more) {
    selectable += more.selectable, tied += more.tied;
    unselectable += more.unselectable, undecided += more.undecided;
    return *this;
  }
  static void describe(auto& visit, auto& self) {
    visit("selectable", self.selectable, "some query gives them the strictly highest score");
    visit("tied", self.tied, "some query puts them on top, but never alone");
    visit("unselectable", self.unselectable,
          "every query that distinguishes the keys puts another above them");
    visit.when(self.undecided > 0, "undecided", self.undecided,
               "beyond the effort allowed to rational arithmetic", {.low = 1});
  }
};

struct KeySet {
  std::size_t n = 0, d = 0;
  std::size_t rank = 0;       // dimension of the affine hull the verdicts were decided in
  double rank_tolerance = 0;  // a direction in which the keys spread less than this (rms; for coordinates of
                              // average size, in proportion for others) holds only rounding
  double weakest_spread = 0;  // the same measure of the weakest direction kept; 0 where all are far above
  // What NumPy's matrix_rank makes of the centred keys: directions above the largest times max(n, d) times
  // the dtype's precision. Where `rank` is larger, the columns differ in size or a direction is weaker than
  // that and yet more than rounding leaves.
  std::size_t matrix_rank = 0;
  // If rank < d: the coordinates, ascending, on which keys were decided and certificates hold exactly, and
  // the largest distance of a key from the flat that these coordinates span, which was judged to be rounding.
  std::vector<std::size_t> kept;
  double left_out = 0;
  KeyCounts counts, robust_counts;
  std::size_t exact_path = 0;  // keys that floating point could not decide
  std::vector<KeyVerdict> keys;
};

// keys: n × d, finite. offsets: empty, or n finite numbers. Throws InputError on 0 × d, NaN or Inf (by row
// and column), offsets of the wrong length, or a negative or infinite number or NaN among the options.
KeySet decide_keys(MatrixView<const double> keys, std::span<const double> offsets, const KeyOptions& options,
                   const Executor& executor);

// A batch of sets in one call. offsets: empty (none for any set), or one list per set. Errors name the set,
// as `set_name` says, a format of its index and the number of sets.
std::vector<KeySet> decide_key_sets(std::span<const MatrixView<const double>> sets,
                                    std::span<const std::span<const double>> offsets,
                                    const KeyOptions& options, const Executor& executor,
                                    const std::string& set_name = "set {} of {}");

}  // namespace normscope
