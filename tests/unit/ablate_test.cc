#include "normscope/ablate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "ablate/probe.h"
#include "normscope/error.h"
#include "support/message.h"

namespace normscope {
namespace {

NormSpec norm(const char* name, double eps = 1e-5) {
  NormSpec spec = parse_norm(name);
  spec.eps = eps;
  return spec;
}

ModelSpec decoder() {
  ModelSpec spec;
  spec.family = "test";
  spec.vocabulary = 60;
  spec.layers = 3;
  spec.positions = 64;
  spec.causal = true;
  spec.block.width = 16;
  spec.block.heads = 2;
  spec.block.feed_forward = 24;
  spec.block.placement = Placement::pre;
  spec.block.norm = norm("layernorm");
  spec.final_norm = norm("layernorm");
  spec.head = ModelSpec::Head::linear;
  spec.initializer_range = 0.3;
  return spec;
}

ModelSpec encoder() {
  ModelSpec spec = decoder();
  spec.causal = false;
  spec.block.placement = Placement::post;
  spec.embedding_norm = norm("layernorm");
  spec.final_norm = {};
  spec.head = ModelSpec::Head::none;
  return spec;
}

// Gains and biases that are not 1 and 0.
class WithAffine : public ModelWeights {
 public:
  WithAffine(ModelSpec spec, std::uint64_t seed) {
    spec.block.norm.affine = spec.embedding_norm.affine = true;
    random_ = random_model(spec, seed);
  }
  const ModelSpec& spec() const override { return random_->spec(); }
  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    return random_->embeddings(ids);
  }
  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights = random_->embedding();
    weights.norm = {numbers(1.5F), numbers(0.2F)};
    return weights;
  }
  BlockWeights<float> layer(std::size_t index) const override {
    BlockWeights<float> weights = random_->layer(index);
    weights.attention_gain = numbers(0.7F);
    weights.attention_bias = numbers(0.1F);
    weights.feed_forward_gain = numbers(1.2F);
    weights.feed_forward_bias = numbers(-0.1F);
    return weights;
  }
  NormWeights final_norm() const override { return random_->final_norm(); }
  HeadWeights head() const override { return random_->head(); }

 private:
  std::vector<float> numbers(float size) const {
    std::vector<float> result;
    for (std::size_t i = 0; i < spec().block.width; ++i)
      result.push_back(size * (1 + 0.3F * std::sin(static_cast<float>(i))));
    return result;
  }
  std::unique_ptr<ModelWeights> random_;
};

std::vector<std::vector<std::uint32_t>> windows(std::size_t count = 3, std::size_t length = 20) {
  std::vector<std::vector<std::uint32_t>> result(count);
  for (std::size_t w = 0; w < count; ++w) {
    for (std::size_t i = 0; i < length; ++i)
      result[w].push_back(static_cast<std::uint32_t>((i * i * 7 + 11 * w + i) % 60));
  }
  return result;
}

AblateSettings settings(const std::vector<const char*>& norms) {
  AblateSettings result;
  for (const char* name : norms) result.changes.push_back({parse_norm(name)});
  result.prompts = 4;
  result.probe_length = 8;
  return result;
}

Ablation run(const ModelWeights& model, const AblateSettings& with, int threads = 2) {
  const auto texts = windows();
  return ablate(model, texts, with, Executor(threads));
}

TEST(Ablate, TheSameNormInItsPlaceChangesNothingBitForBit) {
  for (const ModelSpec& spec : {decoder(), encoder()}) {
    const Ablation result = run(WithAffine(spec, 1), settings({"layernorm"}));
    const AblateRow &trained = result.rows[0], &same = result.rows[1];
    EXPECT_EQ(trained.losses, same.losses);
    EXPECT_EQ(trained.copy.loss, same.copy.loss);
    EXPECT_EQ(trained.lookup.loss, same.lookup.loss);
    EXPECT_EQ(trained.finds.weight, same.finds.weight);
    ASSERT_EQ(same.windows.size(), 3u);
    for (std::size_t w = 0; w < 3; ++w) {
      for (std::size_t layer = 0; layer < spec.layers; ++layer) {
        EXPECT_EQ(same.windows[w][layer].change, 0);
        EXPECT_EQ(same.windows[w][layer].cosine, 1);
        EXPECT_EQ(same.windows[w][layer].entropy, trained.windows[w][layer].entropy);
        EXPECT_EQ(same.windows[w][layer].norm, trained.windows[w][layer].norm);
      }
    }
  }
}

