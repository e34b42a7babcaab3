#include <algorithm>
#include <cmath>
#include <numbers>

#include "normscope/train.h"

namespace normscope {

double Schedule::factor(std::uint64_t step) const {
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == Kind::constant) return 1;
  const auto span = static_cast<double>(steps > warmup ? steps - warmup : 1);
  const double done = std::min(1.0, static_cast<double>(step - warmup) / span);
  return kind == Kind::linear ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
}

void adam_update(const AdamSettings& settings, AdamState& state, std::span<float> parameters,
                 std::span<float> gradient) {
  state.mean.resize(parameters.size(), 0.0F);
  state.square.resize(parameters.size(), 0.0F);
  if (settings.clip > 0) {
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
    const double factor = settings.clip / (std::sqrt(square) + 1e-6);
    if (factor < 1) {
      for (float& g : gradient) g = static_cast<float>(g * factor);
    }
  }
  const double rate = settings.learning_rate * settings.schedule.factor(state.step);
  ++state.step;
  const auto t = static_cast<double>(state.step);
  const double correction1 = 1 - std::pow(settings.beta1, t),
               root2 = std::sqrt(1 - std::pow(settings.beta2, t));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double g = gradient[i];
    const double mean = settings.beta1 * state.mean[i] + (1 - settings.beta1) * g;
    const double square = settings.beta2 * state.square[i] + (1 - settings.beta2) * g * g;
    state.mean[i] = static_cast<float>(mean);
    state.square[i] = static_cast<float>(square);
    const double decayed = parameters[i] * (1 - rate * settings.weight_decay);
    parameters[i] =
        static_cast<float>(decayed - rate / correction1 * mean / (std::sqrt(square) / root2 + settings.eps));
  }
}

}  // namespace normscope
