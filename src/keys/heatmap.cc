#include "normscope/heatmap.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/run_pieces.h"
#include "normscope/error.h"
#include "normscope/keys.h"
#include "normscope/matrix.h"
#include "normscope/random.h"

namespace normscope {
namespace {

// Integers, so that sums are exact and do not depend on who adds first.
struct Counts {
  std::uint64_t unselectable = 0, unselectable_squared = 0, draws_with_any = 0, tied = 0;
  std::uint64_t robust = 0, draws_with_robust = 0;

  void operator+=(const Counts& other) {
    unselectable += other.unselectable;
    unselectable_squared += other.unselectable_squared;
    draws_with_any += other.draws_with_any;
    tied += other.tied;
    robust += other.robust;
    draws_with_robust += other.draws_with_robust;
  }
};

// A run of draws of one cell of one norm's heat map.
struct Piece {
  std::size_t map, cell, first, last;
};

// n and d below 2^20, draw below 2^24: every (n, d, draw) has a stream of its own.
std::uint64_t stream_of(std::size_t n, std::size_t d, std::size_t draw) {
  return static_cast<std::uint64_t>(n) << 44 | static_cast<std::uint64_t>(d) << 24 | draw;
}

Matrix<double> draw_keys(std::size_t n, std::size_t d, std::size_t draw, const HeatmapOptions& options) {
  Random random(options.seed, stream_of(n, d, draw));
  const double bound = options.init == KeyInit::xavier ? std::sqrt(6.0 / static_cast<double>(n + d)) : 1.0;
  Matrix<double> keys(n, d);
  for (std::size_t row = 0; row < n; ++row) {
    for (double& value : keys[row]) {
      value = options.init == KeyInit::normal ? random.normal() : bound * (2 * random.uniform() - 1);
    }
  }
  return keys;
}

// k learned normals would start out random: drawn once per d from a stream no draw of keys uses (n = 0).
Matrix<double> draw_normals(std::size_t d, const HeatmapOptions& options) {
  Random random(options.seed, stream_of(0, d, 0));
  Matrix<double> normals(static_cast<std::size_t>(options.norm.normals), d);
  for (std::size_t row = 0; row < normals.rows(); ++row) {
    for (double& value : normals[row]) value = random.normal();
  }
  return normals;
}

template <class To, class From>
Matrix<To> convert(const Matrix<From>& from) {
  return {from.rows(), from.cols(), std::vector<To>(from.values().begin(), from.values().end())};
}

// The keys as a model of that precision would hold them after its norm.
template <class T>
Matrix<double> norm_keys(const Matrix<double>& drawn, const HeatmapOptions& options) {
  Matrix<T> keys = convert<T>(drawn);
  const Matrix<T> normals = convert<T>(draw_normals(drawn.cols(), options));
  NormParameters<T> parameters;
  parameters.normals = normals.view();
  norm_forward<T>(options.norm, parameters, keys.view(), keys.view());
  return convert<double>(keys);
}

Matrix<double> make_keys(std::size_t n, std::size_t d, std::size_t draw, const HeatmapOptions& options) {
  const Matrix<double> drawn = draw_keys(n, d, draw, options);
  return options.precision == Precision::float32 ? norm_keys<float>(drawn, options)
                                                 : norm_keys<double>(drawn, options);
}

Counts count_draw(std::size_t n, std::size_t d, std::size_t draw, const HeatmapOptions& options,
                  const Executor& executor) {
  const Matrix<double> keys = make_keys(n, d, draw, options);
  KeyOptions deciding;
  deciding.unit_roundoff = options.precision == Precision::float32 ? 0x1p-24 : 0x1p-53;
  deciding.margins = Margins::bound;
  deciding.certificates = false;
  const KeySet set = decide_keys(keys.view(), {}, deciding, executor);
  const std::uint64_t unselectable = set.counts.unselectable, robust = set.robust_counts.unselectable;
  return {unselectable, unselectable * unselectable, unselectable > 0, set.counts.tied, robust, robust > 0};
}

HeatmapCell cell_of(std::size_t n, std::size_t d, std::size_t draws, const Counts& counts) {
  const auto share = [](std::uint64_t part, double whole) { return static_cast<double>(part) / whole; };
  const auto runs = static_cast<double>(draws), size = static_cast<double>(n), keys = runs * size;
  HeatmapCell cell{.n = n, .d = d, .draws = draws};
  cell.unselectable = counts.unselectable;
  cell.robust_unselectable = counts.robust;
  cell.tied_keys = counts.tied;
  cell.fraction = share(counts.unselectable, keys);
  cell.any = share(counts.draws_with_any, runs);
  cell.tied = share(counts.tied, keys);
  cell.robust_fraction = share(counts.robust, keys);
  cell.robust_any = share(counts.draws_with_robust, runs);
  if (draws == 1) {
    cell.fraction_sd = cell.fraction_se = cell.any_se = std::numeric_limits<double>::quiet_NaN();
    return cell;
  }
  const double mean_square = share(counts.unselectable_squared, keys * size);
  const double variance = std::max(0.0, mean_square - cell.fraction * cell.fraction) * runs / (runs - 1);
  cell.fraction_sd = std::sqrt(variance);
  cell.fraction_se = std::sqrt(variance / runs);
  cell.any_se = std::sqrt(cell.any * (1 - cell.any) / runs);
  return cell;
}

void require_sizes(const std::vector<std::size_t>& sizes, const char* what, std::size_t most) {
  if (sizes.empty()) throw InputError(fmt::format("The heat map needs at least one value of {}.", what));
  for (const std::size_t size : sizes) {
    if (size < 1 || size > most) {
      throw InputError(fmt::format("{} must be from 1 to {} in a heat map, not {}.", what, most, size));
    }
  }
}

// A norm may not fit a dimension (heads that do not divide it, more normals than it has): said before hours
// of work.
void require_norm_fits(const HeatmapOptions& options) {
  for (const std::size_t d : options.d) {
    if (options.norm.normals > 0 && static_cast<std::size_t>(options.norm.normals) > d) {
      throw InputError(fmt::format("The norm {} needs d of at least {}, not {}.", name_of(options.norm),
                                   options.norm.normals, d));
    }
    try {
      make_keys(1, d, 0, options);
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("The norm {} cannot be used with d = {}: {}", name_of(options.norm), d, error.what()));
    }
  }
}

// Coordinates of the keys of a cell.
std::size_t size_of(const Heatmap& heatmap, std::size_t cell) {
  return heatmap.n[cell % heatmap.n.size()] * heatmap.d[cell / heatmap.n.size()];
}

// Pieces of about equal work. How the work is cut does not change the result: counts are integers.
std::vector<Piece> cut(const Heatmap& heatmap, std::size_t maps, std::size_t draws) {
  constexpr std::size_t kLeast = 20'000;  // coordinates of keys: tens of milliseconds at most
  constexpr std::size_t kMostPieces = 20'000;
  const std::size_t cells = heatmap.n.size() * heatmap.d.size();
  double all = 0;
  for (std::size_t cell = 0; cell < cells; ++cell)
    all += static_cast<double>(size_of(heatmap, cell) * draws * maps);
  const std::size_t work = std::max(kLeast, static_cast<std::size_t>(all / kMostPieces));
  std::vector<Piece> pieces;
  for (std::size_t map = 0; map < maps; ++map) {
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const std::size_t run = std::max<std::size_t>(1, work / size_of(heatmap, cell));
      for (std::size_t first = 0; first < draws; first += run) {
        pieces.push_back({map, cell, first, std::min(draws, first + run)});
      }
    }
  }
  return pieces;
}

}  // namespace

