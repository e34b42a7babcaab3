// Training: both paths of the encoder, the optimiser, the majority task and what is measured of it. The
// layers one by one are the subject of tests/ops.
#include "normscope/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>

#include "normscope/error.h"
#include "normscope/majority.h"
#include "normscope/random.h"
#include "normscope/statistics.h"

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
  causal.mask = AttentionMask::causal;
  deep.layers = 2;
  other.norm2 = parse_norm("rmsnorm");
  for (const EncoderSpec& spec : {causal, deep, other}) {
    EXPECT_FALSE(is_bag_of_types(spec));
    EXPECT_THROW(make_encoder_gradient<float>(spec, EncoderPath::bag), InputError);
    EXPECT_NE(make_encoder_gradient<float>(spec), nullptr);
  }
  EXPECT_TRUE(is_bag_of_types(encoder("project:2")));
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Encoder, ImpossibleSettingsAreNamed) {
  const auto says = [](const EncoderSpec& spec, const std::string& words) {
    const std::string sentence = refusal([&] { check_encoder(spec); });
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
    EXPECT_THROW(make_encoder_gradient<float>(spec), InputError);
    EXPECT_THROW(initial_parameters(spec, 1), InputError);
  };
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

std::vector<std::size_t> counts_of(const SequenceSet& set, std::size_t s) {
  std::vector<std::size_t> counts(set.classes, 0);
  for (std::size_t i = 0; i < set.length; ++i) ++counts[set.tokens[s * set.length + i]];
  return counts;
}

void expect_majorities(const MajorityTask& task, const MajorityData& data) {
  ASSERT_EQ(data.train.size() + data.test.size(), task.samples);
  ASSERT_EQ(data.test.size(), task.samples / 5);
  std::vector<double> trains(task.classes), tests(task.classes);
  for (const SequenceSet* set : {&data.train, &data.test}) {
    ASSERT_EQ(set->length, task.length);
    ASSERT_EQ(set->classes, task.classes);
    ASSERT_EQ(set->tokens.size(), set->size() * task.length);
    for (std::size_t s = 0; s < set->size(); ++s) {
      auto counts = counts_of(*set, s);
      const std::size_t top = std::exchange(counts[set->labels[s]], 0);
      ASSERT_GE(top, *std::max_element(counts.begin(), counts.end()) + task.margin);
      ++(set == &data.train ? trains : tests)[set->labels[s]];
    }
  }
  for (std::size_t label = 0; label < task.classes; ++label)
    EXPECT_LE(std::fabs(tests[label] - (trains[label] + tests[label]) / 5), 1) << label;
}

TEST(MajorityData, LabelsLeadByTheMarginAndASplitKeepsTheirShares) {
  MajorityTask task;
  task.samples = 3000;
  expect_majorities(task, make_majority_data(task, 11));
  for (const MajorityTask& other :
       {MajorityTask{10, 30, 600, 6, 10}, MajorityTask{2, 3, 7, 1, 1}, MajorityTask{3, 4, 100, 2, 3},
        MajorityTask{4, 9, 333, 7, 5}, MajorityTask{30, 5, 500, 1, 2}}) {
    expect_majorities(other, make_majority_data(other, 1));
  }
}

std::ptrdiff_t types_in(const SequenceSet& set, std::size_t s) {
  const auto counts = std::span(set.counts).subspan(s * set.classes, set.classes);
  return std::count_if(counts.begin(), counts.end(), [](std::uint16_t count) { return count > 0; });
}

TEST(MajorityData, HasSeveralTypesInEverySequenceWhereItCan) {
  MajorityTask task;
  task.samples = 500;
  const MajorityData data = make_majority_data(task, 2);
  for (std::size_t s = 0; s < data.train.size(); ++s) EXPECT_GT(types_in(data.train, s), 1);
}

TEST(MajorityData, LengthTwoAndASingleClassHaveOneTypePerSequence) {
  for (const MajorityTask& task :
       {MajorityTask{5, 2, 50, 1, 1}, MajorityTask{5, 1, 50, 1, 1}, MajorityTask{1, 9, 50, 6, 1}}) {
    const MajorityData data = make_majority_data(task, 1);
    expect_majorities(task, data);
    for (std::size_t s = 0; s < data.train.size(); ++s) EXPECT_EQ(types_in(data.train, s), 1);
  }
}

TEST(MajorityData, DependsOnTheSeedOnly) {
  MajorityTask task;
  task.samples = 400;
  const MajorityData a = make_majority_data(task, 7), b = make_majority_data(task, 7),
                     c = make_majority_data(task, 8);
  EXPECT_EQ(a.train.tokens, b.train.tokens);
  EXPECT_EQ(a.train.labels, b.train.labels);
  EXPECT_EQ(a.test.tokens, b.test.tokens);
  const auto partitions = [](const MajorityData& data) {
    std::set<std::vector<std::size_t>> seen;
    for (const SequenceSet* set : {&data.train, &data.test}) {
      for (std::size_t s = 0; s < set->size(); ++s) {
        auto counts = counts_of(*set, s);
        std::sort(counts.begin(), counts.end());
        seen.insert(counts);
      }
    }
    return seen;
  };
  EXPECT_EQ(partitions(a).size(), 40U);  // ten assignments of each
  EXPECT_NE(partitions(a), partitions(c));
}

TEST(MajorityData, ImpossibleSettingsAreRefusedWithAWayOut) {
  const auto says = [](const MajorityTask& task, const std::string& words) {
    const std::string sentence = refusal([&] { make_majority_data(task, 1); });
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
  };
  says({0, 50, 100, 6, 10}, "classes");
  says({20, 0, 100, 6, 10}, "length from 1");
  says({20, 50, 4, 6, 10}, "at least 5");
  says({20, 50, 10, 6, 10}, "draw more");
  says({20, 50, 100, 49, 10}, "margin can be from 1 to 48");
  says({20, 50, 100, 0, 10}, "margin can be from 1 to 48");
  says({20, 2, 100, 3, 10}, "margin can be from 1 to 2");
  says({20, 50, 100, 6, 0}, "at least 1 assignment");
  MajorityTask widest{20, 50, 100, 48, 10};
  expect_majorities(widest, make_majority_data(widest, 1));
}

MajoritySettings small_training() {
  MajoritySettings settings;
  settings.task = {5, 12, 200, 3, 4};
  settings.dimension = 4;
  settings.batch = 50;
  settings.steps = 45;
  settings.evaluate_every = 10;
  settings.adam.learning_rate = 0.01;
  return settings;
}

std::vector<MajorityRunId> small_runs() {
  return {{"layernorm", 1}, {"project:1", 1}, {"dyt", 2}};
}

void expect_same_bytes(const MajorityTraining& a, const MajorityTraining& b) {
  ASSERT_EQ(a.runs().size(), b.runs().size());
  for (std::size_t r = 0; r < a.runs().size(); ++r) {
    const MajorityRun &x = a.runs()[r], &y = b.runs()[r];
    EXPECT_EQ(x.parameters, y.parameters);
    EXPECT_EQ(x.step, y.step);
    EXPECT_EQ(x.finished, y.finished);
    EXPECT_EQ(x.diverged, y.diverged);
    ASSERT_EQ(x.rows.size(), y.rows.size());
    for (std::size_t i = 0; i < x.rows.size(); ++i) {
      EXPECT_EQ(x.rows[i].test, y.rows[i].test) << i;
      EXPECT_EQ(std::bit_cast<std::uint64_t>(x.rows[i].train_loss),  // NaN at step 0
                std::bit_cast<std::uint64_t>(y.rows[i].train_loss))
          << i;
      EXPECT_EQ(x.rows[i].angle_mean, y.rows[i].angle_mean);
      EXPECT_EQ(x.rows[i].angle_sd, y.rows[i].angle_sd);
    }
  }
}

std::vector<std::vector<MajorityRow>> rows_of(const MajorityTraining& training) {
  std::vector<std::vector<MajorityRow>> rows;
  for (const MajorityRun& run : training.runs()) rows.push_back(run.rows);
  return rows;
}

TEST(MajorityTraining, InterruptedAndRestoredIsTheSameToTheByte) {
  const Executor executor(1);
  MajorityTraining straight(small_training(), small_runs(), executor);
  while (!straight.done()) straight.advance(executor);
  ASSERT_EQ(straight.runs()[0].rows.size(), 6U);  // at 0, 10, …, 40 and 45
  for (const int evaluations : {1, 3, 5}) {
    MajorityTraining first(small_training(), small_runs(), executor);
    for (int i = 0; i < evaluations; ++i) first.advance(executor);
    const auto checkpoint = first.checkpoint();
    const auto rows = rows_of(first);
    MajorityTraining second(small_training(), small_runs(), executor);
    second.restore(checkpoint, rows);
    expect_same_bytes(first, second);
    while (!second.done()) second.advance(executor);
    expect_same_bytes(straight, second);
  }
}

TEST(MajorityTraining, IsTheSameOnAnyNumberOfThreadsAndBesideOtherRuns) {
  const Executor one(1), several(4);
  MajorityTraining a(small_training(), small_runs(), one), b(small_training(), small_runs(), several),
      alone(small_training(), {small_runs()[1]}, several);
  while (!a.done()) a.advance(one);
  while (!b.done()) b.advance(several);
  while (!alone.done()) alone.advance(several);
  expect_same_bytes(a, b);
  EXPECT_EQ(alone.runs()[0].parameters, a.runs()[1].parameters);
}

TEST(MajorityTraining, ADivergedRunEndsWithItsLastFiniteParametersAndCanBeRestored) {
  const Executor executor(1);
  MajoritySettings settings = small_training();
  settings.evaluate_every = 1;
  settings.adam.learning_rate = 1e39;  // beyond float: the first update would make the parameters infinite
  MajorityTraining training(settings, small_runs(), executor);
  while (!training.done()) training.advance(executor);
  for (const MajorityRun& run : training.runs()) {
    ASSERT_TRUE(run.diverged);
    EXPECT_EQ(run.rows.size(), 1U);
    EXPECT_TRUE(
        std::all_of(run.parameters.begin(), run.parameters.end(), [](float v) { return std::isfinite(v); }));
  }
  auto checkpoint = training.checkpoint();
  for (Tensor& tensor : checkpoint) {
    if (tensor.name.ends_with("adam.square")) tensor.values[0] = std::numeric_limits<double>::infinity();
  }
  MajorityTraining restored(settings, small_runs(), executor);
  restored.restore(checkpoint, rows_of(training));
  EXPECT_TRUE(restored.done());
  EXPECT_TRUE(restored.runs()[0].diverged);
}

TEST(MajorityTraining, RefusesCheckpointsOfOtherRuns) {
  const Executor executor(1);
  MajorityTraining training(small_training(), small_runs(), executor);
  training.advance(executor);
  const auto checkpoint = training.checkpoint();
  const auto rows = rows_of(training);
  const auto refused = [&](const MajoritySettings& settings, const std::vector<MajorityRunId>& runs,
                           std::vector<Tensor> tensors, const std::vector<std::vector<MajorityRow>>& log,
                           const std::string& words) {
    MajorityTraining other(settings, runs, executor);
    const std::string sentence = refusal([&] { other.restore(tensors, log); });
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
  };
  refused(small_training(), {{"layernorm", 1}, {"project:1", 1}, {"dyt", 3}}, checkpoint, rows,
          "no tensor 'dyt/seed3/");
  MajoritySettings wider = small_training();
  wider.dimension = 6;
  refused(wider, small_runs(), checkpoint, rows, "another shape");
  refused(small_training(), small_runs(), checkpoint, {rows[0]}, "does not belong");
  refused(small_training(), small_runs(), checkpoint, {rows[0], {}, rows[2]}, "does not reach");
  auto broken = checkpoint;
  broken[0].values[0] = std::numeric_limits<double>::quiet_NaN();
  refused(small_training(), small_runs(), broken, rows, "NaN");
}

TEST(TypeGeometry, IsThatOfAHandMadeEncoder) {
  EncoderSpec spec = encoder("none", 2, 4, 2);
  std::vector<float> values(parameter_count(spec), 0.0F);
  const auto slot = [&](const std::string& name) {
    for (const ParameterSlot& s : parameter_slots(spec)) {
      if (s.name == name) return values.data() + s.offset;
    }
    ADD_FAILURE() << name;
    return values.data();
  };
  const float embedding[] = {1, 2, 3, 4, 0, -1, 0, 1};
  std::copy_n(embedding, 8, slot("embedding"));
  float* const in_proj = slot("layers.0.attention.in_proj");
  for (std::size_t i = 0; i < 4; ++i) in_proj[i * 4 + i] = 1;                 // W_Q = I
  for (std::size_t i = 0; i < 4; ++i) in_proj[16 + i * 4 + (i + 1) % 4] = 2;  // W_K: row i is 2·e_{i+1}
  const TypeGeometry geometry = type_geometry(spec, values);
  EXPECT_EQ(geometry.keys.values(), (std::vector<double>{1, 2, 3, 4, 0, -1, 0, 1}));
  // Of type 0, head 0: (1·2e₁ + 2·2e₂)/√2; head 1: (3·2e₃ + 4·2e₀)/√2.
  const double r = std::sqrt(2.0);
  const std::vector<double> expected = {0, 2 / r, 4 / r,  0, 8 / r, 0, 0, 6 / r,
                                        0, 0,     -2 / r, 0, 2 / r, 0, 0, 0};
  ASSERT_EQ(geometry.queries.rows(), 4U);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(geometry.queries.values()[i], expected[i], 1e-15) << i;
  spec.norm1 = parse_norm("center");
  EXPECT_EQ(type_geometry(spec, values).keys.values(),
            (std::vector<double>{-1.5, -0.5, 0.5, 1.5, 0, -1, 0, 1}));
}

TEST(TypeGeometry, AnglesToOnesAreFoldedIntoARightAngle) {
  const Matrix<double> rows(6, 2, {1, 1, -3, -3, 1, -1, 1, 0, 0, 0, -1, 0});
  const auto angles = angles_to_ones(rows);
  const double expected[] = {0, 0, 90, 45, 90, 45};
  // The angle comes from √(‖x‖² − along²), whose rounding of 1e-16 is one of 1e-8 in the angle near 0.
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(angles[i], expected[i], 2e-6) << i;
  EXPECT_NEAR(angles_to_ones(Matrix<double>(1, 3, {1, 0, 0}))[0],
              std::acos(1 / std::sqrt(3.0)) * 180 / std::numbers::pi, 1e-12);
}

TEST(TypeGeometry, OutOfPlaneIsTheShareBesideTheBestHyperplane) {
  EXPECT_EQ(out_of_plane(Matrix<double>(2, 3, {1, 2, 3, 4, 5, 6})), 0);  // two rows always lie in one
  EXPECT_EQ(out_of_plane(Matrix<double>(3, 3)), 0);
  EXPECT_NEAR(out_of_plane(Matrix<double>(3, 3, {1, 0, 0, 0, 1, 0, 0, 0, 1})), 1.0 / 3, 1e-15);
  EXPECT_NEAR(out_of_plane(Matrix<double>(3, 3, {3, 0, 0, 0, 2, 0, 0, 0, 1})), 1.0 / 14, 1e-15);
  EXPECT_NEAR(out_of_plane(Matrix<double>(4, 3, {1, -1, 0, 0, 1, -1, 2, 0, -2, 1, 1, -2})), 0, 1e-15);
}

TEST(MeanInterval, IsStudents) {
  const auto none = mean_interval({}), one = mean_interval(std::vector<double>{3});
  EXPECT_TRUE(std::isnan(none.mean));
  EXPECT_EQ(none.count, 0U);
  EXPECT_EQ(one.mean, 3);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high));
  // t₀.₉₇₅ of 1, 4 and 9 degrees of freedom: 12.7062, 2.776445, 2.262157.
  const auto two = mean_interval(std::vector<double>{1, 3});
  EXPECT_EQ(two.mean, 2);
  EXPECT_NEAR(two.half_width(), 12.706204736, 1e-8);
  const auto five = mean_interval(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_NEAR(five.low, 3 - 2.7764451052 * std::sqrt(2.5 / 5), 1e-9);
  EXPECT_NEAR(five.high, 3 + 2.7764451052 * std::sqrt(2.5 / 5), 1e-9);
  const auto ten = mean_interval(std::vector<double>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_NEAR(ten.half_width(), 2.2621571628 * std::sqrt(2.5 / 9 / 10), 1e-9);
  const auto same = mean_interval(std::vector<double>{2, 2, 2});
  EXPECT_EQ(same.low, 2);
  EXPECT_EQ(same.high, 2);
}

}  // namespace
}  // namespace normscope
