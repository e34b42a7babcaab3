#include "normscope/text_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "normscope/error.h"
#include "train/run_state.h"
#include "train/runs.h"

namespace normscope {
namespace {

// One run with what it needs to go on.
struct Runner {
  TextRun run;
  std::vector<ParameterSlot> slots;
  std::unique_ptr<TransformerGradient<float>> model;
  AdamState adam;
  LossWatch watch;
  std::vector<float> good;  // parameters of the last evaluation at which the watch was calm
  std::uint64_t good_step = 0;

  void evaluate(double train_loss, const TextBatches& batches, const Executor& executor) {
    TextRow row;
    row.step = run.step;
    row.train_loss = train_loss;
    if (!batches.held_out.empty()) {
      TransformerLoss sum;
      for (const TokenBatch& batch : batches.held_out) {
        const TransformerLoss part = model->measure(batch, run.parameters, executor);
        const auto weight = static_cast<double>(part.targets);
        sum.loss += weight * part.loss;
        sum.accuracy += std::round(weight * part.accuracy);  // right ones, a whole number
        sum.targets += part.targets;
      }
      sum.loss /= static_cast<double>(sum.targets);
      sum.accuracy /= static_cast<double>(sum.targets);
      row.held_out = sum;
    }
    run.rows.push_back(row);
  }

  void advance(const TextTrainingSettings& settings, const TextBatches& batches, const Executor& executor,
               const std::function<void(std::size_t)>& on_step) {
    if (run.rows.empty()) {
      evaluate(std::numeric_limits<double>::quiet_NaN(), batches, executor);
      run.finished = settings.steps == 0;
      return;
    }
    if (watch.calm()) {
      good = run.parameters;
      good_step = run.step;
    }
    std::vector<float> gradient(run.parameters.size());
    const std::uint64_t first = run.step,
                        end = std::min(settings.steps,
                                       first - first % settings.evaluate_every + settings.evaluate_every);
    double sum = 0;
    for (; run.step < end; ++run.step) {
      const TokenBatch batch = batches.train(run.id.seed, run.step);
      const DropoutKey key{run.id.seed, run.step};
      const double loss = model->gradient(batch, run.parameters, gradient, key, executor).loss;
      run.trouble =
          watch.tell(run.step, loss, first_not_finite(slots, gradient), largest_slot(slots, gradient));
      if (!run.trouble) {
        adam_update(settings.adam, adam, run.parameters, gradient);
        if (std::string name = first_not_finite(slots, run.parameters); !name.empty())
          run.trouble = LossTrouble{LossTrouble::Kind::not_finite, run.step, loss, loss, 1, std::move(name)};
      }
      if (run.trouble) return give_up();
      sum += loss;
      if (on_step) on_step(batch.tokens.size());
    }
    run.finished = run.step == settings.steps;
    evaluate(sum / static_cast<double>(end - first), batches, executor);
  }

  void give_up() {
    run.parameters = good;
    run.step = good_step;
    run.finished = true;
    adam = {};
  }
};

// A run's trouble as a tensor of a checkpoint: kind, step, loss, usual loss, steps, slot (−1: not known).
constexpr const char* kTrouble = "trouble";

std::vector<double> trouble_values(const LossTrouble& trouble, std::span<const ParameterSlot> slots) {
  const auto slot = std::find_if(slots.begin(), slots.end(),
                                 [&](const ParameterSlot& each) { return each.name == trouble.tensor; });
  return {trouble.kind == LossTrouble::Kind::spike ? 1.0 : 0.0,
          static_cast<double>(trouble.step),
          trouble.loss,
          trouble.usual,
          static_cast<double>(trouble.steps),
          slot == slots.end() ? -1.0 : static_cast<double>(slot - slots.begin())};
}

LossTrouble trouble_of(const TensorsByName& tensors, const std::string& name,
                       std::span<const ParameterSlot> slots, std::uint64_t steps) {
  const auto found = tensors.find(name);
  const std::span<const double> values =
      found == tensors.end() ? std::span<const double>() : found->second->values;
  const auto whole = [](double value, double least, double most) {
    return value >= least && value <= most && value == std::floor(value);
  };
  const auto last_step = static_cast<double>(steps), last_slot = static_cast<double>(slots.size()) - 1;
  if (values.size() != 6 || !whole(values[0], 0, 1) || !whole(values[1], 0, last_step) ||
      !whole(values[4], 1, last_step) || !whole(values[5], -1, last_slot)) {
    throw InputError(fmt::format(
        "The checkpoint does not tell in '{}' why the run stopped; put the right one back or start anew.",
        name));
  }
  return {values[0] == 1 ? LossTrouble::Kind::spike : LossTrouble::Kind::not_finite,
          static_cast<std::uint64_t>(values[1]),
          values[2],
          values[3],
          static_cast<std::uint64_t>(values[4]),
          values[5] < 0 ? "" : slots[static_cast<std::size_t>(values[5])].name};
}

}  // namespace

TextTrainingSettings published_language_training() {
  TextTrainingSettings settings;
  settings.spec = published_language_model();
  settings.adam.learning_rate = 5e-5;
  settings.adam.schedule.steps = settings.steps;
  return settings;
}

TextTrainingSettings published_sentiment_training() {
  TextTrainingSettings settings = published_language_training();
  settings.spec = published_sentiment_model();
  return settings;
}

TransformerSpec with_norm(const TransformerSpec& spec, const std::string& norm) {
  TransformerSpec result = spec;
  const bool classifies = spec.classes > 0;
  const auto change = [&](NormSpec& place) {
    NormSpec parsed = parse_norm(norm);
    // The published classifier has no norm, whose settings could stay.
    parsed.affine = norm != "none" && (classifies || place.affine);
    parsed.eps = classifies ? 1e-12 : place.eps;
    place = parsed;
  };
  change(result.model.block.norm);
  if (!classifies) return result;
  change(result.model.embedding_norm);
  if (result.model.block.feed_forward_norm) change(*result.model.block.feed_forward_norm);
  return result;
}

void check_text_training(const TextTrainingSettings& settings, std::span<const std::string> norms) {
  for (const std::string& norm : norms) check_transformer(with_norm(settings.spec, norm));
  if (settings.evaluate_every < 1) throw InputError("An evaluation takes place every 1 or more steps.");
  const double rate = settings.adam.learning_rate;
  if (!(rate > 0 && std::isfinite(rate)))
    throw InputError(fmt::format("The learning rate is a positive number, not {}.", rate));
}

struct TextTraining::State {
  TextTrainingSettings settings;
  TextBatches batches;
  std::vector<Runner> runners;
  std::vector<TextRun> view;  // what runs() shows

