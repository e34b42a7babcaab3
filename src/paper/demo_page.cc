// What a page about Brody, Alon, Yahav 2023, with a demo of a large key beside small ones, says of attention and
// LayerNorm. Every answer is a count of exact verdicts, but for the last, which is of models at hand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/number_text.h"
#include "normscope/ablate.h"
#include "normscope/heatmap.h"
#include "normscope/keys.h"
#include "normscope/norm.h"
#include "normscope/random.h"
#include "paper/wu_curves.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr std::size_t kSets = 100, kKeys = 8;
constexpr std::array<std::size_t, 3> kDimensions = {2, 3, 5};
constexpr double kLonger = 1e6;      // than the others, about
constexpr double kQueryNorm = 1000;  // of queries that try to be sharp

KeySet decided(const Matrix<double>& keys, const Evidence& evidence, std::span<const double> offsets = {},
               std::optional<double> query_norm = {}) {
  KeyOptions options;
  options.margins = Margins::bound;
  options.certificates = false;
  options.query_norm = query_norm;
  return decide_keys(keys.view(), offsets, options, evidence.executor);
}

Matrix<double> drawn(const Evidence& evidence, std::size_t set, std::size_t d) {
  Random random(evidence.plan.seed, set * 64 + d);
  Matrix<double> keys(kKeys, d);
  for (std::size_t i = 0; i < kKeys; ++i) {
    for (double& x : keys[i]) x = random.normal();
  }
  return keys;
}

// x in coordinates of which the first runs along the first key (up to its sign) and the others are orthogonal to it.
Matrix<double> turned_to_first(const Matrix<double>& keys) {
  const std::size_t d = keys.cols();
  std::vector<double> mirror(keys[0].begin(), keys[0].end());
  double length = 0;
  for (const double x : mirror) length += x * x;
  mirror[0] += std::copysign(std::sqrt(length), mirror[0]);
  double square = 0;
  for (const double x : mirror) square += x * x;
  Matrix<double> turned(keys.rows(), d);
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    double along = 0;
    for (std::size_t j = 0; j < d; ++j) along += keys[i][j] * mirror[j];
    for (std::size_t j = 0; j < d; ++j) turned[i][j] = keys[i][j] - 2 * along / square * mirror[j];
  }
  return turned;
}

// Of keys 1, 2, …: whether some query selects the key among these that points away from key 0.
std::vector<bool> selected_turned_away(const Matrix<double>& keys, const Evidence& evidence) {
  const Matrix<double> turned = turned_to_first(keys);
  Matrix<double> across(keys.rows() - 1, keys.cols() - 1);
  std::vector<double> offsets;
  const double sign = turned[0][0] > 0 ? 1 : -1;
  for (std::size_t i = 1; i < keys.rows(); ++i) {
    for (std::size_t j = 1; j < keys.cols(); ++j) across[i - 1][j - 1] = turned[i][j];
    offsets.push_back(-sign * turned[i][0]);
  }
  std::vector<bool> selected;
  for (const KeyVerdict& key : decided(across, evidence, offsets).keys)
    selected.push_back(key.verdict == Verdict::selectable);
  return selected;
}

struct LargeKey {
  std::size_t sets = 0, neighbours = 0;  // that are selectable beside key 0 as it was drawn
  std::size_t kept = 0;                  // of these, also beside a long one
  std::size_t decided = 0, wrong = 0;    // keys beside a long one, and where the rule says otherwise
  std::size_t axes = 0;                  // of 1000·e₁, e₂, e₃, e₄, those that are selectable
};
LargeKey large_key(const Evidence& evidence) {
  LargeKey found;
  for (std::size_t set = 0; set < kSets; ++set) {
    for (const std::size_t d : kDimensions) {
      Matrix<double> keys = drawn(evidence, set, d);
      const KeySet before = decided(keys, evidence);
      const std::vector<bool> rule = selected_turned_away(keys, evidence);
      for (double& x : keys[0]) x *= kLonger;
      const KeySet beside = decided(keys, evidence);
      ++found.sets;
      for (std::size_t i = 1; i < kKeys; ++i) {
        const bool selectable = beside.keys[i].verdict == Verdict::selectable;
        const bool neighbour = before.keys[i].verdict == Verdict::selectable;
        found.neighbours += neighbour;
        found.kept += neighbour && selectable;
        ++found.decided;
        found.wrong += selectable != rule[i - 1];
      }
    }
  }
  Matrix<double> axes(4, 4);
  for (std::size_t i = 0; i < 4; ++i) axes[i][i] = i == 0 ? 1000 : 1;
  found.axes = decided(axes, evidence).counts.selectable;
  return found;
}

