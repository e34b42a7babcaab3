#include "collapse/theory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace normscope {
namespace {

bool orthogonal(const MatrixInit& init) {
  using Kind = MatrixInit::Kind;
  return init.kind == Kind::orthogonal || init.kind == Kind::identity || init.kind == Kind::zero
             ? init.kind != Kind::zero
             : init.kind == Kind::given && is_orthogonal(init.given.view());
}

bool scaling_only(const NormSpec& norm) {
  return norm.projection == Projection::none && !norm.affine && norm.eps == 0 &&
         (norm.scaling == Scaling::unit || norm.scaling == Scaling::root_dimension ||
          norm.scaling == Scaling::inverse_root_dimension);
}

bool no_norm(const NormSpec& norm) {
  return norm.projection == Projection::none && norm.scaling == Scaling::none;
}

// The same weights in every head: one matrix A, as the theorems have it.
bool one_attention(const CollapseCase& each, const CollapseSettings& settings) {
  return each.block.heads == 1 ||
         (!settings.model && settings.weights.query_key.kind == MatrixInit::Kind::zero);
}

std::vector<Assumption> common_assumptions(const CollapseCase& each, const CollapseSettings& settings,
                                           const MaskProperties& mask) {
  const BlockSpec& block = each.block;
  std::vector<Assumption> result = {
      {"attention only, without skip and feed-forward", !block.skip && block.feed_forward == 0, ""},
      {"one attention matrix per layer", one_attention(each, settings),
       block.heads == 1 ? "one head" : fmt::format("{} heads", block.heads)},
      {"no dropout", block.dropout == 0, ""},
      {"self-loops", mask.self_loops == mask.n, fmt::format("{} of {} tokens", mask.self_loops, mask.n)}};
  if (block.step != 1) result.push_back({"whole layers", false, fmt::format("steps of {}", block.step)});
  if (block.query_width() != block.width || block.key_width() != block.width) {
    result.push_back(
        {"square value matrices", false, fmt::format("{} x {}", block.width, block.key_width())});
  }
  return result;
}

bool all_met(const std::vector<Assumption>& assumptions) {
  return std::all_of(assumptions.begin(), assumptions.end(), [](const Assumption& each) { return each.met; });
}

Assumption quasi_strongly(const MaskProperties& mask) {
  return {"quasi-strongly connected", mask.quasi_strongly_connected(),
          mask.radius ? fmt::format("{} centre{}, radius {}", mask.centres.size(),
                                    mask.centres.size() == 1 ? "" : "s", *mask.radius)
                      : "no centre"};
}

std::vector<Assumption> of_theorem1(const CollapseCase& each, const CollapseSettings& settings,
                                    const MaskProperties& mask) {
  auto result = common_assumptions(each, settings, mask);
  result.push_back({"no norm", no_norm(each.block.norm), name_of(each.block.norm)});
  result.push_back(quasi_strongly(mask));
  return result;
}

std::vector<Assumption> with_norm(const CollapseCase& each, const CollapseSettings& settings,
                                  const MaskProperties& mask) {
  auto result = common_assumptions(each, settings, mask);
  result.push_back({"norm that only scales",
                    scaling_only(each.block.norm) && each.block.placement == Placement::post,
                    name_of(each.block.norm)});
  if (settings.model) {
    result.push_back({"orthogonal value matrices", false, "those of a model"});
    return result;
  }
  result.push_back({"orthogonal value matrices",
                    orthogonal(settings.weights.value) && orthogonal(settings.weights.output),
                    fmt::format("value {}, output {}", name_of(settings.weights.value),
                                name_of(settings.weights.output))});
  return result;
}

// (1 − x)^k without losing digits where x is small.
double decay(double x, std::size_t k) {
  return x >= 1 ? (k > 0 ? 0 : 1) : std::exp(static_cast<double>(k) * std::log1p(-std::max(0.0, x)));
}

}  // namespace

template <class T>
double oscillation(MatrixView<const T> x) {
  double sum = 0;
  for (std::size_t j = 0; j < x.cols; ++j) {
    double low = static_cast<double>(x(0, j)), high = low;
    for (std::size_t i = 1; i < x.rows; ++i) {
      low = std::min(low, static_cast<double>(x(i, j)));
      high = std::max(high, static_cast<double>(x(i, j)));
    }
    sum += (high - low) * (high - low);
  }
  return std::sqrt(sum);
}
template double oscillation<float>(MatrixView<const float>);
template double oscillation<double>(MatrixView<const double>);

template <class T>
bool equal_norms(MatrixView<const T> x) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (std::size_t i = 0; i < x.rows; ++i) {
    double square = 0;
    for (const T value : x[i]) square += static_cast<double>(value) * static_cast<double>(value);
    low = std::min(low, square);
    high = std::max(high, square);
  }
  return low > 0 && high - low <= 1e-5 * high;
}
template bool equal_norms<float>(MatrixView<const float>);
template bool equal_norms<double>(MatrixView<const double>);

CaseFacts facts_of(const CollapseCase& each, const CollapseSettings& settings) {
  CaseFacts facts;
  facts.mask = mask_properties(each.mask);
  if (!settings.theory) return facts;
  facts.theorem1 = all_met(of_theorem1(each, settings, facts.mask));
  const bool norm = all_met(with_norm(each, settings, facts.mask));
  facts.corollary1 = norm && facts.mask.quasi_strongly_connected();
  facts.theorem2 = norm && facts.mask.strongly_connected() && settings.tokens <= each.block.width;
  return facts;
}

