// bench_collapse: tokens through twelve layers of BERT-base, all five variants × four masks, beside PyTorch
// on the same weights, starts and number of threads, and beside the products alone. The final tokens are
// compared before any time is shown. Contestants take turns, so that a busy machine disturbs all alike, and
// the best of several turns counts. Exit code 1: somebody disagrees. Times are not judged.
#include <fmt/format.h>

#include <cmath>
#include <fstream>

#ifdef BENCH_HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "normscope/collapse.h"
#include "products.h"
#include "program.h"
#include "python_process.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kSeed = 42;
constexpr double kTolerance = 1e-3;  // of ‖X‖, of the final tokens

struct Call {
  int threads = 2;
  std::size_t tokens = 128, layers = 12, samples = 2, turns = 3;
  std::size_t width = 768, heads = 12, feed_forward = 3072;
  bool pytorch = true;
  std::string json;

  void add_options(CLI::App& app) {
    add_sizes(app, "--threads", threads, "--samples", samples, "--turns", turns, "--layers", layers);
    app.add_flag("!--no-pytorch", pytorch, "Only normscope and the products");
  }
};

struct Model {
  Call call;
  BlockSpec block;
  std::vector<BlockWeights<float>> layers;
  std::vector<Matrix<float>> start;  // of each sample
  double draw_seconds = 0;

  std::size_t tokens() const { return call.tokens; }
};

Model make_model(const Call& call, const Executor& executor) {
  Model model{call, {}, {}, {}, 0};
  model.block.width = call.width;
  model.block.heads = call.heads;
  model.block.feed_forward = call.feed_forward;
  model.block.norm = parse_norm("layernorm");
  model.block.norm.eps = 1e-12;
  const Stopwatch stopwatch;
  for (std::size_t layer = 0; layer < call.layers; ++layer) {
    model.layers.push_back(draw_weights<float>({}, call.width, call.feed_forward, layer, kSeed, executor));
  }
  model.draw_seconds = stopwatch.elapsed().wall;
  for (std::size_t s = 0; s < call.samples; ++s) {
    const Matrix<double> x = draw_tokens({TokenStart::Kind::bert, {}, {}}, call.tokens, call.width, s, kSeed);
    model.start.emplace_back(call.tokens, call.width,
                             std::vector<float>(x.values().begin(), x.values().end()));
  }
  return model;
}

// Of the products of one sample, all layers.
double operations(const Model& model, bool feed_forward) {
  const auto n = static_cast<double>(model.tokens()), d = static_cast<double>(model.call.width),
             f = static_cast<double>(model.call.feed_forward);
  return static_cast<double>(model.call.layers) *
         (2 * n * d * 3 * d + 4 * n * n * d + 2 * n * d * d + (feed_forward ? 4 * n * d * f : 0));
}

// --- normscope: a sample per lane, lanes side by side, layer by layer, as `collapse` does ---

class Normscope {
 public:
  Normscope(const Model& model, const Executor& executor)
      : model_(model), executor_(executor), forward_(model.start.size()) {}

  Duration run(const BlockSpec& block, const Mask& mask, bool measured) {
    x_ = model_.start;
    const Stopwatch stopwatch(CLOCK_PROCESS_CPUTIME_ID);
    if (measured) {
      executor_.for_each(x_.size(),
                         [&](std::size_t s) { measure_tokens<float>(x_[s].view(), Spectrum::yes); });
    }
    for (const BlockWeights<float>& weights : model_.layers) {
      executor_.for_each(x_.size(), [&](std::size_t s) {
        forward_[s].apply(block, weights, mask, x_[s].view());
        if (measured) measure_tokens<float>(x_[s].view(), Spectrum::yes);
      });
    }
    return stopwatch.elapsed();
  }
  const std::vector<Matrix<float>>& final_tokens() const { return x_; }

 private:
  const Model& model_;
  const Executor& executor_;
  std::vector<BlockForward<float>> forward_;
  std::vector<Matrix<float>> x_;
};

// --- PyTorch ---

class PyTorch : public PyTorchModel {
 public:
  explicit PyTorch(const Model& model) {
    if (!model.call.pytorch) return;
    Json settings = {{"tokens", model.call.tokens}, {"width", model.call.width},
                     {"heads", model.call.heads},   {"feed_forward", model.call.feed_forward},
                     {"layers", model.call.layers}, {"samples", model.call.samples},
                     {"eps", model.block.norm.eps}, {"threads", model.call.threads}};
    std::ofstream(directory() / "model.json") << settings.dump();
    std::ofstream start(directory() / "start.f32", std::ios::binary);
    for (const Matrix<float>& x : model.start) write_numbers(start, x);
    start.close();
    std::ofstream weights(directory() / "weights.f32", std::ios::binary);
    for (const BlockWeights<float>& layer : model.layers) {
      for (const auto* part : {&layer.query_key_value, &layer.output, &layer.up, &layer.down}) {
        write_numbers(weights, *part);
      }
    }
    weights.close();
    begin("collapse/pytorch_collapse.py");
  }

