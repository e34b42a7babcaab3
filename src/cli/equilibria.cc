// normscope equilibria: where attention layers with a norm lead tokens (Wu et al. 2024, Theorem 3, Fig. 1 and
// 5).
#include "study/equilibria.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "normscope/statistics.h"
#include "report/equilibria_page.h"
#include "result/columns.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

using Weight = EquilibriaRun::Weight;

void write_run(const RunDirectory& directory, const EquilibriaStudy& study) {
  const EquilibriaRun& run = study.run;
  directory.write_config("equilibria", study.result.made, json_of(study.settings));
  directory.write("results.json", json_of(study.result));
  directory.write("trajectories.csv", trajectories_csv(run));
  directory.write("phase.svg", phase_svg(phase_figure(run, run.weights.front())));
  directory.write("report.html", render_html(equilibria_page(run, json_of(study.result, -1))));
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

std::string share_with_interval(std::size_t hits, std::size_t count) {
  const Interval interval = share_interval(hits, count);
  return fmt::format("{:.2f} – {:.2f} %", 100 * interval.low, 100 * interval.high);
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-";
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
    visit("95 % interval", share_with_interval(coupled.ranks[2], coupled.starts), "of that share");
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
    const auto built = [&](const std::string& text) { return rank.enumerated ? text : std::string("-"); };
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
  return text;
}

struct FinalRow {
  double w;
  FinalRanks final;

  static void describe(auto& visit, auto& self) {
    Named<std::size_t> ranks;
    for (std::size_t k = 1; k < self.final.ranks.size(); ++k)
      ranks.emplace_back(fmt::format("rank {}", k), self.final.ranks[k]);
    visit("w", weight_text(self.w), "entry above the diagonal of the value matrix");
    visit("rank", ranks, "starts that end there");
    visit("zero rows", self.final.zero_rows, "starts that met a row that became 0");
    visit("not settled", self.final.unsettled, "starts that had not settled after the last layer");
  }
};

struct PathRow {
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

// A table with the rows that `add` makes of each w.
template <class Row, class Add>
std::string table_by_weight(const EquilibriaRun& run, const Add& add) {
  std::vector<Row> rows;
  for (const Weight& weight : run.weights) add(weight, rows);
  return table(table_of(rows));
}

std::string points_table(const EquilibriaRun& run) {
  return table_by_weight<PointRow>(run, [](const Weight& weight, auto& rows) {
    for (const FixedPoint& point : fixed_points(weight.w)) rows.push_back({weight.w, point});
  });
}
std::string arcs_table(const EquilibriaRun& run) {
  return table_by_weight<ArcRow>(run, [](const Weight& weight, auto& rows) {
    rows.push_back({weight.w, weight.arc});
  });
}
std::string coupled_table(const EquilibriaRun& run) {
  return table_by_weight<CoupledRow>(run, [](const Weight& weight, auto& rows) {
    rows.push_back({weight.w, weight.coupled});
  });
}
std::string equilibria_table(const EquilibriaRun& run) {
  return table_by_weight<RankRow>(run, [](const Weight& weight, auto& rows) {
    for (const RankSummary& rank : weight.by_rank) rows.push_back({weight.w, rank});
  });
}
std::string ranks_table(const EquilibriaRun& run) {
  return table_by_weight<FinalRow>(run, [](const Weight& weight, auto& rows) {
    rows.push_back({weight.w, weight.ranks});
  });
}
std::string trajectories_table(const EquilibriaRun& run) {
  return table_by_weight<PathRow>(run, [](const Weight& weight, auto& rows) {
    for (std::size_t i = 0; i < weight.paths.size(); ++i) rows.push_back({weight.w, i, weight.paths[i]});
  });
}

std::string screen(const EquilibriaRun& run, bool trajectories) {
  const std::string starts =
      fmt::format("{} random starts, {} layers, seed {}", run.starts, run.layers, run.provenance.seed);
  std::string text =
      "Two tokens in the plane. Token 2 while token 1 is at (0, 1); at (0, -1) all signs are reversed\n" +
      points_table(run);
  text +=
      fmt::format("\nToken 1 fixed at (0, 1): where {} angles of token 2 lead\n", run.weights[0].arc.angles) +
      arcs_table(run);
  text += fmt::format("\nBoth tokens moving: {}\n", starts) + coupled_table(run);
  if (trajectories) text += "\nTrajectories\n" + trajectories_table(run);
  text += fmt::format("\nEquilibria of Theorem 3, N = {}, d = {}\n", run.n, run.d) + equilibria_table(run) +
          equilibria_notes(run);
  if (run.n != 2 || run.d != 2) {
    text += fmt::format("\nRanks at the end, N = {}, d = {}: {}\n", run.n, run.d, starts) + ranks_table(run);
  }
  text += fmt::format(
      "\nRank: singular values above {:g} of the largest. Settled: from layer {} to {} it stayed, and "
      "they moved by at most {:g} %.\n",
      RankOptions::rank_tolerance, run.layers / 2, run.layers, 100 * RankOptions::settled_change);
  return text + zero_row_policy(run) + "\n" + equilibria_verdict(run) + "\n";
}

void run_equilibria(const EquilibriaOptions& options, const Common& common) {
  const EquilibriaSettings settings = plan_equilibria(options);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const EquilibriaStudy study = [&] {
    Progress progress(common, "equilibria:", "starts");
    const Context context{executor, common.seed,
                          [&](std::size_t done, std::size_t total) { progress.update(done, total); }};
    return study_equilibria(settings, context, directory ? FateMaps::yes : FateMaps::no);
  }();
  if (directory) {
    write_run(*directory, study);
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  common.json ? write_json(study.result, -1, print) : print(screen(study.run, !options.trajectory.empty()));
}

}  // namespace

void add_equilibria(CLI::App& app, Common& common) {
  CLI::App* command =
      add_command(app, common, "equilibria",
                  "Where attention layers with a norm lead tokens: collapse, or equilibria of any rank",
                  {"equilibria --w 1.1,2,10", "equilibria --tokens 3 --dim 3 --w 3 --out runs/equilibria",
                   "equilibria --trajectory \"85,200;90,270\""});
  auto options = std::make_shared<EquilibriaOptions>();
  add_options(*command, *options);
  when_called(*command, [options, &common] { run_equilibria(*options, common); });
}

}  // namespace normscope::cli
