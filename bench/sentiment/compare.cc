// bench_sentiment: one training step of the published sentiment model (BERT without norms, hidden 8, 4
// layers, 4 heads, intermediate 3072).
#include "transformer_step.h"

namespace normscope::bench {
namespace {

int compare(const StepCall& call) {
  const TransformerSpec spec = published_sentiment_model();
  TokenBatch batch = draw_batch(
      call, [&](Random& random) { return static_cast<std::uint32_t>(random.below(spec.model.vocabulary)); });
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
Program benchmark() {
  return program("A training step of the published sentiment model beside PyTorch", compare,
                 {.texts = 32, .length = 128, .steps = 20, .json = {}});
}

}  // namespace normscope::bench
