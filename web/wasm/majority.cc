// The majority view: training while the page watches. What the page calls:
//
//   const training = new core.MajorityTraining()
//   training.start({norms, classes, length, samples, margin, dimension, learningRate, decaySteps, steps,
//                   evaluateEvery, seed})
//   training.advance(milliseconds)    trains for about that long; returns what the last evaluations recorded
//   training.delete()
//   core.majorityPublished()          what the paper published, to be drawn beside it
//
// `normscope train majority` with the same options does the same steps.
#include "normscope/majority.h"

#include <emscripten.h>

#include <cmath>
#include <memory>
#include <string>

#include "bridge.h"
#include "paper/published_majority.h"

namespace normscope::web {
namespace {

// What a page can train while someone looks on.
constexpr std::size_t kMostClasses = 20, kMostLength = 50, kMostSamples = 20'000, kMostDimensions = 16;
constexpr std::size_t kMostSteps = 100'000;

MajoritySettings settings_of(const val& options) {
  MajoritySettings settings;
  settings.task.classes = count_of(options, "classes", "classes", 2, kMostClasses);
  settings.task.length = count_of(options, "length", "tokens in a sequence", 3, kMostLength);
  settings.task.samples = count_of(options, "samples", "sequences", 5, kMostSamples);
  settings.task.margin = count_of(options, "margin", "tokens a majority leads by", 1, kMostLength);
  settings.dimension = count_of(options, "dimension", "dimensions", 2, kMostDimensions);
  settings.steps = count_of(options, "steps", "steps", 1, kMostSteps);
  settings.evaluate_every = count_of(options, "evaluateEvery", "steps between two records", 1, kMostSteps);
  settings.adam.learning_rate = options["learningRate"].as<double>();
  settings.adam.schedule.steps =
      count_of(options, "decaySteps", "steps until the learning rate is 0", 1, 10 * kMostSteps);
  return settings;
}

val rows_of(std::span<const MajorityRow> rows) {
  std::vector<double> values;
  for (const MajorityRow& row : rows) {
    values.insert(values.end(),
                  {static_cast<double>(row.step), row.train_loss, row.test.loss, row.test.accuracy,
                   row.test.sequence_accuracy, row.angle_mean, row.angle_sd, row.test.attention_distance});
  }
  return numbers(values);
}

val marks_of(std::span<const PublishedValue> values) {
  val list = val::array();
  for (const PublishedValue& each : values) {
    val mark = val::object();
    mark.set("norm", std::string(each.norm));
    mark.set("x", static_cast<double>(each.step));
    mark.set("y", each.value);
    list.call<void>("push", mark);
  }
  return list;
}

// What the paper's figures show, in d = 8.
val published() {
  val result = val::object();
  result.set("losses", marks_of(kPublishedLosses));
  result.set("angles", marks_of(kPublishedAngles));
  result.set("accuracies", marks_of(kPublishedAccuracies));
  return result;
}

class Training {
 public:
  // The norms of a run share weights, sequences and batches as far as their shapes allow: one seed.
  val start(const val& options) {
    return answer([&] {
      training_.reset();
      const MajoritySettings settings = settings_of(options);
      const std::uint64_t seed = seed_of(options);
      std::vector<TrainingRunId> runs;
      const auto count = options["norms"]["length"].as<std::size_t>();
      for (std::size_t i = 0; i < count; ++i) runs.push_back({options["norms"][i].as<std::string>(), seed});
      training_ = std::make_unique<MajorityTraining>(settings, std::move(runs), executor_);
      training_->advance(executor_);
      sent_.assign(count, 0);
      return state();
    });
  }

  val advance(double milliseconds) {
    return answer([&] {
      if (!training_) throw InputError("There is no training yet: start one.");
      const double end = emscripten_get_now() + milliseconds;
      while (!training_->done()) {
        training_->advance(executor_);
        if (emscripten_get_now() >= end) break;
      }
      return state();
    });
  }

 private:
  // Rows since the last call; geometry as it is now.
  val state() {
    val runs = val::array();
    for (std::size_t r = 0; r < training_->runs().size(); ++r) {
      const MajorityRun& run = training_->runs()[r];
      const TypeGeometry geometry = type_geometry(run.spec, run.parameters);
      val each = val::object();
      each.set("norm", run.id.norm);
      each.set("rows", rows_of(std::span(run.rows).subspan(sent_[r])));
      each.set("step", static_cast<double>(run.step));
      each.set("finished", run.finished);
      each.set("diverged", run.diverged);
      each.set("keys", numbers(geometry.keys.values()));
      each.set("queries", numbers(geometry.queries.values()));
      each.set("keyAngles", numbers(angles_to_ones(geometry.keys)));
      each.set("queryAngles", numbers(angles_to_ones(geometry.queries)));
      each.set("outOfPlane", out_of_plane(geometry.keys));
      runs.call<void>("push", each);
      sent_[r] = run.rows.size();
    }
    val result = val::object();
    result.set("step", static_cast<double>(training_->step()));
    result.set("done", training_->done());
    result.set("runs", runs);
    return result;
  }

  Executor executor_{1};
  std::unique_ptr<MajorityTraining> training_;
  std::vector<std::size_t> sent_;  // rows of each run that the page has
};

}  // namespace
}  // namespace normscope::web

EMSCRIPTEN_BINDINGS(majority) {
  emscripten::class_<normscope::web::Training>("MajorityTraining")
      .constructor<>()
      .function("start", &normscope::web::Training::start)
      .function("advance", &normscope::web::Training::advance);
  emscripten::function("majorityPublished", &normscope::web::published);
}
