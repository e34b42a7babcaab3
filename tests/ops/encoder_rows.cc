// The ops that are whole encoders, by the library's own entry points; these choose the instruction set
// themselves.
// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/highway.h>
// clang-format on

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "normscope/executor.h"
#include "normscope/random.h"
#include "ops/ops.h"
#include "train/layers/cross_entropy-inl.h"
#include "train/layers/encoder_layer-inl.h"

namespace normscope::ops {
namespace {

std::string describe(const EncoderSpec& spec) {
  std::string text = name_of(spec.norm1);
  if (spec.mask != "full") text += "+" + spec.mask;
  if (spec.placement != Placement::pre) text += fmt::format("+{}", name_of(spec.placement));
  if (spec.temperature > 0) text += fmt::format("+d_QK={}", spec.temperature);
  if (spec.keep_apart > 0) text += "+apart";
  if (spec.matrix) text += "+matrix";
  if (spec.uniform) text += "+uniform";
  return text;
}

std::string shape_of(const EncoderSpec& spec, const SequenceSet& set) {
  return fmt::format("C={} d={} F={} layers={} heads={} T={} batch={}", spec.classes, spec.dimension,
                     spec.feed_forward, spec.layers, spec.heads, set.length, set.size());
}

Arrays parameters_of(const EncoderSpec& spec, const std::string& seed) {
  Arrays arrays;
  for (const ParameterSlot& slot : parameter_slots(spec))
    arrays.push_back({slot.name, random_array(slot.name, slot.rows, slot.cols, seed)});
  return arrays;
}

template <class T>
std::vector<T> flat(const EncoderSpec& spec, const Arrays& arrays) {
  std::vector<T> values(parameter_count(spec), T(0));
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    const auto named =
        std::find_if(arrays.begin(), arrays.end(), [&](const Named& each) { return each.name == slot.name; });
    if (named == arrays.end()) continue;
    std::transform(named->value.values().begin(), named->value.values().end(),
                   values.begin() + static_cast<std::ptrdiff_t>(slot.offset),
                   [](double value) { return static_cast<T>(value); });
  }
  return values;
}

using Slices = EncoderSlices<const double>;
using Tokens = std::span<const std::uint16_t>;

// What enters each layer, and what leaves the last: (d, T).
std::vector<Array> residuals(const EncoderSpec& spec, const Slices& parameters, Tokens tokens) {
  Array x(spec.dimension, tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (std::size_t i = 0; i < x.rows(); ++i) x(i, t) = parameters.embedding[tokens[t] * x.rows() + i];
  }
  std::vector<Array> all = {x};
  for (const auto& layer : parameters.layers)
    all.push_back(reference::encoder_layer(spec, layer, all.back()));
  return all;
}

// (C, T)
Array logits_of(const EncoderSpec& spec, const Slices& parameters, Tokens tokens) {
  return reference::linear(parameters.embedding, {}, residuals(spec, parameters, tokens).back());
}

EncoderMeasures measures_of(const EncoderSpec& spec, const Slices& parameters, const SequenceSet& set) {
  const std::size_t T = set.length;
  const double share = 1 / static_cast<double>(set.size() * T),
               row_share = share / static_cast<double>(spec.layers * spec.heads);
  const Mask mask = parse_mask(spec.mask, T);
  EncoderMeasures total;
  for (std::size_t s = 0; s < set.size(); ++s) {
    const std::vector<Array> x = residuals(spec, parameters, std::span(set.tokens).subspan(s * T, T));
    const Array result = reference::cross_entropy(reference::linear(parameters.embedding, {}, x.back()),
                                                  std::vector<std::uint32_t>(T, set.labels[s]));
    double right = 0;
    for (std::size_t t = 0; t < T; ++t) {
      total.loss += share * result(0, t);
      right += result(1, t);
    }
    total.accuracy += share * right;
    total.sequence_accuracy += right == static_cast<double>(T) ? 1 / static_cast<double>(set.size()) : 0;
    for (std::size_t l = 0; l < spec.layers; ++l) {
      const auto& layer = parameters.layers[l];
      const Array qkv = reference::linear(layer.in_proj, {}, reference::first_norm(spec, layer, x[l]));
      for (std::size_t head = 0; head < spec.heads; ++head) {
        const Array weights =
            reference::attention_weights(qkv, spec.heads, head, mask, spec.temperature, spec.uniform);
        for (std::size_t query = 0; query < T; ++query) {
          double visible = 0;
          for (std::size_t key = 0; key < T; ++key) visible += mask.attends(query, key) ? 1 : 0;
          for (std::size_t key = 0; key < T; ++key) {
            if (!mask.attends(query, key)) continue;
            const double weight = weights(key, query);
            if (weight > 0) total.attention_entropy -= row_share * weight * std::log(weight);
            total.attention_distance += row_share * std::fabs(weight - 1 / visible) / 2;
          }
        }
      }
    }
  }
  return total;
}

// A base for what is computed in one call, without an input.
template <class T>
class EncoderWork : public Work {
 public:
  EncoderWork(const EncoderSpec& spec, const SequenceSet& set, const Arrays& arrays)
      : spec_(spec), set_(set), arrays_(arrays), parameters_(flat<T>(spec, arrays)) {}

