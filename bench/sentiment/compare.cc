// bench_sentiment: one training step of the published sentiment model (BERT without norms, hidden 8, 4
// layers, 4 heads, intermediate 3072).
#include <CLI/CLI.hpp>

#include "normscope/random.h"
#include "program.h"
#include "transformer_step.h"

namespace normscope::bench {
namespace {

int compare(const StepCall& call) {
  const TransformerSpec spec = published_sentiment_model();
  TokenBatch batch;
  batch.texts = call.texts;
  batch.length = call.length;
  Random random(7);
  for (std::size_t i = 0; i < call.texts * call.length; ++i)
    batch.tokens.push_back(static_cast<std::uint32_t>(random.below(spec.model.vocabulary)));
  for (std::size_t text = 0; text < call.texts; ++text) {
    batch.lengths.push_back(static_cast<std::uint32_t>(call.length));
    batch.targets.push_back(static_cast<std::uint32_t>(text % 2));
  }
  const BlockSpec& block = spec.model.block;
  const auto tokens = static_cast<double>(batch.tokens.size()), d = static_cast<double>(block.width),
             length = static_cast<double>(call.length), layers = static_cast<double>(spec.model.layers),
             heads = static_cast<double>(block.heads), hidden = static_cast<double>(block.feed_forward);
  // As in bench_lm; GELU takes an exponential backward only.
  const double pairs = tokens * length * layers;
  const double multiply_adds = 7 * pairs * d + tokens * layers * (16 * d * d + 7 * d * hidden);
  const double exponentials = 2 * pairs * heads + tokens * layers * hidden;
  return compare_steps("Sentiment model, d = 8, intermediate 3072", spec, batch, call, multiply_adds,
                       exponentials);
}

}  // namespace
}  // namespace normscope::bench

int main(int argc, char** argv) {
  CLI::App app("A training step of the published sentiment model beside PyTorch");
  normscope::bench::StepCall call;
  call.texts = 32;
  call.length = 128;
  call.steps = 20;
  app.add_option("--threads", call.threads)->capture_default_str();
  app.add_option("--texts", call.texts)->capture_default_str();
  app.add_option("--length", call.length)->capture_default_str();
  app.add_option("--steps", call.steps)->capture_default_str();
  app.add_option("--json", call.json, "Write the figures to this file");
  return normscope::bench::run_program(app, argc, argv, [&] { return normscope::bench::compare(call); });
}