  Duration run(const std::string& variant, const std::string& mask, int threads, bool batch, bool measured,
               const std::string& output = "") {
    const Json question = {{"variant", variant}, {"mask", mask},         {"threads", threads},
                           {"batch", batch},     {"measures", measured}, {"output", output}};
    return ask(question);
  }

  // ‖X − theirs‖/‖theirs‖ of the worst sample.
  double difference(const std::string& variant, const std::string& mask,
                    const std::vector<Matrix<float>>& ours) {
    run(variant, mask, 1, true, false, tokens_file());
    double worst = 0;
    const bool whole = compare(ours, [&](std::span<const float> x, std::span<const float> theirs) {
      double off = 0, size = 0;
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        off += std::pow(static_cast<double>(x[i]) - static_cast<double>(theirs[i]), 2);
        size += std::pow(static_cast<double>(theirs[i]), 2);
      }
      const double relative = std::sqrt(off / size);
      if (!(relative <= worst)) worst = relative;
    });
    return whole ? worst : NAN;
  }
};

// --- long sequences under a narrow mask ---

double peak_mebibytes() {
  return peak_bytes() / 0x1p20;
}

// Memory never shrinks in this count, so the longest comes last.
Json long_sequences() {
  constexpr std::size_t width = 64;
  fmt::print("window:1, d = {}, 1 head, attention only, one layer on one thread\n", width);
  Json rows = Json::array();
  const BlockWeights<float> weights = draw_weights<float>({}, width, 0, 0, kSeed, Executor(1));
  for (const std::size_t n : {4096U, 16384U, 65536U}) {
    const double before = peak_mebibytes();
    Matrix<float> x(n, width);
    const Matrix<double> drawn = draw_tokens({}, n, width, 0, kSeed);
    std::copy(drawn.values().begin(), drawn.values().end(), x.data());
    BlockSpec block;
    block.width = width;
    const Mask mask = parse_mask("window:1", n);
    const double inputs = peak_mebibytes();
    BlockForward<float> forward;
    double best = INFINITY;
    for (int turn = 0; turn < 5; ++turn) {
      const Stopwatch stopwatch;
      forward.apply(block, weights, mask, x.view());
      best = std::min(best, stopwatch.elapsed().wall);
    }
    const double after = peak_mebibytes(),
                 square = static_cast<double>(n) * static_cast<double>(n) * 4 / 0x1p20;
    fmt::print(
        "  n = {:6}  {:8.4f} s, peak memory {:6.1f} MiB: {:5.1f} before, {:5.1f} tokens and mask, {:5.1f} "
        "the "
        "pass (n × n scores: {:.0f} MiB)\n",
        n, best, after, before, inputs - before, after - inputs, square);
    rows.push_back(
        {{"tokens", n}, {"seconds", best}, {"peak_mebibytes", after}, {"square_mebibytes", square}});
  }
  return rows;
}

// --- all of them ---

struct Row {
  std::string variant, mask;
  double difference = NAN;
  Times plain, measured, products, torch, torch_batch, torch_measured;
  Times torch_one, torch_measured_one;  // on one thread

  // Whichever way of calling PyTorch is faster.
  const Times& best_torch() const { return torch.best() < torch_batch.best() ? torch : torch_batch; }
};

int compare(const Call& call) {
#ifdef BENCH_HAVE_OPENBLAS
  openblas_set_num_threads(1);  // lanes run side by side instead, as in `collapse`
#endif
  const Provenance origin = provenance(kSeed, call.threads);
  fmt::print("{}, {}, {} threads, load {:.1f}\n\n", processor(), origin.isa, call.threads, load_average());
  Json results = {{"processor", processor()}, {"isa", origin.isa},      {"commit", origin.commit},
                  {"threads", call.threads},  {"load", load_average()}, {"long", long_sequences()}};
  const Executor executor(call.threads);
  const Model model = make_model(call, executor);
  Normscope normscope(model, executor);
  PyTorch torch(model);
  const bool has_torch = torch.absent().empty();
  fmt::print("\n{} layers, {} tokens, d = {}, {} heads, feed-forward {}, {} samples, best of {} turns; {}\n",
             call.layers, call.tokens, call.width, call.heads, call.feed_forward, call.samples, call.turns,
             has_torch ? torch.name() : "PyTorch absent: " + torch.absent());
  fmt::print("weights drawn once in {:.2f} s\n", model.draw_seconds);

  std::vector<Row> rows;
  bool agree = true;
  for (const std::string_view variant : variant_names()) {
    for (const char* mask : {"full", "causal", "window:1", "onesided:1"}) {
      Row& row = rows.emplace_back();
      row.variant = variant;
      row.mask = mask;
      if (!has_torch) continue;
      normscope.run(variant_of(variant, model.block), parse_mask(mask, call.tokens), false);
      row.difference = torch.difference(row.variant, row.mask, normscope.final_tokens());
      agree = agree && row.difference < kTolerance;
    }
  }
  if (has_torch) {
    const auto worst = std::max_element(
        rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.difference < b.difference; });
    fmt::print("final tokens {}: ‖X − PyTorch's‖ is at most {:.1e} of ‖X‖ ({}, {})\n",
               agree ? "agree" : "DISAGREE", worst->difference, worst->variant, worst->mask);
    fflush(stdout);  // what follows takes minutes
  }