  Array output() const override { return output_; }
  void seed(const Array&) override {}
  void backward() override {}
  Arrays gradients() const override { return {}; }

 protected:
  EncoderSpec spec_;
  SequenceSet set_;
  Arrays arrays_;
  std::vector<T> parameters_;
  Array output_;
  Executor executor_{1};
};

// The loss of a batch that is the whole set. Parameters that are not among the arrays are 0.
struct EncoderLossOp {
  EncoderSpec spec;
  EncoderPath path;
  SequenceSet set;

  std::string name() const {
    return fmt::format("encoder_loss/{}/{}", path == EncoderPath::bag ? "bag" : "generic", describe(spec));
  }
  Array plain(const Slices& parameters) const {
    Array loss(1, 1);
    for (std::size_t s = 0; s < set.size(); ++s) {
      const std::vector<Array> x =
          residuals(spec, parameters, std::span(set.tokens).subspan(s * set.length, set.length));
      const Array columns = reference::cross_entropy(reference::linear(parameters.embedding, {}, x.back()),
                                                     std::vector<std::uint32_t>(set.length, set.labels[s]));
      for (const double value : columns[0])
        loss(0, 0) += value / static_cast<double>(set.size() * set.length);
      for (std::size_t l = 1; spec.keep_apart > 0 && l < spec.layers; ++l)
        loss(0, 0) += spec.keep_apart * reference::alikeness(x[l]) /
                      static_cast<double>(set.size() * (spec.layers - 1));
    }
    return loss;
  }

  template <class T>
  class Layer final : public EncoderWork<T> {
   public:
    Layer(const EncoderLossOp& op, const Arrays& arrays)
        : EncoderWork<T>(op.spec, op.set, arrays),
          model_(make_encoder_gradient<T>(op.spec, op.path)),
          batch_(op.set.size()),
          gradient_(this->parameters_.size()) {
      std::iota(batch_.begin(), batch_.end(), 0U);
    }
    void forward() override {
      const double loss = model_->gradient(this->set_, batch_, this->parameters_, gradient_, this->executor_);
      this->output_ = Array(1, 1, {loss});
    }
    void seed(const Array& gradient) override { seed_ = gradient(0, 0); }
    Arrays gradients() const override {
      Arrays result;
      for (const Named& array : this->arrays_) {
        for (const ParameterSlot& slot : parameter_slots(this->spec_)) {
          if (slot.name != array.name) continue;
          Array part(slot.rows, slot.cols);
          for (std::size_t i = 0; i < slot.size(); ++i)
            part.data()[i] = seed_ * static_cast<double>(gradient_[slot.offset + i]);
          result.push_back({slot.name, part});
        }
      }
      return result;
    }

   private:
    std::unique_ptr<EncoderGradient<T>> model_;
    std::vector<std::uint32_t> batch_;
    std::vector<T> gradient_;
    double seed_ = 1;
  };
};

struct EncoderMeasuresOp {
  EncoderSpec spec;
  EncoderPath path;
  SequenceSet set;

  std::string name() const {
    return fmt::format("encoder_measures/{}/{}", path == EncoderPath::bag ? "bag" : "generic",
                       describe(spec));
  }
  static Array column(const EncoderMeasures& m) {
    return Array(5, 1, {m.loss, m.accuracy, m.sequence_accuracy, m.attention_entropy, m.attention_distance});
  }
  Array plain(const Slices& parameters) const { return column(measures_of(spec, parameters, set)); }

  template <class T>
  class Layer final : public EncoderWork<T> {
   public:
    Layer(const EncoderMeasuresOp& op, const Arrays& arrays)
        : EncoderWork<T>(op.spec, op.set, arrays), model_(make_encoder_gradient<T>(op.spec, op.path)) {}
    void forward() override {
      this->output_ = column(model_->measure(this->set_, this->parameters_, this->executor_));
    }