TEST(Ablate, ANormChangesItsLayerAndThoseAfterIt) {
  AblateSettings with = settings({"none"});
  with.layers = {1};
  const Ablation pre = run(WithAffine(decoder(), 2), with);
  EXPECT_EQ(pre.rows[1].windows[0][0].change, 0);
  EXPECT_EQ(pre.rows[1].windows[0][0].entropy, pre.rows[0].windows[0][0].entropy);
  for (const std::size_t layer : {1u, 2u}) {
    EXPECT_GT(pre.rows[1].windows[0][layer].change, 1e-4);
    EXPECT_NE(pre.rows[1].windows[0][layer].entropy, pre.rows[0].windows[0][layer].entropy);
  }
  // The norm in front of layer 1's attention is the last of layer 0, whose output is what it leaves.
  const Ablation post = run(WithAffine(encoder(), 2), with);
  EXPECT_EQ(post.rows[1].windows[0][0].entropy, post.rows[0].windows[0][0].entropy);
  EXPECT_GT(post.rows[1].windows[0][0].change, 1e-4);
  EXPECT_NE(post.rows[1].windows[0][1].entropy, post.rows[0].windows[0][1].entropy);
}

TEST(Ablate, TheFeedForwardPartKeepsItsNorm) {
  // Attention that adds nothing: its norm can then change nothing either.
  class Silent : public WithAffine {
   public:
    using WithAffine::WithAffine;
    BlockWeights<float> layer(std::size_t index) const override {
      BlockWeights<float> weights = WithAffine::layer(index);
      weights.output = Matrix<float>(weights.output.rows(), weights.output.cols());
      return weights;
    }
  };
  const Ablation result = run(Silent(decoder(), 3), settings({"none", "center"}));
  for (const std::size_t row : {1u, 2u}) {
    EXPECT_EQ(result.rows[row].losses, result.rows[0].losses);
    EXPECT_EQ(result.rows[row].windows[1][2].change, 0);
    EXPECT_NE(result.rows[row].windows[1][2].norm, result.rows[0].windows[1][2].norm);
  }
}

TEST(Ablate, TheNormOfTheEmbeddingsStandsBeforeTheFirstLayer) {
  AblateSettings with = settings({"none"});
  with.layers = {0};
  const Ablation post = run(WithAffine(encoder(), 2), with);
  EXPECT_NE(post.rows[1].windows[0][0].entropy, post.rows[0].windows[0][0].entropy);
  EXPECT_NE(post.rows[1].windows[0][0].norm, post.rows[0].windows[0][0].norm);
}

TEST(Ablate, RescalingKeepsTheMeanNormOfWhatEntersAttention) {
  for (const Placement placed : {Placement::pre, Placement::post}) {
    for (const char* name : {"none", "center"}) {
      AblateSettings with = settings({});
      with.changes = {{parse_norm(name), false, false}, {parse_norm(name), false, true}};
      const ModelSpec spec = placed == Placement::pre ? decoder() : encoder();
      const auto model = random_model(spec, 4);  // without bias, so that the whole norm is kept
      const Ablation result = run(*model, with);
      for (std::size_t layer = 0; layer < spec.layers; ++layer) {
        const double trained = result.rows[0].mean(&LayerEffect::norm, layer).mean;
        EXPECT_GT(std::abs(result.rows[1].mean(&LayerEffect::norm, layer).mean / trained - 1), 0.1);
        EXPECT_NEAR(result.rows[2].mean(&LayerEffect::norm, layer).mean / trained, 1, 2e-3);
        EXPECT_NE(result.rows[2].rescale[layer], 1);
      }
    }
  }
}

TEST(Ablate, DroppingGainAndBiasIsAChangeOfItsOwn) {
  AblateSettings with = settings({"layernorm"});
  with.changes[0].drop_affine = true;
  const Ablation result = run(WithAffine(decoder(), 5), with);
  EXPECT_EQ(result.rows[1].name, "layernorm, without gain and bias");
  EXPECT_NEAR(result.rows[1].windows[0][0].norm, 4, 1e-3);  // √d
  EXPECT_GT(result.rows[1].windows[0][0].change, 1e-4);
}

