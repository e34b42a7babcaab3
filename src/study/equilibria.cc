#include "study/equilibria.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "normscope/error.h"
#include "normscope/statistics.h"
#include "study/parse.h"

namespace normscope {
namespace {

using Weight = EquilibriaRun::Weight;

constexpr std::size_t kMostWeights = 100, kMostTrajectories = 20;
constexpr std::size_t kTrajectoryLayers = 1'000;  // a trajectory has ended long before
constexpr std::size_t kMapCells = 91, kMostMaps = 6;

std::vector<double> parse_trajectory(std::string_view text) {
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
  std::vector<double> start(4);
  for (std::size_t token = 0; token < 2; ++token) {
    const double x = numbers[2 * token], y = numbers[2 * token + 1], length = std::hypot(x, y);
    if (!(length > 0))
      throw wrong(fmt::format("puts token {} at the origin, which has no direction", token + 1));
    start[2 * token] = x / length;
    start[2 * token + 1] = y / length;
  }
  return start;
}

EquilibriaRun compute(const EquilibriaSettings& settings, const Context& context, FateMaps maps) {
  EquilibriaRun run;
  run.n = settings.tokens;
  run.d = settings.dim;
  run.starts = settings.starts;
  run.layers = settings.steps;
  run.cells = kMapCells;
  run.provenance = provenance(context.seed, context.executor.threads());
  const bool plane = run.n == 2 && run.d == 2;
  const std::size_t passes = (plane ? 1 : 2) * settings.w.size();
  std::size_t passed = 0;
  const auto ranks = [&](const RankOptions& options) {
    const std::size_t before = passed++;
    return final_ranks(options, context.executor, [&](std::size_t done, std::size_t total) {
      if (context.progress) context.progress(before * total + done, passes * total);
    });
  };
  for (const double w : settings.w) {
    Weight weight;
    weight.w = w;
    RankOptions options{2, 2, w, run.starts, run.layers, context.seed};
    weight.coupled = ranks(options);
    options.n = run.n;
    options.d = run.d;
    weight.ranks = plane ? weight.coupled : ranks(options);
    weight.arc = arc_basin(w, settings.angles, context.executor);
    weight.by_rank = equilibria_by_rank(run.n, run.d, w, context.executor);
    for (const std::vector<double>& start : settings.trajectories)
      weight.paths.push_back(
          token_path(w, {start[0], start[1], start[2], start[3]}, std::min(run.layers, kTrajectoryLayers)));
    if (maps == FateMaps::yes && run.weights.size() < kMostMaps)
      weight.map = coupled_map(w, kMapCells, run.layers, context.executor);
    run.weights.push_back(std::move(weight));
  }
  return run;
}

FinalRanksResult result_of(const FinalRanks& ranks) {
  FinalRanksResult result{ranks.starts, {}, ranks.zero_rows, ranks.unsettled};
  for (std::size_t k = 1; k < ranks.ranks.size(); ++k) {
    const Interval interval = share_interval(ranks.ranks[k], ranks.starts);
    result.ranks.push_back({k, ranks.ranks[k], interval.mean, interval.low, interval.high});
  }
  return result;
}

TokenPathResult result_of(const TokenPath& path) {
  const auto& first = path.steps.front();
  const auto& last = path.steps.back();
  return {{first.begin(), first.end()},
          path.steps.size() - 1,
          {last.begin(), last.end()},
          path.fate,
          path.zero_rows};
}

EquilibriaWeightResult result_of(const Weight& weight) {
  EquilibriaWeightResult result;
  result.w = weight.w;
  for (const FixedPoint& point : fixed_points(weight.w))
    result.fixed_points.push_back(
        {std::string(1, point.name), point.x, point.y, point.multiplier, point.kind});
  result.arc = {weight.arc};
  result.coupled = result_of(weight.coupled);
  for (const RankSummary& rank : weight.by_rank) result.equilibria.push_back({rank});
  result.final_ranks = result_of(weight.ranks);
  for (const TokenPath& path : weight.paths) result.trajectories.push_back(result_of(path));
  return result;
}

EquilibriaResult result_of(const EquilibriaRun& run, double seconds) {
  EquilibriaResult result;
  result.made = run.provenance;
  result.seconds = seconds;
  result.tokens = run.n;
  result.dim = run.d;
  result.starts = run.starts;
  result.steps = run.layers;
  result.zero_row_policy = zero_row_policy(run);
  result.verdict = equilibria_verdict(run);
  for (const Weight& weight : run.weights) result.weights.push_back(result_of(weight));
  return result;
}

}  // namespace

EquilibriaSettings plan_equilibria(const EquilibriaOptions& options) {
  check_options(options);
  EquilibriaSettings settings;
  for (const std::string_view part : split(options.w, ',')) {
    const double w = parse_number(part, "--w", -1e300, 1e300);
    require_equilibrium_weight(w);
    if (std::find(settings.w.begin(), settings.w.end(), w) == settings.w.end()) settings.w.push_back(w);
  }
  if (settings.w.size() > kMostWeights) {
    throw InputError(fmt::format("--w takes at most {} values, not {}.", kMostWeights, settings.w.size()));
  }
  settings.tokens = options.tokens;
  settings.dim = options.dim;
  settings.starts = options.starts;
  settings.steps = options.steps;
  settings.angles = options.angles;
  const std::string shown = options.trajectory.empty() ? "85,200;85,250;60,300;265,20" : options.trajectory;
  for (const std::string_view part : split(shown, ';'))
    settings.trajectories.push_back(parse_trajectory(part));
  if (settings.trajectories.size() > kMostTrajectories) {
    throw InputError(fmt::format("--trajectory takes at most {} starts, not {}.", kMostTrajectories,
                                 settings.trajectories.size()));
  }
  return settings;
}

EquilibriaStudy study_equilibria(const EquilibriaSettings& settings, const Context& context, FateMaps maps) {
  EquilibriaStudy study;
  study.settings = settings;
  const auto start = std::chrono::steady_clock::now();
  study.run = compute(settings, context, maps);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  study.result = result_of(study.run, seconds);
  return study;
}

EquilibriaStudy study_equilibria(const EquilibriaOptions& options, const Context& context) {
  return study_equilibria(plan_equilibria(options), context);
}

}  // namespace normscope