   private:
    std::unique_ptr<EncoderGradient<T>> model_;
  };
};

struct EncoderSpreadOp {
  EncoderSpec spec;
  SequenceSet set;

  std::string name() const { return "encoder_spread/" + describe(spec); }
  Array plain(const Slices& parameters) const {
    Array means(spec.layers + 1, 1);
    for (std::size_t s = 0; s < set.size(); ++s) {
      const std::vector<Array> x =
          residuals(spec, parameters, std::span(set.tokens).subspan(s * set.length, set.length));
      for (std::size_t l = 0; l < x.size(); ++l)
        means(l, 0) +=
            std::sqrt(std::max(0.0, 1 - reference::alikeness(x[l]))) / static_cast<double>(set.size());
    }
    return means;
  }

  template <class T>
  class Layer final : public EncoderWork<T> {
   public:
    Layer(const EncoderSpreadOp& op, const Arrays& arrays) : EncoderWork<T>(op.spec, op.set, arrays) {}
    void forward() override {
      const std::vector<double> means =
          encoder_spread<T>(this->spec_, this->parameters_, this->set_, this->executor_);
      this->output_ = Array(means.size(), 1, means);
    }
  };
};

// Of the set's first sequence.
struct EncoderLogitsOp {
  EncoderSpec spec;
  SequenceSet set;

  std::string name() const { return "encoder_logits/" + describe(spec); }
  static Tokens tokens(const SequenceSet& set) { return std::span(set.tokens).first(set.length); }
  Array plain(const Slices& parameters) const { return logits_of(spec, parameters, tokens(set)); }

  template <class T>
  class Layer final : public EncoderWork<T> {
   public:
    Layer(const EncoderLogitsOp& op, const Arrays& arrays) : EncoderWork<T>(op.spec, op.set, arrays) {}
    void forward() override {
      const Matrix<T> logits = encoder_logits<T>(this->spec_, this->parameters_, tokens(this->set_));
      this->output_ = Array(logits.cols(), logits.rows());
      for (std::size_t i = 0; i < logits.rows(); ++i) {
        for (std::size_t k = 0; k < logits.cols(); ++k)
          this->output_(k, i) = static_cast<double>(logits(i, k));
      }
    }
  };
};

template <class Op>
Row make_row(const Op& op, const std::string& name) {
  Row row;
  row.name = name;
  row.shape = shape_of(op.spec, op.set);
  row.arrays =
      parameters_of(op.spec, describe(op.spec) + row.shape);  // not of the path: all paths, one problem
  row.reference = [op](const Arrays& arrays) {
    const std::vector<double> parameters = flat<double>(op.spec, arrays);
    return op.plain(slices(op.spec, std::span(parameters)));
  };
  row.in_float = [op](const Arrays& a) {
    return std::make_unique<typename Op::template Layer<float>>(op, a);
  };
  row.in_double = [op](const Arrays& a) {
    return std::make_unique<typename Op::template Layer<double>>(op, a);
  };
  return row;
}

// What the equation needs at every position; the bag path needs less, its speed is against the same number.
double operations(const EncoderSpec& spec, const SequenceSet& set) {
  const auto d = static_cast<double>(spec.dimension), f = static_cast<double>(spec.feed_forward),
             length = static_cast<double>(set.length), heads = static_cast<double>(spec.heads);
  const double layer = 24 * d * d + 12 * d * f + 28 * d + (12 * d + 8 * heads) * length;
  const double output = (6 * d + 8) * static_cast<double>(spec.classes);
  return static_cast<double>(set.size()) * length * (static_cast<double>(spec.layers) * layer + output);
}

SequenceSet random_sequences(std::size_t classes, std::size_t length, std::size_t count) {
  Random random(classes + 100 * length);
  std::vector<std::uint16_t> tokens(length * count), labels(count);
  // A sequence has few or many types: its tokens are below a random bound.
  for (std::size_t s = 0; s < count; ++s) {
    const std::uint64_t bound = 1 + random.below(classes);
    for (std::size_t i = 0; i < length; ++i)
      tokens[s * length + i] = static_cast<std::uint16_t>(random.below(bound));
    labels[s] = static_cast<std::uint16_t>(random.below(classes));
  }
  return make_sequences(classes, length, tokens, labels);
}

EncoderSpec make_spec(const char* norm, std::size_t classes, std::size_t d, std::size_t heads) {
  EncoderSpec spec;
  spec.classes = classes;
  spec.dimension = d;
  spec.heads = heads;
  spec.feed_forward = d == 8 ? 8 : d + 1;
  spec.norm1 = parse_norm(norm);
  spec.norm2 = parse_norm("layernorm");
  spec.norm2.affine = true;
  return spec;
}

}  // namespace

