// Loss and gradient of a batch: texts in a fixed number of pieces, the head in blocks of tokens and of words,
// sums in the order of pieces: by the threads of this process, or by all processes of a job.
#include "normscope/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/run_pieces.h"
#include "normscope/error.h"
#include "normscope/random.h"
#include "train/columns.h"
#include "train/parameters.h"
#include "train/shared_step.h"
#include "train/transformer_texts.h"
#include "train/vocabulary_head.h"

namespace normscope {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Stream of dropout's seed for the pooled token, apart from those of the layers.
constexpr std::uint64_t kPooledDropout = std::uint64_t{1} << 63;

void check_batch(const TransformerSpec& spec, const TokenBatch& batch) {
  const auto require = [](bool fine, const std::string& what) {
    if (!fine) throw InputError(what);
  };
  require(batch.texts > 0 && batch.length > 0 && batch.tokens.size() == batch.texts * batch.length,
          fmt::format("{} tokens do not make {} texts of {} tokens.", batch.tokens.size(), batch.texts,
                      batch.length));
  require(batch.length <= spec.model.positions,
          fmt::format("Texts of {} tokens are longer than the model's {} positions.", batch.length,
                      spec.model.positions));
  for (const std::uint32_t token : batch.tokens)
    require(token < spec.model.vocabulary,
            fmt::format("Token {} is not in a vocabulary of {} words.", token, spec.model.vocabulary));
  require(batch.lengths.empty() || batch.lengths.size() == batch.texts,
          fmt::format("{} lengths do not fit {} texts.", batch.lengths.size(), batch.texts));
  for (const std::uint32_t length : batch.lengths)
    require(length >= 1 && length <= batch.length,
            fmt::format("A text of {} tokens does not fit a batch of length {}.", length, batch.length));
  const std::size_t targets = spec.classes > 0 ? batch.texts : batch.tokens.size();
  const std::size_t most = spec.classes > 0 ? spec.classes : spec.model.vocabulary;
  require(batch.targets.size() == targets,
          fmt::format("{} targets do not fit a batch that has {}.", batch.targets.size(), targets));
  bool any = false;
  for (const std::uint32_t target : batch.targets) {
    const bool ignored = spec.classes == 0 && target == TokenBatch::ignored;
    require(ignored || target < most, fmt::format("Target {} is not one of {} {}.", target, most,
                                                  spec.classes > 0 ? "classes" : "words"));
    any = any || !ignored;
  }
  require(any, "No token of the batch has a target: there is no loss.");
}

template <class T>
class Transformer final : public TransformerGradient<T> {
 public:
  explicit Transformer(const TransformerSpec& spec) : spec_(spec) {
    size_ = parameter_count(spec);
    for (const ParameterSlot& slot : parameter_slots(spec)) {
      // The tables of embeddings come first: pieces do not touch them.
      if (slot.name == "word" || slot.name == "position" || slot.name == "type") tables_ += slot.size();
    }
  }

  TransformerLoss gradient(const TokenBatch& batch, std::span<const T> parameters, std::span<T> gradient,
                           std::optional<DropoutKey> key, const Executor& executor) override {
    if (parameters.size() != size_ || gradient.size() != size_)
      throw InputError(fmt::format("{} parameters and {} gradients do not fit a transformer with {}.",
                                   parameters.size(), gradient.size(), size_));
    Scratch scratch = scratch_for(batch, parameters, key, true);
    const auto parts = slices(spec_, gradient);
    const std::size_t pieces = pieces_of(batch), own = size_ - tables_;
    partial_.resize(pieces * own);
    std::fill(gradient.begin(), gradient.end(), T(0));
    const bool shared = !is_alone(executor) && is_worth_sharing(size_, batch.tokens.size());
    if (shared) {
      share(scratch, executor);
    } else {
      executor.for_each(pieces, [&](std::size_t piece) { forward(scratch, piece); });
      head(scratch, 0, batch.texts, executor);
      executor.for_each(pieces, [&](std::size_t piece) { backward(scratch, piece); });
    }
    const TransformerLoss loss =
        spec_.classes > 0 ? classify(scratch, 0, batch.texts, &parts, nullptr) : next_token(scratch);
    if (spec_.classes == 0)
      vocabulary_words(scratch.head, scratch.log_sums.data(), parts.word.data(), executor, shared);
    constexpr std::size_t kBlock = 8192;
    executor.for_each((own + kBlock - 1) / kBlock, [&](std::size_t block) {
      for (std::size_t i = block * kBlock; i < std::min(own, (block + 1) * kBlock); ++i) {
        double sum = 0;
        for (std::size_t piece = 0; piece < pieces; ++piece) sum += partial_[piece * own + i];
        gradient[tables_ + i] += static_cast<T>(sum);
      }
    });
    add_embeddings(scratch, parts);
    return loss;
  }

