// bench_keys_growth: how the cost of deciding all keys grows with n and d, in verdict mode (margins as
// bounds, no certificates kept), on one thread and on two. Every case runs in a process of its own, so that
// its peak memory is its own; a row is shown once both thread counts have given the same answer to the last
// bit. Prints Markdown.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/random.h"
#include "program.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Call {
  std::vector<std::size_t> n, d = {3, 8, 16, 64, 384};  // no n: those of sizes_at
  double limit = 60;
  bool large = false, certificates = false;
  std::uint64_t seed = 0;
  std::string json;

  void add_options(CLI::App& app) {
    app.add_option("--d", d, "dimensions, e.g. --d 3,8")->delimiter(',')->check(CLI::Range(1, 100000));
    app.add_option("--n", n, "numbers of keys, ascending, in place of those that suit d")
        ->delimiter(',')
        ->check(CLI::Range(1, 10000000));
    app.add_option("--limit", limit, "leave out cases expected to take longer than this many seconds")
        ->check(CLI::Range(0.001, 1e6));
    app.add_flag("--large", large, "leave out none");
    app.add_flag("--certificates", certificates, "keep witnesses and covers");
    app.add_option("--seed", seed, "of the keys");
  }
};

std::vector<std::size_t> sizes_at(std::size_t d) {
  if (d >= 384) return {1024, 4096, 30000};
  return {64, 256, 1024, 4096, 16384, 65536, 100000};
}

// What a case's process tells; plain bytes through a pipe.
struct Outcome {
  Duration time;
  std::size_t selectable = 0, tied = 0, unselectable = 0, exact_path = 0;
  std::uint64_t digest = 0;  // of every verdict, margin and depth
};

struct Case {
  Outcome outcome;
  double peak = 0;  // MB
};

std::uint64_t digest(const KeySet& set) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
  const auto mix = [&](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
  for (const KeyVerdict& key : set.keys) {
    mix(static_cast<std::uint64_t>(key.verdict));
    mix(std::bit_cast<std::uint64_t>(key.margin));
    mix(std::bit_cast<std::uint64_t>(key.depth));
  }
  return hash;
}

Outcome decide(std::size_t n, std::size_t d, int threads, const Call& call) {
  Matrix<double> keys(n, d);
  Random random(call.seed, n << 32 | d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i]) value = random.normal();
  const Executor executor(threads);
  KeyOptions options;
  options.margins = Margins::bound;
  options.certificates = call.certificates;
  Outcome outcome;
  {
    const Stopwatch stopwatch(CLOCK_PROCESS_CPUTIME_ID);
    const KeySet set = decide_keys(keys.view(), {}, options, executor);
    outcome.time = stopwatch.elapsed();
    outcome.selectable = set.counts.selectable;
    outcome.tied = set.counts.tied;
    outcome.unselectable = set.counts.unselectable;
    outcome.exact_path = set.exact_path;
    outcome.digest = digest(set);
  }
  if (outcome.time.wall < 0.5) {
    const auto passes =
        repeat([&] { decide_keys(keys.view(), {}, options, executor); }, CLOCK_PROCESS_CPUTIME_ID);
    outcome.time = {median_cpu(passes), median_wall(passes)};
  }
  return outcome;
}

// Nothing if the process died, in particular of its alarm. n = 0: a process that does nothing.
std::optional<Case> run_in_process(std::size_t n, std::size_t d, int threads, const Call& call) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (!call.large) alarm(static_cast<unsigned>(std::ceil(2 * call.limit)));
    bool told = false;
    try {
      const Outcome outcome = n == 0 ? Outcome{} : decide(n, d, threads, call);
      told = write(ends[1], &outcome, sizeof outcome) == sizeof outcome;
    } catch (const std::exception& error) {
      fmt::print(stderr, "n = {}, d = {}: {}\n", n, d, error.what());
    }
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Case result;
  const bool told =
      child > 0 && read(ends[0], &result.outcome, sizeof result.outcome) == sizeof result.outcome;
  close(ends[0]);
  rusage usage{};
  int status = 0;
  if (child > 0 && wait4(child, &status, 0, &usage) != child) return std::nullopt;
  if (!told || status != 0) return std::nullopt;
  result.peak = static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in KiB
  return result;
}

std::string seconds(double value) {
  return value < 1e-3  ? fmt::format("{:.0f} µs", 1e6 * value)
         : value < 1.0 ? fmt::format("{:.1f} ms", 1e3 * value)
                       : fmt::format("{:.1f} s", value);
}

