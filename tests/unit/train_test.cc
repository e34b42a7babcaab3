// Training: both paths of the encoder, and the optimiser. The layers one by one are the subject of tests/ops.
#include "normscope/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>

#include "normscope/error.h"
#include "normscope/majority.h"
#include "normscope/random.h"
#include "support/message.h"

namespace normscope {
namespace {

EncoderSpec encoder(const std::string& norm, std::size_t classes = 20, std::size_t d = 8,
                    std::size_t heads = 1) {
  EncoderSpec spec;
  spec.classes = classes;
  spec.dimension = d;
  spec.heads = heads;
  spec.feed_forward = d;
  spec.norm1 = parse_norm(norm);
  spec.norm2 = parse_norm("layernorm");
  spec.norm2.affine = true;
  return spec;
}

SequenceSet sequences(std::size_t classes, const std::vector<std::vector<std::uint16_t>>& rows) {
  std::vector<std::uint16_t> tokens, labels;
  for (const auto& row : rows) {
    tokens.insert(tokens.end(), row.begin(), row.end());
    labels.push_back(row[0]);
  }
  return make_sequences(classes, rows[0].size(), tokens, labels);
}

SequenceSet random_sequences(std::size_t classes, std::size_t length, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint16_t> tokens(length * count), labels(count);
  for (auto& token : tokens) token = static_cast<std::uint16_t>(random.below(classes));
  for (auto& label : labels) label = static_cast<std::uint16_t>(random.below(classes));
  return make_sequences(classes, length, tokens, labels);
}

std::vector<std::uint32_t> everything(const SequenceSet& set) {
  std::vector<std::uint32_t> batch(set.size());
  std::iota(batch.begin(), batch.end(), 0U);
  return batch;
}

// Initial parameters, with gains and biases of the norms away from 1 and 0.
template <class T>
std::vector<T> parameters(const EncoderSpec& spec, std::uint64_t seed = 5) {
  const auto start = initial_parameters(spec, seed);
  std::vector<T> values(start.begin(), start.end());
  Random random(seed, 77);
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    if (slot.name.find("norm") == std::string::npos) continue;
    for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i)
      values[i] += static_cast<T>(static_cast<float>(0.3 * random.normal()));
  }
  return values;
}

template <class T>
struct Step {
  double loss;
  std::vector<T> gradient;
};
template <class T>
Step<T> step_by(EncoderPath path, const EncoderSpec& spec, const SequenceSet& set,
                const std::vector<T>& values, int threads = 1) {
  Step<T> step{0, std::vector<T>(values.size())};
  step.loss = make_encoder_gradient<T>(spec, path)
                  ->gradient(set, everything(set), values, step.gradient, Executor(threads));
  return step;
}

void expect_equal_paths(const EncoderSpec& spec, const SequenceSet& set, const std::vector<double>& values) {
  SCOPED_TRACE(name_of(spec.norm1));
  const auto generic = step_by<double>(EncoderPath::generic, spec, set, values);
  const auto bag = step_by<double>(EncoderPath::bag, spec, set, values);
  ASSERT_TRUE(std::isfinite(generic.loss));
  EXPECT_NEAR(bag.loss, generic.loss, 1e-12 * std::fabs(generic.loss));
  double largest = 0;
  for (const double value : generic.gradient) largest = std::max(largest, std::fabs(value));
  ASSERT_GT(largest, 0);
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i)
      ASSERT_NEAR(bag.gradient[i], generic.gradient[i], 1e-10 * largest)
          << slot.name << " " << i - slot.offset;
  }
  const Executor executor(1);
  const auto a = make_encoder_gradient<double>(spec, EncoderPath::generic)->measure(set, values, executor);
  const auto b = make_encoder_gradient<double>(spec, EncoderPath::bag)->measure(set, values, executor);
  EXPECT_NEAR(b.loss, a.loss, 1e-12 * std::fabs(a.loss));
  EXPECT_NEAR(b.accuracy, a.accuracy, 1e-12);
  EXPECT_NEAR(b.sequence_accuracy, a.sequence_accuracy, 1e-12);
  EXPECT_NEAR(b.attention_entropy, a.attention_entropy, 1e-11);
  EXPECT_NEAR(b.attention_distance, a.attention_distance, 1e-12);
}
void expect_equal_paths(const EncoderSpec& spec, const SequenceSet& set) {
  expect_equal_paths(spec, set, parameters<double>(spec));
}

