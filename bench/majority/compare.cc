// bench_majority: one training step of the majority task, batch 6000 × 50, d = 8, by the bag path, the
// generic path and PyTorch, on two threads each: same batch, same start. The losses of the first steps are
// compared before any time is shown. Exit code 1: somebody disagrees. Times are not judged.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "normscope/majority.h"
#include "program.h"
#include "python_process.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Call {
  int threads = 2;
  std::size_t batch = 6000, steps = 10;
  std::string json;

  void add_options(CLI::App& app) {
    add_sizes(app, "--threads", threads, "--batch", batch, "--steps", steps);
  }
};

struct Answer {
  std::string competitor, absent;
  std::vector<double> losses, seconds;  // of each step

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

struct Question {
  MajorityData data;
  EncoderSpec spec;
  std::string norm;
  std::vector<float> parameters;
  std::vector<std::uint32_t> batch;
  Call call;
};

Question question(const Call& call, const std::string& norm) {
  MajoritySettings settings;
  settings.task.samples = std::max<std::size_t>(settings.task.samples, 2 * call.batch);
  Question question{
      make_majority_data(settings.task, 42), majority_encoder(settings, norm), norm, {}, {}, call};
  question.parameters = initial_parameters(question.spec, 42);
  question.batch.resize(call.batch);
  std::iota(question.batch.begin(), question.batch.end(), 0U);
  return question;
}

Answer ask_normscope(const Question& question, EncoderPath path, const std::string& name) {
  Answer answer{name, "", {}, {}};
  const Executor executor(question.call.threads);
  const auto model = make_encoder_gradient<float>(question.spec, path);
  std::vector<float> parameters = question.parameters, gradient(parameters.size());
  const AdamSettings adam;
  AdamState state;
  model->gradient(question.data.train, question.batch, parameters, gradient,
                  executor);  // warms up, as the others do
  for (std::size_t step = 0; step < question.call.steps; ++step) {
    const Stopwatch stopwatch;
    answer.losses.push_back(
        model->gradient(question.data.train, question.batch, parameters, gradient, executor));
    adam_update(adam, state, parameters, gradient);
    answer.seconds.push_back(stopwatch.elapsed().wall);
  }
  return answer;
}

Answer ask_pytorch(const Question& question) {
  Answer answer{"PyTorch", "", {}, {}};
  const TemporaryDirectory directory;
  Json batch = {{"norm", question.norm},
                {"classes", question.spec.classes},
                {"length", question.data.train.length},
                {"d", question.spec.dimension},
                {"heads", question.spec.heads},
                {"threads", question.call.threads},
                {"steps", question.call.steps}};
  for (const ParameterSlot& slot : parameter_slots(question.spec)) {
    const auto begin = question.parameters.begin() + static_cast<std::ptrdiff_t>(slot.offset);
    batch["parameters"][slot.name] =
        std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(slot.size()));
  }
  for (const std::uint32_t s : question.batch) {
    const auto begin =
        question.data.train.tokens.begin() + static_cast<std::ptrdiff_t>(s * question.data.train.length);
    batch["tokens"].push_back(
        std::vector<std::uint16_t>(begin, begin + static_cast<std::ptrdiff_t>(question.data.train.length)));
    batch["labels"].push_back(question.data.train.labels[s]);
  }
  const std::string file = directory.path() / "batch.json";
  std::ofstream(file) << batch.dump();
  const auto [result, absent] = ask_python("majority/pytorch_majority.py", file);
  answer.absent = absent;
  if (!absent.empty()) return answer;
  answer.competitor = "PyTorch " + result["torch"].get<std::string>();
  answer.losses = result["losses"].get<std::vector<double>>();
  answer.seconds = result["seconds"].get<std::vector<double>>();
  return answer;
}

// Largest relative difference of the losses.
double difference(const Answer& a, const Answer& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.losses.size(); ++i)
    worst = std::max(worst, std::fabs(a.losses[i] - b.losses[i]) / b.losses[i]);
  return worst;
}

int compare(const Call& call) {
  constexpr double tolerance = 1e-4;
  const Provenance origin = provenance(42, call.threads);
  Json results = {{"processor", processor()}, {"isa", origin.isa},   {"commit", origin.commit},
                  {"threads", call.threads},  {"batch", call.batch}, {"norms", Json::array()}};
  fmt::print("One training step, {} sequences of 50 tokens, d = 8, {} threads each, {}, {}\n", call.batch,
             call.threads, origin.isa, processor());
  bool agree = true;
  for (const char* norm : {"layernorm", "published"}) {
    const Question asked = question(call, norm);
    const Answer bag = ask_normscope(asked, EncoderPath::bag, "normscope, bag path");
    const Answer generic = ask_normscope(asked, EncoderPath::generic, "normscope, generic path");
    const Answer torch = ask_pytorch(asked);
    fmt::print("\n{}: losses of {} steps\n", norm, call.steps);
    Json rows = Json::array();
    for (const Answer* answer : {&bag, &generic, &torch}) {
      if (!answer->absent.empty()) {
        fmt::print("  {:<26} absent: {}\n", answer->competitor, answer->absent);
        continue;
      }
      const double off = difference(*answer, bag);
      agree = agree && off < tolerance;
      fmt::print("  {:<26} {}, best {:9.2f} ms, median {:9.2f} ms{}\n", answer->competitor,
                 off < tolerance ? "agrees" : fmt::format("DISAGREES by {:.2g}", off), 1e3 * answer->best(),
                 1e3 * median(answer->seconds),
                 torch.absent.empty() ? fmt::format(", PyTorch takes {:6.1f}× (best), {:6.1f}× (median)",
                                                    torch.best() / answer->best(),
                                                    median(torch.seconds) / median(answer->seconds))
                                      : "");
      rows.push_back({{"competitor", answer->competitor},
                      {"difference", off},
                      {"best_seconds", answer->best()},
                      {"median_seconds", median(answer->seconds)}});
    }
    results["norms"].push_back({{"norm", norm}, {"answers", rows}});
  }
  write_figures(call.json, results);
  return agree ? 0 : 1;
}

}  // namespace
Program benchmark() {
  return program("A training step of the majority task beside PyTorch", compare);
}

}  // namespace normscope::bench
