// train_ops test|grad|perf|list [part of an op's name]
//
//   test   every op in float and in double against its equation, and its gradients in float against double
//   grad   every gradient in double against central differences of the equation
//   perf   time of forward and backward in float at the shape of the majority task; no verdict
//   list   the rows of the table
//
// test and grad run for every instruction set that the machine supports. Exit code 1 if anything failed.
// In this order.
// clang-format off
#include "core/targets.h"
#include <hwy/highway.h>
// clang-format on

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string_view>

#include "normscope/random.h"
#include "ops/ops.h"

namespace normscope::ops {
namespace {

// A sum of n products in precision u is off by at most n·u·Σ|terms|. The longest chains here (a layer at
// length 50) are some 300 roundings deep, and the largest value stands for Σ|terms|: 300·2⁻²⁴ = 2e-5 for
// float and 3e-14 for double. Seen are 1.3e-6 and 2.6e-14. Double is allowed more, since Highway's Exp and
// Log cost a few ulp each and a projection loses what the condition of VVᵀ takes, which the count leaves out;
// in float the count has room for both.
constexpr double kFloatTolerance = 2e-5, kDoubleTolerance = 1e-12;

// Five-point differences of step h are off by h⁴/30 times the fifth derivative, and by 1.5·2⁻⁵³·|L|/h: at h =
// 1e-3 by 3e-14·L⁽⁵⁾ and 2e-13·|L|. The fifth derivative of a norm goes with the fifth power of 1/‖y‖, and
// relu has kinks, so smaller steps are tried before a number counts as wrong: at 1e-5 rounding still leaves
// 2e-11·|L|, where L is of order 10 and gradients of order 1. A wrong gradient agrees at no step.
constexpr double kSteps[] = {1e-3, 1e-4, 1e-5}, kGradientTolerance = 1e-7;

double largest(const Array& array) {
  double value = 0;
  for (const double entry : array.values()) value = std::max(value, std::fabs(entry));
  return value;
}
double largest(const Arrays& arrays) {
  double value = 0;
  for (const Named& array : arrays) value = std::max(value, largest(array.value));
  return value;
}

struct Report {
  std::size_t checks = 0, failures = 0;
  double worst_float = 0, worst_double = 0, worst_gradient = 0;  // relative to the largest value