const char* const kNorms[] = {"none",   "center", "layernorm", "rmsnorm",   "unit",      "published",
                              "xsigma", "dyt",    "qknorm:2",  "normals:1", "project:1", "project:2"};

TEST(EncoderPaths, HaveTheSameGradientsUnderEveryNorm) {
  const SequenceSet set = random_sequences(7, 11, 70, 1);
  for (const char* norm : kNorms) {
    EncoderSpec spec = encoder(norm, 7, 8, 2);
    expect_equal_paths(spec, set);
    spec.norm1.affine = true;
    spec.norm1.eps = spec.norm2.eps = 1e-5;
    expect_equal_paths(spec, set);
    spec.norm2.affine = false;
    expect_equal_paths(spec, set);
  }
}

TEST(EncoderPaths, HaveTheSameGradientsBehindAMatrixAndWithUniformAttention) {
  const SequenceSet set = random_sequences(7, 11, 70, 1);
  for (const char* norm : {"layernorm", "rmsnorm", "none", "project:1"}) {
    for (const auto& [matrix, uniform] : {std::pair{true, false}, {false, true}, {true, true}}) {
      EncoderSpec spec = encoder(norm, 7, 8, 2);
      spec.matrix = matrix;
      spec.uniform = uniform;
      std::vector<double> values = parameters<double>(spec);
      Random random(3);
      for (const ParameterSlot& slot : parameter_slots(spec)) {
        if (slot.name != "layers.0.matrix") continue;
        for (std::size_t i = 0; i < slot.size(); ++i) values[slot.offset + i] += 0.3 * random.normal();
      }
      expect_equal_paths(spec, set, values);
    }
  }
}

TEST(EncoderPaths, AMatrixIsTheIdentityAtFirst) {
  const SequenceSet set = random_sequences(7, 11, 70, 1);
  EncoderSpec with = encoder("rmsnorm", 7);
  const EncoderSpec without = with;
  with.matrix = true;
  EXPECT_EQ(parameter_count(with), parameter_count(without) + 64);
  const auto start = initial_parameters(with, 5), plain = initial_parameters(without, 5);
  const auto a = step_by<double>(EncoderPath::generic, with, set, {start.begin(), start.end()}),
             b = step_by<double>(EncoderPath::generic, without, set, {plain.begin(), plain.end()});
  EXPECT_EQ(a.loss, b.loss);
}

TEST(EncoderPaths, UniformAttentionIsUniformAndLeavesQueriesAndKeysAlone) {
  const SequenceSet set = random_sequences(7, 11, 70, 1);
  for (const char* mask : {"full", "causal"}) {
    EncoderSpec spec = encoder("layernorm", 7, 8, 2);
    spec.uniform = true;
    spec.mask = mask;
    const std::vector<double> values = parameters<double>(spec);
    const auto measures = make_encoder_gradient<double>(spec)->measure(set, values, Executor(1));
    EXPECT_NEAR(measures.attention_distance, 0, 1e-14) << mask;
    if (spec.mask == "full") {
      EXPECT_NEAR(measures.attention_entropy, std::log(11.0), 1e-12);
    }
    const auto step = step_by<double>(EncoderPath::automatic, spec, set, values);
    for (const ParameterSlot& slot : parameter_slots(spec)) {
      if (slot.name != "layers.0.attention.in_proj") continue;
      double others = 0;
      for (std::size_t i = 0; i < slot.size(); ++i) {
        const double value = std::fabs(step.gradient[slot.offset + i]);
        if (i < 2 * slot.size() / 3) {
          ASSERT_EQ(value, 0) << mask << " " << i;
        } else {
          others += value;
        }
      }
      EXPECT_GT(others, 0);
    }
  }
}

TEST(EncoderPaths, AgreeOnSequencesOfASingleClass) {
  expect_equal_paths(encoder("layernorm", 4), sequences(4, {{2, 2, 2, 2}, {0, 0, 0, 0}, {3, 3, 3, 3}}));
}

TEST(EncoderPaths, AgreeOnTiesAndOnTheSmallestMargin) {
  expect_equal_paths(
      encoder("rmsnorm", 4),
      sequences(4, {{0, 0, 1, 1, 2, 3}, {1, 1, 1, 2, 2, 3}, {3, 2, 1, 0, 3, 2}, {0, 0, 0, 1, 1, 1}}));
}