#ifdef BENCH_HAVE_OPENBLAS
  Products products(model.layers, call.heads, model.start, executor);
#endif
  for (std::size_t turn = 0; turn < call.turns; ++turn) {
    for (Row& row : rows) {
      const BlockSpec block = variant_of(row.variant, model.block);
      const Mask mask = parse_mask(row.mask, call.tokens);
      row.plain.add(normscope.run(block, mask, false), call.samples);
#ifdef BENCH_HAVE_OPENBLAS
      row.products.add(products.run(block.feed_forward > 0), call.samples);
#endif
      row.measured.add(normscope.run(block, mask, true), call.samples);
      if (!has_torch) continue;
      row.torch.add(torch.run(row.variant, row.mask, call.threads, false, false), call.samples);
      row.torch_batch.add(torch.run(row.variant, row.mask, call.threads, true, false), call.samples);
      row.torch_measured.add(torch.run(row.variant, row.mask, call.threads, true, true), call.samples);
      row.torch_one.add(torch.run(row.variant, row.mask, 1, true, false), call.samples);
      row.torch_measured_one.add(torch.run(row.variant, row.mask, 1, true, true), call.samples);
    }
  }

  fmt::print(
      "\nSeconds per sample. SGEMM: the same products alone, called by as many threads. PyTorch: sample by "
      "sample or as\none batch, whichever is faster. Beside it the CPU seconds of both, PyTorch's on one "
      "thread, where it waits for none.\n\n"
      "{:<14}{:<11}{:>9} {:>8} {:>7}  {:>9} {:>8} {:>7}  {:>8} {:>6} {:>12}\n",
      "variant", "mask", "normscope", "PyTorch", "", "normscope", "PyTorch", "", "GFLOP/s", "SGEMM",
      "share (CPU)");
  double least_ratio = INFINITY, least_share = INFINITY;
  const auto line = [&](const Row& row, const std::string& label, const Times& ours, const Times& theirs,
                        const Times& theirs_one) {
    std::string text = fmt::format("{:<14}{:<11}{:9.4f} ", label.empty() ? row.variant : "",
                                   label.empty() ? row.mask : label, ours.best());
    text += has_torch ? fmt::format("{:8.4f} {:6.2f}×  {:9.4f} {:8.4f} {:6.2f}×", theirs.best(),
                                    theirs.best() / ours.best(), ours.best_cpu(), theirs_one.best_cpu(),
                                    theirs_one.best_cpu() / ours.best_cpu())
                      : fmt::format("{:8} {:7}  {:9.4f} {:8} {:7}", "-", "", ours.best_cpu(), "-", "");
    return text;
  };
  results["cases"] = Json::array();
  for (const Row& row : rows) {
    const double work = operations(model, row.variant == "full") / 1e9;
    const Times& rival = row.best_torch();
    const double share = row.products.best() / row.plain.best();
    least_ratio = std::min(least_ratio, rival.best() / row.plain.best());
    least_share = std::min(least_share, share);
    fmt::print("{}  {:8.1f} {:6.1f} {:4.0f} % ({:.0f} %)\n", line(row, "", row.plain, rival, row.torch_one),
               work / row.plain.best(), work / row.products.best(), 100 * share,
               100 * row.products.best_cpu() / row.plain.best_cpu());
    fmt::print("{}\n", line(row, "measured", row.measured, row.torch_measured, row.torch_measured_one));
    results["cases"].push_back(
        {{"variant", row.variant},
         {"mask", row.mask},
         {"difference", row.difference},
         {"operations", work * 1e9},
         {"seconds", row.plain.best()},
         {"cpu_seconds", row.plain.best_cpu()},
         {"measured_seconds", row.measured.best()},
         {"sgemm_seconds", row.products.best()},
         {"sgemm_cpu_seconds", row.products.best_cpu()},
         {"pytorch_seconds", row.torch.best()},
         {"pytorch_batch_seconds", row.torch_batch.best()},
         {"pytorch_cpu_seconds", rival.best_cpu()},
         {"pytorch_one_thread_cpu_seconds", row.torch_one.best_cpu()},
         {"measured_cpu_seconds", row.measured.best_cpu()},
         {"pytorch_measured_seconds", row.torch_measured.best()},
         {"pytorch_measured_one_thread_cpu_seconds", row.torch_measured_one.best_cpu()}});
  }
  fmt::print("\n{}least share of SGEMM's rate {:.0f} %; load {:.1f}\n",
             has_torch ? fmt::format("least ratio to PyTorch {:.2f}×, ", least_ratio) : "", 100 * least_share,
             load_average());
  write_figures(call.json, results);
  return agree ? 0 : 1;
}

}  // namespace
Program benchmark() {
  return program("Tokens through a transformer beside PyTorch and beside its products alone", compare);
}

}  // namespace normscope::bench