TEST(Ablate, AModelThatDoesNotStayFiniteSaysSoInItsRow) {
  class Explosive : public WithAffine {
   public:
    using WithAffine::WithAffine;
    BlockWeights<float> layer(std::size_t index) const override {
      BlockWeights<float> weights = WithAffine::layer(index);
      for (std::size_t i = 0; i < weights.output.rows(); ++i) {
        for (float& value : weights.output[i]) value *= 1e20F;
      }
      return weights;
    }
  };
  for (const int threads : {1, 4}) {
    const Ablation result = run(Explosive(decoder(), 6), settings({"none", "rmsnorm"}), threads);
    EXPECT_EQ(result.rows[1].failure, "Tokens left the range of float32 in layer 1.");
    EXPECT_TRUE(result.rows[1].windows.empty());
    EXPECT_TRUE(result.rows[1].losses.empty());
    EXPECT_EQ(result.rows[2].failure, "");
    EXPECT_EQ(result.rows[2].losses.size(), 3u);
    EXPECT_EQ(retrieval_changes(result, 1).front().verdict, RetrievalVerdict::failed);
  }
}

TEST(Ablate, SameResultForAnyNumberOfThreads) {
  AblateSettings with = settings({"none", "center"});
  with.changes[1].rescale = true;
  const WithAffine model(decoder(), 7);
  const Ablation one = run(model, with, 1), many = run(model, with, 5);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(one.rows[row].losses, many.rows[row].losses);
    EXPECT_EQ(one.rows[row].rescale, many.rows[row].rescale);
    EXPECT_EQ(one.rows[row].finds.share, many.rows[row].finds.share);
    EXPECT_EQ(one.rows[row].windows[2][2].change, many.rows[row].windows[2][2].change);
    EXPECT_EQ(one.rows[row].windows[2][2].entropy, many.rows[row].windows[2][2].entropy);
  }
}

TEST(Ablate, AttentionIsMeasuredAsTheMatrixHasIt) {
  ModelSpec spec = decoder();
  spec.layers = 1;
  const auto model = random_model(spec, 8);
  const auto texts = windows(1);
  const Ablation result = ablate(*model, texts, settings({"none"}), Executor(1));
  const Matrix<float> x = model->embeddings(texts[0]);
  double entropy = 0, top = 0;
  for (const std::size_t head : {0u, 1u}) {
    const Matrix<double> weights =
        attention_matrix<float>(spec.block, model->layer(0), model_mask(spec, 20), x.view(), head);
    for (std::size_t i = 0; i < 20; ++i) {
      double highest = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        entropy -= weights(i, j) * std::log(weights(i, j)) / 40;
        highest = std::max(highest, weights(i, j));
      }
      top += highest / 40;
    }
  }
  EXPECT_NEAR(result.rows[1].windows[0][0].entropy, entropy, 1e-5);
  EXPECT_NEAR(result.rows[1].windows[0][0].largest_weight, top, 1e-5);
}

TEST(Ablate, ATransformHeadIsMeasuredOnHiddenTokens) {
  ModelSpec spec = encoder();
  spec.head = ModelSpec::Head::transform;
  spec.tied = true;
  const auto model = random_model(spec, 9);
  AblateSettings with = settings({"center"});
  const Ablation without = run(*model, with);
  EXPECT_EQ(without.loss, Ablation::Loss::none);
  with.mask_token = 59;
  const Ablation result = run(*model, with);
  EXPECT_EQ(result.loss, Ablation::Loss::masked_token);
  ASSERT_EQ(result.rows[1].losses.size(), 3u);
  EXPECT_GT(result.rows[1].losses[0], 0);
  EXPECT_EQ(result.rows[0].copy.loss.size(), 4u);
  EXPECT_EQ(run(*model, with).rows[0].losses, result.rows[0].losses);
}

TEST(Ablate, RefusesWhatCannotBe) {
  const auto model = random_model(decoder(), 1);
  AblateSettings with = settings({"none"});
  with.layers = {3};
  EXPECT_NE(message_of([&] { run(*model, with); }).find("no layer 3: the model has 3"), std::string::npos);
  EXPECT_THROW(run(*model, settings({"none", "none"})), InputError);
  EXPECT_THROW(run(*model, settings({})), InputError);
  EXPECT_THROW(run(*model, settings({"normals:2"})), InputError);
  EXPECT_THROW(ablate(*model, {}, settings({"none"}), Executor(1)), InputError);
  ModelSpec mapped = encoder();
  mapped.embedding_width = 8;
  with.layers = {0};
  EXPECT_NE(message_of([&] { run(*random_model(mapped, 1), with); }).find("linear map"), std::string::npos);
  with.layers = {};
  EXPECT_EQ(run(*random_model(mapped, 1), with).layers, (std::vector<std::size_t>{1, 2}));
}

