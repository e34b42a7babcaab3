#include "train/parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

// Streams of a run's seed.
constexpr std::uint64_t kInitialParameters = 1;

// Every tensor of an encoder, in the order in which they stand: the one table that names, layout and slices
// share. visit as in visit_norm.
template <class T, class Visit>
void visit_parameters(const EncoderSpec& spec, EncoderSlices<T>& slices, const Visit& visit) {
  const std::size_t d = spec.dimension, f = spec.feed_forward;
  visit("embedding", spec.classes, d, &slices.embedding, nullptr);
  slices.layers.resize(spec.layers);
  for (std::size_t l = 0; l < spec.layers; ++l) {
    LayerSlices<T>& layer = slices.layers[l];
    const std::string at = fmt::format("layers.{}.", l);
    if (spec.matrix) visit(at + "matrix", d, d, &layer.matrix, nullptr);
    visit_norm(spec.norm1, at + "norm1", d, layer.norm1, visit);
    visit(at + "attention.in_proj", 3 * d, d, &layer.in_proj, nullptr);
    visit(at + "attention.out_proj.weight", d, d, &layer.out_weight, nullptr);
    visit(at + "attention.out_proj.bias", 1, d, &layer.out_bias, nullptr);
    visit_norm(spec.norm2, at + "norm2", d, layer.norm2, visit);
    visit(at + "feed_forward.linear1.weight", f, d, &layer.weight1, nullptr);
    visit(at + "feed_forward.linear1.bias", 1, f, &layer.bias1, nullptr);
    visit(at + "feed_forward.linear2.weight", d, f, &layer.weight2, nullptr);
    visit(at + "feed_forward.linear2.bias", 1, d, &layer.bias2, nullptr);
  }
}

}  // namespace

void check_trained_norm(const NormSpec& norm, std::string_view where, std::size_t d) {
  const bool projects = norm.projection != Projection::none;
  const std::size_t lost =
      norm.projection == Projection::normals ? static_cast<std::size_t>(norm.normals) : 1;
  if (projects && lost >= d) {
    throw InputError(
        fmt::format("The norm '{}' {} projects out {} of {} dimensions and leaves nothing; take a larger "
                    "dimension or a norm "
                    "without projection.",
                    name_of(norm), where, lost, d));
  }
  if (!(norm.eps >= 0 && std::isfinite(norm.eps))) {
    throw InputError(fmt::format("The norm '{}' {} has an eps of {}; take 0 or a positive number.",
                                 name_of(norm), where, norm.eps));
  }
  if (norm.scaling == Scaling::standard_deviation && d == 1) {
    throw InputError(
        fmt::format("The norm '{}' {} divides by σ, which is 0 in one dimension.", name_of(norm), where));
  }
  if (norm.scaling == Scaling::unit_per_head &&
      (norm.heads < 1 || d % static_cast<std::size_t>(norm.heads) != 0)) {
    throw InputError(fmt::format("The norm '{}' {} has {} heads, which do not divide a dimension of {}.",
                                 name_of(norm), where, norm.heads, d));
  }
}

void check_encoder(const EncoderSpec& spec) {
  constexpr std::size_t most_classes = 65'536, most_width = 65'536, most_layers = 4096;
  const auto within = [](std::size_t value, std::size_t most, std::string_view what) {
    if (value >= 1 && value <= most) return;
    throw InputError(fmt::format("An encoder needs from 1 to {} {}, not {}.", most, what, value));
  };
  within(spec.classes, most_classes, "classes");
  within(spec.dimension, most_width, "dimensions");
  within(spec.layers, most_layers, "layers");
  within(spec.feed_forward, most_width, "feed-forward units");
  if (spec.heads < 1 || spec.dimension % spec.heads != 0) {
    throw InputError(fmt::format("{} heads do not divide a dimension of {}; take a divisor of it.",
                                 spec.heads, spec.dimension));
  }
  check_trained_norm(spec.norm1, "before attention", spec.dimension);
  check_trained_norm(spec.norm2, "before the feed-forward part", spec.dimension);
  for (const NormSpec* norm : {&spec.norm1, &spec.norm2}) {
    const bool learned = norm->projection == Projection::normals || norm->scaling == Scaling::tanh;
    if (spec.placement == Placement::sandwich && learned)
      throw InputError(fmt::format(
          "The norm '{}' has more to learn than gain and bias, which a sandwich of two norms would share; place it pre or post.",
          name_of(*norm)));
  }
  if (spec.placement == Placement::post && spec.matrix)
    throw InputError(
        "A learned matrix stands between the tokens and the norm in front of attention; post places none there: take "
        "pre or sandwich.");
  if (!(spec.temperature >= 0 && spec.temperature <= 1e30) ||
      (spec.temperature > 0 && spec.temperature < 1e-30))
    throw InputError(fmt::format(
        "The temperature d_QK is {}; it lies between 1e-30 and 1e30, or is 0 for the width of a head.",
        spec.temperature));
  if (!(spec.keep_apart >= 0 && std::isfinite(spec.keep_apart)))
    throw InputError(
        fmt::format("The weight that keeps tokens apart is at least 0, not {}.", spec.keep_apart));
  if (spec.keep_apart > 0 && spec.layers < 2)
    throw InputError(
        "Tokens are kept apart where they leave a layer that is not the last; take 2 or more layers.");
}