  TransformerLoss measure(const TokenBatch& batch, std::span<const T> parameters,
                          const Executor& executor) override {
    if (parameters.size() != size_)
      throw InputError(
          fmt::format("{} parameters do not fit a transformer with {}.", parameters.size(), size_));
    Scratch scratch = scratch_for(batch, parameters, {}, false);
    executor.for_each(pieces_of(batch), [&](std::size_t piece) { forward(scratch, piece); });
    if (spec_.classes > 0) return classify(scratch, 0, batch.texts, nullptr, nullptr);
    head(scratch, 0, batch.texts, executor);
    return next_token(scratch);
  }

 private:
  // What a batch needs beside the parameters. N is `tokens`.
  struct Scratch {
    TransformerJob<T> job;
    std::size_t columns = 0, tokens = 0;  // of a text and of all, padded
    std::vector<T> kept, outputs;         // outputs, and the gradients of these and of embeddings: d × N
    std::vector<T> doutputs, dembeddings;
    // Of the next token: what each column is to be followed by, and what the head makes of it.
    VocabularyHead<T> head;
    std::vector<std::uint32_t> targets;
    std::size_t counted = 0;  // targets that are not ignored
    std::vector<double> losses;
    std::vector<T> log_sums;
  };
  // What a piece of the texts gives to the gradient, as columns of its texts; for other processes.
  struct TextsPart {
    std::vector<T> outputs, dembeddings, log_sums;
    std::vector<double> losses, sums;
  };

  // Pieces of whole texts; so many whatever the number of threads.
  static std::size_t pieces_of(const TokenBatch& batch) { return std::min<std::size_t>(batch.texts, 8); }
  static TransformerJob<T> piece_of(TransformerJob<T> job, std::size_t piece) {
    const std::size_t texts = job.batch->texts, pieces = pieces_of(*job.batch);
    job.first_text = texts * piece / pieces;
    job.end_text = texts * (piece + 1) / pieces;
    return job;
  }

  Scratch scratch_for(const TokenBatch& batch, std::span<const T> parameters, std::optional<DropoutKey> key,
                      bool keep) const {
    check_batch(spec_, batch);
    Scratch scratch;
    scratch.columns = round_up(batch.length, kTextColumns);
    scratch.tokens = scratch.columns * batch.texts;
    const std::size_t d = spec_.model.block.width, N = scratch.tokens;
    scratch.outputs.resize(d * N);
    if (keep) {
      scratch.kept.resize(kept_rows(spec_.model) * N);
      scratch.doutputs.assign(d * N, T(0));
      scratch.dembeddings.resize(d * N);
    }
    scratch.job = {&spec_,          &batch, parameters, key,
                   scratch.columns, 0,      0,          keep ? scratch.kept.data() : nullptr};
    if (spec_.classes > 0) return scratch;
    scratch.targets.assign(N, TokenBatch::ignored);
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      scratch.targets[i / batch.length * scratch.columns + i % batch.length] = batch.targets[i];
      scratch.counted += batch.targets[i] != TokenBatch::ignored ? 1 : 0;
    }
    scratch.losses.resize(N);
    scratch.log_sums.resize(keep ? N : 0);
    VocabularyHead<T>& head = scratch.head;
    head.vocabulary = spec_.model.vocabulary;
    head.width = d;
    head.tokens = N;
    head.embedding = slices(spec_, parameters).word.data();
    head.x = scratch.outputs.data();
    head.targets = scratch.targets.data();
    head.weight = static_cast<T>(1 / static_cast<double>(scratch.counted));
    head.longest = longest_word(head);
    return scratch;
  }

  static void forward(Scratch& scratch, std::size_t piece) {
    transformer_kernels<T>().forward(piece_of(scratch.job, piece), scratch.outputs.data());
  }
  // From the outputs of some texts ∂loss/∂outputs, if there is to be a gradient, and what the loss is made of.
  void head(Scratch& scratch, std::size_t first_text, std::size_t end_text, const Executor& executor) const {
    T* const doutputs = scratch.job.kept != nullptr ? scratch.doutputs.data() : nullptr;
    if (spec_.classes > 0) {
      classify(scratch, first_text, end_text, nullptr, doutputs);
    } else {
      vocabulary_tokens(scratch.head, first_text * scratch.columns, end_text * scratch.columns,
                        scratch.losses.data(), scratch.log_sums.data(), doutputs, executor);
    }
  }
  void backward(Scratch& scratch, std::size_t piece) {
    const std::size_t own = size_ - tables_;
    const std::span<double> sums = std::span(partial_).subspan(piece * own, own);
    std::fill(sums.begin(), sums.end(), 0.0);
    transformer_kernels<T>().backward(piece_of(scratch.job, piece), scratch.doutputs.data(), sums,
                                      scratch.dembeddings.data());
  }

