#include "report/equilibria_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/number_text.h"
#include "normscope/error.h"
#include "normscope/statistics.h"
#include "result/columns.h"

namespace normscope {
namespace {

using Weight = EquilibriaRun::Weight;

constexpr double kPi = std::numbers::pi;
constexpr std::size_t kShownLayers = 40;  // of a path: later ones lie on each other

// A line of trajectories.csv.
struct PathRow {
  double w = 0;
  std::size_t trajectory = 0, layer = 0;
  std::array<double, 4> at = {};

  static void describe(auto& visit, auto& self) {
    const auto& [x1, y1, x2, y2] = self.at;
    visit("w", self.w, "entry above the diagonal of the value matrix");
    visit("trajectory", self.trajectory, "counted from 0");
    visit("layer", self.layer, "0: the start");
    visit("x1", x1, "of token 1");
    visit("y1", y1, "of token 1");
    visit("x2", x2, "of token 2");
    visit("y2", y2, "of token 2");
    visit("zero_row", (x1 == 0 && y1 == 0) || (x2 == 0 && y2 == 0) ? 1 : 0, "1: a row became 0");
  }
};

std::string percent(double share) {
  return normscope::percent(share, 2);
}

std::string interval_of_share(std::size_t hits, std::size_t count) {
  const Interval interval = share_interval(hits, count);
  return fmt::format("{:.2f} – {:.2f} %", 100 * interval.low, 100 * interval.high);
}

std::string with_interval(std::size_t hits, std::size_t count) {
  const Interval interval = share_interval(hits, count);
  return fmt::format("{} ({:.2f} to {:.2f})", percent(interval.mean), 100 * interval.low,
                     100 * interval.high);
}

std::string number(double value) {
  return significant(value, 6);
}

// By how much a layer turns token 2 beside token 1 at (0, sign).
double turn_at(double w, int sign, double angle) {
  std::array<double, 4> tokens = {0, static_cast<double>(sign), std::cos(angle), std::sin(angle)};
  if (equilibrium_layer(w, {tokens.data(), 2, 2}) > 0) return 0;
  return std::remainder(std::atan2(tokens[3], tokens[2]) - angle, 2 * kPi);
}

PhaseFigure::MarkKind kind_of(PointKind kind) {
  switch (kind) {
    case PointKind::attracting:
      return PhaseFigure::MarkKind::attracting;
    case PointKind::repelling:
      return PhaseFigure::MarkKind::repelling;
    case PointKind::singular:
      break;
  }
  return PhaseFigure::MarkKind::singular;
}

PhaseFigure::Path path_of(const TokenPath& path, std::size_t token, const std::string& name) {
  PhaseFigure::Path result{.name = name, .x = {}, .y = {}, .hint = ""};
  for (std::size_t i = 0; i < std::min(path.steps.size(), kShownLayers + 1); ++i) {
    result.x.push_back(path.steps[i][2 * token]);
    result.y.push_back(path.steps[i][2 * token + 1]);
  }
  return result;
}

PhaseFigure::Panel fixed_token_panel(double w, int sign) {
  constexpr int arrows = 24;
  constexpr double starts[] = {15, 50, 80, 112, 160, 205, 250, 300, 345};  // degrees, turned with the sign
  PhaseFigure::Panel panel;
  panel.title = fmt::format("Token 2 while token 1 stays at (0, {}), w = {:g}", sign > 0 ? "1" : "−1", w);
  panel.inwards = true;
  const double c = sign * kPi / 2, a = c + std::asin(1 / w), s = c + kPi;
  panel.arcs = {{phase_name(Fate::apart), a, s, fmt::format("{} of the circle", percent(arc_share(w)))},
                {phase_name(Fate::collapsed), s, a + 2 * kPi,
                 fmt::format("{} of the circle", percent(1 - arc_share(w)))}};
  for (int i = 0; i < arrows; ++i) {
    const double angle = 2 * kPi * (i + 0.5) / arrows;
    panel.arrows.push_back({angle, turn_at(w, sign, angle)});
  }
  for (const FixedPoint& point : fixed_points(w, sign)) {
    const std::string hint =
        point.kind == PointKind::singular
            ? "the rows cancel: token 2 becomes zero"
            : fmt::format("{}, multiplier {:.4f}", name_of(point.kind), point.multiplier);
    panel.marks.push_back({kind_of(point.kind), point.x, point.y, std::string(1, point.name), hint});
  }
  for (const double degrees : starts) {
    const double angle = degrees * kPi / 180 + (sign > 0 ? 0 : kPi);
    PhaseFigure::Path path{
        .name = phase_name(fate_beside_fixed_token(w, sign, angle)), .x = {}, .y = {}, .hint = "token 2"};
    double x = std::cos(angle), y = std::sin(angle);
    for (std::size_t layer = 0; layer <= kShownLayers; ++layer) {
      path.x.push_back(x);
      path.y.push_back(y);
      std::array<double, 4> tokens = {0, static_cast<double>(sign), x, y};
      equilibrium_layer(w, {tokens.data(), 2, 2});
      x = tokens[2];
      y = tokens[3];
    }
    panel.paths.push_back(std::move(path));
  }
  return panel;
}

PhaseFigure::Panel coupled_panel(const Weight& weight) {
  PhaseFigure::Panel panel;
  panel.title = "Both tokens moving: layers run inwards from the circle";
  panel.inwards = true;
  for (std::size_t i = 0; i < weight.paths.size(); ++i) {
    const TokenPath& path = weight.paths[i];
    panel.paths.push_back(path_of(path, 0, "token 1"));
    panel.paths.push_back(path_of(path, 1, phase_name(path.fate)));
    panel.paths[2 * i].hint = fmt::format("trajectory {}", i);
    panel.paths[2 * i + 1].hint = fmt::format("trajectory {}, token 2", i);
  }
  return panel;
}

std::string made_by(const EquilibriaRun& run) {
  return fmt::format("{} random starts, {} layers · seed {} · normscope {} ({}, {}, {} thread{})", run.starts,
                     run.layers, run.provenance.seed, run.provenance.version, run.provenance.commit,
                     run.provenance.isa, run.provenance.threads, run.provenance.threads == 1 ? "" : "s");
}

std::string weight_text(double w) {
  return fmt::format("{:g}", w);
}

struct PointRow {
  double w;
  FixedPoint point;