TEST(RetrievalProbe, TheSameForTheSameSeedAndOthersForAnother) {
  AblateSettings with = settings({"none"});
  const Probe one = make_probe(decoder(), with), same = make_probe(decoder(), with);
  with.seed = 1;
  const Probe other = make_probe(decoder(), with);
  ASSERT_EQ(one.copy.size(), 4u);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(one.copy[k].ids, same.copy[k].ids);
    EXPECT_EQ(one.lookup[k].ids, same.lookup[k].ids);
  }
  EXPECT_NE(one.copy[0].ids, other.copy[0].ids);
  EXPECT_NE(one.copy[0].ids, one.copy[1].ids);
}

TEST(RetrievalProbe, EveryAnswerStandsInThePromptAfterWhatAsksForIt) {
  AblateSettings with = settings({"none"});
  with.before = {1};
  with.after = {2};
  with.special = {1, 2};
  const Probe probe = make_probe(decoder(), with);
  for (const auto* prompts : {&probe.copy, &probe.lookup}) {
    for (const Prompt& prompt : *prompts) {
      EXPECT_EQ(prompt.ids.front(), 1u);
      EXPECT_EQ(prompt.ids.back(), 2u);
      ASSERT_FALSE(prompt.questions.empty());
      for (const ProbeQuestion& question : prompt.questions) {
        EXPECT_EQ(prompt.ids[question.row + 1], question.target);
        // Before, the same token was followed by the answer.
        bool stood = false;
        for (std::size_t i = 0; i < question.row; ++i)
          stood =
              stood || (prompt.ids[i] == prompt.ids[question.row] && prompt.ids[i + 1] == question.target);
        EXPECT_TRUE(stood);
      }
      for (std::size_t row = 0; row < prompt.finds.size(); ++row) {
        if (!prompt.finds[row]) continue;
        EXPECT_EQ(prompt.ids[*prompt.finds[row]], prompt.ids[row + 1]);
      }
    }
  }
  const Probe both_ways = make_probe(encoder(), with);
  for (const Prompt& prompt : both_ways.copy) {
    EXPECT_TRUE(prompt.questions.empty());
    for (std::size_t row = 0; row < prompt.finds.size(); ++row) {
      if (!prompt.finds[row]) continue;
      EXPECT_LT(*prompt.finds[row], row);
      EXPECT_EQ(prompt.ids[*prompt.finds[row]], prompt.ids[row]);
    }
  }
}

TEST(RetrievalProbe, RandomModelsAnswerByChance) {
  AblateSettings with = settings({"none"});
  with.prompts = 200;
  with.probe_length = 16;
  for (const std::uint64_t seed : {1u, 2u}) {
    const Ablation result = run(*random_model(decoder(), seed), with);
    const AblateRow& trained = result.rows[0];
    EXPECT_NEAR(mean_interval(trained.lookup.choice).mean, trained.lookup.chance, 0.06);
    EXPECT_NEAR(mean_interval(trained.copy.choice).mean, trained.copy.chance, 0.06);
    EXPECT_NEAR(trained.lookup.chance, 1.0 / 8, 1e-12);
    ASSERT_EQ(trained.copy_gain().size(), 200u);
    EXPECT_EQ(trained.copy_gain()[7], trained.first_loss[7] - trained.copy.loss[7]);
    EXPECT_LT(mean_interval(trained.finds.share).mean, 0.3);
  }
}

TEST(RetrievalProbe, AModelThatCopiesIsSeenToCopy) {
  // A head of width d whose scores are those of equal embeddings: the earlier copy wins.
  class Matching : public ModelWeights {
   public:
    Matching() : spec_(encoder()) {
      spec_.layers = 1;
      spec_.block.heads = 1;
      spec_.block.rotary.frequencies = {0};  // no positions, and no rotation
      random_ = random_model(spec_, 1);
    }
    const ModelSpec& spec() const override { return spec_; }
    Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
      return random_->embeddings(ids);
    }
    EmbeddingWeights embedding() const override { return random_->embedding(); }
    BlockWeights<float> layer(std::size_t index) const override {
      BlockWeights<float> weights = random_->layer(index);
      for (std::size_t i = 0; i < weights.query_key_value.rows(); ++i) {
        for (std::size_t j = 0; j < weights.query_key_value.cols(); ++j)
          weights.query_key_value(i, j) = i == j % spec_.block.width ? 2.0F : 0.0F;
      }
      return weights;
    }
    NormWeights final_norm() const override { return random_->final_norm(); }
    HeadWeights head() const override { return random_->head(); }

   private:
    ModelSpec spec_;
    std::unique_ptr<ModelWeights> random_;
  };
  AblateSettings with = settings({"rmsnorm"});
  with.prompts = 32;
  const Ablation result = run(Matching(), with);
  EXPECT_EQ(mean_interval(result.rows[0].finds.share).mean, 1);
  EXPECT_GT(mean_interval(result.rows[0].finds.weight).mean, 0.3);
  EXPECT_EQ(retrieval_changes(result, 1).front().verdict, RetrievalVerdict::not_worse);
}