const char* name_of(KeyInit init) {
  switch (init) {
    case KeyInit::uniform:
      return "uniform";
    case KeyInit::xavier:
      return "xavier";
    case KeyInit::normal:
      break;
  }
  return "normal";
}

KeyInit parse_key_init(std::string_view name) {
  for (const KeyInit init : {KeyInit::normal, KeyInit::uniform, KeyInit::xavier}) {
    if (name == name_of(init)) return init;
  }
  throw InputError(fmt::format("There is no init '{}'; use normal, uniform or xavier.", name));
}

Matrix<double> heatmap_keys(const HeatmapOptions& options, std::size_t n, std::size_t d, std::size_t draw) {
  require_sizes({n}, "n", HeatmapOptions::most_keys);
  require_sizes({d}, "d", HeatmapOptions::most_dimensions);
  if (draw >= HeatmapOptions::most_draws)
    throw InputError(fmt::format("Draws are numbered from 0 to {}.", HeatmapOptions::most_draws - 1));
  HeatmapOptions one = options;
  one.d = {d};
  require_norm_fits(one);
  return make_keys(n, d, draw, options);
}

void check_heatmap(const HeatmapOptions& options) {
  require_sizes(options.n, "n", HeatmapOptions::most_keys);
  require_sizes(options.d, "d", HeatmapOptions::most_dimensions);
  if (options.draws < 1 || options.draws > HeatmapOptions::most_draws) {
    throw InputError(
        fmt::format("A heat map takes 1 to {} draws, not {}.", HeatmapOptions::most_draws, options.draws));
  }
  require_norm_fits(options);
}