Claim large_keys_hide() {
  const auto kept = of(once<large_key>, &LargeKey::kept), wrong = of(once<large_key>, &LargeKey::wrong);
  return {
      .where = "page: The Problem, Results",
      .sentence = "A key of large norm makes its neighbours unselectable, whatever the query",
      .published = "whenever one key has a disproportionately large norm",
      .measured = written(
          "beside a key made {} times as long {} of {} neighbours that were selectable still are, in {} random sets; of 1000·e₁, e₂, e₃, e₄ {} are",
          grouped(static_cast<std::size_t>(kLonger)), kept, of(once<large_key>, &LargeKey::neighbours),
          of(once<large_key>, &LargeKey::sets), of(once<large_key>, &LargeKey::axes)),
      .why = written(
          "A neighbour stays selectable beside a key k of any length exactly if some query q with q·k < 0 selects it among the others: k then scores far below. Asked of the others alone, in the directions across k and with the part along it as an offset, this rule tells all but {} of {} verdicts.",
          wrong, of(once<large_key>, &LargeKey::decided)),
      .holds = at_most(kept, 0, "neighbours that stay selectable"),
      .holds_if = {{at_most(wrong, 0, "verdicts that the rule does not tell"),
                    "every query that selects the neighbour among the others points towards the large key"}},
      .topic = "selectability"};
}

struct Sharp {
  std::size_t sets = 0, without = 0;  // in which no key can be given more than half
  std::size_t unselectable = 0;
  double most = 0;  // that any of these can be given, a proven bound
};
Sharp sharpest(const Evidence& evidence) {
  Sharp found;
  for (std::size_t set = 0; set < kSets; ++set) {
    const KeySet keys = decided(drawn(evidence, set, 3), evidence, {}, kQueryNorm);
    ++found.sets;
    found.without += std::none_of(keys.keys.begin(), keys.keys.end(),
                                  [](const KeyVerdict& key) { return key.max_weight.value_or(0) > 0.5; });
    for (const KeyVerdict& key : keys.keys) {
      if (key.verdict != Verdict::unselectable) continue;
      ++found.unselectable;
      found.most = std::max(found.most, key.max_weight_bound.value_or(1));
    }
  }
  return found;
}

Claim nothing_is_sharp() {
  const auto without = of(once<sharpest>, &Sharp::without),
             unselectable = of(once<sharpest>, &Sharp::unselectable);
  const auto most = of(once<sharpest>, &Sharp::most);
  return {
      .where = "page: Results",
      .sentence =
          "Without LayerNorm there are sets of keys for which no query gives most of the weight to a single key",
      .published = "there are; whenever one key has a disproportionately large norm",
      .measured = written(
          "in {} of {} random sets of {} keys in 3 dimensions no query of norm {:g} gives any key more than half; each of the {} unselectable keys gets at most {:.3f}",
          without, of(once<sharpest>, &Sharp::sets), kKeys, kQueryNorm, unselectable, most),
      .why =
          "Keys that are not all equal have a corner, and a long query along its witness gives it nearly all weight. A key inside the hull shares its score with those that cover it, of which one scores as high.",
      .holds = some(without),
      .holds_if = {{all_of({some(unselectable), at_most(most, 0.5, "largest weight of an unselectable key")}),
                    "the single key is one that is unselectable"}},
      .topic = "selectability"};
}

constexpr std::array<const char*, 4> kNorms = {"none", "center", "rmsnorm", "layernorm"};

