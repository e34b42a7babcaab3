// normscope equilibria: where attention layers with a norm lead tokens (Wu et al. 2024, Theorem 3, Fig. 1 and
// 5).
#include "normscope/equilibria.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numbers>

#include "cli/common.h"
#include "normscope/error.h"
#include "normscope/report.h"
#include "normscope/statistics.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;
using Weight = EquilibriaRun::Weight;

constexpr std::size_t kMostWeights = 100, kMostTrajectories = 20, kMostAngles = 10'000'000;
constexpr std::size_t kTrajectoryLayers = 1'000;  // a trajectory has ended long before
constexpr std::size_t kMapCells = 91, kMostMaps = 6;

struct EquilibriaCall {
  std::string w = "2", tokens = "2", dim = "2", starts = "10000", steps = "2000", angles = "3600", trajectory;
};

struct Plan {
  std::vector<double> w;
  std::size_t n = 2, d = 2, starts = 0, layers = 0, angles = 0;
  std::vector<std::array<double, 4>> trajectories;
};

std::array<double, 4> parse_trajectory(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return InputError(fmt::format(
        "--trajectory takes x1,y1,x2,y2 or two angles in degrees, several of them with ';'; '{}' {}.", text,
        why));
  };
  std::vector<double> numbers;
  for (const std::string_view part : split(text, ','))
    numbers.push_back(parse_number(part, "--trajectory", -1e6, 1e6));
  if (numbers.size() == 2) {
    const auto one = direction(numbers[0]), two = direction(numbers[1]);
    return {one[0], one[1], two[0], two[1]};
  }
  if (numbers.size() != 4)
    throw wrong(fmt::format("has {} number{}", numbers.size(), numbers.size() == 1 ? "" : "s"));
  std::array<double, 4> start{};
  for (std::size_t token = 0; token < 2; ++token) {
    const double x = numbers[2 * token], y = numbers[2 * token + 1], length = std::hypot(x, y);
    if (!(length > 0))
      throw wrong(fmt::format("puts token {} at the origin, which has no direction", token + 1));
    start[2 * token] = x / length;
    start[2 * token + 1] = y / length;
  }
  return start;
}

Plan resolve(const EquilibriaCall& call) {
  Plan plan;
  for (const std::string_view part : split(call.w, ',')) {
    const double w = parse_number(part, "--w", -1e300, 1e300);
    require_equilibrium_weight(w);
    if (std::find(plan.w.begin(), plan.w.end(), w) == plan.w.end()) plan.w.push_back(w);
  }
  if (plan.w.size() > kMostWeights) {
    throw InputError(fmt::format("--w takes at most {} values, not {}.", kMostWeights, plan.w.size()));
  }
  plan.n = parse_count(call.tokens, "--tokens", 1, EquilibriumLimits::most_size);
  plan.d = parse_count(call.dim, "--dim", 1, EquilibriumLimits::most_size);
  plan.starts = parse_count(call.starts, "--starts", 1, RankOptions::most_starts);
  plan.layers = parse_count(call.steps, "--steps", 2, RankOptions::most_layers);
  plan.angles = parse_count(call.angles, "--angles", 1, kMostAngles);
  const std::string shown = call.trajectory.empty() ? "85,200;85,250;60,300;265,20" : call.trajectory;
  for (const std::string_view part : split(shown, ';')) plan.trajectories.push_back(parse_trajectory(part));
  if (plan.trajectories.size() > kMostTrajectories) {
    throw InputError(fmt::format("--trajectory takes at most {} starts, not {}.", kMostTrajectories,
                                 plan.trajectories.size()));
  }
  return plan;
}

EquilibriaRun compute(const Plan& plan, const Common& common, const Executor& executor) {
  EquilibriaRun run;
  run.n = plan.n;
  run.d = plan.d;
  run.starts = plan.starts;
  run.layers = plan.layers;
  run.cells = kMapCells;
  run.provenance = provenance(common.seed, executor.threads());
  for (const double w : plan.w) {
    Weight weight;
    weight.w = w;
    Progress progress(common, fmt::format("w {:g}:", w), "starts");
    const auto update = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
    RankOptions options{2, 2, w, plan.starts, plan.layers, common.seed};
    weight.coupled = final_ranks(options, executor, update);
    options.n = plan.n;
    options.d = plan.d;
    weight.ranks = plan.n == 2 && plan.d == 2 ? weight.coupled : final_ranks(options, executor, update);
    weight.arc = arc_basin(w, plan.angles, executor);
    weight.by_rank = equilibria_by_rank(plan.n, plan.d, w, executor);
    for (const auto& start : plan.trajectories)
      weight.paths.push_back(token_path(w, start, std::min(plan.layers, kTrajectoryLayers)));
    if (!common.out.empty() && run.weights.size() < kMostMaps)
      weight.map = coupled_map(w, kMapCells, plan.layers, executor);
    run.weights.push_back(std::move(weight));
  }
  return run;
}