  // All of the above by the processes of a job: texts need nothing of each other until their gradients are added,
  // which every process does, in the order of pieces.
  void share(Scratch& scratch, const Executor& executor) {
    const std::size_t d = spec_.model.block.width, N = scratch.tokens, own = size_ - tables_;
    const std::size_t pieces = pieces_of(*scratch.job.batch);
    PieceWork work{"texts of a step", {}, false, {}, {}};
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const TransformerJob<T> job = piece_of(scratch.job, piece);
      work.costs.push_back(static_cast<double>(job.end_text - job.first_text));
    }
    const auto columns_of_piece = [&](std::size_t piece) {
      const TransformerJob<T> job = piece_of(scratch.job, piece);
      return std::pair(job.first_text * scratch.columns, job.end_text * scratch.columns);
    };
    const auto sums_of = [&](std::size_t piece) {
      return partial_.begin() + static_cast<std::ptrdiff_t>(piece * own);
    };
    const auto parts = run_pieces<TextsPart>(executor, work, [&](std::size_t piece, const Executor& inside) {
      const TransformerJob<T> job = piece_of(scratch.job, piece);
      inside.for_each(job.end_text - job.first_text, [&](std::size_t text) {
        TransformerJob<T> one = scratch.job;
        one.first_text = job.first_text + text;
        one.end_text = one.first_text + 1;
        transformer_kernels<T>().forward(one, scratch.outputs.data());
      });
      head(scratch, job.first_text, job.end_text, inside);
      backward(scratch, piece);
      const auto [begin, end] = columns_of_piece(piece);
      const auto of_tokens = [begin = begin, end = end](const auto& all) {
        return all.empty() ? all : columns_of(all.data(), 1, all.size(), begin, end);
      };
      return TextsPart{columns_of(scratch.outputs.data(), d, N, begin, end),
                       columns_of(scratch.dembeddings.data(), d, N, begin, end), of_tokens(scratch.log_sums),
                       of_tokens(scratch.losses), std::vector<double>(sums_of(piece), sums_of(piece + 1))};
    });
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const TextsPart& part = parts[piece];
      const auto [begin, end] = columns_of_piece(piece);
      put_columns(part.outputs, scratch.outputs.data(), d, N, begin, end);
      put_columns(part.dembeddings, scratch.dembeddings.data(), d, N, begin, end);
      if (spec_.classes == 0) {
        put_columns(part.log_sums, scratch.log_sums.data(), 1, N, begin, end);
        put_columns(part.losses, scratch.losses.data(), 1, N, begin, end);
      }
      std::copy(part.sums.begin(), part.sums.end(), sums_of(piece));
    }
  }

  static TransformerLoss next_token(const Scratch& scratch) {
    TransformerLoss loss;
    loss.targets = scratch.counted;
    loss.loss = std::accumulate(scratch.losses.begin(), scratch.losses.end(), 0.0) /
                static_cast<double>(loss.targets);
    return loss;
  }

  // The head of classes, on the first token of each of some texts: few numbers, plainly. Loss and accuracy are sums
  // over these, the gradient of its parameters and ∂loss/∂outputs are left out where they are null.
  TransformerLoss classify(const Scratch& scratch, std::size_t first_text, std::size_t end_text,
                           const TransformerSlices<T>* gradient, T* doutputs) const {
    const TokenBatch& batch = *scratch.job.batch;
    const std::optional<DropoutKey>& key = scratch.job.dropout;
    const std::size_t d = spec_.model.block.width, classes = spec_.classes, n = scratch.tokens;
    const auto parts = slices(spec_, scratch.job.parameters);
    const double weight = 1 / static_cast<double>(batch.texts), p = key ? spec_.model.block.dropout : 0;
    TransformerLoss result;
    result.targets = batch.texts;
    std::size_t right = 0;
    std::vector<double> first(d), pooled(d), factors(d, 1.0), kept(d), logits(classes), dkept(d);
    // Sums in double over all texts, in their order.
    std::vector<double> dpooler(d * d, 0.0), dpooler_bias(d, 0.0), dclassifier(classes * d, 0.0),
        dclassifier_bias(classes, 0.0);
    for (std::size_t text = first_text; text < end_text; ++text) {
      const std::size_t column = text * scratch.columns;
      for (std::size_t k = 0; k < d; ++k) first[k] = static_cast<double>(scratch.outputs[k * n + column]);
      if (p > 0) {
        Random random(key->seed, kPooledDropout | key->stream << 24 | text);
        for (double& factor : factors) factor = random.uniform() < p ? 0 : 1 / (1 - p);
      }
      for (std::size_t k = 0; k < d; ++k) {
        double sum = static_cast<double>(parts.pooler_bias[k]);
        for (std::size_t j = 0; j < d; ++j)
          sum += static_cast<double>(parts.pooler_weight[k * d + j]) * first[j];
        pooled[k] = std::tanh(sum);
        kept[k] = pooled[k] * factors[k];
      }
      for (std::size_t c = 0; c < classes; ++c) {
        logits[c] = static_cast<double>(parts.classifier_bias[c]);
        for (std::size_t k = 0; k < d; ++k)
          logits[c] += static_cast<double>(parts.classifier_weight[c * d + k]) * kept[k];
      }
      const std::uint32_t label = batch.targets[text];
      const auto top = std::max_element(logits.begin(), logits.end());
      right += static_cast<std::size_t>(top - logits.begin()) == label;
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit - *top);
      result.loss += weight * (*top + std::log(sum) - logits[label]);
      if (gradient == nullptr && doutputs == nullptr) continue;

      const double log_sum = *top + std::log(sum);
      std::fill(dkept.begin(), dkept.end(), 0.0);
      for (std::size_t c = 0; c < classes; ++c) {
        const double slope = weight * (std::exp(logits[c] - log_sum) - (c == label ? 1 : 0));
        dclassifier_bias[c] += slope;
        for (std::size_t k = 0; k < d; ++k) {
          dclassifier[c * d + k] += slope * kept[k];
          dkept[k] += slope * static_cast<double>(parts.classifier_weight[c * d + k]);
        }
      }
      for (std::size_t k = 0; k < d; ++k) {
        const double slope = dkept[k] * factors[k] * (1 - pooled[k] * pooled[k]);
        dpooler_bias[k] += slope;
        for (std::size_t j = 0; j < d; ++j) {
          dpooler[k * d + j] += slope * first[j];
          if (doutputs == nullptr) continue;
          doutputs[j * n + column] +=
              static_cast<T>(slope * static_cast<double>(parts.pooler_weight[k * d + j]));
        }
      }
    }
    result.accuracy = static_cast<double>(right) / static_cast<double>(batch.texts);
    if (gradient == nullptr) return result;
    const auto take = [](const std::vector<double>& from, std::span<T> to) {
      std::transform(from.begin(), from.end(), to.begin(),
                     [](double value) { return static_cast<T>(value); });
    };
    take(dpooler, gradient->pooler_weight);
    take(dpooler_bias, gradient->pooler_bias);
    take(dclassifier, gradient->classifier_weight);
    take(dclassifier_bias, gradient->classifier_bias);
    return result;
  }

  // What comes back to word, position and type.
  void add_embeddings(const Scratch& scratch, const TransformerSlices<T>& gradient) const {
    const TokenBatch& batch = *scratch.job.batch;
    const std::size_t d = spec_.model.block.width;
    std::vector<double> positions(batch.length * d, 0.0), type(d, 0.0);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const std::size_t column = i / batch.length * scratch.columns + i % batch.length;
      for (std::size_t k = 0; k < d; ++k) {
        const T slope = scratch.dembeddings[k * scratch.tokens + column];
        gradient.word[batch.tokens[i] * d + k] += slope;
        positions[i % batch.length * d + k] += static_cast<double>(slope);
        type[k] += static_cast<double>(slope);
      }
    }
    for (std::size_t i = 0; i < positions.size(); ++i) gradient.position[i] = static_cast<T>(positions[i]);
    for (std::size_t k = 0; k < d && !gradient.type.empty(); ++k) gradient.type[k] = static_cast<T>(type[k]);
  }

  TransformerSpec spec_;
  std::size_t size_ = 0, tables_ = 0;
  std::vector<double> partial_;
};

}  // namespace

template <class T>
std::unique_ptr<TransformerGradient<T>> make_transformer_gradient(const TransformerSpec& spec) {
  check_transformer(spec);
  return std::make_unique<Transformer<T>>(spec);
}
template std::unique_ptr<TransformerGradient<float>> make_transformer_gradient(const TransformerSpec&);
template std::unique_ptr<TransformerGradient<double>> make_transformer_gradient(const TransformerSpec&);

}  // namespace normscope
