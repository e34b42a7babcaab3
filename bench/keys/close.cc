// bench_keys_close: keys that lie so close together, beside the size of the set, that doubles in a common frame do
// not tell them apart: what the search from a key's own place and rational arithmetic take. One thread; times are
// its CPU time. How many keys rational arithmetic decided, and what it left open, stands beside. Prints Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/random.h"
#include "program.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Call {
  std::vector<std::size_t> d = {24, 64};
  std::size_t n = 500;
  std::uint64_t seed = 0;
  std::string set, json;

  void add_options(CLI::App& app) {
    app.add_option("--d", d, "dimensions, e.g. --d 24,64")->delimiter(',')->check(CLI::Range(1, 10000));
    app.add_option("--n", n, "keys of a set")->check(CLI::Range(2, 1000000));
    app.add_option("--set", set, "only sets whose name begins so");
    app.add_option("--seed", seed, "of the keys");
  }
};

Matrix<double> gaussian(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i]) value = random.normal();
  return keys;
}

// Half of the keys are others but for one unit in the last place of some coordinates.
Matrix<double> near_duplicates(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys = gaussian(random, n, d);
  for (std::size_t i = n / 2; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) {
      const double value = keys(i - n / 2, c);
      const std::uint64_t step = random.below(3);
      keys(i, c) =
          step == 2 ? value
                    : std::nextafter(value, (step == 0 ? 1 : -1) * std::numeric_limits<double>::infinity());
    }
  return keys;
}

// Shells around the origin whose sizes fall from 1 to 10⁻⁴⁰, a few keys in each: every key sees all those of
// smaller shells as one.
Matrix<double> decades(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys = gaussian(random, n, d);
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::pow(10.0, -40.0 * static_cast<double>(i) / static_cast<double>(n));
    for (double& value : keys[i]) value *= size;
  }
  return keys;
}

// Three clusters whose sizes and distances are 10⁻²⁰ … 10²⁰.
Matrix<double> clusters(Random& random, std::size_t n, std::size_t d) {
  const Matrix<double> centres = gaussian(random, 3, d);
  constexpr double kDistance[] = {1e20, 1e3, 1e-18}, kSize[] = {1e12, 1e-4, 1e-20};
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c)
      keys(i, c) = kDistance[i % 3] * centres(i % 3, c) + kSize[i % 3] * random.normal();
  return keys;
}

// Half of the keys are means of a few others, rounded: within a unit in the last place of a face.
Matrix<double> midpoints(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys = gaussian(random, n, d);
  for (std::size_t i = n / 2; i < n; ++i) {
    const std::size_t parts = 2 + random.below(4);
    for (double& value : keys[i]) value = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t other = random.below(n / 2);
      for (std::size_t c = 0; c < d; ++c) keys(i, c) += keys(other, c) / static_cast<double>(parts);
    }
  }
  return keys;
}

struct Family {
  const char* name;
  Matrix<double> (*draw)(Random&, std::size_t, std::size_t);
};
constexpr Family kFamilies[] = {{"near-duplicates of 1 ulp", near_duplicates},
                                {"shells over forty decades", decades},
                                {"three clusters over forty decades", clusters},
                                {"rounded means of a few", midpoints}};

int run(const Call& call) {
  Json json = figures_of("keys_close");
  json.update({{"seed", call.seed}, {"n", call.n}, {"rows", Json::array()}});
  fmt::print(
      "normscope {} ({}), {}, {}; {} keys, float64, rank full, one thread, seed {}; load average {:.1f}\n\n",
      version(), commit(), processor(), instruction_set(), call.n, call.seed, load_average());
  fmt::print("| set | d | margins | selectable | tied | unselectable | rational | open | CPU |\n");
  fmt::print("|---|--:|---|--:|--:|--:|--:|--:|--:|\n");
  const Executor one_thread(1);
  for (const Family& family : kFamilies) {
    if (!std::string(family.name).starts_with(call.set)) continue;
    for (const std::size_t d : call.d)
      for (const Margins margins : {Margins::bound, Margins::exact}) {
        Random random(call.seed, d);
        const Matrix<double> keys = family.draw(random, call.n, d);
        KeyOptions options;
        options.rank = RankPolicy::full;
        options.margins = margins;
        const Stopwatch stopwatch;
        const KeySet set = decide_keys(keys.view(), {}, options, one_thread);
        const double cpu = stopwatch.elapsed().cpu;
        const auto open = static_cast<std::size_t>(
            std::count_if(set.keys.begin(), set.keys.end(), [](const KeyVerdict& key) {
              return key.verdict == Verdict::undecided || key.margin_at_most.has_value();
            }));
        fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {:.3f} s |\n", family.name, d, name_of(margins),
                   set.counts.selectable, set.counts.tied, set.counts.unselectable, set.exact_path, open,
                   cpu);
        std::fflush(stdout);
        json["rows"].push_back({{"set", family.name},
                                {"d", d},
                                {"margins", name_of(margins)},
                                {"selectable", set.counts.selectable},
                                {"tied", set.counts.tied},
                                {"unselectable", set.counts.unselectable},
                                {"rational", set.exact_path},
                                {"open", open},
                                {"cpu_seconds", cpu}});
      }
  }
  write_figures(call.json, json);
  return 0;
}

}  // namespace
Program benchmark() {
  return program("Keys that lie so close together that doubles hardly tell them apart.", run);
}

}  // namespace normscope::bench