  static void describe(auto& visit, auto& self) {
    const FixedPoint& point = self.point;
    const char* what = point.name == 'B'   ? "attracts: the tokens stay apart"
                       : point.name == 'C' ? "attracts: the tokens collapse"
                       : point.name == 'A' ? "repels"
                                           : "singular: the row becomes zero";
    visit("w", weight_text(self.w), "entry above the diagonal of the value matrix");
    visit("point", std::string(1, point.name), "as in the theory");
    visit("x", number(point.x), "of token 2");
    visit("y", number(point.y), "of token 2");
    visit("multiplier", number(point.multiplier), "of a small distance along the circle, per layer");
    visit("what it does", what, "with what is near");
  }
};

struct ArcRow {
  double w;
  ArcBasin arc;

  static void describe(auto& visit, auto& self) {
    visit("w", weight_text(self.w), "entry above the diagonal of the value matrix");
    visit("apart", percent(self.arc.share), "angles from which the tokens stay apart");
    visit("½ − arcsin(1/w)/2π", percent(self.arc.formula), "what that share should be");
    visit("mismatches", self.arc.mismatches, "angles whose fate the arcs do not tell");
    visit("zero rows", self.arc.zero_rows, "angles from which a row became 0");
    visit("not settled", self.arc.unsettled, "angles whose fate was not seen");
  }
};

struct CoupledRow {
  double w;
  FinalRanks coupled;

  static void describe(auto& visit, auto& self) {
    const FinalRanks& coupled = self.coupled;
    const auto starts = static_cast<double>(coupled.starts);
    visit("w", weight_text(self.w), "entry above the diagonal of the value matrix");
    visit("apart", percent(static_cast<double>(coupled.ranks[2]) / starts), "starts that end at rank 2");
    visit("95 % interval", interval_of_share(coupled.ranks[2], coupled.starts), "of that share");
    visit("collapsed", percent(static_cast<double>(coupled.ranks[1]) / starts), "starts that end at rank 1");
    visit("zero rows", coupled.zero_rows, "starts that met a row that became 0");
    visit("not settled", coupled.unsettled, "starts that had not settled after the last layer");
  }
};

std::string signs_text(const std::vector<int>& signs) {
  std::string text;
  for (const int sign : signs) text += sign > 0 ? "+" : "-";
  return text;
}

struct RankRow {
  double w;
  RankSummary rank;