TEST(EncoderPaths, AgreeAtLengthsOneAndTwo) {
  expect_equal_paths(encoder("layernorm", 5), sequences(5, {{0}, {4}, {2}, {4}}));
  expect_equal_paths(encoder("layernorm", 5), sequences(5, {{0, 1}, {4, 4}, {2, 0}, {3, 1}}));
}

TEST(EncoderPaths, AgreeWithSeveralHeads) {
  for (const std::size_t heads : {2, 4, 8})
    expect_equal_paths(encoder("layernorm", 6, 8, heads), random_sequences(6, 13, 40, heads));
}

TEST(EncoderPaths, AgreeInThreeDimensionsAndWithTwoClasses) {
  expect_equal_paths(encoder("layernorm", 10, 3), random_sequences(10, 30, 50, 2));
  expect_equal_paths(encoder("rmsnorm", 2, 3), random_sequences(2, 9, 50, 3));
  expect_equal_paths(encoder("rmsnorm", 2, 3, 3), random_sequences(2, 9, 50, 3));
}

TEST(EncoderPaths, AgreeOnBatchesOfManyBlocksAndChunks) {
  expect_equal_paths(encoder("layernorm", 3, 4), random_sequences(3, 5, 2500, 4));
}

template <class T>
std::vector<T> with_far_scores(const EncoderSpec& spec, T factor) {
  auto values = parameters<T>(spec);
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    if (!slot.name.ends_with("in_proj")) continue;
    for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i) values[i] *= factor;
  }
  return values;
}

// Scores of up to 40²·‖q‖‖k‖ differ by thousands: one maximum per type would leave whole sequences without
// weight, so the bag path has to leave them to the generic one.
TEST(EncoderPaths, AgreeAndStayFiniteWhereScoresAreFarApart) {
  for (const char* norm : {"none", "layernorm", "rmsnorm"}) {
    const EncoderSpec spec = encoder(norm, 6, 8, 2);
    const SequenceSet set = random_sequences(6, 4, 40, 8);
    expect_equal_paths(spec, set, with_far_scores<double>(spec, 40));
    const auto values = with_far_scores<float>(spec, 40);
    const auto generic = step_by<float>(EncoderPath::generic, spec, set, values),
               bag = step_by<float>(EncoderPath::bag, spec, set, values);
    ASSERT_TRUE(std::isfinite(bag.loss));
    EXPECT_TRUE(
        std::all_of(bag.gradient.begin(), bag.gradient.end(), [](float g) { return std::isfinite(g); }));
    EXPECT_EQ(bag.loss, generic.loss);
    EXPECT_EQ(bag.gradient, generic.gradient);
  }
}

// From no spread to beyond the one at which the bag path gives up, in float, where range and rounding are
// tight.
TEST(EncoderPaths, AgreeInFloatUpToTheSpreadThatTheBagPathTakes) {
  const EncoderSpec spec = encoder("rmsnorm", 6, 8, 1);
  const SequenceSet set = random_sequences(6, 4, 40, 9);
  for (const float factor : {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 2.5F, 3.0F, 3.5F, 4.0F, 5.0F}) {
    SCOPED_TRACE(factor);
    const auto values = with_far_scores<float>(spec, factor);
    const std::vector<double> exact(values.begin(), values.end());
    const auto truth = step_by<double>(EncoderPath::generic, spec, set, exact);
    double largest = 0;
    for (const double value : truth.gradient) largest = std::max(largest, std::fabs(value));
    for (const EncoderPath path : {EncoderPath::generic, EncoderPath::bag}) {
      const auto got = step_by<float>(path, spec, set, values);
      EXPECT_NEAR(got.loss, truth.loss, 2e-6 * truth.loss);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(got.gradient[i], truth.gradient[i], 2e-5 * largest) << i;
    }
  }
}