  void fail(const Row& row, std::string_view target, const std::string& what) {
    ++failures;
    fmt::print("FAILED {} [{}] on {}: {}\n", row.name, row.shape, target, what);
  }
  // One line per array that differs: its worst entry. The distances are relative to `scale`.
  void compare(const Row& row, std::string_view target, const std::string& what, const Array& expected,
               const Array& got, double scale, double tolerance, double& worst) {
    ++checks;
    if (expected.rows() != got.rows() || expected.cols() != got.cols()) {
      return fail(row, target,
                  fmt::format("{} is {}x{} instead of {}x{}", what, got.rows(), got.cols(), expected.rows(),
                              expected.cols()));
    }
    double most = -1;
    std::size_t place = 0, wrong = 0;
    for (std::size_t i = 0; i < expected.values().size(); ++i) {
      const double distance = std::fabs(got.data()[i] - expected.data()[i]);
      if (!(distance <= tolerance * scale)) ++wrong;
      if (!(distance <= most) && !(std::isnan(most))) most = distance, place = i;  // NaN stays
    }
    if (scale > 0) worst = std::max(worst, most / scale);
    if (wrong == 0) return;
    fail(row, target,
         fmt::format(
             "{} at ({}, {}): expected {:.17g}, got {:.17g} ({} of {} entries beyond {:.1e} of {:.3g})", what,
             place / expected.cols(), place % expected.cols(), expected.data()[place], got.data()[place],
             wrong, expected.values().size(), tolerance, scale));
  }
};

Array seed_of(const Row& row, const Array& output) {
  Array seed = random_array("seed", output.rows(), output.cols(), row.name + row.shape);
  if (row.adjust_seed) row.adjust_seed(seed);
  return seed;
}

struct Outcome {
  Array output;
  Arrays gradients;
  std::string complaint;
};
Outcome run(Work& work, const Array& seed) {
  work.forward();
  work.seed(seed);
  work.backward();
  return {work.output(), work.gradients(), work.complaint()};
}

void test(const Row& row, std::string_view target, Report& report) {
  const Array expected = row.reference(row.arrays), seed = seed_of(row, expected);
  const Outcome in_float = run(*row.in_float(row.arrays), seed),
                in_double = run(*row.in_double(row.arrays), seed);
  const double scale = largest(expected), gradient_scale = largest(in_double.gradients);
  report.compare(row, target, "float output", expected, in_float.output, scale, kFloatTolerance,
                 report.worst_float);
  report.compare(row, target, "double output", expected, in_double.output, scale, kDoubleTolerance,
                 report.worst_double);
  for (std::size_t a = 0; a < in_double.gradients.size(); ++a) {
    report.compare(row, target, "float gradient of " + in_double.gradients[a].name,
                   in_double.gradients[a].value, in_float.gradients[a].value, gradient_scale, kFloatTolerance,
                   report.worst_float);
  }
  if (!in_float.complaint.empty()) report.fail(row, target, "in float " + in_float.complaint);
  if (!in_double.complaint.empty()) report.fail(row, target, "in double " + in_double.complaint);
}

// ∂(Σ seed ⊙ reference)/∂entry by differences of one step.
double difference(const Row& row, const Array& seed, Arrays& arrays, double& entry, double step) {
  const double at = entry;
  const auto loss = [&](double value) {
    entry = value;
    const Array output = row.reference(arrays);
    double sum = 0;
    for (std::size_t i = 0; i < output.values().size(); ++i) sum += seed.data()[i] * output.data()[i];
    return sum;
  };
  const double near = loss(at + step) - loss(at - step), far = loss(at + 2 * step) - loss(at - 2 * step);
  entry = at;
  return (8 * near - far) / (12 * step);
}

// The gradients of all targets agree but for rounding, so the differences of the first serve the others.
using Differences = std::map<std::string, Arrays>;

void grad(const Row& row, std::string_view target, Differences& known, Report& report) {
  Arrays arrays = row.arrays;
  const Array seed = seed_of(row, row.reference(arrays));
  const Outcome got = run(*row.in_double(arrays), seed);
  const double all = largest(got.gradients);
  Arrays& expected = known[row.name + row.shape];
  if (expected.empty()) {
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      Array slopes(arrays[a].value.rows(), arrays[a].value.cols());
      // The scale may be unknown until the gradient is right; a smaller one only costs more steps.
      const double scale = std::max(largest(got.gradients[a].value), all / 100);
      for (std::size_t i = 0; i < slopes.values().size(); ++i) {
        const double value = got.gradients[a].value.data()[i];
        double best = HUGE_VAL;
        for (const double step : kSteps) {
          const double slope = difference(row, seed, arrays, arrays[a].value.data()[i], step);
          if (!(std::fabs(slope - value) >= best)) {
            best = std::fabs(slope - value);
            slopes.data()[i] = slope;
          }
          if (best <= kGradientTolerance / 10 * scale) break;
        }
      }
      expected.push_back({arrays[a].name, slopes});
    }
  }
  for (std::size_t a = 0; a < expected.size(); ++a) {
    const double scale = std::max(largest(expected[a].value), largest(expected) / 100);
    report.compare(row, target, "gradient of " + expected[a].name, expected[a].value, got.gradients[a].value,
                   scale, kGradientTolerance, report.worst_gradient);
  }
}

void perf(const Row& row) {
  using Clock = std::chrono::steady_clock;
  const auto work = row.in_float(row.arrays);
  work->forward();
  work->seed(seed_of(row, work->output()));
  const auto time = [&](std::size_t times) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < times; ++i) {
      work->forward();
      work->backward();
    }
    return std::chrono::duration<double>(Clock::now() - begin).count() / static_cast<double>(times);
  };
  const double once = time(1);
  const auto times = static_cast<std::size_t>(std::clamp(0.02 / once, 1.0, 1e6));
  double best = HUGE_VAL;
  for (int round = 0; round < 5; ++round) best = std::min(best, time(times));
  fmt::print("{:36} {:50} {:14.0f} {:8.2f}\n", row.name, row.shape, best * 1e9, row.operations / best / 1e9);
}

