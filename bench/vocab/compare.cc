// bench_vocab: which tokens of a vocabulary can be put on top? All tokens by normscope, a sample by HiGHS on
// the same rows; answers are compared before any time is shown. Exit code 1: they disagree. Times are not
// judged.
#include <fmt/format.h>

#include <cstdio>

#include "keys/competitor.h"
#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "program.h"

namespace normscope::bench {
namespace {

struct Call {
  std::string file, tensor, json;
  std::size_t tokens = 4000, width = 64, sample = 4;

  void add_options(CLI::App& app) {
    app.add_option("FILE", file, "a matrix with a row per token; without it Gaussian rows are drawn");
    app.add_option("--tensor", tensor, "which tensor of the file");
    app.add_option("--tokens", tokens, "rows to draw")->check(CLI::Range(2, 1000000));
    app.add_option("--width", width, "and their width")->check(CLI::Range(1, 4096));
    app.add_option("--sample", sample, "tokens HiGHS is asked about")->check(CLI::Range(1, 1000));
  }
};

struct Rows {
  Matrix<double> values;
  double unit_roundoff = 0x1p-53, smallest_rounding = 0;
};

// The rows of the file, or, without one, Gaussian ones of the size asked for.
Rows rows_of(const Call& call) {
  Rows rows;
  if (call.file.empty()) {
    rows.values = Matrix<double>(call.tokens, call.width);
    Random random(0);
    for (std::size_t i = 0; i < call.tokens; ++i)
      for (double& value : rows.values[i]) value = random.normal();
    return rows;
  }
  Tensor tensor = read_tensor(call.file, call.tensor.empty() ? std::nullopt : std::optional(call.tensor));
  rows.unit_roundoff = unit_roundoff(tensor.dtype);
  rows.smallest_rounding = smallest_rounding(tensor.dtype);
  rows.values = Matrix<double>(tensor.shape.at(0), tensor.shape.at(1), std::move(tensor.values));
  return rows;
}

int run(const Call& call) {
  const Rows rows = rows_of(call);
  KeyOptions options;
  options.margins = Margins::bound;
  options.unit_roundoff = rows.unit_roundoff;
  options.smallest_rounding = rows.smallest_rounding;
  const Executor one_thread(1);
  const Stopwatch stopwatch;
  const KeySet set = decide_keys(rows.values.view(), {}, options, one_thread);
  const Duration ours = stopwatch.elapsed();
  fmt::print("{} × {}, normscope {} ({}): {} selectable, {} tied, {} unselectable, every one certified\n",
             set.n, set.d, version(), instruction_set(), set.counts.selectable, set.counts.tied,
             set.counts.unselectable);

  std::vector<std::size_t> sample;
  for (std::size_t k = 0; k < call.sample; ++k) sample.push_back(k * set.n / call.sample);
  const Answer theirs = ask_highs_membership({rows.values.view(), sample, 1});
  nlohmann::ordered_json json = figures_of("vocab");
  json.update({{"threads", 1},
               {"tokens", set.n},
               {"width", set.d},
               {"selectable", set.counts.selectable},
               {"competitor", theirs.competitor}});
  const double per_token = 1e6 * ours.cpu / static_cast<double>(set.n);
  json["microseconds_per_token"] = {{"normscope", per_token}};
  if (!theirs.absent.empty()) {
    json["absent"] = theirs.absent;
    write_figures(call.json, json);
    fmt::print("normscope {:.1f} µs per token, one thread; {}: {}\n", per_token, theirs.competitor,
               theirs.absent);
    return 0;
  }
  std::size_t differ = 0;
  for (std::size_t k = 0; k < theirs.keys.size(); ++k)
    if (theirs.selectable[k] != (set.keys[theirs.keys[k]].verdict == Verdict::selectable)) ++differ;
  fmt::print("{}: {} tokens, {} decided differently\n", theirs.competitor, theirs.keys.size(), differ);
  if (differ > 0) return 1;
  const double other = 1e6 * median_cpu(theirs.passes) / static_cast<double>(theirs.keys_per_pass);
  fmt::print("CPU time per token, one thread: normscope {:.1f} µs, {} {:.0f} µs, ratio {:.0f}\n", per_token,
             theirs.competitor, other, other / per_token);
  json["tokens_compared"] = theirs.keys.size();
  json["microseconds_per_token"]["competitor"] = other;
  json["ratio"] = other / per_token;
  write_figures(call.json, json);
  return 0;
}

}  // namespace
Program benchmark() {
  return program("Which tokens can be put on top? Times of normscope beside HiGHS.", run);
}

}  // namespace normscope::bench