Json share_json(std::size_t hits, std::size_t count) {
  const Interval interval = share_interval(hits, count);
  return {{"starts", hits}, {"share", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

Json ranks_json(const FinalRanks& ranks) {
  Json json = {{"starts", ranks.starts}, {"ranks", Json::array()}};
  for (std::size_t k = 1; k < ranks.ranks.size(); ++k) {
    Json entry = {{"rank", k}};
    entry.update(share_json(ranks.ranks[k], ranks.starts));
    json["ranks"].push_back(entry);
  }
  json["zero_rows"] = ranks.zero_rows;
  json["unsettled"] = ranks.unsettled;
  return json;
}

Json points_json(double w) {
  Json points = Json::array();
  for (const FixedPoint& point : fixed_points(w)) {
    points.push_back({{"name", std::string(1, point.name)},
                      {"x", point.x},
                      {"y", point.y},
                      {"multiplier", point.multiplier},
                      {"kind", name_of(point.kind)}});
  }
  return points;
}

Json equilibria_json(const std::vector<RankSummary>& ranks) {
  Json all = Json::array();
  for (const RankSummary& rank : ranks) {
    all.push_back({{"rank", rank.rank},
                   {"count", rank.count},
                   {"second_entry_squared", rank.second_entry_squared},
                   {"enumerated", rank.enumerated},
                   {"residual", rank.residual},
                   {"stable_rank", rank.stable_rank},
                   {"published_bound", rank.published_bound},
                   {"own_bound", rank.own_bound},
                   {"stable", rank.stable},
                   {"least_radius", rank.least_radius},
                   {"largest_radius", rank.largest_radius},
                   {"least_signs", rank.least_signs},
                   {"marginal", rank.marginal}});
  }
  return all;
}

Json weight_json(const Weight& weight) {
  const ArcBasin& arc = weight.arc;
  Json json = {{"w", weight.w},
               {"fixed_points", points_json(weight.w)},
               {"arc",
                {{"angles", arc.angles},
                 {"apart", arc.apart},
                 {"share", arc.share},
                 {"formula", arc.formula},
                 {"mismatches", arc.mismatches},
                 {"zero_rows", arc.zero_rows},
                 {"unsettled", arc.unsettled}}},
               {"coupled", ranks_json(weight.coupled)},
               {"equilibria", equilibria_json(weight.by_rank)},
               {"final_ranks", ranks_json(weight.ranks)},
               {"trajectories", Json::array()}};
  for (const TokenPath& path : weight.paths) {
    json["trajectories"].push_back({{"start", path.steps.front()},
                                    {"layers", path.steps.size() - 1},
                                    {"end", path.steps.back()},
                                    {"fate", name_of(path.fate)},
                                    {"zero_rows", path.zero_rows}});
  }
  return json;
}

Json results_json(const EquilibriaRun& run, double seconds) {
  Json results = {{"command", "equilibria"}};
  results.update(normscope::to_json(run.provenance));
  results["seconds"] = seconds;
  results["tokens"] = run.n;
  results["dim"] = run.d;
  results["starts"] = run.starts;
  results["steps"] = run.layers;
  results["zero_row_policy"] = zero_row_policy(run);
  results["rank_tolerance"] = RankOptions::rank_tolerance;
  results["settled_change"] = RankOptions::settled_change;
  results["settled_step"] = RankOptions::settled_step;
  results["verdict"] = equilibria_verdict(run);
  results["weights"] = Json::array();
  for (const Weight& weight : run.weights) results["weights"].push_back(weight_json(weight));
  return results;
}

Json options_json(const Plan& plan) {
  return {{"w", plan.w},
          {"tokens", plan.n},
          {"dim", plan.d},
          {"starts", plan.starts},
          {"steps", plan.layers},
          {"angles", plan.angles},
          {"trajectory", plan.trajectories}};
}

void write_run(const RunDirectory& directory, const EquilibriaRun& run, const Plan& plan,
               const Json& results) {
  directory.write_config("equilibria", run.provenance, options_json(plan).dump());
  directory.write("results.json", json_text(results));
  directory.write("trajectories.csv", trajectories_csv(run));
  directory.write("phase.svg", phase_svg(phase_figure(run, run.weights.front())));
  directory.write("report.html", render_html(equilibria_page(run, results.dump())));
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

void run_equilibria(const EquilibriaCall& call, const Common& common) {
  const Plan plan = resolve(call);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const auto start = std::chrono::steady_clock::now();
  const EquilibriaRun run = compute(plan, common, executor);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Json results = results_json(run, seconds);
  if (directory) {
    write_run(*directory, run, plan, results);
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  print(common.json ? json_text(results, -1) : screen(run, !call.trajectory.empty()));
}

}  // namespace

void add_equilibria(CLI::App& app, Common& common) {
  CLI::App* command =
      add_command(app, common, "equilibria",
                  "Where attention layers with a norm lead tokens: collapse, or equilibria of any rank",
                  {"equilibria --w 1.1,2,10", "equilibria --tokens 3 --dim 3 --w 3 --out runs/equilibria",
                   "equilibria --trajectory \"85,200;90,270\""});
  auto call = std::make_shared<EquilibriaCall>();
  const auto option = [&](const char* name, std::string& value, const char* type, const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  option("--w", call->w, "LIST",
         "Entry above the diagonal of the value matrix, above 1 and up to 1e6; up to 100 values")
      ->capture_default_str();
  option("--tokens", call->tokens, "N", "Tokens of the equilibria and final ranks, up to 60")
      ->capture_default_str();
  option("--dim", call->dim, "N",
         "Their dimensions, up to 60; equilibria of rank above 12 are counted, not built")
      ->capture_default_str();
  option("--starts", call->starts, "N", "Random starts, up to 1073741824")->capture_default_str();
  option("--steps", call->steps, "N", "Layers from each start, 2 to 16777216")->capture_default_str();
  option("--angles", call->angles, "N", "Angles of token 2 beside a fixed token 1, up to 10000000")
      ->capture_default_str();
  option("--trajectory", call->trajectory, "STARTS",
         "Two tokens to follow: x1,y1,x2,y2, or two angles in degrees; up to 20, with ';' between");
  command->callback([call, &common] { run_equilibria(*call, common); });
}

}  // namespace normscope::cli
