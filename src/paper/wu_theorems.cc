// Theorems 1 and 2 and Corollary 1 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024, as bounds that runs are held
// against: over masks of every family and value matrices of every kind, those of the theorems among them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/decompose.h"
#include "core/number_text.h"
#include "normscope/norm.h"
#include "normscope/random.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

constexpr std::size_t kFewTokens = 8, kFewDimensions = 8, kDepth = 32;
constexpr std::array kFamilies = {"full",       "causal",      "window:1",  "onesided:1",
                                  "prefix:3",   "dilated:1,2", "strided:2", "global:1+window:1",
                                  "random:0.3", "block:4",     "star",      "self"};
constexpr const char *kWithout = "without norm", *kWith = "with norm";
constexpr const char *kGaussian = "Gaussian", *kNormalized = "Gaussian with weight norm";

// What the values of a token pass through, the same in every layer where it is given.
struct ValueMatrix {
  const char* name;
  MatrixInit init;
  bool normalize = false;
};

// U diag(σ) Vᵀ with random orthogonal U and V.
MatrixInit with_spectrum(const std::vector<double>& sigma, std::uint64_t seed) {
  const auto d = static_cast<Eigen::Index>(kFewDimensions);
  const auto orthogonal = [&](std::uint64_t stream) {
    Random random(seed, stream);
    Eigen::MatrixXd gaussian(d, d);
    for (Eigen::Index i = 0; i < d; ++i) {
      for (Eigen::Index j = 0; j < d; ++j) gaussian(i, j) = random.normal();
    }
    return householder_qr(gaussian).q();
  };
  Eigen::VectorXd values(d);
  for (Eigen::Index i = 0; i < d; ++i) values(i) = sigma[static_cast<std::size_t>(i)];
  const Eigen::MatrixXd product = orthogonal(1) * values.asDiagonal() * orthogonal(2).transpose();
  MatrixInit init;
  init.kind = MatrixInit::Kind::given;
  init.given = Matrix<double>(kFewDimensions, kFewDimensions);
  for (Eigen::Index i = 0; i < d; ++i) {
    for (Eigen::Index j = 0; j < d; ++j)
      init.given(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = product(i, j);
  }
  return init;
}

std::vector<ValueMatrix> value_matrices(std::uint64_t seed) {
  const std::vector<double> twice(kFewDimensions, 2), falling = {1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3},
                                                      low = {1, 1, 0, 0, 0, 0, 0, 0};
  return {{"orthogonal", parse_matrix_init("orthogonal")},
          {"identity", parse_matrix_init("identity")},
          {"Jordan with w = 9", parse_matrix_init("jordan:9")},
          {kGaussian, parse_matrix_init("gaussian")},
          {kNormalized, parse_matrix_init("gaussian"), true},
          {"twice orthogonal", with_spectrum(twice, seed)},
          {"singular values 1 to 0.3", with_spectrum(falling, seed)},
          {"rank 2", with_spectrum(low, seed)}};
}

struct ValueCurves {
  std::string value;
  Curves curves;  // groups kWithout, kWith; names are those of masks
};
std::vector<ValueCurves> run_from(const Evidence& evidence, const TokenStart& start,
                                  const std::vector<ValueMatrix>& values, bool fresh_weights = false) {
  std::vector<CollapseCase> cases;
  for (const char* mask : kFamilies) {
    for (const char* group : {kWithout, kWith}) {
      BlockSpec block;
      block.width = kFewDimensions;
      block.skip = false;
      block.norm = parse_norm(group == kWith ? "unit" : "none");
      cases.push_back({group, mask, block, parse_mask(mask, kFewTokens, evidence.plan.seed)});
    }
  }
  std::vector<ValueCurves> all;
  for (const ValueMatrix& value : values) {
    CollapseSettings settings;
    settings.fresh_weights = fresh_weights;
    settings.tokens = kFewTokens;
    settings.layers = kDepth;
    settings.samples = evidence.plan.samples;
    settings.weights.query_key = parse_matrix_init("gaussian");
    settings.weights.value = value.init;
    settings.weights.output = parse_matrix_init("identity");
    settings.weights.normalize = value.normalize;
    settings.start = start;
    settings.precision = Precision::float64;
    settings.seed = evidence.plan.seed;
    all.push_back({value.name, evidence.collapse("Wu, theorems", cases, settings)});
  }
  return all;
}

// From starts without an obtuse angle, as the bounds ask; and from anywhere on the sphere.
std::vector<ValueCurves> run(const Evidence& evidence) {
  return run_from(evidence,
                  acute_start(evidence.plan.samples, kFewTokens, kFewDimensions, evidence.plan.seed),
                  value_matrices(evidence.plan.seed));
}
std::vector<ValueCurves> run_anywhere(const Evidence& evidence) {
  return run_from(evidence, parse_token_start("sphere"), value_matrices(evidence.plan.seed));
}
// Gaussian weights with weight normalization and without, drawn anew for every sample: what is said of them is not of
// one draw.
std::vector<ValueCurves> run_interplay(const Evidence& evidence) {
  std::vector<ValueMatrix> values = value_matrices(evidence.plan.seed);
  std::erase_if(values, [](const ValueMatrix& each) {
    return std::string_view(each.name) != kGaussian && std::string_view(each.name) != kNormalized;
  });
  return run_from(evidence, parse_token_start("sphere"), values, true);
}

// Curves that a theorem speaks of, and what they say of its bound.
struct Look {
  std::size_t curves = 0, layers = 0, beyond = 0, beyond_curves = 0;
  std::string values = {};  // matrices that it speaks of
};
Look look_at(const Evidence& evidence, std::vector<double> CollapseTheory::*bound,
             std::size_t CollapseTheory::*violations) {
  Look found;
  for (const ValueCurves& each : once<run>(evidence)) {
    bool speaks = false;
    for (const CollapseCurve& curve : each.curves) {
      if ((curve.theory.*bound).empty()) continue;
      speaks = true;
      ++found.curves;
      found.layers += curve.layers.size() * curve.layers.front().size();
      found.beyond += curve.theory.*violations;
      found.beyond_curves += curve.theory.*violations > 0;
    }
    if (speaks) append(found.values, each.value);
  }
  return found;
}
Look theorem1(const Evidence& evidence) {
  return look_at(evidence, &CollapseTheory::bound1, &CollapseTheory::violations1);
}
Look theorem2_radius(const Evidence& evidence) {
  return look_at(evidence, &CollapseTheory::bound2_radius, &CollapseTheory::violations2_radius);
}
Look theorem2_diameter(const Evidence& evidence) {
  return look_at(evidence, &CollapseTheory::bound2_diameter, &CollapseTheory::violations2_diameter);
}
Look corollary1(const Evidence& evidence) {
  return look_at(evidence, &CollapseTheory::bound_corollary, &CollapseTheory::violations_corollary);
}

Claim never_beyond(const char* where, const char* sentence, const char* published,
                   Look (*look)(const Evidence&)) {
  return {
      .where = where,
      .sentence = sentence,
      .published = published,
      .measured = written("{} of {} layers and samples beyond the bound, {} curves", of(look, &Look::beyond),
                          of(look, &Look::layers), of(look, &Look::curves)),
      .why = written(
          "{} masks, {} value matrices, {} tokens in {} dimensions, {} layers, the bound with explicit constants from the least weight and the radius of each run. It speaks of value matrices {}.",
          kFamilies.size(), [](const Evidence& evidence) { return once<run>(evidence).size(); }, kFewTokens,
          kFewDimensions, kDepth, of(look, &Look::values)),
      .asks = {{some(of(look, &Look::curves)), " No run meets what the theorem asks."}},
      .holds = none(of(look, &Look::beyond)),
      .topic = "collapse"};
}

// A star of 6 orthonormal tokens: every edge to another token has the weight ε.
struct Star {
  static constexpr std::size_t tokens = 6;
  static constexpr double epsilon = 0.05;
  double cosine = 0;  // φ after one layer; before it 0
  std::size_t radius = 0, diameter = 0;
  double claimed() const { return tokens * std::pow(epsilon, 2.0 * static_cast<double>(radius)); }
  double without_factor() const { return std::pow(epsilon, 2.0 * static_cast<double>(radius)); }
};
Star star(const Evidence&) {
  Matrix<double> attention(Star::tokens, Star::tokens);
  for (std::size_t i = 1; i < Star::tokens; ++i) {
    attention(i, 0) = attention(0, i) = Star::epsilon;
    attention(i, i) = 1 - Star::epsilon;
  }
  attention(0, 0) = 1 - Star::epsilon * (Star::tokens - 1);
  const MaskProperties mask = mask_properties(parse_mask("star", Star::tokens));
  return {measure_tokens<double>(attention.view(), Spectrum::no).min_cosine, mask.radius.value_or(0),
          mask.diameter.value_or(0)};
}

Claim theorem2() {
  const auto beyond = of(theorem2_radius, &Look::beyond);
  const auto over_claimed = [](const Evidence& evidence) {
    const Star found = star(evidence);
    return found.cosine / found.claimed();
  };
  return {
      .where = "Wu Thm 2",
      .sentence =
          "With LayerNorm and orthogonal values 1 − φ falls by 1 − Nε^{2r} in every r layers, r the radius",
      .published = "μ ≤ C(1 − Nε^{2r})^{t/2r} under strongly connected masks",
      .measured = written(
          "{} of {} layers and samples beyond the bound with r the radius, {} with r the diameter, {} curves; star of {} tokens, ε = {:g}: φ rises from 0 to {:.5f}, claimed {:.3f}",
          beyond, of(theorem2_radius, &Look::layers), of(theorem2_diameter, &Look::beyond),
          of(theorem2_radius, &Look::curves), Star::tokens, Star::epsilon, of(star, &Star::cosine),
          of(star, &Star::claimed)),
      .why = written(
          "After r layers one centre is in all tokens, not all in all: of the sum over N only one term is sure. Without the factor N the star's {:.4f} holds, and with r the diameter, {}, the bound can be proved. Which r the paper means is not settled.",
          of(star, &Star::without_factor), of(star, &Star::diameter)),
      .asks = {{some(of(theorem2_radius, &Look::curves)), " No run meets what the theorem asks."}},
      .holds =
          all_of({none(beyond), at_least(over_claimed, 1, "star: φ after a layer over what is claimed")}),
      .holds_if = {{none(of(theorem2_diameter, &Look::beyond)),
                    "r is the diameter of the mask, or the factor N is left out"}},
      .topic = "collapse"};
}

// What is left under a mask with a norm, and without one, over what there was at the start.
Interval left(const Evidence& evidence, const ValueCurves& value, const char* group, const char* mask) {
  const CollapseCurve& curve = find(value.curves, group, mask);
  std::vector<double> share = relative_at_end(curve);
  const std::vector<double> start = relative_at(curve, 0);
  for (std::size_t s = 0; s < share.size(); ++s) share[s] = start[s] > 0 ? share[s] / start[s] : 0;
  return mean_interval(share, level_of(evidence));
}
constexpr Threshold kLeft{0.01, "two orders of magnitude, as of the other claims on collapse"};

// Value matrices under which tokens stay apart with a norm and a causal mask, or do not.
std::string values_where(const Evidence& evidence, bool apart) {
  std::string names;
  for (const ValueCurves& value : once<run_anywhere>(evidence)) {
    const Answer above_it = above(left(evidence, value, kWith, "causal"), kLeft.value);
    if (above_it == apart) append(names, value.value);
  }
  return names;
}

Claim other_values() {
  const auto apart = [](const Evidence& evidence) { return values_where(evidence, true); };
  const auto together = [](const Evidence& evidence) { return values_where(evidence, false); };
  return {
      .where = "Wu, future work",
      .sentence = "With LayerNorm and a causal mask, which value matrices keep tokens apart?",
      .published = "asked beyond orthogonal ones; Theorem 3 has one Jordan block",
      .measured =
          [](const Evidence& evidence) {
            std::string text;
            for (const ValueCurves& value : once<run_anywhere>(evidence))
              append(text,
                     fmt::format("{} {}", value.value, with_interval(left(evidence, value, kWith, "causal"))),
                     "; ");
            return fmt::format("μ/‖X‖ after {} layers over that at the start: {}", kDepth, text);
          },
      .why = written(
          "{}, causal mask, Gaussian queries and keys, unit tokens anywhere on the sphere at the start. Apart: more than a hundredth is left, with the whole interval.",
          of([](const Evidence& evidence) { return once<run_anywhere>(evidence).front().curves; },
             samples_count)),
      .asks = {{at_least([](const Evidence& evidence) { return evidence.plan.samples; }, 2),
                " One sample has no interval."}},
      .answer = when(any_in(apart), written("apart: {}", apart)) +
                when(all_of({any_in(apart), any_in(together)}), "; ") +
                when(any_in(together), written("collapsed: {}", together)),
      .topic = "collapse"};
}

// How much more of μ/‖X‖ is kept per layer with weight normalization than with plain Gaussian weights, sample by sample.
constexpr std::array kInterplayMasks = {"full", "causal", "window:1", "star"};
const ValueCurves& value_of(const Evidence& evidence, const char* name) {
  const std::vector<ValueCurves>& all = once<run_interplay>(evidence);
  return *std::find_if(all.begin(), all.end(), [&](const ValueCurves& each) { return each.value == name; });
}
std::vector<double> gained(const Evidence& evidence, const char* group, const char* mask) {
  std::vector<double> more = find(value_of(evidence, kNormalized).curves, group, mask).rate.samples;
  const std::vector<double>& plain = find(value_of(evidence, kGaussian).curves, group, mask).rate.samples;
  for (std::size_t s = 0; s < more.size(); ++s) more[s] -= plain[s];
  return more;
}
// Masks under which it keeps more beyond doubt, or less.
std::string masks_where(const Evidence& evidence, const char* group, bool more) {
  std::string names;
  for (const char* mask : kInterplayMasks) {
    const Interval gain = mean_interval(gained(evidence, group, mask), level_of(evidence));
    if ((more ? above(gain, 0) : below(gain, 0)) == true) append(names, mask);
  }
  return names;
}
std::string effect_of_weight_norm(const Evidence& evidence, const char* group) {
  const std::string more = masks_where(evidence, group, true), less = masks_where(evidence, group, false);
  std::string text;
  if (!more.empty()) append(text, "slows collapse under " + more);
  if (!less.empty()) append(text, "speeds it under " + less);
  return text.empty() ? "makes no difference that these samples show" : text;
}

Claim weight_norm() {
  const auto effect = [](const char* group) {
    return [=](const Evidence& evidence) { return effect_of_weight_norm(evidence, group); };
  };
  // Gains beside LayerNorm less those without it: what the two do together that neither does alone.
  const auto together = [](const Evidence& evidence) {
    std::string text;
    for (const char* mask : kInterplayMasks)
      append(text,
             fmt::format("{} {}", mask,
                         with_interval(mean_difference(gained(evidence, kWithout, mask),
                                                       gained(evidence, kWith, mask), level_of(evidence)))));
    return text;
  };
  const auto gains = [](const char* group) {
    return [=](const Evidence& evidence) {
      std::string text;
      for (const char* mask : kInterplayMasks)
        append(text,
               fmt::format("{} {}", mask,
                           with_interval(mean_interval(gained(evidence, group, mask), level_of(evidence)))));
      return text;
    };
  };
  return {
      .where = "Wu, future work",
      .sentence = "Does weight normalization change collapse, and is it the same beside LayerNorm?",
      .published = "asked: how LayerNorm interplays with weight normalization",
      .measured = written(
          "share of μ/‖X‖ kept per layer, with weight norm less without: {} (no norm); {} (with norm)",
          gains(kWithout), gains(kWith)),
      .why = written(
          "{}, each with Gaussian weights of its own, of which every unit has norm 1, or not. Gains beside the norm less those without it: {}.",
          of([](const Evidence& evidence) { return once<run_interplay>(evidence).front().curves; },
             samples_count),
          together),
      .asks = {{at_least([](const Evidence& evidence) { return evidence.plan.samples; }, 2),
                " One sample has no interval."}},
      .answer = written("without a norm it {}; with one it {}", effect(kWithout), effect(kWith)),
      .topic = "collapse"};
}

Findings shown(const Evidence& evidence) {
  ReportTable bounds{"Theorems 1 and 2 and Corollary 1: layers and samples beyond the bound",
                     {{"value matrix", "mask", "radius", "Thm 1", "Thm 2, r the radius",
                       "Thm 2, r the diameter", "Cor. 1"}}};
  bounds.note = "–: the run does not meet what the theorem asks.";
  ReportTable ends{fmt::format("μ/‖X‖ after {} layers over that at the start", kDepth), {{"value matrix"}}};
  for (const char* group : {kWithout, kWith}) {
    for (const char* mask : {"full", "causal", "window:1", "star"})
      ends.rows.front().push_back(fmt::format("{}, {}", mask, group));
  }
  for (const ValueCurves& value : once<run>(evidence)) {
    for (const char* mask : kFamilies) {
      const CollapseTheory &without = find(value.curves, kWithout, mask).theory,
                           &with = find(value.curves, kWith, mask).theory;
      const auto count = [](const std::vector<double>& bound, std::size_t beyond) {
        return bound.empty() ? std::string("–") : std::to_string(beyond);
      };
      bounds.rows.push_back({value.value, mask, without.radius > 0 ? std::to_string(without.radius) : "none",
                             count(without.bound1, without.violations1),
                             count(with.bound2_radius, with.violations2_radius),
                             count(with.bound2_diameter, with.violations2_diameter),
                             count(with.bound_corollary, with.violations_corollary)});
    }
  }
  for (const ValueCurves& value : once<run_anywhere>(evidence)) {
    std::vector<std::string>& row = ends.rows.emplace_back();
    row.push_back(value.value);
    for (const char* group : {kWithout, kWith}) {
      for (const char* mask : {"full", "causal", "window:1", "star"})
        row.push_back(with_interval(left(evidence, value, group, mask)));
    }
  }
  Curves causal;
  for (const ValueCurves& value : once<run_anywhere>(evidence)) {
    for (const char* group : {kWithout, kWith}) {
      causal.push_back(find(value.curves, group, "causal"));
      causal.back().group = fmt::format("causal, {}", group);
      causal.back().name = value.value;
    }
  }
  return {.figures = {curve_figure(causal, &TokenMeasures::relative, "theorems",
                                   "Value matrices and collapse: μ/‖X‖ by layer", false,
                                   fmt::format("{} tokens in {} dimensions, one head, float64, {}.",
                                               kFewTokens, kFewDimensions, samples_count(causal)))},
          .tables = {bounds, ends}};
}

}  // namespace

Exhibit wu_theorems() {
  return {{never_beyond("Wu Thm 1", "Without LayerNorm μ falls at least as (1 − ε^r)^{t/r}, r the radius",
                        "μ ≤ C(1 − ε^r)^{t/r} under quasi-strongly connected masks", theorem1),
           theorem2(),
           never_beyond(
               "Wu Cor. 1",
               "With LayerNorm and no obtuse angle at the start 1 − φ falls by 1 − ε^{2r} in every r layers",
               "μ ≤ C(1 − ε^{2r})^{t/2r} under quasi-strongly connected masks", corollary1),
           other_values(), weight_norm()},
          shown};
}

}  // namespace normscope
