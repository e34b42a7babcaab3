#include "normscope/text_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "normscope/error.h"
#include "train/shared_step.h"
#include "train/training.h"

namespace normscope {
namespace {

// A run's trouble as a tensor of a checkpoint: kind, step, loss, usual loss, steps, slot (−1: not known).
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

template <>
struct TrainingData<TextTask> : TextBatches {
  TrainingData(const TextTrainingSettings& settings, const std::vector<TrainingRunId>& runs,
               TextBatches batches)
      : TextBatches(std::move(batches)) {
    check_text_training(settings, norms_of(runs));
  }
};

template <>
struct Runner<TextTask> : RunnerOf<TextTask> {
  Runner(const TextTrainingSettings& settings_, const TextBatches& batches_, const TrainingRunId& id)
      : RunnerOf(settings_, with_norm(settings_.spec, id.norm), id),
        batches(batches_),
        model(make_transformer_gradient<float>(run.spec)) {}

  void before_steps() {
    if (!watch.calm()) return;
    good = run.parameters;
    good_step = run.step;
  }
  double gradient(std::span<float> gradient, const Executor& executor) {
    const TokenBatch batch = batches.train(run.id.seed, run.step);
    tokens = batch.tokens.size();
    const DropoutKey key{run.id.seed, run.step};
    return model->gradient(batch, run.parameters, gradient, key, executor).loss;
  }
  bool fine(double loss, std::span<const float> gradient) {
    run.trouble =
        watch.tell(run.step, loss, first_not_finite(slots, gradient), largest_slot(slots, gradient));
    return !run.trouble;
  }
  bool fine_after(double loss) {
    if (std::string name = first_not_finite(slots, run.parameters); !name.empty())
      run.trouble = LossTrouble{LossTrouble::Kind::not_finite, run.step, loss, loss, 1, std::move(name)};
    return !run.trouble;
  }
  void give_up() {
    run.parameters = good;
    run.step = good_step;
    run.finished = true;
    adam = {};
  }

  void evaluate(double train_loss, const Executor& executor) {
    TextRow row;
    row.step = run.step;
    row.train_loss = train_loss;
    if (!batches.held_out.empty()) {
      TransformerLoss sum;
      for (const TransformerLoss& part : measured(batches.held_out, executor)) {
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
  std::vector<TransformerLoss> measured(const std::vector<TokenBatch>& texts, const Executor& executor) {
    std::vector<TransformerLoss> losses;
    if (is_alone(executor)) {  // all threads at one batch: they share what it needs of memory
      for (const TokenBatch& batch : texts) losses.push_back(model->measure(batch, run.parameters, executor));
      return losses;
    }
    PieceWork work{"held-out texts", {}, false, {}, {}};  // on several threads: measuring keeps nothing
    for (const TokenBatch& batch : texts) work.costs.push_back(static_cast<double>(batch.tokens.size()));
    return run_pieces<TransformerLoss>(executor, work, [&](std::size_t piece, const Executor& inside) {
      return model->measure(texts[piece], run.parameters, inside);
    });
  }
  bool shares_steps() const {
    return is_worth_sharing(run.parameters.size(), batches.train(run.id.seed, run.step).tokens.size());
  }
  bool calm() const { return watch.calm(); }
  bool diverged() const { return run.trouble.has_value(); }
  void tell(const std::function<void(std::size_t)>& on_step) const { on_step(tokens); }

  void add_tensors(const std::string& prefix, std::vector<Tensor>& tensors) const {
    const auto add = [&](const char* name, std::vector<double> values) {
      tensors.push_back({prefix + name, DType::float64, {values.size()}, std::move(values)});
    };
    add("loss_watch", watch.state());
    if (run.trouble) add("trouble", trouble_values(*run.trouble, slots));
  }
  void take_tensors(const std::string& prefix, const TensorsByName& tensors, bool diverged) {
    const auto watched = tensors.find(prefix + "loss_watch");
    watch.restore(watched == tensors.end() ? std::span<const double>() : watched->second->values);
    if (diverged) run.trouble = trouble_of(tensors, prefix + "trouble", slots, settings.steps);
  }

  struct OwnState {
    std::vector<double> watch;
    std::optional<LossTrouble> trouble;
    std::uint64_t good_step = 0, tokens = 0;
  };
  std::string own_state() const { return packed(OwnState{watch.state(), run.trouble, good_step, tokens}); }
  void set_own_state(std::string_view bytes) {
    auto state = unpacked<OwnState>(bytes);
    watch.restore(state.watch);
    run.trouble = std::move(state.trouble);
    good_step = state.good_step;
    tokens = state.tokens;
  }

  const TextBatches& batches;
  std::unique_ptr<TransformerGradient<float>> model;
  LossWatch watch;
  std::uint64_t good_step = 0;
  std::size_t tokens = 0;  // of the last batch
};

template class Training<TextTask>;

}  // namespace normscope
