// campaign [--keys N] [--seed S] [--threads T] [--draw INDEX]
//
// Decides at least N keys (default 1 000 000) of all families with the engine and compares every verdict and
// certificate with the exact oracle. Exit code 0: nothing wrong; 1: something is, with the first failures
// described so that they can be reproduced (--draw INDEX repeats a single draw); 2: wrong call.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "normscope/executor.h"
#include "oracle/compare.h"

namespace {

using normscope::Executor;
using normscope::oracle::compare_draw;
using normscope::oracle::Comparison;
using normscope::oracle::key_families;
using normscope::oracle::Tally;

constexpr std::size_t failures_shown = 5;
// Fixed, so that the set of draws does not depend on the number of threads.
constexpr std::uint64_t draws_per_batch = 1024;

struct Call {
  std::uint64_t keys = 1'000'000, seed = 1, draw = 0;
  int threads = 0;
  bool single = false;
};

bool parse(int argc, char** argv, Call& call) {
  for (int argument = 1; argument + 1 < argc; argument += 2) {
    const std::string_view name = argv[argument], text = argv[argument + 1];
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    if (name == "--keys") {
      call.keys = value;
    } else if (name == "--seed") {
      call.seed = value;
    } else if (name == "--threads" && value <= 4096) {
      call.threads = static_cast<int>(value);
    } else if (name == "--draw") {
      call.draw = value;
      call.single = true;
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
              tally.rounded, tally.rank_differs);
}

class Progress {
 public:
  explicit Progress(std::uint64_t goal) : goal_(goal) {}

  void show(std::size_t done) {
    const auto now = Clock::now();
    if (now - shown_ < std::chrono::seconds(2)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(done) / seconds;
    const double left = done >= goal_ ? 0 : static_cast<double>(goal_ - done) / rate;
    std::fprintf(stderr, "%zu of %llu keys, %.0f per second, %.0f s left\n", done,
                 static_cast<unsigned long long>(goal_), rate, left);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t goal_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

int run(const Call& call) {
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
    const Executor executor(call.threads);
    Progress progress(call.keys);
    std::vector<Comparison> batch(draws_per_batch);
    for (std::uint64_t first = 0; total.keys < call.keys; first += draws_per_batch) {
      executor.for_each(batch.size(), [&](std::size_t k) { batch[k] = compare_draw(call.seed, first + k); });
      for (Comparison& comparison : batch) add(comparison);
      progress.show(total.keys);
    }
  }

  std::printf("%-24s %9s %10s %9s %12s %6s %8s %9s %8s %12s\n", "family", "keys", "selectable", "tied",
              "unselectable", "wrong", "invalid", "exact", "rounded", "rank differs");
  for (std::size_t family = 0; family < tallies.size(); ++family) {
    if (tallies[family].keys + tallies[family].rank_differs > 0)
      print_row(key_families()[family].name, tallies[family]);
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
    std::fprintf(stderr, "usage: campaign [--keys N] [--seed S] [--threads T] [--draw INDEX]\n");
    return 2;
  }
  return run(call);
}