// One measure, with these values of the prompts as trained and changed.
RetrievalVerdict verdict_on(std::vector<double> trained, std::vector<double> changed,
                            double tolerated = 0.1) {
  Ablation ablation;
  ablation.tolerated = tolerated;
  ablation.rows.resize(2);
  ablation.rows[0].finds.chance = ablation.rows[1].finds.chance = 0.05;
  ablation.rows[0].finds.share = std::move(trained);
  ablation.rows[1].finds.share = std::move(changed);
  return retrieval_changes(ablation, 1).front().verdict;
}

TEST(RetrievalVerdict, SaysNoWorseOnlyWhereALossIsExcluded) {
  const std::vector<double> trained = {0.8, 0.82, 0.84, 0.81, 0.79, 0.83, 0.8, 0.82};
  EXPECT_EQ(verdict_on(trained, {0.81, 0.82, 0.83, 0.82, 0.79, 0.82, 0.8, 0.83}),
            RetrievalVerdict::not_worse);
  EXPECT_EQ(verdict_on(trained, {0.7, 0.73, 0.74, 0.7, 0.71, 0.73, 0.7, 0.72}), RetrievalVerdict::worse);
  // A mean that is lower by 0.02, within what the prompts scatter: neither a loss nor its absence is shown.
  const std::vector<double> scattered = {0.95, 0.6, 0.9, 0.7, 0.95, 0.65, 0.9, 0.7};
  EXPECT_EQ(verdict_on(trained, scattered), RetrievalVerdict::not_shown);
  EXPECT_EQ(verdict_on(trained, scattered, 0.5), RetrievalVerdict::not_worse);
}

// Their interval has no width, which says nothing of the prompts that were not tried.
TEST(RetrievalVerdict, PromptsThatAllShowTheSameMustBeMany) {
  const auto on = [](std::size_t prompts, double trained, double changed, double tolerated = 0.1) {
    return verdict_on(std::vector(prompts, trained), std::vector(prompts, changed), tolerated);
  };
  EXPECT_EQ(on(2, 1, 1), RetrievalVerdict::not_shown);
  EXPECT_EQ(on(28, 1, 1), RetrievalVerdict::not_shown);
  EXPECT_EQ(on(29, 1, 1), RetrievalVerdict::not_worse);  // 1 − 0.05^(1/29) = 0.098
  EXPECT_EQ(on(5, 1, 1, 0.5), RetrievalVerdict::not_worse);
  EXPECT_EQ(on(5, 1, 0.5), RetrievalVerdict::not_shown);
  EXPECT_EQ(on(6, 1, 0.5), RetrievalVerdict::worse);
}

// However near to each other they are.
TEST(RetrievalVerdict, TwoPromptsCannotTell) {
  EXPECT_EQ(verdict_on({0.8, 0.82}, {0.76, 0.7815}), RetrievalVerdict::not_shown);
  EXPECT_EQ(verdict_on({0.8, 0.82}, {0.3, 0.33}), RetrievalVerdict::not_shown);
  EXPECT_EQ(verdict_on({0.8, 0.82}, {0.801, 0.821}), RetrievalVerdict::not_shown);
}

TEST(RetrievalVerdict, OnePromptCannotTell) {
  EXPECT_EQ(verdict_on({0.9}, {0.1}), RetrievalVerdict::untestable);
  EXPECT_EQ(verdict_on({0.06, 0.07}, {0.1, 0.1}), RetrievalVerdict::untestable);  // at chance as trained
}

TEST(RetrievalProbe, IsLeftOutWhereTheModelIsTooSmallForIt) {
  ModelSpec spec = decoder();
  spec.positions = 24;
  AblateSettings with = settings({"none"});
  with.probe_length = 100;
  EXPECT_EQ(make_probe(spec, with).length, 12u);
  spec.vocabulary = 3;
  EXPECT_EQ(make_probe(spec, with).length, 0u);
  with.probe_tokens = {1, 2};
  EXPECT_TRUE(make_probe(decoder(), with).from_vocabulary);
}

}  // namespace
}  // namespace normscope
