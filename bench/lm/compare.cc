// bench_lm: one training step of the published language model (GPT-2, d = 8, 4 layers, 4 heads, 50257 words).
#include "transformer_step.h"

namespace normscope::bench {
namespace {

int compare(const StepCall& call) {
  const TransformerSpec spec = published_language_model();
  // As in text, few words are frequent.
  TokenBatch batch = draw_batch(call, [&](Random& random) {
    const double share = random.uniform();
    return static_cast<std::uint32_t>(share * share * share * static_cast<double>(spec.model.vocabulary));
  });
  for (std::size_t i = 0; i < batch.tokens.size(); ++i)
    batch.targets.push_back((i + 1) % call.length == 0 ? TokenBatch::ignored : batch.tokens[i + 1]);
  const BlockSpec& block = spec.model.block;
  const auto tokens = static_cast<double>(batch.tokens.size()), d = static_cast<double>(block.width),
             length = static_cast<double>(call.length), words = static_cast<double>(spec.model.vocabulary),
             layers = static_cast<double>(spec.model.layers), heads = static_cast<double>(block.heads),
             hidden = static_cast<double>(block.feed_forward);
  // Per token and word: logits twice, both gradients. Per pair of tokens of a layer (half of them are seen):
  // q·k twice, weights·v once, four gradients. Maps: forward twice (but for that from the hidden units), two
  // gradients.
  const double pairs = tokens * length / 2 * layers;
  const double multiply_adds =
      4 * tokens * words * d + 7 * pairs * d + tokens * layers * (16 * d * d + 7 * d * hidden);
  const double exponentials = 2 * tokens * words + 2 * pairs * heads + 2 * tokens * layers * hidden;
  return compare_steps("Language model, d = 8, 50257 words", spec, batch, call, multiply_adds, exponentials);
}

}  // namespace
Program benchmark() {
  return program("A training step of the published language model beside PyTorch", compare);
}

}  // namespace normscope::bench
