#pragma once
// How often are random keys unselectable? The experiment of Fig. 1c and 1d of Brody, Alon, Yahav (2023): for
// every number of keys n and dimension d, draw keys at random, apply a norm, count the keys no query can
// select.
//
// Two readings of "how often" differ widely and both are computed:
//   fraction  mean over draws of (unselectable keys / n), as the figure's caption says;
//   any       share of draws with at least one unselectable key, as the published code counts.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "normscope/executor.h"
#include "normscope/matrix.h"
#include "normscope/norm.h"
#include "normscope/precision.h"

namespace normscope {

// normal N(0, 1); uniform U(−1, 1); xavier U(±sqrt(6 / (n + d))).
enum class KeyInit { normal, uniform, xavier };
const char* name_of(KeyInit init);
KeyInit parse_key_init(std::string_view name);

struct HeatmapOptions {
  // Largest size and number of draws that keep every (n, d, draw) on a random stream of its own.
  static constexpr std::size_t most_keys = (1u << 20) - 1, most_dimensions = (1u << 20) - 1,
                               most_draws = 1u << 24;

  std::vector<std::size_t> n, d;  // the grid: every n with every d
  std::size_t draws = 100;
  KeyInit init = KeyInit::normal;
  NormSpec norm;
  // What the keys are held in. After LayerNorm in three dimensions they lie on a circle, where three neighbours
  // may be closer than float32 resolves: rounding then puts the middle one inside the hull.
  Precision precision = Precision::float32;
  std::uint64_t seed = 0;
};

struct HeatmapCell {
  std::size_t n = 0, d = 0, draws = 0;
  double fraction = 0;
  double any = 0;
  double tied = 0;  // mean share of tied keys
  // Standard deviation of a draw's share; standard errors of `fraction` and `any`. NaN for a single draw.
  double fraction_sd = 0, fraction_se = 0, any_se = 0;
  // The same two readings over keys that stay unselectable whatever rounding did to the coordinates.
  double robust_fraction = 0, robust_any = 0;
  std::size_t unselectable = 0, robust_unselectable = 0, tied_keys = 0;  // summed over draws
};

struct Heatmap {
  std::vector<std::size_t> n, d;
  std::vector<HeatmapCell> cells;  // d down, n across: cells[row of d * n.size() + column of n]
};

// Keys are drawn in double precision and rounded to the precision asked for, and so is the norm's output, as
// in a model. The keys of (seed, n, d, draw) are the same in every grid, under every norm, for any number of
// threads.
//
// progress, if given, is called from any thread with the number of finished draws and their total. Throws
// InputError on an empty grid, sizes outside the limits above, or a norm that does not fit a dimension.
Heatmap key_heatmap(const HeatmapOptions& options, const Executor& executor,
                    const std::function<void(std::size_t done, std::size_t total)>& progress = {});

// One heat map for each norm, whatever options.norm is. Draws of all norms are taken in turn, so that the share that is
// done is the share of the work, also where one norm takes longer than another.
std::vector<Heatmap> key_heatmaps(
    const HeatmapOptions& options, std::span<const NormSpec> norms, const Executor& executor,
    const std::function<void(std::size_t done, std::size_t total)>& progress = {});

// Throws as key_heatmap, without computing anything: for several heat maps of which none is to fail after hours.
void check_heatmap(const HeatmapOptions& options);

// The keys of one draw of a cell, n × d, as they are decided. Throws as key_heatmap.
Matrix<double> heatmap_keys(const HeatmapOptions& options, std::size_t n, std::size_t d, std::size_t draw);

struct HeatmapSummary {
  std::size_t cells = 0;
  std::size_t clear_cells = 0;         // no draw had an unselectable key
  std::size_t robust_clear_cells = 0;  // none that rounding could not undo
  std::size_t keys = 0, unselectable = 0, robust_unselectable = 0, tied = 0;
  HeatmapCell most_fraction, most_any;  // the cells where each reading is largest
  HeatmapCell widest_gap;               // where the two readings differ most
};
HeatmapSummary summarise(const Heatmap& heatmap);

}  // namespace normscope