TEST(EncoderPaths, HaveTheSameLossesOverAHundredStepsOfAdam) {
  MajorityTask task;
  task.samples = 1000;
  const MajorityData data = make_majority_data(task, 3);
  for (const char* norm : {"layernorm", "rmsnorm", "none", "project:1"}) {
    const EncoderSpec spec = encoder(norm);
    std::vector<double> losses[2];
    for (const EncoderPath path : {EncoderPath::generic, EncoderPath::bag}) {
      const auto model = make_encoder_gradient<float>(spec, path);
      auto values = initial_parameters(spec, 1);
      std::vector<float> gradient(values.size());
      AdamState state;
      for (std::uint32_t step = 0; step < 100; ++step) {
        std::vector<std::uint32_t> batch(80);
        std::iota(batch.begin(), batch.end(), step % 10 * 80);
        losses[path == EncoderPath::bag].push_back(
            model->gradient(data.train, batch, values, gradient, Executor(1)));
        adam_update({}, state, values, gradient);
      }
    }
    ASSERT_LT(losses[0].back(), losses[0].front()) << norm;
    for (std::size_t step = 0; step < 100; ++step)
      ASSERT_NEAR(losses[1][step], losses[0][step], 1e-6 * losses[0][step]) << norm << " step " << step;
  }
}

TEST(EncoderPaths, GiveTheSameBytesOnAnyNumberOfThreads) {
  const SequenceSet set = random_sequences(3, 12, 3000, 6);
  const EncoderSpec spec = encoder("layernorm", 3, 4);
  const auto values = parameters<float>(spec);
  for (const EncoderPath path : {EncoderPath::generic, EncoderPath::bag}) {
    const auto alone = step_by<float>(path, spec, set, values, 1);
    for (const int threads : {2, 8}) {
      const auto together = step_by<float>(path, spec, set, values, threads);
      EXPECT_EQ(together.loss, alone.loss);
      EXPECT_EQ(std::memcmp(together.gradient.data(), alone.gradient.data(), values.size() * sizeof(float)),
                0);
    }
  }
}

TEST(EncoderPaths, TheBagPathIsRefusedWhereASequenceIsNoBag) {
  EncoderSpec causal = encoder("layernorm"), deep = causal, other = causal;
  causal.mask = "causal";
  deep.layers = 2;
  other.norm2 = parse_norm("rmsnorm");
  for (const EncoderSpec& spec : {causal, deep, other}) {
    EXPECT_FALSE(is_bag_of_types(spec));
    EXPECT_THROW(make_encoder_gradient<float>(spec, EncoderPath::bag), InputError);
    EXPECT_NE(make_encoder_gradient<float>(spec), nullptr);
  }
  EXPECT_TRUE(is_bag_of_types(encoder("project:2")));
  EncoderSpec post = encoder("layernorm"), sharp = post;
  post.placement = Placement::post;
  sharp.temperature = 1;
  EXPECT_FALSE(is_bag_of_types(post));
  EXPECT_FALSE(is_bag_of_types(sharp));
}

TEST(Encoder, ImpossibleSettingsAreNamed) {
  const auto says = [](const EncoderSpec& spec, const std::string& words) {
    const std::string sentence = message_of([&] { check_encoder(spec); });
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
    EXPECT_THROW(make_encoder_gradient<float>(spec), InputError);
    EXPECT_THROW(initial_parameters(spec, 1), InputError);
  };
  EncoderSpec other = encoder("project:1");
  other.placement = Placement::sandwich;
  says(other, "sandwich");
  other = encoder("layernorm");
  other.matrix = true;
  other.placement = Placement::post;
  says(other, "take pre or sandwich");
  other = encoder("layernorm");
  other.keep_apart = 1;
  says(other, "take 2 or more layers");
  other.layers = 2;
  other.keep_apart = -1;
  says(other, "at least 0, not -1");
  other.keep_apart = 0;
  other.temperature = -1;
  says(other, "temperature");
  says(encoder("rmsnorm", 20, 8, 3), "3 heads do not divide a dimension of 8");
  says(encoder("rmsnorm", 20, 8, 0), "0 heads");
  says(encoder("layernorm", 20, 1), "'layernorm' before attention projects out 1 of 1 dimensions");
  says(encoder("none", 20, 1), "before the feed-forward part");
  says(encoder("xsigma", 20, 1), "σ");
  says(encoder("project:4", 20, 4), "projects out 4 of 4 dimensions");
  says(encoder("normals:9", 20, 8), "projects out 9 of 8 dimensions");
  says(encoder("qknorm:3", 20, 8), "3 heads, which do not divide");
  says(encoder("none", 0), "classes");
  says(encoder("none", 20, 0), "dimensions");
  EncoderSpec spec = encoder("none");
  spec.layers = 0;
  says(spec, "layers");
  spec = encoder("none");
  spec.feed_forward = 0;
  says(spec, "feed-forward units");
  for (const double eps : {-1e-5, std::numeric_limits<double>::quiet_NaN()}) {
    spec = encoder("rmsnorm");
    spec.norm1.eps = eps;
    says(spec, "eps");
  }
  check_encoder(encoder("project:7", 20, 8));
}

