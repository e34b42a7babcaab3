// bench_models: a batch of texts through a BERT (MiniLM if it was fetched, otherwise its shape with random
// weights) beside PyTorch on the same weights, ids and number of threads, and beside the products alone. The
// final tokens are compared before any time is shown. Contestants take turns; the best of several counts.
// Exit code 1: somebody disagrees. Times are not judged.
#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "normscope/checkpoint.h"
#include "normscope/error.h"
#include "normscope/random.h"
#include "products.h"
#include "program.h"
#include "python_process.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kTolerance = 1e-4;  // of the largest entry

struct Call {
  int threads = 2;
  std::size_t texts = 32, tokens = 128, turns = 5;
  bool pytorch = true;
  std::string model = "minilm", json;

  void add_options(CLI::App& app) {
    add_sizes(app, "--model", model, "--threads", threads, "--texts", texts, "--tokens", tokens, "--turns",
              turns);
    app.add_flag("!--no-pytorch", pytorch, "Only normscope and the products");
  }
};

// all-MiniLM-L6-v2 before training.
std::unique_ptr<ModelWeights> minilm_shape() {
  ModelSpec spec;
  spec.family = "bert";
  spec.vocabulary = 30522;
  spec.positions = 512;
  spec.layers = 6;
  spec.block.width = 384;
  spec.block.heads = 12;
  spec.block.feed_forward = 1536;
  spec.block.norm = parse_norm("layernorm");
  spec.block.norm.eps = 1e-12;
  spec.embedding_norm = spec.block.norm;
  return random_model(spec, 1);
}

// The weights in memory, as the competitor has them: nothing is read while the clock runs.
class HeldWeights : public ModelWeights {
 public:
  explicit HeldWeights(const ModelWeights& from) : from_(from), embedding_(from.embedding()) {
    for (std::size_t l = 0; l < from.spec().layers; ++l) layers_.push_back(from.layer(l));
  }
  const ModelSpec& spec() const override { return from_.spec(); }
  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    return from_.embeddings(ids);
  }
  EmbeddingWeights embedding() const override { return embedding_; }
  BlockWeights<float> layer(std::size_t index) const override { return layers_[index]; }
  NormWeights final_norm() const override { return from_.final_norm(); }
  HeadWeights head() const override { return from_.head(); }
  const std::vector<BlockWeights<float>>& layers() const { return layers_; }

 private:
  const ModelWeights& from_;
  EmbeddingWeights embedding_;
  std::vector<BlockWeights<float>> layers_;
};

std::vector<std::vector<std::uint32_t>> draw_texts(const Call& call, std::size_t vocabulary) {
  Random random(7, 7);
  std::vector<std::vector<std::uint32_t>> texts(call.texts);
  for (auto& text : texts) {
    for (std::size_t i = 0; i < call.tokens; ++i)
      text.push_back(static_cast<std::uint32_t>(random.below(vocabulary)));
  }
  return texts;
}

class PyTorch : public PyTorchModel {
 public:
  PyTorch(const Call& call, const HeldWeights& weights, const std::vector<Matrix<float>>& embedded) {
    if (!call.pytorch) return;
    const BlockSpec& block = weights.spec().block;
    std::ofstream(directory() / "model.json") << Json{
        {"texts", call.texts},
        {"tokens", call.tokens},
        {"width", block.width},
        {"heads", block.heads},
        {"feed_forward", block.feed_forward},
        {"layers", weights.spec().layers},
        {"eps", block.norm.eps},
        {"threads", call.threads}}.dump();
    std::ofstream numbers(directory() / "numbers.f32", std::ios::binary);
    const auto filled = [](const std::vector<float>& given, std::size_t size, float otherwise) {
      return given.empty() ? std::vector<float>(size, otherwise) : given;
    };
    const std::size_t d = block.width, f = block.feed_forward;
    const EmbeddingWeights embedding = weights.embedding();
    for (const Matrix<float>& x : embedded) write_numbers(numbers, x);
    write_numbers(numbers, filled(embedding.norm.gain, d, 1));
    write_numbers(numbers, filled(embedding.norm.bias, d, 0));
    for (const BlockWeights<float>& layer : weights.layers()) {
      for (const Matrix<float>* matrix : {&layer.query_key_value, &layer.output, &layer.up, &layer.down})
        write_numbers(numbers, *matrix);
      write_numbers(numbers, filled(layer.query_key_value_bias, 3 * d, 0));
      write_numbers(numbers, filled(layer.output_bias, d, 0));
      write_numbers(numbers, filled(layer.up_bias, f, 0));
      write_numbers(numbers, filled(layer.down_bias, d, 0));
      write_numbers(numbers, filled(layer.attention_gain, d, 1));
      write_numbers(numbers, filled(layer.attention_bias, d, 0));
      write_numbers(numbers, filled(layer.feed_forward_gain, d, 1));
      write_numbers(numbers, filled(layer.feed_forward_bias, d, 0));
    }
    numbers.close();
    begin("models/pytorch_bert.py");
  }

  Duration run(const std::string& output = "") { return ask({{"output", output}}); }

