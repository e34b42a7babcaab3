#pragma once
// One training step of a transformer beside PyTorch: same batch, same start, the losses of the first steps
// (without dropout) compared before any time (with dropout) is shown. Exit code 1: they disagree.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "clock.h"
#include "normscope/random.h"
#include "normscope/transformer.h"
#include "program.h"
#include "python_process.h"

namespace normscope::bench {

struct StepCall {
  int threads = 2;
  std::size_t texts = 8, length = 1024, losses = 3, steps = 5;
  std::string json;

  void add_options(CLI::App& app) {
    add_sizes(app, "--threads", threads, "--texts", texts, "--length", length, "--steps", steps);
  }
};

// Texts of one length, of tokens that `next(random)` draws.
template <class Next>
TokenBatch draw_batch(const StepCall& call, const Next& next) {
  TokenBatch batch;
  batch.texts = call.texts;
  batch.length = call.length;
  Random random(7);
  for (std::size_t i = 0; i < call.texts * call.length; ++i) batch.tokens.push_back(next(random));
  return batch;
}

struct StepAnswer {
  std::string absent, version;
  std::vector<double> losses, seconds;
  double peak_bytes = 0;
};

constexpr double kLearningRate = 1e-3;

inline StepAnswer ask_normscope(const TransformerSpec& spec, const TokenBatch& batch,
                                std::vector<float> parameters, const StepCall& call) {
  StepAnswer answer;
  const Executor executor(call.threads);
  const auto model = make_transformer_gradient<float>(spec);
  std::vector<float> gradient(parameters.size());
  AdamSettings adam;
  adam.learning_rate = kLearningRate;
  adam.schedule.kind = Schedule::Kind::constant;
  AdamState state;
  model->gradient(batch, parameters, gradient, {}, executor);
  for (std::size_t step = 0; step < call.losses + call.steps; ++step) {
    const bool timed = step >= call.losses;
    const Stopwatch stopwatch;
    const double loss = model
                            ->gradient(batch, parameters, gradient,
                                       timed ? std::optional(DropoutKey{1, step}) : std::nullopt, executor)
                            .loss;
    adam_update(adam, state, parameters, gradient);
    if (timed) {
      answer.seconds.push_back(stopwatch.elapsed().wall);
    } else {
      answer.losses.push_back(loss);
    }
  }
  answer.peak_bytes = peak_bytes();
  return answer;
}

inline StepAnswer ask_pytorch(const TransformerSpec& spec, const TokenBatch& batch,
                              const std::vector<float>& parameters, const StepCall& call) {
  using Json = nlohmann::ordered_json;
  StepAnswer answer;
  const TemporaryDirectory directory;
  Json question = {{"family", spec.model.family},     {"layers", spec.model.layers},
                   {"heads", spec.model.block.heads}, {"dropout", spec.model.block.dropout},
                   {"learning_rate", kLearningRate},  {"threads", call.threads},
                   {"losses", call.losses},           {"steps", call.steps},
                   {"parameters", "parameters.bin"}};
  for (const ParameterSlot& slot : parameter_slots(spec))
    question["slots"].push_back({slot.name, slot.rows, slot.cols});
  for (std::size_t text = 0; text < batch.texts; ++text) {
    const auto begin = batch.tokens.begin() + static_cast<std::ptrdiff_t>(text * batch.length);
    question["tokens"].push_back(
        std::vector<std::uint32_t>(begin, begin + static_cast<std::ptrdiff_t>(batch.length)));
  }
  if (spec.classes > 0) {
    question["lengths"] = batch.lengths;
    question["labels"] = batch.targets;
  }
  const auto bytes = std::as_bytes(std::span(parameters));
  std::ofstream(directory.path() / "parameters.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const std::string file = directory.path() / "batch.json";
  std::ofstream(file) << question.dump();
  const auto [result, absent] = ask_python("pytorch_transformer.py", file);
  answer.absent = absent;
  if (!absent.empty()) return answer;
  answer.version = result["torch"].get<std::string>();
  answer.losses = result["losses"].get<std::vector<double>>();
  answer.seconds = result["seconds"].get<std::vector<double>>();
  answer.peak_bytes = result["peak_bytes"].get<double>();
  return answer;
}

// operations: multiply-adds and exponentials of one step, for what is reached of the machine's peak.
inline int compare_steps(const std::string& title, const TransformerSpec& spec, const TokenBatch& batch,
                         const StepCall& call, double multiply_adds, double exponentials) {
  constexpr double tolerance = 1e-4;
  const Provenance origin = provenance(1, call.threads);
  const std::vector<float> parameters = initial_parameters(spec, 1);
  // Before PyTorch and after it: the speed of a machine shared with others drifts.
  StepAnswer ours = ask_normscope(spec, batch, parameters, call);
  const StepAnswer torch = ask_pytorch(spec, batch, parameters, call);
  const StepAnswer again = ask_normscope(spec, batch, parameters, call);
  ours.seconds.insert(ours.seconds.end(), again.seconds.begin(), again.seconds.end());
  const double own = median(ours.seconds), tokens = static_cast<double>(batch.tokens.size());
  fmt::print("{}, {} × {} tokens, {} threads each, {}, {}\n", title, batch.texts, batch.length, call.threads,
             origin.isa, processor());
  fmt::print(
      "  normscope          median {:8.1f} ms, best {:8.1f} ms, {:8.0f} tokens/s, peak memory {:6.0f} MB\n",
      1e3 * own, 1e3 * *std::min_element(ours.seconds.begin(), ours.seconds.end()), tokens / own,
      ours.peak_bytes / 1e6);
  fmt::print("  of which           {:.2f} G multiply-adds/s, {:.2f} G exponentials/s\n",
             1e-9 * multiply_adds / own, 1e-9 * exponentials / own);
  nlohmann::ordered_json results = {{"processor", processor()}, {"isa", origin.isa},
                                    {"commit", origin.commit},  {"threads", call.threads},
                                    {"texts", batch.texts},     {"length", batch.length},
                                    {"median_seconds", own},    {"peak_bytes", ours.peak_bytes}};
  bool agree = true;
  if (!torch.absent.empty()) {
    fmt::print("  PyTorch            absent: {}\n", torch.absent);
  } else {
    double off = 0;
    for (std::size_t i = 0; i < call.losses; ++i)
      off = std::max(off, std::fabs(ours.losses[i] - torch.losses[i]));
    agree = off < tolerance;
    const double theirs = median(torch.seconds);
    fmt::print("  PyTorch {:<10} median {:8.1f} ms, {}, takes {:.1f}× the time and {:.1f}× the memory\n",
               torch.version, 1e3 * theirs,
               agree ? fmt::format("losses of {} steps agree (largest difference {:.1g})", call.losses, off)
                     : fmt::format("losses DISAGREE by {:.2g}", off),
               theirs / own, torch.peak_bytes / ours.peak_bytes);
    results["pytorch"] = {{"version", torch.version}, {"median_seconds", theirs},
                          {"difference", off},        {"peak_bytes", torch.peak_bytes},
                          {"ratio", theirs / own},    {"memory_ratio", torch.peak_bytes / ours.peak_bytes}};
  }
  write_figures(call.json, results);
  return agree ? 0 : 1;
}

}  // namespace normscope::bench