CollapseTheory theory_of(const CollapseCase& each, const CollapseSettings& settings, const CaseFacts& facts,
                         const CollapseCurve& curve, std::span<const SampleTrace> traces) {
  CollapseTheory theory;
  const MaskProperties& mask = facts.mask;
  const std::size_t samples = traces.size(), layers = curve.layers.size() - 1;
  const auto n = static_cast<double>(mask.n);
  double least_cosine = 1, least_rank = 1;
  bool on_sphere = true;
  theory.epsilon = 1;
  for (std::size_t s = 0; s < samples; ++s) {
    least_cosine = std::min(least_cosine, curve.layers[0][s].min_cosine);
    if (!(curve.layers[0][s].rank_share >= 1)) least_rank = 0;
    on_sphere = on_sphere && traces[s].equal_norms;
    for (const double weight : traces[s].least_weight) theory.epsilon = std::min(theory.epsilon, weight);
  }
  theory.radius = mask.radius.value_or(0);
  theory.diameter = mask.diameter.value_or(0);
  theory.theorem1 = of_theorem1(each, settings, mask);
  theory.theorem1.push_back(
      {"bounded weights", theory.epsilon > 0, fmt::format("least attention weight {:.3g}", theory.epsilon)});
  theory.corollary1 = with_norm(each, settings, mask);
  theory.corollary1.push_back({"tokens of one norm at the start", on_sphere, ""});
  theory.theorem2 = theory.corollary1;
  theory.corollary1.push_back(quasi_strongly(mask));
  theory.corollary1.push_back(
      {"no obtuse angles at the start", least_cosine >= 0, fmt::format("φ = {:.3g}", least_cosine)});
  theory.theorem2.push_back(
      {"strongly connected", mask.strongly_connected(), fmt::format("{} components", mask.components)});
  theory.theorem2.push_back({"no more tokens than dimensions", settings.tokens <= each.block.width, ""});
  theory.theorem2.push_back({"full rank at the start", least_rank >= 1,
                             settings.spectrum == Spectrum::yes ? "" : "needs the singular values"});

  // In one token all are equal; radius 0 then, and nothing to bound.
  const std::size_t radius = std::max<std::size_t>(1, theory.radius),
                    diameter = std::max<std::size_t>(1, theory.diameter);
  const double rounding = settings.precision == Precision::float32 ? 1e-5 : 1e-12;
  // A weight that underflowed to 0 bounds nothing.
  const bool theorem1 = facts.theorem1 && theory.epsilon > 0;
  const bool corollary = facts.corollary1 && theory.epsilon > 0 && on_sphere && least_cosine >= 0;
  const bool theorem2 = facts.theorem2 && theory.epsilon > 0 && on_sphere;
  if (theorem1) theory.bound1.assign(layers + 1, 0);
  if (corollary) theory.bound_corollary.assign(layers + 1, 0);
  if (theorem2) theory.bound2_diameter = theory.bound2_radius = std::vector<double>(layers + 1, 0);
  const auto share = 1 / static_cast<double>(samples);
  for (std::size_t s = 0; s < samples; ++s) {
    double epsilon = 1;
    const auto distance = [&](std::size_t t) { return 1 - curve.layers[t][s].min_cosine; };
    // 1 − φ falls by (1 − rate) in every r layers from layer `first` on, where no angle is obtuse any more.
    const auto compare = [&](std::vector<double>& bounds, std::size_t& violations, std::size_t first,
                             std::size_t t, std::size_t r, double rate) {
      const double bound = decay(rate, (t - first) / r) * distance(first);
      bounds[t] += share * std::sqrt(std::max(0.0, (n - 1) / n * bound));
      violations += distance(t) > bound * (1 + rounding) + rounding;
    };
    std::size_t acute = 0;
    while (acute <= layers && curve.layers[acute][s].min_cosine < 0) ++acute;
    for (std::size_t t = 0; t <= layers; ++t) {
      if (t > 0) epsilon = std::min(epsilon, traces[s].least_weight[t - 1]);
      const auto power = [&](std::size_t exponent) {
        return std::pow(epsilon, static_cast<double>(exponent));
      };
      if (theorem1) {
        const TokenMeasures& measured = curve.layers[t][s];
        const double bound = std::sqrt(n) / 2 * decay(power(radius), t / radius) * traces[s].oscillation[t];
        theory.bound1[t] += share * bound;
        theory.violations1 += measured.mu > bound * (1 + rounding) + rounding * measured.norm;
      }
      if (corollary)
        compare(theory.bound_corollary, theory.violations_corollary, 0, t, radius, power(2 * radius));
      if (!theorem2) continue;
      if (t < acute) {
        theory.bound2_diameter[t] += share;
        theory.bound2_radius[t] += share;
        continue;
      }
      compare(theory.bound2_diameter, theory.violations2_diameter, acute, t, diameter,
              n * power(2 * diameter));
      compare(theory.bound2_radius, theory.violations2_radius, acute, t, radius, n * power(2 * radius));
    }
  }
  return theory;
}

}  // namespace normscope