  static void describe(auto& visit, auto& self) {
    const RankSummary& rank = self.rank;
    const auto built = [&](const std::string& text) { return rank.enumerated ? text : std::string("–"); };
    visit("w", weight_text(self.w), "entry above the diagonal of the value matrix");
    visit("rank", rank.rank, "of the equilibria");
    visit("count", rank.count, "how many there are");
    visit("residual", built(fmt::format("{:.1e}", rank.residual)), "largest change of an entry by one layer");
    visit("SRank", built(number(rank.stable_rank)), "the largest ‖X‖_F²/‖X‖₂²");
    visit("published bound", number(rank.published_bound), "N/(N − (N − 1)/w²), proven for k = N only");
    visit("own bound", number(rank.own_bound), "by the same argument, for this rank");
    visit("stable", built(std::to_string(rank.stable)), "how many are, but for marginal directions");
    visit("least radius", built(number(rank.least_radius)), "least spectral radius of the derivative");
    visit("signs", built(signs_text(rank.least_signs)), "of the equilibrium of least radius");
    visit("marginal", built(std::to_string(rank.marginal)), "eigenvalues 1");
  }
};

// What the table cannot say: which do not exist and why, which were not built, where the published bound
// fails.
std::string equilibria_notes(const EquilibriaRun& run) {
  std::string text;
  for (const Weight& weight : run.weights) {
    std::string above, counted;
    const auto append = [](std::string& list, std::size_t rank) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
    };
    for (const RankSummary& rank : weight.by_rank) {
      const std::size_t equal = run.n - rank.rank + 1;
      if (rank.count == 0) {
        text += fmt::format(
            "w = {:g}: none of rank {}: the last entry of token {} would have the square 1 - {}²/w² = "
            "{:.4g}.\n",
            weight.w, rank.rank, equal + 1, equal, rank.second_entry_squared);
      } else if (rank.rank > 1 && rank.second_entry_squared == 0) {
        text += fmt::format(
            "w = {:g}: half as many of rank {}: the last entry of token {} is 0 and has no sign.\n", weight.w,
            rank.rank, equal + 1);
      } else if (!rank.enumerated) {
        append(counted, rank.rank);
      }
      if (rank.enumerated && rank.stable_rank > rank.published_bound * (1 + 1e-12)) append(above, rank.rank);
    }
    if (!above.empty()) {
      text +=
          fmt::format("w = {:g}: SRank exceeds the published bound, proven for rank {} only, at rank {}.\n",
                      weight.w, run.n, above);
    }
    if (!counted.empty()) {
      text += fmt::format("w = {:g}: counted, not built (more than 2^{}): rank {}.\n", weight.w,
                          EquilibriumLimits::most_enumerated_rank, counted);
    }
  }
  if (!text.empty()) text.pop_back();
  return text;
}

struct TrajectoryRow {
  double w;
  std::size_t trajectory;
  const TokenPath& path;

  static void describe(auto& visit, auto& self) {
    const auto point = [](const std::array<double, 4>& at, std::size_t token) {
      return fmt::format("({:.4f}, {:.4f})", at[2 * token], at[2 * token + 1]);
    };
    const auto& steps = self.path.steps;
    visit("w", weight_text(self.w), "entry above the diagonal of the value matrix");
    visit("trajectory", self.trajectory, "counted from 0");
    visit("start of token 1", point(steps.front(), 0), "x, y");
    visit("of token 2", point(steps.front(), 1), "x, y");
    visit("layers", steps.size() - 1, "passed through");
    visit("end of token 1", point(steps.back(), 0), "x, y");
    visit("of token 2", point(steps.back(), 1), "x, y");
    visit("fate", self.path.fate, "what became of the two tokens");
    visit("zero rows", self.path.zero_rows, "rows that became 0, over all layers");
  }
};

struct EndRow {
  double w;
  std::string rank;
  std::size_t count, starts;

  static void describe(auto& visit, auto& self) {
    visit("w", weight_text(self.w), "entry above the diagonal of the value matrix");
    visit("rank", self.rank, "at the end");
    visit("starts", self.count, "that end there");
    visit("share (95 % interval)", with_interval(self.count, self.starts), "of all");
  }
};

// A row of the table over runs.
struct SharesRow {
  const EquilibriaWeightResult& from;

  static void describe(auto& visit, auto& self) {
    const auto& ranks = self.from.coupled.ranks;
    const auto apart =
        std::find_if(ranks.begin(), ranks.end(), [](const RankShare& each) { return each.rank == 2; });
    visit("w", weight_text(self.from.w), "entry above the diagonal of the value matrix");
    visit("token 1 fixed", percent(self.from.arc.arc.share), "angles from which the tokens stay apart");
    visit("½ − arcsin(1/w)/2π", percent(self.from.arc.arc.formula), "what that share should be");
    visit("both moving", percent(apart == ranks.end() ? 0 : apart->share), "starts likewise");
    visit("starts", self.from.coupled.starts, "random ones");
    visit("zero rows", self.from.coupled.zero_rows, "starts that met a row that became 0");
  }
};

// A table with the rows that `add` makes of each w.
template <class Row, class Add>
ReportTable table_by_weight(const EquilibriaRun& run, std::string title, const Add& add) {
  std::vector<Row> rows;
  for (const Weight& weight : run.weights) add(weight, rows);
  return {std::move(title), table_of(rows)};
}

}  // namespace

