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

using Rows = std::vector<std::vector<std::string>>;

std::string points_table(const EquilibriaRun& run) {
  Rows rows = {{"w", "point", "x", "y", "multiplier", "what it does"}};
  for (const Weight& weight : run.weights) {
    for (const FixedPoint& point : fixed_points(weight.w)) {
      const char* what = point.name == 'B'   ? "attracts: the tokens stay apart"
                         : point.name == 'C' ? "attracts: the tokens collapse"
                         : point.name == 'A' ? "repels"
                                             : "singular: the row becomes zero";
      rows.push_back({fmt::format("{:g}", weight.w), std::string(1, point.name), number(point.x),
                      number(point.y), number(point.multiplier), what});
    }
  }
  return table(rows);
}

std::string arcs_table(const EquilibriaRun& run) {
  Rows rows = {{"w", "apart", "½ − arcsin(1/w)/2π", "mismatches", "zero rows", "not settled"}};
  for (const Weight& weight : run.weights) {
    const ArcBasin& arc = weight.arc;
    rows.push_back({fmt::format("{:g}", weight.w), percent(arc.share), percent(arc.formula),
                    std::to_string(arc.mismatches), std::to_string(arc.zero_rows),
                    std::to_string(arc.unsettled)});
  }
  return table(rows);
}

std::string coupled_table(const EquilibriaRun& run) {
  Rows rows = {{"w", "apart", "95 % interval", "collapsed", "zero rows", "not settled"}};
  for (const Weight& weight : run.weights) {
    const FinalRanks& coupled = weight.coupled;
    const auto starts = static_cast<double>(coupled.starts);
    rows.push_back({fmt::format("{:g}", weight.w), percent(static_cast<double>(coupled.ranks[2]) / starts),
                    share_with_interval(coupled.ranks[2], coupled.starts),
                    percent(static_cast<double>(coupled.ranks[1]) / starts),
                    std::to_string(coupled.zero_rows), std::to_string(coupled.unsettled)});
  }
  return table(rows);
}

std::string signs_text(const std::vector<int>& signs) {
  std::string text;
  for (const int sign : signs) text += sign > 0 ? "+" : "-";
  return text;
}

std::string equilibria_table(const EquilibriaRun& run) {
  Rows rows = {{"w", "rank", "count", "residual", "SRank", "published bound", "own bound", "stable",
                "least radius", "signs", "marginal"}};
  for (const Weight& weight : run.weights) {
    for (const RankSummary& rank : weight.by_rank) {
      const auto shown = [&](const std::string& text) { return rank.enumerated ? text : std::string("-"); };
      rows.push_back({fmt::format("{:g}", weight.w), std::to_string(rank.rank), std::to_string(rank.count),
                      shown(fmt::format("{:.1e}", rank.residual)), shown(number(rank.stable_rank)),
                      number(rank.published_bound), number(rank.own_bound),
                      shown(std::to_string(rank.stable)), shown(number(rank.least_radius)),
                      shown(signs_text(rank.least_signs)), shown(std::to_string(rank.marginal))});
    }
  }
  return table(rows);
}

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

std::string ranks_table(const EquilibriaRun& run) {
  Rows rows = {{"w"}};
  for (std::size_t k = 1; k <= std::min(run.n, run.d); ++k) rows[0].push_back(fmt::format("rank {}", k));
  rows[0].insert(rows[0].end(), {"zero rows", "not settled"});
  for (const Weight& weight : run.weights) {
    rows.push_back({fmt::format("{:g}", weight.w)});
    for (std::size_t k = 1; k < weight.ranks.ranks.size(); ++k)
      rows.back().push_back(std::to_string(weight.ranks.ranks[k]));
    rows.back().push_back(std::to_string(weight.ranks.zero_rows));
    rows.back().push_back(std::to_string(weight.ranks.unsettled));
  }
  return table(rows);
}

std::string trajectories_table(const EquilibriaRun& run) {
  Rows rows = {{"w", "trajectory", "start of token 1", "of token 2", "layers", "end of token 1", "of token 2",
                "fate", "zero rows"}};
  const auto point = [](const std::array<double, 4>& at, std::size_t token) {
    return fmt::format("({:.4f}, {:.4f})", at[2 * token], at[2 * token + 1]);
  };
  for (const Weight& weight : run.weights) {
    for (std::size_t i = 0; i < weight.paths.size(); ++i) {
      const TokenPath& path = weight.paths[i];
      rows.push_back({fmt::format("{:g}", weight.w), std::to_string(i), point(path.steps.front(), 0),
                      point(path.steps.front(), 1), std::to_string(path.steps.size() - 1),
                      point(path.steps.back(), 0), point(path.steps.back(), 1), name_of(path.fate),
                      std::to_string(path.zero_rows)});
    }
  }
  return table(rows);
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
