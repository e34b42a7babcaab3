// Steps of a training that processes share: the bytes of one process.
#include "train/shared_step.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "normscope/random.h"
#include "normscope/transformer.h"
#include "support/memory_job.h"

namespace normscope::cluster {
namespace {

struct Step {
  TransformerLoss loss;
  std::vector<float> gradient;
};

Step step(const TransformerSpec& spec, const TokenBatch& batch, const Executor& executor) {
  const std::vector<float> parameters = initial_parameters(spec, 3);
  Step result{{}, std::vector<float>(parameters.size())};
  const auto model = make_transformer_gradient<float>(spec);
  result.loss = model->gradient(batch, parameters, result.gradient, DropoutKey{5, 7}, executor);
  return result;
}

// Texts of several lengths, more than pieces.
TokenBatch texts_for(const TransformerSpec& spec) {
  TokenBatch batch;
  batch.texts = 11;
  batch.length = 40;
  Random random(1);
  for (std::size_t text = 0; text < batch.texts; ++text) {
    const auto length = static_cast<std::uint32_t>(20 + 2 * text);
    batch.lengths.push_back(length);
    for (std::size_t i = 0; i < batch.length; ++i) {
      batch.tokens.push_back(static_cast<std::uint32_t>(random.below(spec.model.vocabulary)));
      if (spec.classes == 0)
        batch.targets.push_back(i + 1 < length
                                    ? static_cast<std::uint32_t>(random.below(spec.model.vocabulary))
                                    : TokenBatch::ignored);
    }
    if (spec.classes > 0) batch.targets.push_back(static_cast<std::uint32_t>(text % spec.classes));
  }
  return batch;
}

void expect_same_in_jobs(const TransformerSpec& spec) {
  const TokenBatch batch = texts_for(spec);
  ASSERT_TRUE(is_worth_sharing(parameter_count(spec), batch.tokens.size())) << "nothing would be shared";
  const Step alone = step(spec, batch, Executor(1));
  for (const std::size_t size : {2, 3, 5}) {
    for (const int threads : {1, 3}) {
      std::mutex mutex;
      std::uint64_t sent = 0;
      const auto ended = run_job(size, threads, [&](Job& job, const Executor& executor) {
        const Step shared = step(spec, batch, executor);
        const std::lock_guard lock(mutex);
        EXPECT_EQ(shared.loss.loss, alone.loss.loss);
        EXPECT_EQ(shared.loss.accuracy, alone.loss.accuracy);
        EXPECT_EQ(
            std::memcmp(shared.gradient.data(), alone.gradient.data(), alone.gradient.size() * sizeof(float)),
            0)
            << "process " << job.rank() << " of " << size << ", " << threads << " threads";
        sent += job.bytes_sent();
      });
      for (const Ended& each : ended) EXPECT_EQ(each.code, 0) << each.said;
      EXPECT_GT(sent, 0u) << "nothing was shared";
    }
  }
}

TEST(SharedStepThreads, OfALanguageModelHasTheBytesOfOneProcess) {
  TransformerSpec spec = published_language_model();
  spec.model.vocabulary = 3000;
  spec.model.positions = 40;
  expect_same_in_jobs(spec);
}

TEST(SharedStepThreads, OfAClassifierHasTheBytesOfOneProcess) {
  TransformerSpec spec = published_sentiment_model();
  spec.model.vocabulary = 2000;
  spec.model.positions = 40;
  expect_same_in_jobs(spec);
}

}  // namespace
}  // namespace normscope::cluster
