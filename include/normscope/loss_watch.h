#pragma once
// When a training has gone wrong: told every step's loss, says whether to stop.
//
//   not finite  the loss, or a number of the gradient or the parameters: at once
//   spike       `patience` losses in a row above a limit: one hard batch is none, however high
//
//   limit = min(μ + m(μ), μ₀ + m(μ₀), 2l₀ + 0.1),   m(x) = max(6δ, x/4, 0.1)
//
// μ is the running mean of the losses, δ that of |loss − μ| (both forget with 1/64 a step; for normal noise
// 6δ is 4.8 sd), μ₀ the mean of the first 32: above it a training is worse than when it began. l₀ is the very
// first loss; twice that is the limit of the first 32. Losses above the limit are not learned from, so that a
// spike cannot raise what it is measured by. Losses are in nats and not negative; with other losses 0.1 means
// something else.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/train.h"

namespace normscope {

struct LossWatchSettings {
  double deviations = 6, share = 0.25, least = 0.1;  // of the limit
  std::uint64_t memory = 64;                         // steps that the means remember
  std::uint64_t learning = 32;                       // first steps
  std::uint64_t patience = 8;
};

struct LossTrouble {
  enum class Kind { not_finite, spike };
  Kind kind = Kind::not_finite;
  std::uint64_t step = 0;  // where it began
  double loss = 0;         // there
  double usual = 0;        // μ before
  std::uint64_t steps = 1;
  std::string tensor;  // that is not finite, or whose gradient is the largest; empty: not known
};

class LossWatch {
 public:
  explicit LossWatch(const LossWatchSettings& settings = {}) : settings_(settings) {}

  // `not_finite`: the first tensor with a NaN or Inf; empty: none. `largest`: that with the largest gradient.
  // Only what is told to a watch counts: nothing is looked at, nothing thrown.
  std::optional<LossTrouble> tell(std::uint64_t step, double loss, std::string_view not_finite = {},
                                  std::string_view largest = {});
  // Whether the last loss was below the limit: only then is the state one to come back to.
  bool calm() const { return high_ == 0; }
  // Of the next loss; infinite of the first.
  double limit() const;

  // All it knows, for a checkpoint: a training that goes on is watched as if it had never stopped. Throws
  // InputError on what `state` does not give.
  std::vector<double> state() const;
  void restore(std::span<const double> state);

 private:
  void learn(double loss);

  LossWatchSettings settings_;
  std::uint64_t seen_ = 0, high_ = 0, high_since_ = 0;
  double mean_ = 0, deviation_ = 0, first_mean_ = 0, high_loss_ = 0, first_loss_ = 0;
};

// The name of the first slot with a number that is not finite; empty: all are. Of the slot with the largest
// absolute number.
std::string first_not_finite(std::span<const ParameterSlot> slots, std::span<const float> values);
std::string largest_slot(std::span<const ParameterSlot> slots, std::span<const float> values);

// "Training stopped at step …: …; the last good checkpoint is …", what to do included.
struct LastGood {
  std::filesystem::path path;
  std::uint64_t step = 0;
};
std::string sentence_of(const LossTrouble& trouble, const std::optional<LastGood>& last_good);

}  // namespace normscope
