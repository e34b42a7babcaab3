// Fig. 1 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: without LayerNorm two tokens collapse, with it they need
// not.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "paper/part.h"
#include "report/equilibria_page.h"

namespace normscope {
namespace {

constexpr std::size_t kCollapseLayers = 100;  // without LayerNorm the distance halves in every layer

// Largest distance of the tokens after the layers, over random starts, as a share of the norm of token 1 if
// that has grown.
double largest_distance(const Evidence& evidence, double w) {
  double largest = 0;
  for (std::size_t s = 0; s < evidence.dynamics.starts; ++s) {
    const TokenPair end =
        token_path(w, random_start(evidence.plan.seed, s), kCollapseLayers, false).steps.back();
    const double distance = std::hypot(end[2] - end[0], end[3] - end[1]);
    largest = std::max(largest, distance / std::max(1.0, std::hypot(end[0], end[1])));
  }
  return largest;
}

double with_identity(const Evidence& evidence) {
  return largest_distance(evidence, 0);
}
double with_jordan(const Evidence& evidence) {
  return largest_distance(evidence, evidence.dynamics.w);
}
FinalRanks normed(const Evidence& evidence) {
  return coupled(evidence, evidence.dynamics.w);
}

Interval normed_apart(const Evidence& evidence) {
  return apart(once<normed>(evidence), level_of(evidence));
}

PhaseFigure::Path path_of(const TokenPath& path, std::size_t token, const std::string& name) {
  constexpr std::size_t shown = 40;
  PhaseFigure::Path result{.name = name, .x = {}, .y = {}, .hint = ""};
  for (std::size_t i = 0; i < std::min(path.steps.size(), shown); ++i) {
    result.x.push_back(path.steps[i][2 * token]);
    result.y.push_back(path.steps[i][2 * token + 1]);
  }
  return result;
}

PhaseFigure::Panel panel_of(const std::string& title, double w, bool scale) {
  PhaseFigure::Panel panel;
  panel.title = title;
  panel.inwards = scale;
  for (const TokenPair& start : shown_starts()) {
    const TokenPath path = token_path(w, start, 1000, scale);
    panel.paths.push_back(path_of(path, 0, "token 1"));
    panel.paths.push_back(path_of(path, 1, scale ? phase_name(path.fate) : "token 2, without LayerNorm"));
    panel.paths.back().hint = "token 2";
  }
  return panel;
}

Findings shown(const Evidence& evidence) {
  const double w = evidence.dynamics.w;
  PhaseFigure figure;
  figure.order = phase_order();
  figure.panels = {panel_of("Without LayerNorm, W_V = I", 0, false),
                   panel_of(fmt::format("With LayerNorm, w = {:g}: layers run inwards", w), w, true)};
  PhaseFigure::Panel& normed_panel = figure.panels[1];
  double from = 0, to = 0;  // of the segment that leads to B: from A to the singular point
  for (const FixedPoint& point : fixed_points(w)) {
    const double angle = std::atan2(point.y, point.x);
    PhaseFigure::MarkKind kind = PhaseFigure::MarkKind::attracting;
    if (point.kind == PointKind::repelling) {
      kind = PhaseFigure::MarkKind::repelling;
      from = angle;
    } else if (point.kind == PointKind::singular) {
      kind = PhaseFigure::MarkKind::singular;
      to = angle < 0 ? angle + 2 * std::numbers::pi : angle;
    }
    normed_panel.marks.push_back({kind, point.x, point.y, std::string(1, point.name),
                                  point.kind == PointKind::singular
                                      ? "here the rows cancel"
                                      : fmt::format("multiplier {:.4f}", point.multiplier)});
  }
  normed_panel.arcs.push_back(
      {phase_name(Fate::apart), from, to,
       "the paper's red segment: with token 1 at (0, 1), token 2 goes to B from here"});
  figure.caption =
      "Large dots are starts, the same in both panels. The arc is the paper's red segment, from A to S: once token 1 is at (0, 1), token 2 goes from there to B.";
  return {.figures = {{"wu1", "Two tokens without and with LayerNorm", "After Wu et al. (2024), Fig. 1.",
                       phase_svg(figure), phase_csv(figure)}}};
}

}  // namespace

Exhibit wu_fig1() {
  constexpr Threshold same{1e-9, "of tokens of norm 1: a thousand million times closer than at the start"};
  return {
      {{.where = "Wu Fig. 1",
        .sentence = "Without LayerNorm both tokens collapse to the same point",
        .published = "picture",
        .measured = written(
            "largest distance after {} layers: {:.1e} with W_V = I, {:.1e} of the norm of token 1 with w = {:g}",
            kCollapseLayers, once<with_identity>, once<with_jordan>, of(dynamics, &WuSettings::w)),
        .why = written(
            "{} random starts on the circle. With W_V = I the point is where token 1 starts; with the Jordan block the tokens run away together, since its powers grow.",
            of(dynamics, &WuSettings::starts)),
        .holds = all_of({below(once<with_identity>, same, "largest distance, W_V = I"),
                         below(once<with_jordan>, same, "largest distance, Jordan block")}),
        .topic = "dynamics"},
       {.where = "Wu Fig. 1",
        .sentence = "With LayerNorm they need not: token 1 goes to (0, ±1), token 2 to B",
        .published = "picture",
        .measured = written("{} of random starts stay apart, w = {:g}", of(normed_apart, with_brackets),
                            of(dynamics, &WuSettings::w)),
        .why = written("{} starts, {} layers, {} not settled, {} with a zero row.",
                       of(once<normed>, &FinalRanks::starts), of(dynamics, &WuSettings::layers),
                       of(once<normed>, &FinalRanks::unsettled), of(once<normed>, &FinalRanks::zero_rows)) +
               when([](const Evidence& evidence) -> Answer { return normed_apart(evidence).below(0.5); },
                    " Most starts collapse all the same."),
        .holds = above(normed_apart, 0, "share of starts that stay apart"),
        .topic = "dynamics"}},
      shown};
}

}  // namespace normscope