std::vector<Row> table(std::string_view filter) {
  std::vector<Row> rows = layer_rows();
  for (const auto& more : {transformer_rows(), encoder_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  std::erase_if(rows, [&](const Row& row) { return row.name.find(filter) == std::string::npos; });
  return rows;
}

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> result;
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    result.push_back(rest & -rest);
  return result;
}

int check(std::string_view mode, std::string_view filter) {
  Report report;
  Differences differences;
  for (const std::int64_t target : targets()) {
    hwy::SetSupportedTargetsForTest(target);
    const std::string name = hwy::TargetName(target);
    if (layer_target() != target) {
      fmt::print("FAILED: {} was asked for, but {} runs\n", name, hwy::TargetName(layer_target()));
      return 1;
    }
    std::size_t count = 0;
    for (const Row& row : table(filter)) {
      if (!(mode == "test" ? row.test : row.grad)) continue;
      ++count;
      if (mode == "test") test(row, name, report);
      if (mode == "grad") grad(row, name, differences, report);
    }
    fmt::print("{}: {} rows on {}\n", mode, count, name);
    hwy::SetSupportedTargetsForTest(0);
    if (count == 0) {
      fmt::print("No op's name contains '{}'; `train_ops list` shows them.\n", filter);
      return 1;
    }
  }
  if (mode == "test") {
    fmt::print("largest distance: float {:.1e} (allowed {:.0e}), double {:.1e} (allowed {:.0e})\n",
               report.worst_float, kFloatTolerance, report.worst_double, kDoubleTolerance);
  } else {
    fmt::print("largest distance: {:.1e} (allowed {:.0e})\n", report.worst_gradient, kGradientTolerance);
  }
  fmt::print("{} checks, {} failures\n", report.checks, report.failures);
  return report.failures == 0 ? 0 : 1;
}

}  // namespace

Array random_array(const std::string& name, std::size_t rows, std::size_t cols, const std::string& seed) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a: the same values on every machine
  for (const char c : name + "|" + seed) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  Random random(hash);
  const bool near_one = name.ends_with("gain") || name.ends_with("alpha");
  const bool weight = name.ends_with("weight") || name.ends_with("in_proj");
  const double spread = near_one ? 0.25 : weight ? 1 / std::sqrt(static_cast<double>(cols)) : 1;
  Array array(rows, cols);
  for (std::size_t i = 0; i < rows * cols; ++i)
    array.data()[i] = static_cast<float>((near_one ? 1 : 0) + spread * random.normal());
  return array;
}

}  // namespace normscope::ops

int main(int argc, char** argv) {
  using namespace normscope::ops;
  const std::string_view mode = argc > 1 ? argv[1] : "", filter = argc > 2 ? argv[2] : "";
  if (mode == "test" || mode == "grad") return check(mode, filter);
  if (mode == "list") {
    for (const Row& row : table(filter))
      fmt::print("{:36} {:50} {}{}{}\n", row.name, row.shape, row.test ? "test " : "",
                 row.grad ? "grad " : "", row.perf ? "perf" : "");
    return 0;
  }
  if (mode == "perf") {
    fmt::print("{:36} {:50} {:>14} {:>8}\n", "op (forward and backward, float)", "shape", "ns", "GFLOP/s");
    for (const Row& row : table(filter)) {
      if (row.perf) perf(row);
    }
    return 0;
  }
  fmt::print(stderr, "usage: train_ops test|grad|perf|list [part of an op's name]\n");
  return 2;
}