  void publish() {
    view.clear();
    for (const Runner& runner : runners) view.push_back(runner.run);
  }
};

TextTraining::TextTraining(const TextTrainingSettings& settings, std::vector<TrainingRunId> runs,
                           TextBatches batches)
    : state_(std::make_unique<State>()) {
  check_text_training(settings, norms_of(runs));
  state_->settings = settings;
  state_->batches = std::move(batches);
  for (TrainingRunId& id : runs) {
    Runner runner;
    runner.run.spec = with_norm(settings.spec, id.norm);
    runner.run.parameters = initial_parameters(runner.run.spec, id.seed);
    runner.slots = parameter_slots(runner.run.spec);
    runner.model = make_transformer_gradient<float>(runner.run.spec);
    runner.run.id = std::move(id);
    state_->runners.push_back(std::move(runner));
  }
  state_->publish();
}

TextTraining::~TextTraining() = default;
TextTraining::TextTraining(TextTraining&&) noexcept = default;
TextTraining& TextTraining::operator=(TextTraining&&) noexcept = default;

const TextTrainingSettings& TextTraining::settings() const {
  return state_->settings;
}
std::span<const TextRun> TextTraining::runs() const {
  return state_->view;
}
std::uint64_t TextTraining::step() const {
  return step_of(state_->runners, state_->settings.steps);
}
bool TextTraining::done() const {
  return all_finished(state_->runners);
}

bool TextTraining::calm() const {
  return std::all_of(state_->runners.begin(), state_->runners.end(),
                     [](const Runner& runner) { return runner.run.finished || runner.watch.calm(); });
}

void TextTraining::advance(const Executor& executor, const std::function<void(std::size_t)>& on_step) {
  advance_unfinished(state_->runners, executor, [&](Runner& runner, const Executor& each) {
    runner.advance(state_->settings, state_->batches, each, on_step);
  });
  state_->publish();
}

std::vector<Tensor> TextTraining::checkpoint() const {
  std::vector<Tensor> tensors;
  for (const Runner& runner : state_->runners) {
    const TextRun& run = runner.run;
    add_tensors(tensor_prefix(run.id), runner.slots,
                {run.parameters, runner.adam, run.step, run.finished, run.trouble.has_value()}, tensors);
    const std::vector<double> watched = runner.watch.state();
    tensors.push_back({tensor_prefix(run.id) + "loss_watch", DType::float64, {watched.size()}, watched});
    if (!run.trouble) continue;
    const std::vector<double> why = trouble_values(*run.trouble, runner.slots);
    tensors.push_back({tensor_prefix(run.id) + kTrouble, DType::float64, {why.size()}, why});
  }
  return tensors;
}

void TextTraining::restore(std::span<const Tensor> checkpoint, std::vector<std::vector<TextRow>> rows) {
  if (rows.size() != state_->runners.size())
    throw InputError("The log does not belong to the runs of the checkpoint.");
  const TensorsByName tensors = by_name(checkpoint);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Runner& runner = state_->runners[r];
    TextRun& run = runner.run;
    RunState state = take_tensors(tensor_prefix(run.id), runner.slots, state_->settings.steps, tensors);
    run.parameters = std::move(state.parameters);
    runner.adam = std::move(state.adam);
    run.step = state.step;
    run.finished = state.finished;
    const auto watched = tensors.find(tensor_prefix(run.id) + "loss_watch");
    runner.watch.restore(watched == tensors.end() ? std::span<const double>() : watched->second->values);
    if (state.diverged)
      run.trouble =
          trouble_of(tensors, tensor_prefix(run.id) + kTrouble, runner.slots, state_->settings.steps);
    if (rows[r].empty() || (!state.diverged && rows[r].back().step != run.step)) {
      throw InputError(
          fmt::format("The log does not reach the step {} of the checkpoint for {} with seed {}.", run.step,
                      run.id.norm, run.id.seed));
    }
    run.rows = std::move(rows[r]);
  }
  state_->publish();
}

}  // namespace normscope
