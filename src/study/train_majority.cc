#include "study/train_majority.h"

#include <fmt/format.h>

#include "normscope/tensor_file.h"
#include "train/runs_by_norm.h"

namespace normscope {
namespace {

constexpr std::pair<std::string_view, double> kLosses[] = {
    {kLossMarks[0], 1.0}, {kLossMarks[1], 0.5}, {kLossMarks[2], 0.2}};

// Of the last rows of the runs, those that are finite.
MeanResult mean_of(const std::vector<const MajorityRun*>& runs, double (*measure)(const MajorityRow&)) {
  std::vector<double> values;
  for (const MajorityRun* run : runs)
    if (const double value = measure(run->rows.back()); std::isfinite(value)) values.push_back(value);
  return {mean_interval(values)};
}

// A mean over those runs alone that got there would leave out the slowest: there is one only if all did.
MeanResult mean_steps(const std::vector<const MajorityRun*>& runs, double loss) {
  std::vector<double> steps;
  for (const MajorityRun* run : runs)
    if (const auto reached = run->steps_to(loss)) steps.push_back(static_cast<double>(*reached));
  MeanResult mean{mean_interval(steps.size() == runs.size() ? steps : std::vector<double>())};
  mean.count = steps.size();
  return mean;
}

MajorityRunResult run_result(const MajorityRun& run, const MajorityPlan& plan) {
  MajorityRunResult result{.run = {run.id},
                           .parameters = run.parameters.size(),
                           .step = run.rows.back().step,
                           .measures = measures_of(run.rows.back(), plan),
                           .diverged = run.diverged,
                           .keys_out_of_plane = out_of_plane(type_geometry(run.spec, run.parameters).keys),
                           .steps_to = {}};
  for (const auto& [name, loss] : kLosses) result.steps_to.emplace_back(name, run.steps_to(loss));
  return result;
}

MajorityNormResult norm_result(const std::string& norm, const std::vector<const MajorityRun*>& runs) {
  using Row = MajorityRow;
  MajorityNormResult result{
      .norm = norm,
      .runs = runs.size(),
      .measures =
          {.train_loss = mean_of(runs, [](const Row& row) { return row.train_loss; }),
           .test_loss = mean_of(runs, [](const Row& row) { return row.test.loss; }),
           .accuracy = mean_of(runs, [](const Row& row) { return row.test.accuracy; }),
           .sequence_accuracy = mean_of(runs, [](const Row& row) { return row.test.sequence_accuracy; }),
           .angle_mean = mean_of(runs, [](const Row& row) { return row.angle_mean; }),
           .angle_sd = mean_of(runs, [](const Row& row) { return row.angle_sd; }),
           .attention_entropy = mean_of(runs, [](const Row& row) { return row.test.attention_entropy; }),
           .attention_distance = mean_of(runs, [](const Row& row) { return row.test.attention_distance; })},
      .steps_to = {}};
  for (const auto& [name, loss] : kLosses) result.steps_to.emplace_back(name, mean_steps(runs, loss));
  return result;
}

void write_geometry(const std::filesystem::path& file, std::span<const MajorityRun> runs) {
  std::vector<Tensor> tensors;
  const auto add = [&](const std::string& name, const Matrix<double>& matrix) {
    tensors.push_back({name, DType::float64, {matrix.rows(), matrix.cols()}, matrix.values()});
  };
  for (const MajorityRun& run : runs) {
    const TypeGeometry geometry = type_geometry(run.spec, run.parameters);
    const std::string at = fmt::format("{}/seed{}/", run.id.norm, run.id.seed);
    add(at + "keys", geometry.keys);
    add(at + "queries", geometry.queries);
  }
  write_safetensors(file.string(), tensors);
}

}  // namespace

MajorityPlan plan_majority(const MajoritySettings& settings, std::vector<PlannedRun> runs) {
  MajorityPlan plan{{settings}, std::move(runs)};
  if (plan.settings.feed_forward == 0) plan.settings.feed_forward = settings.dimension;
  check_plan(plan);
  return plan;
}

MajorityPlan plan_majority(const MajorityOptions& options) {
  check_options(options);
  const MajoritySettings published = options.three_dimensional ? majority_in_3d() : MajoritySettings();
  MajoritySettings settings = options.other;
  settings.dimension = options.dimension.value_or(published.dimension);
  settings.task.classes = options.classes.value_or(published.task.classes);
  settings.task.length = options.length.value_or(published.task.length);
  settings.task.samples = options.samples.value_or(published.task.samples);
  settings.steps = options.steps.value_or(published.steps);
  settings.adam.schedule.steps = options.decay_steps.value_or(published.adam.schedule.steps);
  settings.adam.weight_decay = options.weight_decay;
  settings.adam.clip = options.clip;
  settings.feed_forward = options.feed_forward.value_or(0);
  settings.stop_accuracy = options.stop_accuracy.value_or(published.stop_accuracy);
  return plan_majority(settings,
                       every_run(parse_norms(options.norm), parse_seeds(options.seeds, options.seed)));
}

void check_plan(const MajorityPlan& plan) {
  check_majority(plan.settings, norms_of(plan.runs));
}

MajorityMeasures<double> measures_of(const MajorityRow& row, const MajorityPlan&) {
  return {row.train_loss, row.test.loss, row.test.accuracy,          row.test.sequence_accuracy,
          row.angle_mean, row.angle_sd,  row.test.attention_entropy, row.test.attention_distance};
}

MajorityRow row_of(std::uint64_t step, const MajorityMeasures<double>& measures) {
  MajorityRow row{step, measures.train_loss, {}, measures.angle_mean, measures.angle_sd};
  row.test = {measures.test_loss, measures.accuracy, measures.sequence_accuracy, measures.attention_entropy,
              measures.attention_distance};
  return row;
}

MajorityStudy study_majority(const MajorityPlan& plan, MajorityRecord* record, const Context& context) {
  MajorityStudy study{
      MajorityTraining(plan.settings, {plan.runs.begin(), plan.runs.end()}, context.executor), {}, {}};
  MajorityTraining& training = study.training;
  restore(training, record, context.executor);
  const std::uint64_t decayed = plan.settings.adam.schedule.steps;
  if (context.note && !training.done() && decayed < plan.settings.steps)
    context.note(fmt::format("The learning rate is 0 from step {} on (--decay-steps), of {} steps (--steps).",
                             decayed, plan.settings.steps));
  study.time = train_to_end(training, record, context);
  if (record != nullptr) {
    const auto file = record->directory().path() / "geometry.safetensors";
    if (study.time.steps > 0 || !std::filesystem::exists(file)) write_geometry(file, training.runs());
  }

  MajorityResult& result = study.result;
  result.made = {provenance(0, context.executor.threads()), study.time.seconds};
  result.ms_per_step = study.time.ms_per_step();
  result.settings = plan.settings;
  for (const MajorityRun& run : training.runs()) result.runs.push_back(run_result(run, plan));
  for (const std::string& norm : norms_of(plan.runs))
    result.norms.push_back(norm_result(norm, runs_of(training.runs(), norm)));
  return study;
}

}  // namespace normscope