std::vector<Row> encoder_rows() {
  std::vector<Row> rows;
  const auto add = [&](const auto& op, bool grad = true) {
    rows.push_back(make_row(op, op.name()));
    rows.back().grad = grad;
  };
  const auto add_spec = [&](const EncoderSpec& spec, std::size_t length, std::size_t count) {
    const SequenceSet set = random_sequences(spec.classes, length, count);
    for (const EncoderPath path : {EncoderPath::generic, EncoderPath::bag}) {
      if (path == EncoderPath::bag && !is_bag_of_types(spec)) continue;
      add(EncoderLossOp{spec, path, set});
      add(EncoderMeasuresOp{spec, path, set}, false);
    }
    add(EncoderLogitsOp{spec, set}, false);
  };
  for (const char* norm : {"none", "center", "layernorm", "rmsnorm", "unit", "published", "xsigma", "dyt",
                           "qknorm:2", "normals:1", "project:1", "project:2", "project:4"}) {
    EncoderSpec spec = make_spec(norm, 5, 6, 2);
    add_spec(spec, 7, 9);
    spec.norm1.affine = true;
    spec.norm1.eps = spec.norm2.eps = 1e-5;
    spec.norm2.affine = false;
    spec.heads = 1;
    add_spec(spec, 3, 33);  // more pairs of a type than a block of the bag path holds
  }
  for (const std::size_t length : {1, 2}) add_spec(make_spec("layernorm", 2, 3, 1), length, 4);
  EncoderSpec deep = make_spec("rmsnorm", 4, 6, 3);
  deep.layers = 2;
  add_spec(deep, 9, 3);
  deep.mask = "causal";
  deep.norm1 = parse_norm("project:1");
  deep.norm2 = parse_norm("rmsnorm");
  add_spec(deep, 9, 3);
  // Norms elsewhere, sharper scores, tokens kept apart; a padded length and one that is not.
  for (const Placement placement : kPlacements) {
    for (const std::size_t length : {5, 8}) {
      EncoderSpec spec = make_spec("layernorm", 4, 6, 2);
      spec.norm1.affine = length == 5;
      spec.layers = 3;
      spec.placement = placement;
      add_spec(spec, length, 3);
      add(EncoderSpreadOp{spec, random_sequences(spec.classes, length, 3)}, false);
      spec.temperature = 0.5;
      spec.keep_apart = 0.7;
      add_spec(spec, length, 3);
    }
  }

  // A matrix in front of the norm, and attention frozen at equal weights; one by one, and both.
  for (const char* norm : {"layernorm", "rmsnorm", "project:1", "none"}) {
    for (const auto& [matrix, uniform] : {std::pair{true, false}, {false, true}, {true, true}}) {
      EncoderSpec spec = make_spec(norm, 5, 6, 2);
      spec.matrix = matrix;
      spec.uniform = uniform;
      add_spec(spec, 7, 9);
      spec.layers = 2;
      spec.mask = "causal";
      spec.norm1.affine = true;
      add_spec(spec, 5, 3);
    }
  }

  // With all else 0 the residual stream is the embedding: logits = E E[t], for which E counts twice.
  for (const std::size_t length : {1, 5, 50}) {
    const EncoderSpec spec = make_spec("rmsnorm", 4, 3, 1);
    const EncoderLossOp op{spec, EncoderPath::generic, random_sequences(spec.classes, length, 3)};
    Row row = make_row(op, "embedding");
    row.arrays.resize(1);
    rows.push_back(row);
  }

  // The majority shape, for time only: 6000 sequences of length 50.
  for (const EncoderPath path : {EncoderPath::generic, EncoderPath::bag}) {
    for (const char* norm : {"layernorm", "rmsnorm"}) {
      const EncoderSpec spec = make_spec(norm, 20, 8, 1);
      const EncoderLossOp op{spec, path, random_sequences(20, 50, 6000)};
      rows.push_back(make_row(op, op.name()));
      rows.back().operations = operations(spec, op.set);
      rows.back().test = rows.back().grad = false;
      rows.back().perf = true;
    }
  }
  return rows;
}

}  // namespace normscope::ops