std::vector<std::string> phase_order() {
  return {phase_name(Fate::apart), phase_name(Fate::collapsed), "token 1"};
}

std::string phase_name(Fate fate) {
  switch (fate) {
    case Fate::apart:
      return "to B: the tokens stay apart";
    case Fate::collapsed:
      return "to C: the tokens collapse";
    case Fate::zero_row:
      return "meets a zero row";
    case Fate::unsettled:
      break;
  }
  return "not settled";
}

PhaseFigure phase_figure(const EquilibriaRun& run, const Weight& weight) {
  PhaseFigure figure;
  figure.order = phase_order();
  figure.panels = {fixed_token_panel(weight.w, 1), fixed_token_panel(weight.w, -1)};
  if (!weight.paths.empty()) figure.panels.push_back(coupled_panel(weight));
  if (!weight.map.empty()) {
    PhaseFigure::Map map;
    map.title = "Both tokens moving: where a start leads";
    map.x_label = "angle of token 1";
    map.y_label = "angle of token 2";
    map.cells = run.cells;
    map.names = {phase_name(Fate::collapsed), phase_name(Fate::apart), phase_name(Fate::zero_row),
                 phase_name(Fate::unsettled)};
    for (const Fate fate : weight.map) map.values.push_back(static_cast<std::size_t>(fate));
    map.note = fmt::format("{} of {} random starts stay apart; the arcs alone say {}",
                           with_interval(weight.coupled.ranks[2], weight.coupled.starts),
                           weight.coupled.starts, percent(weight.arc.formula));
    figure.maps.push_back(std::move(map));
  }
  figure.caption =
      "Arrows: the way one layer turns token 2. A ring marks where a row becomes zero: it stays zero "
      "in that layer. " +
      made_by(run);
  return figure;
}

std::string trajectories_csv(const EquilibriaRun& run) {
  Csv<PathRow> csv;
  for (const Weight& weight : run.weights) {
    for (std::size_t i = 0; i < weight.paths.size(); ++i) {
      for (std::size_t layer = 0; layer < weight.paths[i].steps.size(); ++layer)
        csv.add({weight.w, i, layer, weight.paths[i].steps[layer]});
    }
  }
  return std::move(csv).text();
}

EquilibriaTables equilibria_tables(const EquilibriaRun& run) {
  const std::string starts =
      fmt::format("{} random starts, {} layers, seed {}", run.starts, run.layers, run.provenance.seed);
  EquilibriaTables tables;
  tables.points = table_by_weight<PointRow>(
      run, "Two tokens in the plane. Token 2 while token 1 is at (0, 1); at (0, −1) all signs are reversed",
      [](const Weight& weight, auto& rows) {
        for (const FixedPoint& point : fixed_points(weight.w)) rows.push_back({weight.w, point});
      });
  tables.arcs = table_by_weight<ArcRow>(
      run, fmt::format("Token 1 fixed at (0, 1): where {} angles of token 2 lead", run.weights[0].arc.angles),
      [](const Weight& weight, auto& rows) {
        rows.push_back({weight.w, weight.arc});
      });
  tables.coupled =
      table_by_weight<CoupledRow>(run, "Both tokens moving: " + starts, [](const Weight& weight, auto& rows) {
        rows.push_back({weight.w, weight.coupled});
      });
  tables.trajectories =
      table_by_weight<TrajectoryRow>(run, "Trajectories", [](const Weight& weight, auto& rows) {
        for (std::size_t i = 0; i < weight.paths.size(); ++i) rows.push_back({weight.w, i, weight.paths[i]});
      });
  tables.equilibria =
      table_by_weight<RankRow>(run, fmt::format("Equilibria of Theorem 3, N = {}, d = {}", run.n, run.d),
                               [](const Weight& weight, auto& rows) {
                                 for (const RankSummary& rank : weight.by_rank)
                                   rows.push_back({weight.w, rank});
                               });
  tables.equilibria.note = equilibria_notes(run);
  tables.ranks =
      table_by_weight<EndRow>(run, fmt::format("Ranks at the end, N = {}, d = {}: {}", run.n, run.d, starts),
                              [](const Weight& weight, auto& rows) {
                                const FinalRanks& ends = weight.ranks;
                                for (std::size_t k = 1; k < ends.ranks.size(); ++k)
                                  rows.push_back({weight.w, std::to_string(k), ends.ranks[k], ends.starts});
                                rows.push_back({weight.w, "zero row", ends.zero_rows, ends.starts});
                                rows.push_back({weight.w, "not settled", ends.unsettled, ends.starts});
                              });
  return tables;
}

