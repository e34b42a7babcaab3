// bench_keys_products: deciding all keys of a set beside forming K·Kᵀ, which is what comparing all keys with all
// takes: by SGEMM into memory that is there, and as NumPy's K @ K.T does, into new memory by SSYRK, whose other
// half is then mirrored. float32 Gaussian keys, one thread; all take turns, so that whatever else the machine
// does hits all. Times are CPU time of the thread. Prints Markdown.
#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/random.h"
#include "program.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Call {
  std::vector<std::size_t> n = {1024, 1024, 8192, 4096, 4096, 16384}, d = {8, 64, 16, 64, 384, 64};
  std::size_t turns = 5;
  double spread = 0, seconds = 40;
  bool bounds_only = false;
  std::uint64_t seed = 0;
  std::string json;

  void add_options(CLI::App& app) {
    app.add_option("--n", n, "numbers of keys")->delimiter(',')->check(CLI::Range(2, 10000000));
    app.add_option("--d", d, "their dimensions, one for each number")
        ->delimiter(',')
        ->check(CLI::Range(1, 100000));
    app.add_option("--turns", turns, "of each, at least")->check(CLI::Range(1, 1000));
    app.add_option("--seconds", seconds,
                   "exact margins are left out where a turn takes longer than a quarter of this")
        ->check(CLI::Range(0.1, 1e6));
    app.add_option("--spread", spread, "of the logarithms of the keys' norms (0: Gaussian keys as they are)")
        ->check(CLI::Range(0.0, 10.0));
    app.add_flag("--bounds-only", bounds_only, "no exact margins");
    app.add_option("--seed", seed, "of the keys");
  }
};

double thread_seconds(const auto& body) {
  const Stopwatch stopwatch;
  body();
  return stopwatch.elapsed().cpu;
}

struct Times {
  std::vector<double> product, numpy, bound, exact;  // seconds per key
};

double least(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

std::string microseconds(const std::vector<double>& times) {
  return times.empty() ? "–" : fmt::format("{:.2f} ({:.2f})", 1e6 * least(times), 1e6 * median(times));
}

std::string ratio(const std::vector<double>& times, const std::vector<double>& other) {
  return times.empty() ? "–" : fmt::format("{:.2f}×", least(times) / least(other));
}

void form_like_numpy(const std::vector<float>& keys, std::size_t n, std::size_t d) {
  const std::unique_ptr<float[]> scores(new float[n * n]);
  const auto size = static_cast<blasint>(n), depth = static_cast<blasint>(d);
  cblas_ssyrk(CblasRowMajor, CblasUpper, CblasNoTrans, size, depth, 1, keys.data(), depth, 0, scores.get(),
              size);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) scores[j * n + i] = scores[i * n + j];
}

int run(const Call& call) {
  openblas_set_num_threads(1);
  Json json = figures_of("keys_products");
  json.update({{"seed", call.seed}, {"spread", call.spread}, {"rows", Json::array()}});
  fmt::print("Deciding all keys beside K·Kᵀ (OpenBLAS {}), float32 keys, one thread, seed {}.\n",
             openblas_get_corename(), call.seed);
  fmt::print("normscope {} ({}), {}, {}; load average {:.1f}; µs of CPU time per key, least (median).\n\n",
             version(), commit(), processor(), instruction_set(), load_average());
  fmt::print(
      "| n | d | selectable | K·Kᵀ, SGEMM | as NumPy | bound | to NumPy | to SGEMM | exact | to NumPy |\n");
  fmt::print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  const Executor one_thread(1);
  for (std::size_t k = 0; k < std::min(call.n.size(), call.d.size()); ++k) {
    const std::size_t n = call.n[k], d = call.d[k];
    Random random(call.seed, n << 32 | d);
    std::vector<float> single(n * d), scores(n * n);
    Matrix<double> keys(n, d);
    for (std::size_t i = 0; i < n; ++i) {
      const double length = call.spread > 0 ? std::exp(call.spread * random.normal()) : 1;
      for (std::size_t c = 0; c < d; ++c)
        keys(i, c) = single[i * d + c] = static_cast<float>(length * random.normal());
    }
    KeyOptions options;
    options.unit_roundoff = 0x1p-24;
    Times times;
    KeyCounts counts[2];
    const auto decide = [&](Margins margins) {
      options.margins = margins;
      counts[margins == Margins::exact ? 1 : 0] = decide_keys(keys.view(), {}, options, one_thread).counts;
    };
    const auto size = static_cast<blasint>(n), depth = static_cast<blasint>(d);
    double spent = 0;
    bool exact = !call.bounds_only;
    for (std::size_t turn = 0; turn <= call.turns || (spent < 1 && turn < 1000); ++turn) {
      Times now;
      now.product.push_back(thread_seconds([&] {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size, size, depth, 1, single.data(), depth,
                    single.data(), depth, 0, scores.data(), size);
      }));
      now.numpy.push_back(thread_seconds([&] { form_like_numpy(single, n, d); }));
      now.bound.push_back(thread_seconds([&] { decide(Margins::bound); }));
      if (exact) now.exact.push_back(thread_seconds([&] { decide(Margins::exact); }));
      spent += now.product[0] + now.numpy[0] + now.bound[0] + (exact ? now.exact[0] : 0);
      if (turn == 0) {  // warms up
        exact = exact && now.exact[0] < call.seconds / 4;
        spent = 0;
        continue;
      }
      times.product.push_back(now.product[0] / static_cast<double>(n));
      times.numpy.push_back(now.numpy[0] / static_cast<double>(n));
      times.bound.push_back(now.bound[0] / static_cast<double>(n));
      if (exact) times.exact.push_back(now.exact[0] / static_cast<double>(n));
      if (spent > call.seconds) break;
    }
    if (!call.bounds_only && (counts[0].selectable != counts[1].selectable)) {
      fmt::print(stderr, "n = {}, d = {}: bounds and exact margins disagree\n", n, d);
      return 1;
    }
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", n, d, counts[0].selectable,
               microseconds(times.product), microseconds(times.numpy), microseconds(times.bound),
               ratio(times.bound, times.numpy), ratio(times.bound, times.product), microseconds(times.exact),
               ratio(times.exact, times.numpy));
    std::fflush(stdout);
    json["rows"].push_back({{"n", n},
                            {"d", d},
                            {"selectable", counts[0].selectable},
                            {"product", times.product},
                            {"numpy", times.numpy},
                            {"bound", times.bound},
                            {"exact", times.exact}});
  }
  write_figures(call.json, json);
  return 0;
}

}  // namespace
Program benchmark() {
  return program("Deciding all keys of a set beside forming K·Kᵀ.", run);
}

}  // namespace normscope::bench