std::vector<ParameterSlot> parameter_slots(const EncoderSpec& spec) {
  return slots_by<EncoderSlices<float>>(
      [&](auto& parts, const auto& visit) { visit_parameters(spec, parts, visit); });
}

std::size_t parameter_count(const EncoderSpec& spec) {
  const auto slots = parameter_slots(spec);
  return slots.back().offset + slots.back().size();
}

template <class T>
EncoderSlices<T> slices(const EncoderSpec& spec, std::span<T> parameters) {
  return slices_by<EncoderSlices<T>>(
      parameters, [&](auto& parts, const auto& visit) { visit_parameters(spec, parts, visit); });
}
template EncoderSlices<float> slices(const EncoderSpec&, std::span<float>);
template EncoderSlices<double> slices(const EncoderSpec&, std::span<double>);
template EncoderSlices<const float> slices(const EncoderSpec&, std::span<const float>);
template EncoderSlices<const double> slices(const EncoderSpec&, std::span<const double>);

template <class T>
NormParameters<T> norm_parameters(const NormSlices<const T>& slices, std::size_t d) {
  NormParameters<T> parameters;
  parameters.gain = slices.gain;
  parameters.bias = slices.bias;
  parameters.normals = {slices.normals.data(), slices.normals.size() / d, d};
  if (slices.alpha != nullptr) parameters.alpha = *slices.alpha;
  return parameters;
}
template NormParameters<float> norm_parameters(const NormSlices<const float>&, std::size_t);
template NormParameters<double> norm_parameters(const NormSlices<const double>&, std::size_t);

template <class T>
NormGradients<T> norm_gradients(const NormSlices<T>& slices, std::size_t d) {
  return {slices.gain, slices.bias, {slices.normals.data(), slices.normals.size() / d, d}, slices.alpha};
}
template NormGradients<float> norm_gradients(const NormSlices<float>&, std::size_t);
template NormGradients<double> norm_gradients(const NormSlices<double>&, std::size_t);

std::vector<float> initial_parameters(const EncoderSpec& spec, std::uint64_t seed) {
  check_encoder(spec);
  std::vector<float> values(parameter_count(spec), 0.0F);
  const auto parts = slices(spec, std::span(values));
  Random random(seed, kInitialParameters);
  const auto normal = [&](std::span<float> part) {
    for (float& value : part) value = static_cast<float>(random.normal());
  };
  const auto uniform = [&](std::span<float> part, double bound) {
    for (float& value : part) value = static_cast<float>(bound * (2 * random.uniform() - 1));
  };
  const auto norm = [&](const NormSlices<float>& slices_of_norm) {
    std::fill(slices_of_norm.gain.begin(), slices_of_norm.gain.end(), 1.0F);
    normal(slices_of_norm.normals);
    if (slices_of_norm.alpha != nullptr) *slices_of_norm.alpha = 0.5F;
  };
  const auto d = static_cast<double>(spec.dimension), f = static_cast<double>(spec.feed_forward);
  normal(parts.embedding);
  for (const LayerSlices<float>& layer : parts.layers) {
    for (std::size_t i = 0; i < layer.matrix.size(); i += spec.dimension + 1) layer.matrix[i] = 1;
    norm(layer.norm1);
    uniform(layer.in_proj, std::sqrt(6 / (4 * d)));  // Xavier over the whole 3d × d matrix
    uniform(layer.out_weight, 1 / std::sqrt(d));
    norm(layer.norm2);
    uniform(layer.weight1, 1 / std::sqrt(d));
    uniform(layer.bias1, 1 / std::sqrt(d));
    uniform(layer.weight2, 1 / std::sqrt(f));
    uniform(layer.bias2, 1 / std::sqrt(f));
  }
  return values;
}

SequenceSet make_sequences(std::size_t classes, std::size_t length, std::vector<std::uint16_t> tokens,
                           std::vector<std::uint16_t> labels) {
  if (length < 1 || length > 65'535 || tokens.size() != labels.size() * length) {
    throw InputError(fmt::format("{} tokens do not make {} sequences of length {}.", tokens.size(),
                                 labels.size(), length));
  }
  const auto require = [&](std::span<const std::uint16_t> values, std::string_view what) {
    for (const std::uint16_t value : values) {
      if (value >= classes)
        throw InputError(fmt::format("A {} is {}, but there are {} classes.", what, value, classes));
    }
  };
  require(tokens, "token");
  require(labels, "label");
  SequenceSet set{classes, length, std::move(tokens), std::move(labels), {}};
  if (classes > SequenceSet::most_counted_classes) return set;
  set.counts.assign(set.size() * classes, 0);
  for (std::size_t i = 0; i < set.tokens.size(); ++i) ++set.counts[i / length * classes + set.tokens[i]];
  return set;
}

}  // namespace normscope