// Seconds that n keys will take if they grow from the last two sizes on as they did between them; at most
// quadratically, for that is what comparing all keys with all costs.
double expected(std::size_t n, const std::vector<std::pair<std::size_t, double>>& measured) {
  if (measured.empty()) return 0;
  const auto [last_n, last] = measured.back();
  double power = 2;
  if (measured.size() > 1) {
    const auto [before_n, before] = measured[measured.size() - 2];
    power = std::clamp(
        std::log(last / before) / std::log(static_cast<double>(last_n) / static_cast<double>(before_n)), 1.0,
        2.0);
  }
  return last * std::pow(static_cast<double>(n) / static_cast<double>(last_n), power);
}

int run(const Call& call) {
  const std::optional<Case> empty = run_in_process(0, 0, 1, call);
  const double baseline = empty ? empty->peak : 0;
  Json json = figures_of("keys_growth");
  json.update({{"seed", call.seed},
               {"certificates", call.certificates},
               {"empty_process_megabytes", baseline},
               {"rows", Json::array()}});
  fmt::print("Deciding n Gaussian keys in d dimensions, {}; float64, seed {}.\n",
             call.certificates ? "verdicts with certificates" : "verdicts only", call.seed);
  fmt::print(
      "normscope {} ({}), {}, {}; load average {:.1f}: above 1, others were running too and the time\n",
      version(), commit(), processor(), instruction_set(), load_average());
  fmt::print("from call to return is too long, while the CPU time of all threads, beside it, still holds.\n");
  fmt::print("Peak memory of the process includes the keys; an empty process has {:.0f} MB.\n\n", baseline);
  fmt::print("| d | n | selectable | 1 thread | CPU | CPU per key | 2 threads | CPU ");
  fmt::print("| peak, 1 thread | peak, 2 threads |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  bool fine = true;
  for (const std::size_t d : call.d) {
    std::vector<std::pair<std::size_t, double>> measured;
    for (const std::size_t n : call.n.empty() ? sizes_at(d) : call.n) {
      std::fflush(stdout);  // what is still held would be printed by the child too
      const double guess = expected(n, measured);
      if (!call.large && guess > call.limit) {
        fmt::print("| {} | {} | about {}: `--large` | | | | | | | |\n", d, n, seconds(guess));
        json["rows"].push_back({{"n", n}, {"d", d}, {"expected_seconds", guess}});
        continue;
      }
      const auto one = run_in_process(n, d, 1, call), two = run_in_process(n, d, 2, call);
      if (!one || !two) {
        fmt::print("| {} | {} | did not finish in {:.0f} s | | | | | | | |\n", d, n, 2 * call.limit);
        json["rows"].push_back({{"n", n}, {"d", d}, {"finished", false}});
        fine = fine && !call.large;
        break;
      }
      if (one->outcome.digest != two->outcome.digest) {
        fmt::print("| {} | {} | one thread and two threads disagree | | | | | | | |\n", d, n);
        json["rows"].push_back({{"n", n}, {"d", d}, {"threads_agree", false}});
        fine = false;
        continue;
      }
      measured.emplace_back(n, one->outcome.time.cpu);
      fmt::print("| {} | {} | {} | {} | {} | {:.1f} µs | {} | {} | {:.0f} MB | {:.0f} MB |\n", d, n,
                 one->outcome.selectable, seconds(one->outcome.time.wall), seconds(one->outcome.time.cpu),
                 1e6 * one->outcome.time.cpu / static_cast<double>(n), seconds(two->outcome.time.wall),
                 seconds(two->outcome.time.cpu), one->peak, two->peak);
      Json row = {{"n", n},
                  {"d", d},
                  {"selectable", one->outcome.selectable},
                  {"tied", one->outcome.tied},
                  {"unselectable", one->outcome.unselectable},
                  {"exact_path", one->outcome.exact_path}};
      for (const auto& [name, result] : {std::pair("one_thread", *one), std::pair("two_threads", *two)})
        row[name] = {{"seconds", result.outcome.time.wall},
                     {"cpu_seconds", result.outcome.time.cpu},
                     {"peak_megabytes", result.peak}};
      json["rows"].push_back(row);
    }
  }
  write_figures(call.json, json);
  return fine ? 0 : 1;
}

}  // namespace
Program benchmark() {
  return program("How the cost of deciding all keys grows with their number n and dimension d.", run);
}

}  // namespace normscope::bench