Page equilibria_page(const EquilibriaRun& run, std::string data) {
  constexpr std::size_t most_figures = 6;
  Page page;
  page.title = "Where deep attention with a norm ends";
  page.verdict = equilibria_verdict(run);
  page.paragraphs = {
      "Causal attention without scores, the value matrix W = [[1, w], [0, 1]] (in d dimensions the "
      "Jordan block with w above the diagonal) and scaling of each row to norm 1, layer after layer: "
      "the system of Wu et al. (2024), Theorem 3. Token 1 goes to (0, 1) or (0, −1). Once it is there, "
      "token 2 goes to B, apart from token 1, from the arc between A and S, and to C, the collapse, "
      "from the other. But token 1 needs about 1/(wt) to get there, and from random starts token 2 has "
      "mostly collapsed by then.",
      zero_row_policy(run),
      fmt::format("Ranks count the singular values above {:g} times the largest after {} layers. A start is "
                  "settled if from half the layers to all of them the rank stayed, none of these "
                  "values moved by more than {:g} % and the last layer moved no entry by more than "
                  "{:g} divided by the layers.",
                  RankOptions::rank_tolerance, run.layers, 100 * RankOptions::settled_change,
                  RankOptions::settled_step),
      "Linearly stable: all eigenvalues of a layer's derivative on the product of spheres lie inside "
      "the unit circle, apart from marginal ones, which are exactly 1 because the value matrix is a "
      "Jordan block. Along those a token comes back from one side at best, like 1/t. The published "
      "bound N/(N − (N−1)/w²) on SRank is proven for full rank; own bound is what the same argument "
      "gives for the other ranks."};
  for (std::size_t i = 0; i < std::min(most_figures, run.weights.size()); ++i) {
    const Weight& weight = run.weights[i];
    const PhaseFigure figure = phase_figure(run, weight);
    page.figures.push_back({fmt::format("phase-{}", i), fmt::format("Phase portrait, w = {:g}", weight.w),
                            "After Wu et al. (2024), Fig. 5. Point at a mark for its values.",
                            phase_svg(figure), phase_csv(figure), made_by(run)});
  }
  EquilibriaTables tables = equilibria_tables(run);
  page.tables = {std::move(tables.points), std::move(tables.arcs), std::move(tables.coupled),
                 std::move(tables.equilibria), std::move(tables.ranks)};
  page.footer = made_by(run);
  page.data = std::move(data);
  return page;
}

RunView equilibria_view(const EquilibriaResult& result, const Provenance& made) {
  constexpr std::size_t most_figures = 3, most_paths = 20, most_layers = 40;
  EquilibriaRun run;
  run.starts = result.starts;
  run.layers = result.steps;
  RunView view;
  PageSection& section = view.section;
  section.verdict = result.verdict;
  std::vector<SharesRow> rows;
  for (const EquilibriaWeightResult& from : result.weights) {
    if (rows.size() >= RunView::most_rows) break;
    require_equilibrium_weight(from.w);
    rows.push_back({from});
    if (section.figures.size() >= most_figures) continue;
    Weight weight;
    weight.w = from.w;
    for (const TokenPathResult& path : from.trajectories) {
      const auto& start = path.start;
      if (start.size() != 4 || weight.paths.size() >= most_paths ||
          !std::all_of(start.begin(), start.end(), [](double value) { return std::abs(value) <= 1e6; }))
        continue;
      weight.paths.push_back(
          token_path(from.w, {start[0], start[1], start[2], start[3]}, std::min(most_layers, path.layers)));
      weight.paths.back().fate = path.fate;
    }
    const PhaseFigure figure = phase_figure(run, weight);
    section.figures.push_back(
        {fmt::format("phase-{}", section.figures.size()), fmt::format("Phase portrait, w = {:g}", from.w),
         "After Wu et al. (2024), Fig. 5. The map of all starts is in the run's own report.",
         phase_svg(figure), phase_csv(figure),
         settings_text(made, fmt::format("{} starts, {} layers", result.starts, result.steps))});
  }
  if (rows.empty()) throw InputError("there is no w");
  section.tables.push_back({"How often the tokens stay apart", table_of(rows)});
  return view;
}

}  // namespace normscope
