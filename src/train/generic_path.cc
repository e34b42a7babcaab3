// The generic path: a batch cut into a fixed number of pieces of whole sequences, summed in their order.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "normscope/error.h"
#include "train/columns.h"
#include "train/generic.h"
#include "train/parameters.h"
#include "train/paths.h"

namespace normscope {
namespace {

template <class T>
class GenericPath final : public EncoderGradient<T> {
 public:
  explicit GenericPath(const EncoderSpec& spec) : spec_(spec) {}

  double gradient(const SequenceSet& set, std::span<const std::uint32_t> batch, std::span<const T> parameters,
                  std::span<T> gradient, const Executor& executor) override {
    const std::size_t pieces = pieces_of(batch.size()), size = parameters.size();
    std::vector<double> losses(pieces);
    partial_.assign(pieces * size, 0.0);
    for_each_job(set, batch, parameters, executor, [&](std::size_t piece, const GenericJob<T>& job) {
      losses[piece] = generic_kernels<T>().gradient(job, std::span(partial_).subspan(piece * size, size));
    });
    for (std::size_t i = 0; i < size; ++i) {
      double sum = 0;
      for (std::size_t piece = 0; piece < pieces; ++piece) sum += partial_[piece * size + i];
      gradient[i] = static_cast<T>(sum);
    }
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

  std::vector<double> spread(const SequenceSet& set, std::span<const T> parameters,
                             const Executor& executor) {
    std::vector<std::uint32_t> all(set.size());
    std::iota(all.begin(), all.end(), 0U);
    std::vector parts(pieces_of(all.size()), std::vector<double>(spec_.layers + 1, 0.0));
    for_each_job(set, all, parameters, executor, [&](std::size_t piece, const GenericJob<T>& job) {
      generic_kernels<T>().spread(job, parts[piece]);
    });
    std::vector<double> means(spec_.layers + 1, 0.0);
    for (const std::vector<double>& part : parts) {
      for (std::size_t l = 0; l < means.size(); ++l) means[l] += part[l] / static_cast<double>(set.size());
    }
    return means;
  }

  EncoderMeasures measure(const SequenceSet& set, std::span<const T> parameters,
                          const Executor& executor) override {
    std::vector<std::uint32_t> all(set.size());
    std::iota(all.begin(), all.end(), 0U);
    std::vector<GenericMeasure> parts(pieces_of(all.size()));
    for_each_job(set, all, parameters, executor, [&](std::size_t piece, const GenericJob<T>& job) {
      parts[piece] = generic_kernels<T>().measure(job);
    });
    EncoderMeasures total;
    for (const GenericMeasure& part : parts) {
      total.loss += part.loss;
      total.accuracy += part.positions;
      total.sequence_accuracy += part.sequences / static_cast<double>(set.size());
      total.attention_entropy += part.entropy;
      total.attention_distance += part.distance;
    }
    total.accuracy /= static_cast<double>(set.size()) * static_cast<double>(set.length);
    return total;
  }

 private:
  static std::size_t pieces_of(std::size_t sequences) {
    return std::clamp<std::size_t>(sequences / 8, 1, 64);
  }

  template <class Body>
  void for_each_job(const SequenceSet& set, std::span<const std::uint32_t> batch,
                    std::span<const T> parameters, const Executor& executor, const Body& body) const {
    const std::vector<T> mask = added_mask<T>(spec_.mask, set.length);
    const std::size_t pieces = pieces_of(batch.size());
    const double weight = 1 / (static_cast<double>(batch.size()) * static_cast<double>(set.length));
    executor.for_each(pieces, [&](std::size_t piece) {
      const std::size_t begin = batch.size() * piece / pieces, end = batch.size() * (piece + 1) / pieces;
      body(piece, GenericJob<T>{&spec_, &set, parameters, mask, batch.subspan(begin, end - begin), weight});
    });
  }

  EncoderSpec spec_;
  std::vector<double> partial_;
};

}  // namespace

Mask encoder_mask(const std::string& name, std::size_t length) {
  Mask mask = parse_mask(name, length);
  for (std::size_t i = 0; i < length; ++i) {
    if (!mask.row(i).empty()) continue;
    throw InputError(
        fmt::format("Under the mask '{}' token {} of {} attends to nothing; training needs a key for each.",
                    name, i, length));
  }
  return mask;
}

template <class T>
std::vector<T> added_mask(const std::string& name, std::size_t length) {
  if (name == "full") return {};
  const Mask allowed = encoder_mask(name, length);
  const std::size_t columns = padded_columns(length);
  std::vector<T> mask(length * columns, T(0));
  for (std::size_t query = 0; query < length; ++query) {
    for (std::size_t key = 0; key < length; ++key) {
      if (!allowed.attends(query, key)) mask[key * columns + query] = T(-1e30);
    }
  }
  return mask;
}
template std::vector<float> added_mask(const std::string&, std::size_t);
template std::vector<double> added_mask(const std::string&, std::size_t);

template <class T>
std::unique_ptr<EncoderGradient<T>> make_generic_path(const EncoderSpec& spec) {
  return std::make_unique<GenericPath<T>>(spec);
}
template std::unique_ptr<EncoderGradient<float>> make_generic_path(const EncoderSpec&);
template std::unique_ptr<EncoderGradient<double>> make_generic_path(const EncoderSpec&);

template <class T>
std::vector<double> encoder_spread(const EncoderSpec& spec, std::span<const T> parameters,
                                   const SequenceSet& set, const Executor& executor) {
  check_encoder(spec);
  if (set.size() == 0) throw InputError("There is no sequence to measure.");
  return GenericPath<T>(spec).spread(set, parameters, executor);
}
template std::vector<double> encoder_spread(const EncoderSpec&, std::span<const float>, const SequenceSet&,
                                            const Executor&);
template std::vector<double> encoder_spread(const EncoderSpec&, std::span<const double>, const SequenceSet&,
                                            const Executor&);

template <class T>
Matrix<T> encoder_logits(const EncoderSpec& spec, std::span<const T> parameters,
                         std::span<const std::uint16_t> tokens) {
  check_encoder(spec);
  const SequenceSet set = make_sequences(spec.classes, tokens.size(), {tokens.begin(), tokens.end()}, {0});
  const std::size_t columns = padded_columns(set.length);
  const std::vector<T> mask = added_mask<T>(spec.mask, set.length);
  const std::uint32_t first[] = {0};
  std::vector<T> logits(spec.classes * columns);
  generic_kernels<T>().logits(GenericJob<T>{&spec, &set, parameters, mask, first, 1}, std::span(logits));
  Matrix<T> result(set.length, spec.classes);
  for (std::size_t i = 0; i < set.length; ++i) {
    for (std::size_t c = 0; c < spec.classes; ++c) result(i, c) = logits[c * columns + i];
  }
  return result;
}
template Matrix<float> encoder_logits(const EncoderSpec&, std::span<const float>,
                                      std::span<const std::uint16_t>);
template Matrix<double> encoder_logits(const EncoderSpec&, std::span<const double>,
                                       std::span<const std::uint16_t>);

}  // namespace normscope