HeatmapOptions grid(const Evidence& evidence, const std::string& norm, std::vector<std::size_t> d) {
  HeatmapOptions options;
  options.n = {4, 8, 16, 32, 64};
  options.d = std::move(d);
  options.draws = std::min<std::size_t>(evidence.plan.draws, 50);
  options.norm = parse_norm(norm);
  options.precision = Precision::float64;
  options.seed = evidence.plan.seed;
  return options;
}
std::vector<Heatmap> maps(const Evidence& evidence) {
  std::vector<NormSpec> norms;
  norms.reserve(std::size(kNorms));
  for (const char* norm : kNorms) norms.push_back(parse_norm(norm));
  return key_heatmaps(grid(evidence, "none", {3, 4, 8}), norms, evidence.executor);
}
auto summary(std::size_t norm) {
  return [=](const Evidence& evidence) { return summarise(once<maps>(evidence)[norm]); };
}
auto unselectable(std::size_t norm) {
  return of(summary(norm), &HeatmapSummary::unselectable);
}
auto keys_drawn(std::size_t norm) {
  return of(summary(norm), &HeatmapSummary::keys);
}

// Of keys that are unselectable as drawn, those that projection makes selectable; and the other way round.
struct Moved {
  std::size_t unselectable = 0, freed = 0, selectable = 0, lost = 0;
};
Moved moved(const Evidence& evidence) {
  Moved found;
  const HeatmapOptions plain = grid(evidence, "none", {3}), centred = grid(evidence, "center", {3});
  for (std::size_t draw = 0; draw < plain.draws; ++draw) {
    const KeySet before = decided(heatmap_keys(plain, 16, 3, draw), evidence),
                 after = decided(heatmap_keys(centred, 16, 3, draw), evidence);
    for (std::size_t i = 0; i < before.n; ++i) {
      const bool one = before.keys[i].verdict == Verdict::selectable,
                 other = after.keys[i].verdict == Verdict::selectable;
      found.unselectable += !one;
      found.freed += !one && other;
      found.selectable += one;
      found.lost += one && !other;
    }
  }
  return found;
}

Claim projection_is_not_enough() {
  return {
      .where = "page: Results",
      .sentence = "Projection alone does not make every key selectable",
      .published = "it does not fully solve the selectability problem",
      .measured = written("unselectable of {} random keys: {} as drawn, {} after projection alone",
                          keys_drawn(0), unselectable(0), unselectable(1)),
      .why = written(
          "Projection keeps convex combinations, so that a key which the others cover stays covered: of {} unselectable keys of sets of 16 in 3 dimensions it freed {}; of {} selectable ones {} no longer are, as there is a dimension less.",
          of(once<moved>, &Moved::unselectable), of(once<moved>, &Moved::freed),
          of(once<moved>, &Moved::selectable), of(once<moved>, &Moved::lost)),
      .holds = at_least(unselectable(1), 1, "unselectable keys after projection alone"),
      .topic = "scaling"};
}

// After LayerNorm: in the plane; and of keys made for it: k, 2k + 5·1, 1, and three more corners of a simplex.
struct Special {
  KeyCounts plane, made;
};
Special special(const Evidence& evidence) {
  Special found;
  // As a model holds them: in float64 what is to be ±(1, −1) differs by its last digit.
  HeatmapOptions in_plane = grid(evidence, "layernorm", {2});
  in_plane.precision = Precision::float32;
  const HeatmapSummary plane = summarise(key_heatmap(in_plane, evidence.executor));
  found.plane.unselectable = plane.unselectable;
  found.plane.tied = plane.tied;
  found.plane.selectable = plane.keys - plane.tied - plane.unselectable;
  constexpr double made[6][4] = {{3, -1, -1, -1}, {11, 3, 3, 3},   {1, 1, 1, 1},
                                 {-1, 3, -1, -1}, {-1, -1, 3, -1}, {-1, -1, -1, 3}};
  Matrix<double> keys(6, 4);
  for (std::size_t i = 0; i < 6; ++i) std::copy(std::begin(made[i]), std::end(made[i]), keys[i].begin());
  norm_forward<double>(parse_norm("layernorm"), {}, keys.view(), keys.view());
  found.made = decided(keys, evidence).counts;
  return found;
}
std::size_t not_selectable(const KeyCounts& counts) {
  return counts.tied + counts.unselectable + counts.undecided;
}

