// Fig. 5 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: the phase portrait of N = 2, d = 2.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/number_text.h"
#include "paper/part.h"
#include "report/equilibria_page.h"

namespace normscope {
namespace {

constexpr std::size_t kFirstLayers = 300;  // in which token 1 arrives
constexpr double kNear = 0.02;

// The starts are the same at every w, so that each is one trial: whether it arrived at all of them.
struct Arrival {
  std::size_t starts = 0;
  double furthest = 0;  // from the line of the ends, of those that did not arrive
};
Arrival arrival(const Evidence& evidence) {
  const WuSettings& settings = evidence.dynamics;
  Arrival found;
  for (std::size_t s = 0; s < settings.starts; ++s) {
    const bool arrived = std::all_of(settings.all_w.begin(), settings.all_w.end(), [&](double w) {
      TokenPair tokens = random_start(evidence.plan.seed, s);
      for (std::size_t layer = 0; layer < kFirstLayers; ++layer) equilibrium_layer(w, {tokens.data(), 1, 2});
      return std::fabs(tokens[0]) < kNear;
    });
    found.starts += arrived;
    if (!arrived)
      found.furthest = std::max(found.furthest, std::fabs(random_start(evidence.plan.seed, s)[0]));
  }
  return found;
}
Interval arrived(const Evidence& evidence) {
  return share_interval(once<arrival>(evidence).starts, evidence.dynamics.starts, level_of(evidence));
}

struct AtWeight {
  double w = 0;
  ArcBasin arc;
  FinalRanks ranks;
};
std::vector<AtWeight> at_all_w(const Evidence& evidence) {
  std::vector<AtWeight> all;
  for (const double w : evidence.dynamics.all_w)
    all.push_back({w, arc_basin(w, evidence.dynamics.angles, evidence.executor), coupled(evidence, w)});
  return all;
}

double furthest_from_formula(const Evidence& evidence) {
  double furthest = 0;
  for (const AtWeight& each : once<at_all_w>(evidence))
    furthest = std::max(furthest, std::fabs(each.arc.share - each.arc.formula));
  return furthest;
}

// Over all w.
Text listed(std::function<std::string(const Evidence&, const AtWeight&)> text) {
  return [=](const Evidence& evidence) {
    std::string all;
    for (const AtWeight& each : once<at_all_w>(evidence)) append(all, text(evidence, each));
    return all;
  };
}
auto summed(std::size_t (*count)(const AtWeight&)) {
  return [=](const Evidence& evidence) {
    std::size_t sum = 0;
    for (const AtWeight& each : once<at_all_w>(evidence)) sum += count(each);
    return sum;
  };
}
Condition at_each(Answer (*holds)(const Evidence&, const AtWeight&)) {
  return [=](const Evidence& evidence) {
    return all_of(once<at_all_w>(evidence), [&](const AtWeight& each) { return holds(evidence, each); });
  };
}
// The share that stays apart over the arc's, at a w.
Interval over_arc(const Evidence& evidence, const AtWeight& each) {
  Interval share = apart(each.ranks, level_of(evidence));
  for (double* end : {&share.mean, &share.low, &share.high}) *end /= arc_share(each.w);
  return share;
}
std::size_t weights(const Evidence& evidence) {
  return evidence.dynamics.all_w.size();
}

Claim first_token() {
  constexpr Threshold nearly_all{
      0.99, "all but those that start beside the other end, and are on their way round", 1};
  return {
      .where = "Wu Fig. 5",
      .sentence = "Token 1 goes to (0, 1) or (0, −1)",
      .published = "every start",
      .measured =
          written("{} of {} starts within {:g} after {} layers at each of {} w", of(arrived, with_brackets),
                  of(dynamics, &WuSettings::starts), kNear, kFirstLayers, weights),
      .why =
          "Token 1 sees itself only: (x, y) becomes a multiple of (x, y + wtx), at a distance of about 1/(wt)." +
          when([](const Evidence& evidence)
                   -> Answer { return once<arrival>(evidence).starts < evidence.dynamics.starts; },
               written(" Those that are not there yet start with |x| ≤ {:.2g}.",
                       of(once<arrival>, &Arrival::furthest))),
      .holds = above(arrived, nearly_all, "share of starts that arrive"),
      .topic = "dynamics"};
}

Claim arcs() {
  const auto mismatches = summed([](const AtWeight& each) { return each.arc.mismatches; });
  return {
      .where = "Wu Fig. 5",
      .sentence = "With token 1 at (0, 1), token 2 goes to B from the arc A → (−1, 0) → B → (0, −1)",
      .published = "½ − arcsin(1/w)/2π of the circle: " + listed([](const Evidence&, const AtWeight& each) {
                     return fmt::format("{} (w {:g})", percent(each.arc.formula, 2), each.w);
                   }),
      .measured = listed([](const Evidence&, const AtWeight& each) { return percent(each.arc.share, 2); }),
      .why = written(
          "{} mismatches over {} angles at each of {} w; shares differ by at most {:.1e}. (0, −1) itself is singular: the rows cancel. {} of the angles met it.",
          mismatches, of(dynamics, &WuSettings::angles), weights, furthest_from_formula,
          summed([](const AtWeight& each) { return each.arc.zero_rows; })),
      .holds = at_most(mismatches, 0, "angles that end elsewhere"),
      .topic = "dynamics"};
}

Claim both_tokens() {
  const Condition less = at_each([](const Evidence& evidence, const AtWeight& each) {
    return below(evidence, over_arc(evidence, each), 1,
                 {fmt::format("w {:g}: share that stays apart over the arc's", each.w), "×", 1});
  });
  const Condition as_many = at_each([](const Evidence& evidence, const AtWeight& each) {
    constexpr Threshold nearly{0.95, "a twentieth of the share: what the figure's arcs can be read to", 1};
    return at_least(evidence, over_arc(evidence, each), nearly,
                    {fmt::format("w {:g}: share that stays apart over the arc's", each.w), "×", 1});
  });
  return {
      .where = "Wu Fig. 5",
      .sentence = "Tokens stay apart from starts of that share",
      .published = listed([](const Evidence&, const AtWeight& each) {
        return fmt::format("{:.1f} % (w {:g})", 100 * arc_share(each.w), each.w);
      }),
      .measured = listed([](const Evidence& evidence, const AtWeight& each) {
        return with_brackets(apart(each.ranks, level_of(evidence)));
      }),
      .why =
          written("{} random starts of both tokens at each w, {} layers, {} not settled or singular.",
                  of(dynamics, &WuSettings::starts), of(dynamics, &WuSettings::layers),
                  summed([](const AtWeight& each) { return each.ranks.unsettled + each.ranks.zero_rows; })) +
          when(
              less,
              " Token 1 needs about 1/(wt), and beside a token 1 on its way fewer starts of token 2 lead to B."),
      .holds = as_many,
      .holds_if = {{less, "token 1 has converged before token 2 moves, as the figure draws it"}},
      .topic = "dynamics"};
}

Findings shown(const Evidence& evidence) {
  const WuSettings& settings = evidence.dynamics;
  EquilibriaRun run;
  run.starts = settings.starts;
  run.layers = settings.layers;
  run.cells = settings.cells;
  run.provenance = provenance(evidence.plan.seed, evidence.executor.threads());
  EquilibriaRun::Weight weight;
  weight.w = settings.w;
  weight.arc = arc_basin(settings.w, settings.angles, evidence.executor);
  weight.coupled = weight.ranks = coupled(evidence, settings.w);
  weight.map = coupled_map(settings.w, settings.cells, settings.layers, evidence.executor);
  for (const TokenPair& start : shown_starts()) weight.paths.push_back(token_path(settings.w, start, 1000));
  const PhaseFigure figure = phase_figure(run, weight);
  return {.figures = {{"wu5", fmt::format("Phase portrait of two tokens, w = {:g}", settings.w),
                       "After Wu et al. (2024), Fig. 5.", phase_svg(figure), phase_csv(figure)}}};
}

}  // namespace

Exhibit wu_fig5() {
  return {{first_token(), arcs(), both_tokens()}, shown};
}

}  // namespace normscope
