#include "record/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "normscope/error.h"

namespace normscope {
namespace {

double number(std::string_view text) {
  double value = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
  if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(value))
    throw InputError("The checkpoint holds a state of the loss that cannot be read; start anew.");
  return value;
}

std::string hex(double value) {
  char text[64];
  const auto written = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::hex);
  return {text, written.ptr};
}

}  // namespace

double LossWatch::limit() const {
  if (seen_ < settings_.learning) return std::numeric_limits<double>::infinity();
  const auto above = [&](double mean) {
    return mean + std::max({settings_.deviations * deviation_, settings_.share * mean, settings_.least});
  };
  return std::min(above(mean_), above(first_mean_));
}

void LossWatch::learn(double loss) {
  ++seen_;
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

std::string LossWatch::state() const {
  return fmt::format("{} {} {} {} {} {} {}", seen_, high_, high_since_, hex(mean_), hex(deviation_),
                     hex(first_mean_), hex(high_loss_));
}

void LossWatch::restore(std::string_view state) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= state.size() && words.size() < 8;) {
    const std::size_t end = std::min(state.find(' ', begin), state.size());
    words.push_back(state.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto count = [](std::string_view text) {
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) number("");
    return value;
  };
  if (words.size() != 7) number("");
  LossWatch read(settings_);
  read.seen_ = count(words[0]);
  read.high_ = count(words[1]);
  read.high_since_ = count(words[2]);
  read.mean_ = number(words[3]);
  read.deviation_ = number(words[4]);
  read.first_mean_ = number(words[5]);
  read.high_loss_ = number(words[6]);
  *this = read;
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
    what = fmt::format("{} is no longer finite (loss {:.4g})", tensor, trouble.loss);
  }
  const std::string good =
      last_good ? fmt::format(
                      "the last good checkpoint is '{}', of step {}; go on from it with a lower "
                      "learning rate or a longer warm-up",
                      last_good->path.string(), last_good->step)
                : "there is no checkpoint yet; start anew with a lower learning rate or a longer warm-up";
  return fmt::format("Training stopped at step {}: {}; {}.", trouble.step, what, good);
}

}  // namespace normscope