TEST(Encoder, OfThePaperHas584Parameters) {
  const EncoderSpec spec = encoder("layernorm");
  EXPECT_EQ(parameter_count(spec), 584U);
  EXPECT_EQ(parameter_count(encoder("project:2")), 584U + 16U);
  EXPECT_EQ(parameter_count(encoder("dyt")), 584U + 1U);
  std::size_t offset = 0;
  std::set<std::string> names;
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    EXPECT_EQ(slot.offset, offset);
    offset += slot.size();
    EXPECT_TRUE(names.insert(slot.name).second);
  }
  EXPECT_EQ(offset, 584U);
}

TEST(Encoder, InitialParametersDependOnTheSeedOnlyAndHaveTheirRanges) {
  EncoderSpec spec = encoder("project:2", 500, 16);
  spec.feed_forward = 64;
  spec.norm1.affine = true;
  const auto values = initial_parameters(spec, 9);
  EXPECT_EQ(values, initial_parameters(spec, 9));
  EXPECT_NE(values, initial_parameters(spec, 10));
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    SCOPED_TRACE(slot.name);
    const auto part = std::span(values).subspan(slot.offset, slot.size());
    double largest = 0, mean = 0, square = 0;
    for (const float value : part) {
      largest = std::max(largest, std::fabs(static_cast<double>(value)));
      mean += value / static_cast<double>(part.size());
      square += value * value / static_cast<double>(part.size());
    }
    if (slot.name == "embedding") {
      EXPECT_NEAR(mean, 0, 0.05);
      EXPECT_NEAR(square, 1, 0.05);
      EXPECT_GT(largest, 3);
    } else if (slot.name.ends_with("normals")) {
      EXPECT_GT(largest, 1);
    } else if (slot.name.ends_with("gain")) {
      EXPECT_EQ(mean, 1);
      EXPECT_EQ(square, 1);
    } else if (slot.name.ends_with("out_proj.bias") || slot.name.ends_with("norm1.bias") ||
               slot.name.ends_with("norm2.bias")) {
      EXPECT_EQ(largest, 0);
    } else {
      const double fan_in = slot.name.find("linear2") == std::string::npos ? 16 : 64;
      const double bound =
          slot.name.ends_with("in_proj") ? std::sqrt(6.0 / (16 + 48)) : 1 / std::sqrt(fan_in);
      EXPECT_LE(largest, bound * (1 + 1e-6));
      EXPECT_GT(largest, 0.8 * bound);
      EXPECT_NEAR(square, bound * bound / 3, (part.size() > 100 ? 0.2 : 0.6) * bound * bound / 3);
    }
  }
  const auto dyt = initial_parameters(encoder("dyt"), 1);
  for (const ParameterSlot& slot : parameter_slots(encoder("dyt"))) {
    if (slot.name.ends_with("alpha")) {
      EXPECT_EQ(dyt[slot.offset], 0.5F);
    }
  }
}

TEST(Encoder, SequencesMustFitTheirShapeAndClasses) {
  EXPECT_THROW(make_sequences(3, 2, {0, 1, 2}, {0, 1}), InputError);
  EXPECT_THROW(make_sequences(3, 0, {}, {}), InputError);
  EXPECT_THROW(make_sequences(3, 1, {3}, {0}), InputError);
  EXPECT_THROW(make_sequences(3, 1, {0}, {3}), InputError);
  const SequenceSet set = make_sequences(3, 4, {2, 0, 2, 2, 1, 1, 1, 1}, {2, 1});
  EXPECT_EQ(set.counts, (std::vector<std::uint16_t>{1, 0, 3, 0, 4, 0}));
}

