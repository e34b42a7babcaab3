// Bindings of the explanation: keys on their way through a norm, with all that its figures show of them; the sphere of
// directions; random sets of keys and one of their draws.
#include <algorithm>

#include "answers.h"
#include "bridge.h"
#include "keys/picture.h"
#include "normscope/heatmap.h"
#include "normscope/keys.h"
#include "normscope/norm.h"

namespace normscope::web {
namespace {

constexpr std::size_t kMostKeys = 256, kMostDimensions = 64, kMostDraws = 1000, kMostPixels = 1024,
                      kMostTries = 1'000'000;

// Which norm a whole way through both halves is; null between.
const char* norm_of(double projected, double scaled) {
  if ((projected != 0 && projected != 1) || (scaled != 0 && scaled != 1)) return nullptr;
  if (projected == 0) return scaled == 0 ? "none" : "rmsnorm";
  return scaled == 0 ? "center" : "layernorm";
}

KeySet decide_on_the_way(const Matrix<double>& keys, const Matrix<double>& moved, double projected,
                         double scaled) {
  KeyOptions options;
  options.unit_roundoff = 0x1p-53;
  std::vector<double> errors;
  const char* name = norm_of(projected, scaled);
  if (name != nullptr && projected + scaled > 0) {
    const NormSpec spec = parse_norm(name);
    errors = norm_errors(spec, keys.view(), options.unit_roundoff, 0, options.unit_roundoff);
    options.errors = errors;
    options.projected_out = directions_projected_out(spec);
  }
  return decide_keys(moved.view(), {}, options, Executor(1));
}

// Keys `projected` and `scaled` of the way through LayerNorm's halves, and what one query makes of them.
val stage(const val& options) {
  return answer([&] {
    const std::size_t n = count_of(options, "n", "keys", 1, kMostKeys);
    const std::size_t d = count_of(options, "d", "dimensions", 2, 3);
    const double projected = options["projected"].as<double>(), scaled = options["scaled"].as<double>();
    const Matrix<double> keys = matrix(options["keys"], n, d), query = matrix(options["query"], 1, d);
    const Matrix<double> moved = partly_normed(keys.view(), projected, scaled);
    const KeySet set = decide_on_the_way(keys, moved, projected, scaled);
    val result = val::object();
    result.set("keys", numbers(moved.values()));
    result.set("set", set_of(set));
    const Attention found = attention_to(moved.view(), query[0], options["temperature"].as<double>());
    result.set("scores", numbers(found.scores));
    result.set("weights", numbers(found.weights));
    result.set("ranks", indices(found.ranks));
    result.set("shadows", numbers(found.shadows.values()));
    if (d == 2) {
      std::vector<Verdict> verdicts;
      for (const KeyVerdict& key : set.keys) verdicts.push_back(key.verdict);
      result.set("fan", fan_of(winner_fan(moved.view(), verdicts)));
    } else {
      result.set("edges", pairs(hull_edges(moved.view())));
    }
    return result;
  });
}

// view: right, up and towards the reader, nine numbers. A byte per pixel: the winner, 254 several, 255 outside.
val sphere(const val& keys, std::size_t n, const val& view, double pixels) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, 3), frame = matrix(view, 3, 3);
    SphereView seen{};
    std::copy_n(frame[0].begin(), 3, seen.right.begin());
    std::copy_n(frame[1].begin(), 3, seen.up.begin());
    std::copy_n(frame[2].begin(), 3, seen.towards.begin());
    const auto won = winners_on_sphere(rows.view(), seen, count_of(pixels, "pixels", 1, kMostPixels));
    return val::global("Uint8Array").new_(emscripten::typed_memory_view(won.size(), won.data()));
  });
}

val rank_tried(const val& keys, std::size_t n, std::size_t d, std::size_t key, double tries, double seed) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d);
    return val(best_rank(rows.view(), key, count_of(tries, "tries", 1, kMostTries), checked_seed(seed)));
  });
}

HeatmapOptions heatmap_of(const val& options) {
  HeatmapOptions heatmap;
  heatmap.n = {count_of(options, "n", "keys", 1, kMostKeys)};
  heatmap.d = {count_of(options, "d", "dimensions", 1, kMostDimensions)};
  heatmap.draws = count_of(options, "draws", "draws", 1, kMostDraws);
  heatmap.norm = parse_norm(options["norm"].as<std::string>(), norm_names_without_normals());
  heatmap.seed = seed_of(options);
  return heatmap;
}

// One cell of `normscope heatmap`, the same numbers.
val heatmap_cell(const val& options) {
  return answer([&] {
    const HeatmapCell cell = key_heatmap(heatmap_of(options), Executor(1)).cells.front();
    val result = val::object();
    result.set("fraction", cell.fraction);
    result.set("any", cell.any);
    result.set("tied", cell.tied);
    result.set("robustFraction", cell.robust_fraction);
    result.set("unselectable", static_cast<double>(cell.unselectable));
    result.set("robustUnselectable", static_cast<double>(cell.robust_unselectable));
    return result;
  });
}

// One draw of it: verdicts, and the keys along the directions they spread most in.
val heatmap_draw(const val& options) {
  return answer([&] {
    const HeatmapOptions heatmap = heatmap_of(options);
    const std::size_t draw = count_of(options, "draw", "the draw", 0, kMostDraws);
    const Matrix<double> keys = heatmap_keys(heatmap, heatmap.n.front(), heatmap.d.front(), draw);
    KeyOptions deciding;
    deciding.unit_roundoff = 0x1p-24;  // heat maps hold their keys in float32
    const PrincipalPicture picture =
        principal_picture(keys.view(), std::min<std::size_t>(2, heatmap.d.front()));
    val result = val::object();
    result.set("set", set_of(decide_keys(keys.view(), {}, deciding, Executor(1))));
    result.set("coordinates", numbers(picture.coordinates.values()));
    result.set("share", picture.share);
    return result;
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(explain) {
  emscripten::function("stage", &stage);
  emscripten::function("winnerSphere", &sphere);
  emscripten::function("rankTried", &rank_tried);
  emscripten::function("heatmapCell", &heatmap_cell);
  emscripten::function("heatmapDraw", &heatmap_draw);
}

}  // namespace normscope::web