Claim both_are_enough() {
  const auto general = [](const Evidence& evidence) {
    const HeatmapSummary all = summary(3)(evidence);
    return all.tied + all.unselectable;
  };
  const auto in_plane = [](const Evidence& evidence) {
    return not_selectable(once<special>(evidence).plane);
  };
  const auto made = [](const Evidence& evidence) { return not_selectable(once<special>(evidence).made); };
  return {
      .where = "page: Results",
      .sentence = "With projection and scaling every key is selectable",
      .published = "all keys; for any key there is a query that gives it the highest weight",
      .measured = written(
          "not selectable after LayerNorm: {} of {} random keys in 3, 4 and 8 dimensions, {} of {} in 2 (float32); of the keys k, 2k + 5·1, 1 and three corners {}",
          general, keys_drawn(3), in_plane,
          [](const Evidence& evidence) {
            const KeyCounts& counts = once<special>(evidence).plane;
            return counts.selectable + not_selectable(counts);
          },
          made),
      .why = written(
          "In 2 dimensions LayerNorm leaves two points, ±(1, −1), and keys that share one are tied: {} are. Keys that differ by a positive factor and a multiple of 1 become equal ({} tied of those made for it), and a multiple of 1 becomes 0, which the others cover ({} unselectable). A head compares kW_K in its few dimensions, of which this says nothing: see table1.",
          [](const Evidence& evidence) { return once<special>(evidence).plane.tied; },
          [](const Evidence& evidence) { return once<special>(evidence).made.tied; },
          [](const Evidence& evidence) { return once<special>(evidence).made.unselectable; }),
      .holds = all_of({none(general), none(in_plane), none(made)}),
      .holds_if =
          {{none(general),
            "d is at least 3, no key is a multiple of 1, no two differ only by a positive factor and a multiple of 1, and keys are what leaves the norm"}},
      .topic = "selectability",
      .confounds = {"head-space"}};
}

Claim impossible_without() {
  return {
      .where = "page: The Key Idea, Results",
      .sentence = "LayerNorm enables attention patterns that are impossible without it",
      .published = "provably impossible without LayerNorm",
      .measured = written(
          "unselectable of {} random keys: {} without a norm, {} after scaling alone (rmsnorm), {} after LayerNorm",
          keys_drawn(0), unselectable(0), unselectable(2), unselectable(3)),
      .why = written(
          "Scaling to one length, without the projection, already makes every key a corner: {} of the keys that are unselectable without a norm stay so.",
          unselectable(2)),
      .holds = all_of({some(unselectable(0)), some(unselectable(2)), none(unselectable(3))}),
      .holds_if = {{all_of({some(unselectable(0)), none(unselectable(3))}),
                    "\"without LayerNorm\" means without its scaling"}},
      .topic = "scaling"};
}

// Of every model, in their order.
std::vector<Ablation> ablations(const Evidence& evidence) {
  std::vector<Ablation> all;
  for (const PretrainedModel& model : evidence.models)
    all.push_back(evidence.ablate ? evidence.ablate(model) : Ablation());
  return all;
}
const Ablation& ablation_of(const Evidence& evidence, const PretrainedModel& model) {
  return once<ablations>(evidence)[static_cast<std::size_t>(&model - evidence.models.data())];
}
// Measures of retrieval with the norm removed, those that the model as trained has above chance.
constexpr std::size_t kRemoved = 1, kRescaled = 2;  // rows
std::vector<RetrievalValues> testable(const Evidence& evidence, const PretrainedModel& model,
                                      std::size_t row) {
  const Ablation& ablation = ablation_of(evidence, model);
  if (ablation.rows.size() <= row || !ablation.rows[row].failure.empty()) return {};
  std::vector<RetrievalValues> values = retrieval_values(ablation, row);
  std::erase_if(values, [&](const RetrievalValues& each) {
    return above(mean_interval(each.trained, level_of(evidence)), each.chance) != true;
  });
  return values;
}
// Some of it is lost, beyond doubt; none is; or neither can be told.
Answer loses(const Evidence& evidence, const PretrainedModel& model, std::size_t row) {
  const std::vector<RetrievalValues> values = testable(evidence, model, row);
  if (values.empty()) return std::nullopt;
  Answer any = false;
  for (const RetrievalValues& each : values)
    any = any_of({any, below(evidence, mean_difference(each.trained, each.changed, level_of(evidence)), 0,
                             fmt::format("{}: {}, {} − as trained", model.name, each.measure,
                                         ablation_of(evidence, model).rows[row].name))});
  return any;
}
std::string retrieval_of(const Evidence& evidence, const PretrainedModel& model) {
  const Ablation& ablation = ablation_of(evidence, model);
  if (ablation.rows.empty()) return ablation.notes.empty() ? "not run" : ablation.notes.front();
  std::string text;
  const auto mean = [&](const std::vector<double>& values) {
    return with_interval(mean_interval(values, level_of(evidence)));
  };
  for (const RetrievalValues& each : testable(evidence, model, kRemoved)) {
    std::string one = fmt::format("{} {} as trained, {} without the norm", each.measure, mean(each.trained),
                                  mean(each.changed));
    for (const RetrievalValues& rescaled : testable(evidence, model, kRescaled)) {
      if (std::string_view(rescaled.measure) == each.measure)
        one += fmt::format(", {} rescaled", mean(rescaled.changed));
    }
    append(text, one);
  }
  return text.empty() ? "as trained it finds nothing beyond chance, or nothing is left to measure" : text;
}

