// campaign [--keys N] [--flat M] [--largest D] [--seed S] [--threads T] [--draw INDEX] [--set INDEX]
//
// Decides at least N keys (default 1 000 000) of all families with the engine and compares every verdict and
// certificate with the exact oracle; then M sets (default 10 000) that lie in a flat up to rounding, of up to
// D dimensions (default 512), whose rank and verdicts must be those of the flat. Exit code 0: nothing wrong;
// 1: something is, with the first failures described so that they can be reproduced (--draw INDEX repeats a
// single draw, --set INDEX a single flat set); 2: wrong call. Started by mpirun, its processes share the draws.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/join.h"
#include "core/run_pieces.h"
#include "normscope/error.h"
#include "normscope/executor.h"
#include "oracle/compare.h"
#include "oracle/flat_sets.h"

namespace {

using normscope::Executor;
using normscope::run_pieces;
using normscope::oracle::compare_draw;
using normscope::oracle::compare_flat_set;
using normscope::oracle::Comparison;
using normscope::oracle::FlatTally;
using normscope::oracle::key_families;
using normscope::oracle::Tally;

constexpr std::size_t failures_shown = 5;
// Fixed, so that the set of draws does not depend on the number of threads.
constexpr std::uint64_t draws_per_batch = 1024;

// Of a fixed number of draws, so many to a piece.
template <class Result, class Draw>
std::vector<Result> draw_batch(const char* name, std::uint64_t first, std::size_t count, std::size_t together,
                               const Executor& executor, const Draw& draw) {
  const normscope::PieceWork work{name, std::vector<double>(count / together, 1), false, {}, {}};
  const auto parts = run_pieces<std::vector<Result>>(executor, work, [&](std::size_t piece, const Executor&) {
    std::vector<Result> part;
    for (std::size_t k = piece * together; k < (piece + 1) * together; ++k) part.push_back(draw(first + k));
    return part;
  });
  std::vector<Result> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

struct Call {
  std::uint64_t keys = 1'000'000, flat = 10'000, largest = 512, seed = 1, draw = 0;
  int threads = 0;
  bool single = false, single_set = false;
};

bool parse(int argc, char** argv, Call& call) {
  for (int argument = 1; argument + 1 < argc; argument += 2) {
    const std::string_view name = argv[argument], text = argv[argument + 1];
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    if (name == "--keys") {
      call.keys = value;
    } else if (name == "--flat") {
      call.flat = value;
    } else if (name == "--largest" && value >= 2 && value <= 4096) {
      call.largest = value;
    } else if (name == "--seed") {
      call.seed = value;
    } else if (name == "--threads" && value <= 4096) {
      call.threads = static_cast<int>(value);
    } else if (name == "--draw") {
      call.draw = value;
      call.single = true;
    } else if (name == "--set") {
      call.draw = value;
      call.single_set = true;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

void print_row(const char* name, const Tally& tally) {
  const double share =
      tally.keys == 0 ? 0 : 100.0 * static_cast<double>(tally.exact_path) / static_cast<double>(tally.keys);
  std::printf("%-24s %9zu %10zu %9zu %12zu %6zu %8zu %8.2f%% %8zu %12zu\n", name, tally.keys,
              tally.selectable, tally.tied, tally.unselectable, tally.wrong, tally.invalid, share,
              tally.rounded, tally.reduced);
}

class Progress {
 public:
  Progress(std::uint64_t goal, const char* what) : goal_(goal), what_(what) {}

  void show(std::size_t done) {
    const auto now = Clock::now();
    if (now - shown_ < std::chrono::seconds(2)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(done) / seconds;
    const double left = done >= goal_ ? 0 : static_cast<double>(goal_ - done) / rate;
    std::fprintf(stderr, "%zu of %llu %s, %.0f per second, %.0f s left\n", done,
                 static_cast<unsigned long long>(goal_), what_, rate, left);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t goal_;
  const char* what_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

bool run_flat(const Call& call, const Executor& executor) {
  constexpr std::uint64_t sets_per_batch = 64;
  Progress progress(call.flat, "flat sets");
  FlatTally total;
  if (call.single_set) total = compare_flat_set(call.seed, call.draw, call.largest);
  for (std::uint64_t first = 0; first < call.flat && !call.single_set; first += sets_per_batch) {
    auto batch = draw_batch<FlatTally>(
        "flat sets", first, sets_per_batch, 4, executor,
        [&](std::uint64_t index) { return compare_flat_set(call.seed, index, call.largest); });
    for (FlatTally& tally : batch) total += std::move(tally);
    progress.show(total.sets);
  }
  for (std::size_t k = 0; k < std::min(failures_shown * 4, total.failures.size()); ++k)
    std::printf("%s\n", total.failures[k].c_str());
  const bool fine = total.wrong_rank == 0 && total.wrong == 0 && total.invalid == 0;
  std::printf(
      "\nseed %llu: %zu flat sets of %zu keys: %zu of another rank, %zu wrong verdicts, %zu invalid "
      "certificates or "
      "bounds (%zu verdicts the errors of the keys might change, of which %zu differ): %s\n",
      static_cast<unsigned long long>(call.seed), total.sets, total.keys, total.wrong_rank, total.wrong,
      total.invalid, total.not_robust, total.within_errors, fine ? "as in the flat" : "FAILED");
  return fine;
}

int run(const Call& call, const Executor& executor) {
  std::vector<Tally> tallies(key_families().size());
  Tally total;
  std::vector<std::string> failures;
  const auto add = [&](Comparison& comparison) {
    tallies[comparison.family] += comparison.tally;
    total += comparison.tally;
    for (std::string& failure : comparison.failures) {
      if (failures.size() < failures_shown) failures.push_back(std::move(failure));
    }
  };

  if (call.single) {
    Comparison comparison = compare_draw(call.seed, call.draw);
    add(comparison);
  } else {
    Progress progress(call.keys, "keys");
    for (std::uint64_t first = 0; total.keys < call.keys; first += draws_per_batch) {
      auto batch =
          draw_batch<Comparison>("draws", first, draws_per_batch, 32, executor,
                                 [&](std::uint64_t index) { return compare_draw(call.seed, index); });
      for (Comparison& comparison : batch) add(comparison);
      progress.show(total.keys);
    }
  }

  std::printf("%-24s %9s %10s %9s %12s %6s %8s %9s %8s %12s\n", "family", "keys", "selectable", "tied",
              "unselectable", "wrong", "invalid", "exact", "rounded", "rank reduced");
  for (std::size_t family = 0; family < tallies.size(); ++family) {
    if (tallies[family].keys > 0) print_row(key_families()[family].name, tallies[family]);
  }
  print_row("all", total);
  for (const std::string& failure : failures) std::printf("\n%s", failure.c_str());
  const bool fine = total.wrong == 0 && total.invalid == 0;
  std::printf("\nseed %llu: %zu keys, %zu wrong verdicts, %zu invalid certificates: %s\n",
              static_cast<unsigned long long>(call.seed), total.keys, total.wrong, total.invalid,
              fine ? "all verdicts agree with the oracle" : "FAILED");
  return fine ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Call call;
  if (!parse(argc, argv, call)) {
    std::fprintf(stderr,
                 "usage: campaign [--keys N] [--flat M] [--largest D] [--seed S] [--threads T] [--draw "
                 "INDEX] [--set INDEX]\n");
    return 2;
  }
  std::atomic<bool> stop = false;
  try {
    const auto job = normscope::cluster::join_job(stop);
    normscope::cluster::Ending ending;
    try {
      job->require_same(normscope::cluster::sameness({argv + 1, argv + argc}));
      if (!job->first() && (std::freopen("/dev/null", "w", stdout) == nullptr ||
                            std::freopen("/dev/null", "w", stderr) == nullptr))
        throw normscope::Error("The standard streams could not be closed.");
      const Executor executor(call.threads, &stop, job->processes() > 1 ? job.get() : nullptr);
      ending.code = !call.single_set && (call.keys > 0 || call.single) ? run(call, executor) : 0;
      if (!call.single && !run_flat(call, executor)) ending.code = 1;
    } catch (const normscope::Cancelled&) {  // another process says why
    } catch (const std::exception& error) {
      ending = {1, error.what()};
    }
    return job->end(ending,
                    [](const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); });
  } catch (const normscope::cluster::NotTheOneToSpeak& other) {
    return other.code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
