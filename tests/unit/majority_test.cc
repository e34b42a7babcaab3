// The majority task: its data, its training and what is measured of it.
#include "normscope/majority.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <set>

#include "support/message.h"

namespace normscope {
namespace {

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
    const std::string sentence = message_of([&] { make_majority_data(task, 1); });
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

TEST(Averaging, DirectionsAreUnitVectorsOrthogonalToOnes) {
  for (const std::size_t classes : {1, 2, 3, 9, 20, 21}) {
    for (const std::size_t d : {2, 3, 7, 8, 20, 21, 22, 30}) {
      const Matrix<double> directions = type_directions(classes, d);
      for (std::size_t c = 0; c < classes; ++c) {
        double sum = 0, square = 0;
        for (const double value : directions[c]) sum += value, square += value * value;
        EXPECT_NEAR(sum, 0, 1e-12);
        EXPECT_NEAR(square, 1, 1e-12) << classes << " in " << d;
      }
      if (d < classes || classes < 2) continue;
      // A simplex: all as far apart as can be.
      for (std::size_t c = 1; c < classes; ++c) {
        double inner = 0;
        for (std::size_t j = 0; j < d; ++j) inner += directions(0, j) * directions(c, j);
        EXPECT_NEAR(inner, -1 / (static_cast<double>(classes) - 1), 1e-12) << classes << " in " << d;
      }
    }
  }
}

TEST(Averaging, SolvesTheTaskWithADimensionForEveryType) {
  const Executor executor(1);
  MajoritySettings settings;
  settings.task.samples = 5000;
  const MajorityData data = make_majority_data(settings.task, 11);
  for (const std::size_t heads : {1, 3}) {
    settings.dimension = 21;
    settings.heads = heads;
    const AveragingSolution solution = averaging_solution(settings, data.train);
    for (const EncoderPath path : {EncoderPath::generic, EncoderPath::bag}) {
      const EncoderMeasures measures = make_encoder_gradient<float>(solution.spec, path)
                                           ->measure(data.test, solution.parameters, executor);
      EXPECT_EQ(measures.accuracy, 1);
      EXPECT_LT(measures.loss, 1e-3);
      EXPECT_LT(measures.attention_distance, 1e-5);
    }
    for (const double angle : angles_to_ones(type_geometry(solution.spec, solution.parameters).queries))
      EXPECT_NEAR(angle, 0, 1e-4);
  }
}

TEST(Averaging, LossOfTheModelIsThatOfItsFormula) {
  const Executor executor(1);
  MajoritySettings settings;
  settings.task.samples = 5000;
  const MajorityData data = make_majority_data(settings.task, 11);
  const AveragingSolution solution = averaging_solution(settings, data.train);
  const Matrix<double> directions = type_directions(settings.task.classes, settings.dimension);
  const double expected = averaging_loss(directions, solution.sharpness, data.test);
  const EncoderMeasures measures =
      make_encoder_gradient<float>(solution.spec)->measure(data.test, solution.parameters, executor);
  EXPECT_NEAR(measures.loss, expected, 1e-3 * expected);
  // The sharpness is the best: of the set that it was chosen by.
  const double best = averaging_loss(directions, solution.sharpness, data.train);
  for (const double factor : {0.8, 1.25})
    EXPECT_GT(averaging_loss(directions, factor * solution.sharpness, data.train), best);
}

TEST(Averaging, TakesTheProjectionToBeExact) {
  const Executor executor(1);
  MajoritySettings settings;
  settings.task.samples = 2000;
  const MajorityData data = make_majority_data(settings.task, 11);
  AveragingSolution solution = averaging_solution(settings, data.train);
  solution.spec.norm1 = parse_norm("rmsnorm");
  EXPECT_GT(make_encoder_gradient<float>(solution.spec)
                ->measure(data.test, solution.parameters, executor)
                .attention_distance,
            0.1);
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

std::vector<TrainingRunId> small_runs() {
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
  const auto refused = [&](const MajoritySettings& settings, const std::vector<TrainingRunId>& runs,
                           std::vector<Tensor> tensors, const std::vector<std::vector<MajorityRow>>& log,
                           const std::string& words) {
    MajorityTraining other(settings, runs, executor);
    const std::string sentence = message_of([&] { other.restore(tensors, log); });
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
  MajoritySettings settings;
  settings.task.classes = 2;
  settings.dimension = 4;
  settings.heads = 2;
  EncoderSpec spec = majority_encoder(settings, "none");
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

}  // namespace
}  // namespace normscope
