#include "paper/wu_equilibria.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/number_text.h"
#include "normscope/random.h"
#include "normscope/statistics.h"
#include "paper/part.h"
#include "report/equilibria_page.h"

namespace normscope {
namespace {

using Start = std::array<double, 4>;

constexpr double kPi = std::numbers::pi;
constexpr std::size_t kCollapseLayers = 100;  // without LayerNorm the distance halves in every layer

Start circle_start(double one, double two) {
  return {std::cos(one), std::sin(one), std::cos(two), std::sin(two)};
}

Start random_start(std::uint64_t seed, std::uint64_t stream) {
  Random random(seed, stream);
  const double one = 2 * kPi * random.uniform();
  return circle_start(one, 2 * kPi * random.uniform());
}

double distance(const Start& tokens) {
  return std::hypot(tokens[2] - tokens[0], tokens[3] - tokens[1]);
}

// Largest distance of the tokens after the layers, over random starts, as a share of the norm of token 1 if
// that has grown.
double largest_distance(double w, const WuSettings& settings) {
  double largest = 0;
  for (std::size_t s = 0; s < settings.starts; ++s) {
    const Start end = token_path(w, random_start(settings.seed, s), kCollapseLayers, false).steps.back();
    largest = std::max(largest, distance(end) / std::max(1.0, std::hypot(end[0], end[1])));
  }
  return largest;
}

FinalRanks coupled(const WuSettings& settings, double w, const Executor& executor) {
  return final_ranks({2, 2, w, settings.starts, settings.layers, settings.seed}, executor);
}

std::string with_brackets(const Interval& share) {
  return fmt::format("{} [{}, {}]", percent(share.mean, 2), fixed(100 * share.low, 2),
                     fixed(100 * share.high, 2));
}

Claim first_token_claim(const WuSettings& settings) {
  Claim claim = claim_of("Wu Fig. 5", "Token 1 goes to (0, 1) or (0, −1)", "every start");
  constexpr std::size_t layers = 300;
  constexpr double near = 0.02;
  // The starts are the same at every w, so that each is one trial: whether it arrived at all of them.
  std::size_t arrived = 0;
  for (std::size_t s = 0; s < settings.starts; ++s) {
    arrived += std::all_of(settings.all_w.begin(), settings.all_w.end(), [&](double w) {
      Start tokens = random_start(settings.seed, s);
      for (std::size_t layer = 0; layer < layers; ++layer) equilibrium_layer(w, {tokens.data(), 1, 2});
      return std::fabs(tokens[0]) < near;
    });
  }
  const Interval share = share_interval(arrived, settings.starts);
  claim.measured = fmt::format("{} of {} starts within {:g} after {} layers at each of {} w",
                               with_brackets(share), share.count, near, layers, settings.all_w.size());
  claim.holds = above(share, 0.99) == true ? Holds::yes : Holds::no;
  claim.why =
      "Token 1 sees itself only: (x, y) becomes a multiple of (x, y + wtx), at a distance of about "
      "1/(wt). Those that are not there yet start near the other end and are on their way round.";
  return claim;
}

Claim arcs_claim(const WuSettings& settings, const Executor& executor) {
  Claim claim;
  claim.where = "Wu Fig. 5";
  claim.claim = "With token 1 at (0, 1), token 2 goes to B from the arc A → (−1, 0) → B → (0, −1)";
  std::size_t mismatches = 0, singular = 0;
  double furthest = 0;
  for (const double w : settings.all_w) {
    const ArcBasin basin = arc_basin(w, settings.angles, executor);
    mismatches += basin.mismatches;
    singular += basin.zero_rows;
    furthest = std::max(furthest, std::fabs(basin.share - basin.formula));
    append(claim.published, fmt::format("{} (w {:g})", percent(basin.formula, 2), w));
    append(claim.measured, percent(basin.share, 2));
  }
  claim.published = "½ − arcsin(1/w)/2π of the circle: " + claim.published;
  claim.holds = mismatches == 0 ? Holds::yes : Holds::no;
  claim.why = fmt::format(
      "{} mismatches over {} angles at each of {} w; shares differ by at most {:.1e}. (0, −1) itself "
      "is singular: the rows cancel. {} of the angles met it.",
      mismatches, settings.angles, settings.all_w.size(), furthest, singular);
  return claim;
}

Claim coupled_claim(const WuSettings& settings, const Executor& executor) {
  Claim claim;
  claim.where = "Wu Fig. 5";
  claim.claim = "Tokens stay apart from starts of that share";
  std::size_t unsettled = 0;
  Answer less = true, apart = true;
  for (const double w : settings.all_w) {
    const FinalRanks ranks = coupled(settings, w, executor);
    const Interval share = share_interval(ranks.ranks[2], ranks.starts);
    unsettled += ranks.unsettled + ranks.zero_rows;
    less = all_of({less, below(share, arc_share(w))});
    apart = all_of({apart, above(share, 0)});
    append(claim.published, fmt::format("{:.1f} % (w {:g})", 100 * arc_share(w), w));
    append(claim.measured, with_brackets(share));
  }
  claim.holds = less == true ? Holds::conditionally : apart == true ? Holds::yes : Holds::open;
  claim.condition = "token 1 has converged before token 2 moves, as the figure draws it";
  claim.why = fmt::format(
      "{} random starts of both tokens at each w, {} layers, {} not settled or singular; 95 % "
      "intervals. Token 1 needs about 1/(wt), and beside a token 1 on its way the arc that leads to B "
      "is smaller.",
      settings.starts, settings.layers, unsettled);
  return claim;
}

// Starts of Fig. 1, in degrees: token 2 is in the arc of B; the last collapses all the same.
constexpr std::pair<double, double> kShown[] = {{85, 200}, {60, 230}, {20, 215}};

PhaseFigure::Path path_of(const TokenPath& path, std::size_t token, const std::string& name) {
  constexpr std::size_t shown = 40;
  PhaseFigure::Path result{.name = name, .x = {}, .y = {}, .hint = ""};
  for (std::size_t i = 0; i < std::min(path.steps.size(), shown); ++i) {
    result.x.push_back(path.steps[i][2 * token]);
    result.y.push_back(path.steps[i][2 * token + 1]);
  }
  return result;
}

PhaseFigure::Panel fig1_panel(const std::string& title, double w, bool scale) {
  PhaseFigure::Panel panel;
  panel.title = title;
  panel.inwards = scale;
  for (const auto& [one, two] : kShown) {
    const TokenPath path = token_path(w, circle_start(one * kPi / 180, two * kPi / 180), 1000, scale);
    panel.paths.push_back(path_of(path, 0, "token 1"));
    panel.paths.push_back(path_of(path, 1, scale ? phase_name(path.fate) : "token 2, without LayerNorm"));
    panel.paths.back().hint = "token 2";
  }
  return panel;
}

}  // namespace

std::vector<Claim> claims_of_wu1(const WuSettings& settings, const Executor& executor) {
  Claim without =
      claim_of("Wu Fig. 1", "Without LayerNorm both tokens collapse to the same point", "picture");
  const double identity = largest_distance(0, settings), jordan = largest_distance(settings.w, settings);
  without.measured = fmt::format(
      "largest distance after {} layers: {:.1e} with W_V = I, {:.1e} of the norm of token 1 with w = {:g}",
      kCollapseLayers, identity, jordan, settings.w);
  without.holds = identity < 1e-9 && jordan < 1e-9 ? Holds::yes : Holds::no;
  without.why = fmt::format(
      "{} random starts on the circle. With W_V = I the point is where token 1 starts; with the Jordan "
      "block the tokens run away together, since its powers grow.",
      settings.starts);
  Claim with =
      claim_of("Wu Fig. 1", "With LayerNorm they need not: token 1 goes to (0, ±1), token 2 to B", "picture");
  const FinalRanks ranks = coupled(settings, settings.w, executor);
  const Interval share = share_interval(ranks.ranks[2], ranks.starts);
  with.measured = fmt::format("{} of random starts stay apart, w = {:g}", with_brackets(share), settings.w);
  with.holds = above(share, 0) == true ? Holds::yes : Holds::open;
  with.why = fmt::format(
      "{} starts, {} layers, {} not settled, {} with a zero row. Most starts collapse all the same.",
      ranks.starts, settings.layers, ranks.unsettled, ranks.zero_rows);
  return {without, with};
}

Figure wu1_figure(const WuSettings& settings, const Executor&) {
  PhaseFigure figure;
  figure.order = phase_order();
  figure.panels = {
      fig1_panel("Without LayerNorm, W_V = I", 0, false),
      fig1_panel(fmt::format("With LayerNorm, w = {:g}: layers run inwards", settings.w), settings.w, true)};
  for (const FixedPoint& point : fixed_points(settings.w)) {
    if (point.kind == PointKind::attracting) {
      figure.panels[1].marks.push_back({PhaseFigure::MarkKind::attracting, point.x, point.y,
                                        std::string(1, point.name),
                                        fmt::format("multiplier {:.4f}", point.multiplier)});
    }
  }
  figure.caption = "Large dots are starts, the same in both panels.";
  return {"wu1", "Two tokens without and with LayerNorm", "After Wu et al. (2024), Fig. 1.",
          phase_svg(figure), phase_csv(figure)};
}

std::vector<Claim> claims_of_wu5(const WuSettings& settings, const Executor& executor) {
  return {first_token_claim(settings), arcs_claim(settings, executor), coupled_claim(settings, executor)};
}

Figure wu5_figure(const WuSettings& settings, const Executor& executor) {
  EquilibriaRun run;
  run.starts = settings.starts;
  run.layers = settings.layers;
  run.cells = settings.cells;
  run.provenance = provenance(settings.seed, executor.threads());
  EquilibriaRun::Weight weight;
  weight.w = settings.w;
  weight.arc = arc_basin(settings.w, settings.angles, executor);
  weight.coupled = weight.ranks = coupled(settings, settings.w, executor);
  weight.map = coupled_map(settings.w, settings.cells, settings.layers, executor);
  for (const auto& [one, two] : kShown)
    weight.paths.push_back(token_path(settings.w, circle_start(one * kPi / 180, two * kPi / 180), 1000));
  const PhaseFigure figure = phase_figure(run, weight);
  return {"wu5", fmt::format("Phase portrait of two tokens, w = {:g}", settings.w),
          "After Wu et al. (2024), Fig. 5.", phase_svg(figure), phase_csv(figure)};
}

std::vector<Claim> claims_of_wu_theorem3(const WuSettings&, const Executor& executor) {
  constexpr std::size_t most = 6;
  Claim count, bound, stable;
  count.where = bound.where = stable.where = "Wu Thm 3";
  count.claim = "Equilibria of every rank k up to min(N, d), 2ᵏ of them for w ≥ N";
  count.published = "2ᵏ";
  bound.claim = "Their stable rank is at most N/(N − (N−1)/w²)";
  bound.published = "N/(N − (N−1)/w²)";
  stable.claim = "Which full-rank equilibria are linearly stable?";
  stable.published = "not said";
  std::size_t wrong = 0, built = 0, full = 0, exceeded = 0, exceeded_full = 0, exceeded_own = 0, cases = 0;
  double largest_residual = 0;
  for (std::size_t n = 1; n <= most; ++n) {
    for (std::size_t d = 1; d <= most; ++d) {
      for (const double factor : {1.0, 1.5, 4.0}) {
        const double w = factor * static_cast<double>(std::max<std::size_t>(n, 2));
        for (const RankSummary& rank : equilibria_by_rank(n, d, w, executor)) {
          ++cases;
          built += rank.count;
          wrong += rank.count != std::uint64_t{1} << rank.rank || !(rank.residual < 1e-14) ||
                   rank.least_rank != rank.rank || rank.largest_rank != rank.rank;
          largest_residual = std::max(largest_residual, rank.residual);
          const bool above = rank.stable_rank > rank.published_bound * (1 + 1e-12);
          exceeded += above;
          exceeded_full += above && rank.rank == n;
          full += rank.rank == n;
          exceeded_own += rank.stable_rank > rank.own_bound * (1 + 1e-12);
        }
      }
    }
  }
  count.measured = fmt::format(
      "{} equilibria built for N, d ≤ {} at w = N, 1.5N, 4N: largest residual {:.1e}, {} ranks or "
      "counts wrong",
      built, most, largest_residual, wrong);
  count.holds = wrong == 0 ? Holds::yes : Holds::no;
  count.why =
      "With m = N − k + 1 equal tokens the next one needs −m/w where the others have −1/w, hence m ≤ "
      "w; m < w is enough for 2ᵏ.";
  bound.measured = fmt::format("exceeded in {} of {} cases (N, d, w, k), {} of the {} with full rank",
                               exceeded, cases, exceeded_full, full);
  bound.holds = exceeded == 0 ? Holds::yes : exceeded_full == 0 ? Holds::conditionally : Holds::no;
  bound.condition = "the rank is full (k = N) or 1";
  bound.why = fmt::format(
      "‖X‖₂ ≥ ‖Xe_d‖ proves it for k = N and gives N/(N − (m² + k − 2)/w²) otherwise, exceeded in {} "
      "cases. The least: N = 3, k = 2, w = 3 has SRank 1.125, the published bound is 1.08.",
      exceeded_own);
  std::string answer;
  for (std::size_t n = 2; n <= most; ++n) {
    std::uint64_t found = 0;
    double least = INFINITY;
    std::vector<int> signs;
    for (const double w : {1.1, 2.0, 6.0, 30.0}) {
      const RankSummary rank = equilibria_by_rank(n, n, w, executor).back();
      found = std::max(found, rank.stable);
      if (rank.least_radius < least) {
        least = rank.least_radius;
        signs = rank.least_signs;
      }
    }
    std::string shown;
    for (const int sign : signs) append(shown, sign > 0 ? "+" : "−");
    if (found > 0) append(answer, fmt::format("({}) for N = {}", shown, n));
    append(stable.measured, fmt::format("N = {}: {} (least radius {:.3f} at ({}))", n, found, least, shown));
  }
  stable.holds = Holds::answered;
  stable.condition = answer.empty() ? "none" : "only " + answer + ", and their negatives";
  stable.why = fmt::format(
      "Spectral radius of a layer's derivative on the product of spheres at w = 1.1, 2, 6, 30, d = N, "
      "without the marginal eigenvalues 1 of the Jordan block. N up to {}.",
      most);
  return {count, bound, stable};
}

Findings wu_fig1(const Evidence& evidence) {
  WuSettings settings;
  settings.seed = evidence.plan.seed;
  return {claims_of_wu1(settings, evidence.executor), {wu1_figure(settings, evidence.executor)}};
}

Findings wu_fig5(const Evidence& evidence) {
  WuSettings settings;
  settings.seed = evidence.plan.seed;
  Findings found{claims_of_wu5(settings, evidence.executor), {wu5_figure(settings, evidence.executor)}};
  found.add({claims_of_wu_theorem3(settings, evidence.executor)});
  return found;
}

}  // namespace normscope