  // Largest difference, relative to the largest entry.
  double difference(const std::vector<Matrix<float>>& ours) {
    run(tokens_file());
    double worst = 0, scale = 0;
    const bool whole = compare(ours, [&](std::span<const float> x, std::span<const float> theirs) {
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        worst = std::max(worst, std::fabs(static_cast<double>(x[i]) - static_cast<double>(theirs[i])));
        scale = std::max(scale, std::fabs(static_cast<double>(theirs[i])));
      }
    });
    return whole ? worst / scale : NAN;
  }
};

int compare(const Call& call) {
#ifdef BENCH_HAVE_OPENBLAS
  openblas_set_num_threads(1);
#endif
  const Provenance origin = provenance(0, call.threads);
  fmt::print("{}, {}, {} threads, load {:.1f}\n", processor(), origin.isa, call.threads, load_average());
  std::shared_ptr<const ModelWeights> model;
  std::string name = call.model;
  try {
    model = open_checkpoint(call.model).weights;
  } catch (const InputError&) {
    model = minilm_shape();
    name = "MiniLM's shape, random weights (normscope data get minilm fetches the trained ones)";
  }
  const ModelSpec& spec = model->spec();
  if (spec.causal || spec.block.placement != Placement::post ||
      spec.block.key_head_count() != spec.block.heads)
    throw InputError("bench_models compares models of BERT's kind.");
  const Executor executor(call.threads);
  const auto texts = draw_texts(call, spec.vocabulary);
  // Streamed: every layer's weights are read from the file when it comes.
  Times streamed, held_times, torch_times, product_times;
  forward(*model, texts, executor);
  const double memory = peak_bytes() / 0x1p20;
  const HeldWeights held(*model);
  const std::vector<Matrix<float>> ours = forward(held, texts, executor);
  std::vector<Matrix<float>> embedded;
  for (const auto& text : texts) embedded.push_back(model->embeddings(text));
  PyTorch torch(call, held, embedded);
  const bool has_torch = torch.absent().empty();
  fmt::print("{}: {} texts of {} tokens, {} layers, d = {}, {} heads; {}\n", name, call.texts, call.tokens,
             spec.layers, spec.block.width, spec.block.heads,
             has_torch ? torch.name() : "PyTorch absent: " + torch.absent());
  const double difference = has_torch ? torch.difference(ours) : NAN;
  const bool agree = !has_torch || difference < kTolerance;
  if (has_torch)
    fmt::print("final tokens {}: largest difference {:.1e} of the largest entry\n",
               agree ? "agree" : "DISAGREE", difference);
#ifdef BENCH_HAVE_OPENBLAS
  Products products(held.layers(), spec.block.heads, embedded, executor);
#endif
  for (std::size_t turn = 0; turn < call.turns; ++turn) {
    const auto timed = [&](const ModelWeights& weights, Times& times) {
      const Stopwatch stopwatch(CLOCK_PROCESS_CPUTIME_ID);
      forward(weights, texts, executor);
      times.add(stopwatch.elapsed(), 1);
    };
    timed(held, held_times);
    timed(*model, streamed);
#ifdef BENCH_HAVE_OPENBLAS
    product_times.add(products.run(true), 1);
#endif
    if (has_torch) torch_times.add(torch.run(), 1);
  }
  const auto n = static_cast<double>(call.tokens), d = static_cast<double>(spec.block.width),
             f = static_cast<double>(spec.block.feed_forward);
  const double work =
      static_cast<double>(call.texts * spec.layers) * (8 * n * d * d + 4 * n * n * d + 4 * n * d * f) / 1e9;
  const auto line = [&](const char* what, const Times& times) {
    fmt::print("{:<34}{:9.4f} s  {:9.4f} s CPU  {:7.1f} GFLOP/s\n", what, times.best(), times.best_cpu(),
               work / times.best());
  };
  fmt::print("\nbest of {} turns, the whole batch\n", call.turns);
  line("normscope, weights in memory", held_times);
  line("normscope, streamed from the file", streamed);
  line("the products alone (SGEMM)", product_times);
  if (has_torch) line("PyTorch, weights in memory", torch_times);
  const double ratio = torch_times.best() / held_times.best(),
               share = product_times.best() / held_times.best();
  fmt::print("\n{}{:.0f} % of SGEMM's rate; peak memory of the streamed pass {:.0f} MiB\n",
             has_torch ? fmt::format("{:.2f}× PyTorch ({:.2f}× streamed), ", ratio,
                                     torch_times.best() / streamed.best())
                       : "",
             100 * share, memory);
  write_figures(call.json, {{"processor", processor()},
                            {"isa", origin.isa},
                            {"commit", origin.commit},
                            {"threads", call.threads},
                            {"model", name},
                            {"difference", difference},
                            {"seconds", held_times.best()},
                            {"streamed_seconds", streamed.best()},
                            {"sgemm_seconds", product_times.best()},
                            {"pytorch_seconds", torch_times.best()},
                            {"ratio", ratio},
                            {"share_of_sgemm", share},
                            {"peak_mebibytes", memory}});
  return agree ? 0 : 1;
}

}  // namespace
Program benchmark() {
  return program("A batch of texts through BERT beside PyTorch and beside its products alone", compare);
}

}  // namespace normscope::bench