std::vector<Heatmap> key_heatmaps(const HeatmapOptions& options, std::span<const NormSpec> norms,
                                  const Executor& executor,
                                  const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<HeatmapOptions> asked;
  std::string names;
  for (const NormSpec& norm : norms) {
    asked.push_back(options);
    asked.back().norm = norm;
    check_heatmap(asked.back());
    names += (names.empty() ? "" : ", ") + name_of(norm);
  }
  std::vector<Heatmap> maps(norms.size(), {options.n, options.d, {}});
  if (maps.empty()) return maps;
  const std::size_t across = options.n.size(), cells = across * options.d.size();
  const std::vector<Piece> pieces = cut(maps.front(), maps.size(), options.draws);
  std::atomic<std::size_t> done = 0;
  PieceWork work{fmt::format("heat map of {}", names), {}, true, {}, {}};
  for (const Piece& piece : pieces)
    work.costs.push_back(static_cast<double>(size_of(maps.front(), piece.cell) * (piece.last - piece.first)));
  const auto tell = [&](std::size_t draws) {
    const std::size_t finished = done.fetch_add(draws) + draws;
    if (progress) progress(finished, maps.size() * cells * options.draws);
  };
  // Of draws as they are made, or where pieces may be done elsewhere, of these.
  const bool here = executor.pieces() == nullptr;
  work.finished = [&](std::size_t index) {
    if (!here) tell(pieces[index].last - pieces[index].first);
  };
  const auto counted = run_pieces<Counts>(executor, work, [&](std::size_t index, const Executor& inside) {
    const Piece& piece = pieces[index];
    Counts counts;
    for (std::size_t draw = piece.first; draw < piece.last; ++draw) {
      counts += count_draw(options.n[piece.cell % across], options.d[piece.cell / across], draw,
                           asked[piece.map], inside);
      if (here) tell(1);
    }
    return counts;
  });

  std::vector<Counts> totals(maps.size() * cells);
  for (std::size_t index = 0; index < pieces.size(); ++index)
    totals[pieces[index].map * cells + pieces[index].cell] += counted[index];
  for (std::size_t each = 0; each < totals.size(); ++each) {
    const std::size_t cell = each % cells;
    maps[each / cells].cells.push_back(
        cell_of(options.n[cell % across], options.d[cell / across], options.draws, totals[each]));
  }
  return maps;
}

Heatmap key_heatmap(const HeatmapOptions& options, const Executor& executor,
                    const std::function<void(std::size_t, std::size_t)>& progress) {
  return key_heatmaps(options, {&options.norm, 1}, executor, progress).front();
}

HeatmapSummary summarise(const Heatmap& heatmap) {
  HeatmapSummary summary;
  const auto keep_larger = [](HeatmapCell& best, const HeatmapCell& cell, auto measure) {
    if (best.n == 0 || measure(cell) > measure(best)) best = cell;
  };
  for (const HeatmapCell& cell : heatmap.cells) {
    ++summary.cells;
    summary.clear_cells += cell.unselectable == 0;
    summary.robust_clear_cells += cell.robust_unselectable == 0;
    summary.keys += cell.n * cell.draws;
    summary.unselectable += cell.unselectable;
    summary.robust_unselectable += cell.robust_unselectable;
    summary.tied += cell.tied_keys;
    keep_larger(summary.most_fraction, cell, [](const HeatmapCell& c) { return c.fraction; });
    keep_larger(summary.most_any, cell, [](const HeatmapCell& c) { return c.any; });
    keep_larger(summary.widest_gap, cell, [](const HeatmapCell& c) { return c.any - c.fraction; });
  }
  return summary;
}

}  // namespace normscope
