// bench_keys: which keys can attention select? Every competitor on the same keys; answers are compared before
// any time is shown. Exit code 1: somebody disagrees. Times are not judged.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "competitor.h"
#include "normscope/random.h"
#include "program.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Size {
  std::size_t n, d;
};
constexpr std::array<Size, 5> kSizes = {{{60, 8}, {256, 5}, {256, 8}, {1024, 8}, {1024, 64}}};

struct Call {
  std::uint64_t seed = 0;
  std::size_t sample = 40, passes = 3;
  std::string json;

  void add_options(CLI::App& app) {
    app.add_option("--seed", seed, "of the keys");
    app.add_option("--sample", sample, "keys decided by each LP solver")->check(CLI::Range(1, 1024));
    app.add_option("--passes", passes, "over that sample")->check(CLI::Range(1, 1000));
  }
};

Matrix<double> gaussian_keys(Size size, std::uint64_t seed) {
  Matrix<double> keys(size.n, size.d);
  Random random(seed, size.n << 32 | size.d);
  for (std::size_t i = 0; i < size.n; ++i)
    for (double& value : keys[i]) value = random.normal();
  return keys;
}

std::size_t count_disagreements(const Answer& answer, const Answer& ours) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < answer.keys.size(); ++k)
    if (answer.selectable[k] != ours.selectable[answer.keys[k]]) ++count;
  return count;
}

// Code points, as many columns as they take here.
std::string padded(const std::string& text, std::size_t width) {
  const auto points = static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  return text + std::string(width > points ? width - points : 0, ' ');
}

std::string microseconds(double value) {
  return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 1e4 ? 1 : 0);
}

class Comparison {
 public:
  explicit Comparison(const Call& call) : call_(call) {
    json_.update({{"threads", 1},
                  {"seed", call.seed},
                  {"clock", "CPU time of the calling thread"},
                  {"rows", Json::array()}});
    fmt::print(
        "Which keys can attention select? Gaussian keys, float64, seed {}; normscope {} ({})\n"
        "One thread each, {} (ours: {}); µs of the thread's CPU time per key; load average {:.1f}\n"
        "LPs decide {} keys spread over the set, {} passes; the others all n\n\n",
        call.seed, version(), commit(), processor(), instruction_set(), load_average(), call.sample,
        call.passes);
    fmt::print("{:>5} {:>3}  {} {:>10} {:>10} {:>10}  {}\n", "n", "d", padded("competitor", kNameWidth),
               "min", "median", "ratio", "agreement");
  }

  // False if somebody disagrees; then no times of this size are shown.
  bool run(Size size) {
    const Matrix<double> keys = gaussian_keys(size, call_.seed);
    std::vector<std::size_t> sample;
    const std::size_t asked = std::min(size.n, call_.sample);
    for (std::size_t k = 0; k < asked; ++k) sample.push_back(k * size.n / asked);
    const Question question{keys.view(), sample, call_.passes};

    std::vector<Answer> answers;
    for (const auto ask :
         {ask_normscope, ask_normscope_margins, ask_openblas, ask_clp_membership, ask_clp_chebyshev,
          ask_highs_membership, ask_highs_chebyshev, ask_qhull, ask_extremalrays})
      answers.push_back(ask(question));
    const Answer& ours = answers[0];
    const auto selectable =
        static_cast<std::size_t>(std::count(ours.selectable.begin(), ours.selectable.end(), true));

    bool agree = true;
    for (const Answer& answer : answers) {
      if (!answer.absent.empty()) continue;
      const std::size_t wrong = count_disagreements(answer, ours);
      if (wrong == 0) continue;
      agree = false;
      fmt::print("{:>5} {:>3}  {} {} of {} keys decided differently\n", size.n, size.d,
                 padded(answer.competitor, kNameWidth), wrong, answer.keys.size());
    }
    for (const Answer& answer : answers) report(size, answer, ours, selectable, agree);
    fmt::print("\n");
    std::fflush(stdout);
    return agree;
  }

  const Json& json() const { return json_; }

 private:
  static constexpr std::size_t kNameWidth = 40;

  void report(Size size, const Answer& answer, const Answer& ours, std::size_t selectable, bool agree) {
    Json row = {{"n", size.n}, {"d", size.d}, {"selectable", selectable}, {"competitor", answer.competitor}};
    std::string least = "-", middle = "-", ratio = "-", agreement = answer.absent;
    if (!answer.absent.empty()) {
      row["absent"] = answer.absent;
    } else {
      row["keys_compared"] = answer.keys.size();
      row["disagreements"] = count_disagreements(answer, ours);
      agreement = &answer == &ours ? fmt::format("{} of {} selectable", selectable, size.n)
                                   : fmt::format("{} keys, 0 differ", answer.keys.size());
    }
    if (answer.absent.empty() && agree) {
      const double unit = 1e6 / static_cast<double>(answer.keys_per_pass);
      const double min = least_cpu(answer.passes) * unit, median = median_cpu(answer.passes) * unit;
      const double times = median * static_cast<double>(ours.keys_per_pass) / (1e6 * median_cpu(ours.passes));
      row["passes"] = answer.passes.size();
      row["keys_per_pass"] = answer.keys_per_pass;
      row["microseconds_per_key"] = {
          {"min", min}, {"median", median}, {"median_wall", median_wall(answer.passes) * unit}};
      row["ratio"] = times;
      least = microseconds(min);
      middle = microseconds(median);
      ratio = fmt::format("{:.{}f}", times, times < 10 ? 2 : 0);
    }
    json_["rows"].push_back(row);
    if (agree)
      fmt::print("{:>5} {:>3}  {} {:>10} {:>10} {:>10}  {}\n", size.n, size.d,
                 padded(answer.competitor, kNameWidth), least, middle, ratio, agreement);
  }

  const Call& call_;
  Json json_ = figures_of("keys");
};

int run(const Call& call) {
  Comparison comparison(call);
  bool agree = true;
  for (const Size size : kSizes) agree = comparison.run(size) && agree;
  write_figures(call.json, comparison.json());
  return agree ? 0 : 1;
}

}  // namespace
Program benchmark() {
  return program("Which keys can attention select? Times of normscope beside LP solvers, Qhull and OpenBLAS.",
                 run);
}

}  // namespace normscope::bench