TEST(Schedule, RisesStaysAndFalls) {
  const Schedule linear{Schedule::Kind::linear, 0, 100};
  EXPECT_EQ(linear.factor(0), 1);
  EXPECT_DOUBLE_EQ(linear.factor(25), 0.75);
  EXPECT_EQ(linear.factor(100), 0);
  EXPECT_EQ(linear.factor(1000), 0);
  const Schedule warm{Schedule::Kind::linear, 10, 110};
  EXPECT_DOUBLE_EQ(warm.factor(0), 0.1);
  EXPECT_DOUBLE_EQ(warm.factor(4), 0.5);
  EXPECT_EQ(warm.factor(9), 1);
  EXPECT_EQ(warm.factor(10), 1);
  EXPECT_DOUBLE_EQ(warm.factor(60), 0.5);
  EXPECT_EQ(warm.factor(110), 0);
  const Schedule cosine{Schedule::Kind::cosine, 0, 100};
  EXPECT_EQ(cosine.factor(0), 1);
  EXPECT_DOUBLE_EQ(cosine.factor(25), (1 + std::numbers::sqrt2 / 2) / 2);
  EXPECT_NEAR(cosine.factor(50), 0.5, 1e-15);
  EXPECT_NEAR(cosine.factor(100), 0, 1e-15);
  const Schedule constant{Schedule::Kind::constant, 2, 4};
  EXPECT_DOUBLE_EQ(constant.factor(0), 0.5);
  EXPECT_EQ(constant.factor(1'000'000), 1);
  EXPECT_EQ((Schedule{Schedule::Kind::linear, 10, 5}.factor(20)), 0);  // steps below the warm-up
}

// Adam as the paper of Kingma and Ba writes it, in double.
struct PlainAdam {
  std::vector<double> m, v;
  int t = 0;
  void update(const AdamSettings& s, double rate, std::vector<double>& x, std::vector<double> g) {
    m.resize(x.size());
    v.resize(x.size());
    double norm = 0;
    for (const double value : g) norm += value * value;
    norm = std::sqrt(norm);
    if (s.clip > 0 && norm > s.clip) {
      for (double& value : g) value *= s.clip / norm;
    }
    ++t;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= rate * s.weight_decay * x[i];
      m[i] = s.beta1 * m[i] + (1 - s.beta1) * g[i];
      v[i] = s.beta2 * v[i] + (1 - s.beta2) * g[i] * g[i];
      const double mhat = m[i] / (1 - std::pow(s.beta1, t)), vhat = v[i] / (1 - std::pow(s.beta2, t));
      x[i] -= rate * mhat / (std::sqrt(vhat) + s.eps);
    }
  }
};

void expect_plain_adam(const AdamSettings& settings) {
  Random random(4);
  std::vector<float> x(17), g(17);
  for (float& value : x) value = static_cast<float>(random.normal());
  std::vector<double> plain(x.begin(), x.end());
  PlainAdam reference;
  AdamState state;
  for (std::uint64_t step = 0; step < 50; ++step) {
    for (float& value : g) value = static_cast<float>(random.normal());
    reference.update(settings, settings.learning_rate * settings.schedule.factor(step), plain,
                     {g.begin(), g.end()});
    adam_update(settings, state, x, g);
    ASSERT_EQ(state.step, step + 1);
    // One rounding of a parameter of size 1 to 4 per step, at most 2⁻²³.
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(x[i], plain[i], static_cast<double>(step + 1) * 0x1p-22) << "step " << step;
  }
}

TEST(Adam, IsThePaperS) {
  AdamSettings settings;
  settings.learning_rate = 0.01;
  settings.schedule = {Schedule::Kind::cosine, 5, 40};
  expect_plain_adam(settings);
}

TEST(Adam, DecaysWeightsApartFromTheGradient) {
  AdamSettings settings;
  settings.learning_rate = 0.05;
  settings.weight_decay = 0.3;
  expect_plain_adam(settings);
  AdamState state;
  std::vector<float> x = {2}, g = {0};
  settings.schedule.kind = Schedule::Kind::constant;
  adam_update(settings, state, x, g);
  EXPECT_FLOAT_EQ(x[0], 2 * (1 - 0.05F * 0.3F));
}

TEST(Adam, ClipsTheNormOfTheWholeGradient) {
  AdamSettings settings;
  settings.learning_rate = 0.01;
  settings.clip = 1.5;  // below the norm of about 4 of the gradients above
  expect_plain_adam(settings);
  AdamState state;
  std::vector<float> x = {1, 1}, g = {30, 40};
  settings.clip = 5;
  adam_update(settings, state, x, g);
  EXPECT_NEAR(g[0], 3, 1e-5);
  EXPECT_NEAR(g[1], 4, 1e-5);
  g = {0.3F, 0.4F};
  adam_update(settings, state, x, g);
  EXPECT_EQ(g, (std::vector<float>{0.3F, 0.4F}));
}

}  // namespace
}  // namespace normscope
