#include "normscope/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "normscope/error.h"

namespace normscope {

double LossWatch::limit() const {
  const double from_first =
      seen_ == 0 ? std::numeric_limits<double>::infinity() : 2 * first_loss_ + settings_.least;
  if (seen_ < settings_.learning) return from_first;
  const auto above = [&](double mean) {
    return mean + std::max({settings_.deviations * deviation_, settings_.share * mean, settings_.least});
  };
  return std::min({above(mean_), above(first_mean_), from_first});
}

void LossWatch::learn(double loss) {
  if (seen_++ == 0) first_loss_ = loss;
  // A plain mean until the memory is full.
  const double weight = 1 / static_cast<double>(std::min(seen_, settings_.memory));
  if (seen_ > 1) deviation_ += weight * (std::abs(loss - mean_) - deviation_);
  mean_ += weight * (loss - mean_);
  if (seen_ <= settings_.learning) first_mean_ = mean_;
}

std::optional<LossTrouble> LossWatch::tell(std::uint64_t step, double loss, std::string_view not_finite,
                                           std::string_view largest) {
  if (!std::isfinite(loss) || !not_finite.empty())
    return LossTrouble{LossTrouble::Kind::not_finite, step, loss, mean_, 1, std::string(not_finite)};
  if (!(loss > limit())) {
    high_ = 0;
    learn(loss);
    return std::nullopt;
  }
  if (high_ == 0) {
    high_since_ = step;
    high_loss_ = loss;
  }
  if (++high_ < settings_.patience) return std::nullopt;
  return LossTrouble{LossTrouble::Kind::spike, high_since_, high_loss_, mean_, high_, std::string(largest)};
}

std::vector<double> LossWatch::state() const {
  return {static_cast<double>(seen_),
          static_cast<double>(high_),
          static_cast<double>(high_since_),
          mean_,
          deviation_,
          first_mean_,
          high_loss_,
          first_loss_};
}

void LossWatch::restore(std::span<const double> state) {
  const auto counts = [](double value) {
    return value >= 0 && value <= 0x1p53 && value == std::floor(value);
  };
  const bool fits =
      state.size() == 8 && std::all_of(state.begin(), state.begin() + 3, counts) &&
      std::all_of(state.begin(), state.end(), [](double value) { return std::isfinite(value); });
  if (!fits) throw InputError("The checkpoint holds a state of the loss that cannot be; start anew.");
  seen_ = static_cast<std::uint64_t>(state[0]);
  high_ = static_cast<std::uint64_t>(state[1]);
  high_since_ = static_cast<std::uint64_t>(state[2]);
  mean_ = state[3];
  deviation_ = state[4];
  first_mean_ = state[5];
  high_loss_ = state[6];
  first_loss_ = state[7];
}

std::string first_not_finite(std::span<const ParameterSlot> slots, std::span<const float> values) {
  for (const ParameterSlot& slot : slots) {
    const auto part = values.subspan(slot.offset, slot.size());
    if (!std::all_of(part.begin(), part.end(), [](float value) { return std::isfinite(value); }))
      return slot.name;
  }
  return "";
}

std::string largest_slot(std::span<const ParameterSlot> slots, std::span<const float> values) {
  std::string name;
  float largest = -1;
  for (const ParameterSlot& slot : slots)
    for (const float value : values.subspan(slot.offset, slot.size()))
      if (std::abs(value) > largest) {
        largest = std::abs(value);
        name = slot.name;
      }
  return name;
}

std::string sentence_of(const LossTrouble& trouble, const std::optional<LastGood>& last_good) {
  const std::string tensor = trouble.tensor.empty() ? "" : fmt::format("'{}'", trouble.tensor);
  std::string what;
  if (trouble.kind == LossTrouble::Kind::spike) {
    what = fmt::format("the loss rose from {:.4g} to {:.4g} and stayed there for {} steps", trouble.usual,
                       trouble.loss, trouble.steps);
    if (!tensor.empty()) what += fmt::format(" (the largest gradient is that of {})", tensor);
  } else if (tensor.empty()) {
    what = "the loss is no longer a finite number";
  } else {
    what = fmt::format("{} is no longer finite", tensor);
    if (std::isfinite(trouble.loss)) what += fmt::format(" (loss {:.4g})", trouble.loss);
  }
  const std::string good =
      last_good
          ? fmt::format(
                "the last good checkpoint is '{}', of step {}; train with a lower "
                "learning rate or a longer warm-up",
                last_good->path.string(), last_good->step)
          : "there is no good checkpoint to go back to; start anew with a lower learning rate or a longer "
            "warm-up";
  return fmt::format("Training stopped at step {}: {}; {}.", trouble.step, what, good);
}

}  // namespace normscope