Claim removing_hurts() {
  const auto without = [](const Evidence& evidence, const PretrainedModel& model) {
    return loses(evidence, model, kRemoved);
  };
  const auto either_way = [=](const Evidence& evidence, const PretrainedModel& model) {
    return all_of({without(evidence, model), loses(evidence, model, kRescaled)});
  };
  Claim claim = by_model(
      {.where = "page: Implications",
       .sentence = "Removing LayerNorm from pretrained models hurts sharp attention",
       .published = "degrades performance on tasks that require sharp, selective attention",
       .otherwise = kNoModel,
       .measured = over_models(retrieval_of),
       .why = written(
           "As `ablate --norm none --rescale` has it: {} prompts of random tokens that come twice; finds: the share of tokens from which the best head looks most at the one to be found; gain: how much less a second copy costs. Rescaled: with a constant per layer that keeps the mean norm of what enters attention. Only what a model as trained has above chance can be lost.",
           [](const Evidence& evidence) -> std::size_t {
             for (const Ablation& each : once<ablations>(evidence)) {
               if (!each.rows.empty()) return each.rows.front().finds.share.size();
             }
             return 0;
           }),
       .holds_if = {{[=](const Evidence& evidence) {
                       return all_of(evidence.models,
                                     [&](const PretrainedModel& model) { return without(evidence, model); });
                     },
                     "what enters attention may also change its length"}},
       .undecided = " More prompts, or a model that finds the tokens as trained, are needed.",
       .topic = "selectability"},
      either_way);
  // The page speaks of pretrained models, of none in particular.
  claim.stand_in = claim.not_at_hand = Text();
  return claim;
}

Findings shown(const Evidence& evidence) {
  CurveFigure figure;
  const std::vector<Heatmap>& all = once<maps>(evidence);
  for (std::size_t row = 0; row < all.front().d.size(); ++row) {
    CurveFigure::Panel& panel = figure.panels.emplace_back();
    panel.title = fmt::format("{} dimensions", all.front().d[row]);
    panel.x_label = "keys in a set";
    panel.y_label = "selectable or tied keys, %";
    panel.log_x = true;
    panel.y_low = 0;
    panel.y_high = 100;
    for (std::size_t norm = 0; norm < kNorms.size(); ++norm) {
      CurveFigure::Curve& curve = panel.curves.emplace_back();
      curve.name = kNorms[norm];
      for (std::size_t column = 0; column < all[norm].n.size(); ++column) {
        const HeatmapCell& cell = all[norm].cells[row * all[norm].n.size() + column];
        curve.x.push_back(static_cast<double>(cell.n));
        curve.y.push_back(100 * (1 - cell.fraction));
      }
    }
  }
  figure.caption = fmt::format(
      "The same {} draws of N(0, 1) keys per cell under each norm, in float64. center is the projection alone, rmsnorm the scaling alone.",
      all.front().cells.front().draws);
  return {.figures = {to_figure("page", "Which half of LayerNorm makes keys selectable?", "", figure)}};
}

}  // namespace

Exhibit demo_page() {
  return {{large_keys_hide(), nothing_is_sharp(), projection_is_not_enough(), both_are_enough(),
           impossible_without(), removing_hurts()},
          shown};
}

}  // namespace normscope
