#include "checkpoint/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "io/file_errors.h"
#include "io/format.h"
#include "normscope/error.h"

namespace normscope::checkpoint {
namespace {

using io::quoted_name;
using io::reject;
using Shape = std::vector<std::size_t>;

// "a|b" with a prefix and an ending: {"<prefix>a<ending>", "<prefix>b<ending>"}.
std::vector<std::string> spelled(std::string_view prefix, std::string_view alternatives,
                                 std::string_view ending) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= alternatives.size();) {
    const std::size_t end = std::min(alternatives.find('|', begin), alternatives.size());
    names.push_back(fmt::format("{}{}{}", prefix, alternatives.substr(begin, end - begin), ending));
    begin = end + 1;
  }
  return names;
}

bool holds_weights(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 ||
         dtype == DType::float64;
}

// Rows read at once: enough to make reading worthwhile, few enough to stay in the cache.
std::size_t rows_at_once(std::size_t width) {
  constexpr std::size_t kNumbers = std::size_t{1} << 16, kMostRows = 64;
  return std::clamp<std::size_t>(kNumbers / width, 1, kMostRows);
}

// into(:, first …) = rowsᵀ, a row of `into` at a time so that writes run on.
void transpose_into(MatrixView<const float> rows, std::size_t first, MatrixView<float> into) {
  for (std::size_t column = 0; column < rows.cols; ++column) {
    float* const target = &into(column, first);
    for (std::size_t row = 0; row < rows.rows; ++row) target[row] = rows(row, column);
  }
}

class CheckpointWeights : public ModelWeights {
 public:
  CheckpointWeights(ModelPlan plan, std::shared_ptr<const TensorSource> tensors, std::string config)
      : plan_(std::move(plan)), tensors_(std::move(tensors)), config_(std::move(config)) {
    find_prefix();
    find_head();
    check_embedding();
    for (std::size_t layer = 0; layer < plan_.spec.layers; ++layer) check_layer(layer);
    check_number_of_layers();
    if (!family().final_norm.empty())
      check_norm(spec().final_norm, body(family().final_norm), spec().block.width);
    check_head();
  }

  const ModelSpec& spec() const override { return plan_.spec; }

  // The Hugging Face library ties the output to the words whatever else is in the file; files with a matrix
  // of its own there are of a model that was trained, or changed, without.
  std::optional<std::string> ignored_output() const {
    const auto own = spec().tied ? find_any(family().head.output, ".weight") : std::nullopt;
    if (!own || same_numbers(*own, output_name())) return std::nullopt;
    return fmt::format(
        "{} holds {}, which is not {}, but {} ties the output to the words: {} is not used, as in the "
        "Hugging Face library. If it should be, set tie_word_embeddings to false.",
        tensors_->label_of(*own), quoted_name(*own), quoted_name(output_name()), config_, quoted_name(*own));
  }

  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    if (spec().positions > 0 && ids.size() > spec().positions)
      throw InputError(
          fmt::format("The text has {} tokens, but {} ({}) takes at most {}; cut it into windows.",
                      ids.size(), spec().family, tensors_->label(), spec().positions));
    const std::string word = find_one(body(family().word), ".weight");
    const std::size_t width = spec().width_of_embedding();
    for (const std::uint32_t id : ids)
      if (id >= spec().vocabulary)
        throw InputError(
            fmt::format("Token id {} is not in the vocabulary of {} ({}), which has {} tokens; "
                        "check that ids and model belong together.",
                        id, spec().family, tensors_->label(), spec().vocabulary));
    Matrix<float> sum(ids.size(), width);
    for (std::size_t i = 0; i < ids.size(); ++i) read_finite_rows(*tensors_, word, ids[i], sum[i]);
    add_type(sum);
    add_positions(ids, sum);
    return sum;
  }

  Matrix<float> words() const override {
    Matrix<float> rows(spec().vocabulary, spec().width_of_embedding());
    read_finite_rows(*tensors_, find_one(body(family().word), ".weight"), 0,
                     {rows.data(), rows.rows() * rows.cols()});
    return rows;
  }

  // Without the rows of RoBERTa that no text reaches.
  Matrix<float> positions() const override {
    if (family().position.empty()) return {};
    Matrix<float> rows(spec().positions, spec().width_of_embedding());
    read_finite_rows(*tensors_, find_one(body(family().position), ".weight"),
                     plan_.position_rows - spec().positions, {rows.data(), rows.rows() * rows.cols()});
    return rows;
  }

  Matrix<float> types() const override {
    if (family().type.empty()) return {};
    Matrix<float> rows(plan_.type_rows, spec().width_of_embedding());
    read_finite_rows(*tensors_, find_one(body(family().type), ".weight"), 0,
                     {rows.data(), rows.rows() * rows.cols()});
    return rows;
  }

  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights;
    if (!family().embedding_norm.empty())
      weights.norm =
          read_norm(spec().embedding_norm, body(family().embedding_norm), spec().width_of_embedding());
    if (!family().embedding_map.name.empty()) {
      weights.map = Matrix<float>(spec().width_of_embedding(), spec().block.width);
      weights.map_bias = read_map(family().embedding_map, 0, weights.map.view());
    }
    return weights;
  }

  BlockWeights<float> layer(std::size_t index) const override {
    if (index >= spec().layers)
      throw InputError(fmt::format("Layer {} was asked for, but {} ({}) has {}, counted from 0.", index,
                                   spec().family, tensors_->label(), spec().layers));
    const BlockSpec& block = spec().block;
    BlockWeights<float> weights;
    read_query_key_value(index, weights);
    weights.output = Matrix<float>(block.query_width(), block.width);
    weights.output_bias = read_map(family().output, index, weights.output.view());
    weights.up = Matrix<float>(block.width, block.feed_forward);
    weights.up_bias = read_map(family().up, index, weights.up.view());
    if (block.gated) {
      weights.gate = Matrix<float>(block.width, block.feed_forward);
      weights.gate_bias = read_map(family().gate, index, weights.gate.view());
    }
    weights.down = Matrix<float>(block.feed_forward, block.width);
    weights.down_bias = read_map(family().down, index, weights.down.view());
    NormWeights attention = read_norm(block.norm, in_layer(family().attention_norm, index), block.width);
    weights.attention_gain = std::move(attention.gain);
    weights.attention_bias = std::move(attention.bias);
    NormWeights feed_forward =
        read_norm(feed_forward_norm(), in_layer(family().feed_forward_norm, index), block.width);
    weights.feed_forward_gain = std::move(feed_forward.gain);
    weights.feed_forward_bias = std::move(feed_forward.bias);
    if (block.relative.buckets > 0) {
      weights.relative = Matrix<float>(block.heads, block.relative.buckets);
      read_transposed(find_one(in_layer(family().relative, index), ".weight"), weights.relative.view());
    }
    return weights;
  }

  NormWeights final_norm() const override {
    return family().final_norm.empty()
               ? NormWeights{}
               : read_norm(spec().final_norm, body(family().final_norm), spec().block.width);
  }

  HeadWeights head() const override {
    if (spec().head == ModelSpec::Head::none)
      throw InputError(
          fmt::format("{} holds no head that predicts tokens; use a checkpoint saved with one, such "
                      "as that of a model for language modelling.",
                      tensors_->label()));
    HeadWeights weights;
    const HeadNames& names = family().head;
    const std::size_t width = head_width();
    if (spec().head == ModelSpec::Head::transform) {
      weights.transform = Matrix<float>(spec().block.width, width);
      weights.transform_bias =
          read_map(names.transform.name, true, Stored::out_by_in, weights.transform.view());
      weights.transform_norm = read_norm(transform_norm(), names.norm, width);
      weights.activation = names.activation.value_or(spec().block.activation);
    }
    weights.output = Matrix<float>(spec().vocabulary, width);
    read_finite_rows(*tensors_, output_name(), 0, {weights.output.data(), spec().vocabulary * width});
    if (!names.bias.empty()) weights.bias = read_vector(find_one(names.bias, ""), spec().vocabulary);
    return weights;
  }

 private:
  const Family& family() const { return plan_.family; }

  // Names with their prefix: "a|b" becomes "<prefix>a|<prefix>b".
  std::string body(std::string_view name) const {
    return fmt::format("{}", fmt::join(spelled(prefix_, name, ""), "|"));
  }
  std::string in_layer(std::string_view name, std::size_t layer) const {
    return body(numbered(name, spec().weights_of(layer)));
  }

  std::optional<std::string> find_any(std::string_view alternatives, std::string_view ending) const {
    for (std::string& name : spelled("", alternatives, ending))
      if (tensors_->find(name) != nullptr) return std::move(name);
    return std::nullopt;
  }
  std::string find_one(std::string_view alternatives, std::string_view ending) const {
    if (auto name = find_any(alternatives, ending)) return *name;
    reject(tensors_->label(),
           fmt::format("holds no tensor {}, which a {} model of {} layers has",
                       quoted_name(spelled("", alternatives, ending).front()), spec().family, spec().layers),
           fmt::format("check that it belongs to {}, or download the model again", config_));
  }

  // Older files of BERT call gain and bias of a norm gamma and beta.
  std::string gain_name(const std::string& norm) const {
    const auto old = find_any(norm, ".gamma");
    return old ? *old : find_one(norm, ".weight");
  }
  std::string bias_name(const std::string& norm) const {
    const auto old = find_any(norm, ".beta");
    return old ? *old : find_one(norm, ".bias");
  }
  // RMSNorm of the Hugging Face library has a gain only.
  bool norm_has_bias() const { return family().norm == "layernorm"; }
  NormSpec feed_forward_norm() const { return spec().block.feed_forward_norm.value_or(spec().block.norm); }
  static NormSpec transform_norm() {
    NormSpec norm = parse_norm("layernorm");
    norm.affine = true;
    return norm;
  }

  void find_prefix() {
    for (const std::string_view prefix : family().prefixes) {
      prefix_ = prefix;
      if (find_any(body(family().word), ".weight")) return;
    }
    prefix_ = family().prefixes.front();
    find_one(body(family().word), ".weight");
  }

  void find_head() {
    const HeadNames& names = family().head;
    ModelSpec& spec = plan_.spec;
    if (names.output.empty()) return;
    const bool output = find_any(names.output, ".weight").has_value();
    if (!names.transform.name.empty()) {
      if (!find_any(names.transform.name, ".weight")) return;
      spec.head = ModelSpec::Head::transform;
    } else if (output || plan_.tie_word_embeddings) {
      spec.head = ModelSpec::Head::linear;
    }
    spec.tied = spec.head != ModelSpec::Head::none && plan_.tie_word_embeddings;
  }

  bool same_numbers(const std::string& a, const std::string& b) const {
    const Shape shape = tensors_->find(a)->shape;
    if (shape.size() != 2 || shape != tensors_->find(b)->shape) return false;
    const std::size_t step = rows_at_once(shape[1]);
    std::vector<float> in_a(step * shape[1]), in_b(step * shape[1]);
    for (std::size_t row = 0; row < shape[0]; row += step) {
      const std::size_t numbers = std::min(step, shape[0] - row) * shape[1];
      const std::span<float> of_a(in_a.data(), numbers), of_b(in_b.data(), numbers);
      tensors_->read_rows(a, row, of_a);
      tensors_->read_rows(b, row, of_b);
      if (!std::equal(of_a.begin(), of_a.end(), of_b.begin())) return false;
    }
    return true;
  }

  void check_shape(const std::string& name, const Shape& expected) const {
    const TensorInfo& info = *tensors_->find(name);
    const std::string where = fmt::format("{} (tensor {})", tensors_->label_of(name), quoted_name(name));
    if (info.shape != expected)
      reject(where,
             fmt::format("has shape {}, but {} says {}", io::shape_text(info.shape), config_,
                         io::shape_text(expected)),
             "check that both belong to the same model");
    if (!holds_weights(info.dtype))
      reject(where, fmt::format("has dtype {}, but weights are floats", name_of(info.dtype)),
             "use a checkpoint that is not quantized");
  }

  void check_map(const std::string& map, bool bias, Stored stored, std::size_t in, std::size_t out) const {
    check_shape(find_one(map, ".weight"), stored == Stored::out_by_in ? Shape{out, in} : Shape{in, out});
    if (bias) return check_shape(find_one(map, ".bias"), {out});
    if (const auto extra = find_any(map, ".bias"))
      reject(tensors_->label_of(*extra),
             fmt::format("holds tensor {}, but a {} model has none as {} says", quoted_name(*extra),
                         spec().family, config_),
             "check that both belong to the same model");
  }
  void check_map(const MapName& map, std::size_t layer, std::size_t in, std::size_t out) const {
    check_map(in_layer(map.name, layer), plan_.has_bias(map.bias), family().stored, in, out);
  }

  void check_norm(const NormSpec& norm_spec, const std::string& norm, std::size_t width) const {
    if (!norm_spec.affine) {
      const auto extra = find_any(norm, ".weight");
      if (!extra) return;
      reject(tensors_->label_of(*extra),
             fmt::format("holds tensor {}, but {} says that norm has no gain", quoted_name(*extra), config_),
             "check that both belong to the same model");
    }
    check_shape(gain_name(norm), {width});
    if (norm_has_bias()) check_shape(bias_name(norm), {width});
  }

  void check_embedding() const {
    const std::size_t width = spec().width_of_embedding();
    check_shape(find_one(body(family().word), ".weight"), {spec().vocabulary, width});
    if (!family().position.empty())
      check_shape(find_one(body(family().position), ".weight"), {plan_.position_rows, width});
    if (!family().type.empty())
      check_shape(find_one(body(family().type), ".weight"), {plan_.type_rows, width});
    if (!family().embedding_norm.empty())
      check_norm(spec().embedding_norm, body(family().embedding_norm), width);
    if (!family().embedding_map.name.empty()) check_map(family().embedding_map, 0, width, spec().block.width);
  }

  void check_layer(std::size_t layer) const {
    const BlockSpec& block = spec().block;
    if (layer > 0 && spec().weights_of(layer) == spec().weights_of(layer - 1)) return;
    if (family().query_key_value.name.empty()) {
      check_map(family().query, layer, block.width, block.query_width());
      check_map(family().key, layer, block.width, block.key_width());
      check_map(family().value, layer, block.width, block.key_width());
    } else {
      check_map(family().query_key_value, layer, block.width, block.query_width() + 2 * block.key_width());
    }
    check_map(family().output, layer, block.query_width(), block.width);
    check_map(family().up, layer, block.width, block.feed_forward);
    if (block.gated) check_map(family().gate, layer, block.width, block.feed_forward);
    check_map(family().down, layer, block.feed_forward, block.width);
    check_norm(block.norm, in_layer(family().attention_norm, layer), block.width);
    check_norm(feed_forward_norm(), in_layer(family().feed_forward_norm, layer), block.width);
    if (block.relative.buckets > 0)
      check_shape(find_one(in_layer(family().relative, layer), ".weight"),
                  {block.relative.buckets, block.heads});
  }

  // A file with more layers than config.json says is of another model, whose first layers would be taken for
  // the whole.
  void check_number_of_layers() const {
    const std::size_t count = spec().groups > 0 ? spec().groups : spec().layers;
    const auto next = find_any(body(numbered(family().output.name, count)), ".weight");
    if (next)
      reject(tensors_->label_of(*next),
             fmt::format("holds tensor {}, but {} says there are only {} layers{}", quoted_name(*next),
                         config_, count, spec().groups > 0 ? " of their own" : ""),
             "check that both belong to the same model");
  }

  void check_head() const {
    if (spec().head == ModelSpec::Head::none) return;
    const HeadNames& names = family().head;
    const std::size_t width = head_width();
    if (spec().head == ModelSpec::Head::transform) {
      check_map(std::string(names.transform.name), true, Stored::out_by_in, spec().block.width, width);
      check_norm(transform_norm(), std::string(names.norm), width);
    }
    check_shape(output_name(), {spec().vocabulary, width});
    if (!names.bias.empty()) check_shape(find_one(names.bias, ""), {spec().vocabulary});
  }

  // The transform of ALBERT goes back to the width of the embedding.
  std::size_t head_width() const {
    return spec().head == ModelSpec::Head::transform ? spec().width_of_embedding() : spec().block.width;
  }
  std::string output_name() const {
    return spec().tied ? find_one(body(family().word), ".weight") : find_one(family().head.output, ".weight");
  }

  std::vector<float> read_vector(const std::string& name, std::size_t size) const {
    std::vector<float> values(size);
    read_finite_rows(*tensors_, name, 0, values);
    return values;
  }

  NormWeights read_norm(const NormSpec& norm_spec, std::string_view name, std::size_t width) const {
    const std::string norm(name);
    NormWeights weights;
    if (!norm_spec.affine) return weights;
    weights.gain = read_vector(gain_name(norm), width);
    if (norm_has_bias()) weights.bias = read_vector(bias_name(norm), width);
    return weights;
  }

  void read_straight(const std::string& name, MatrixView<float> into) const {
    if (into.stride == into.cols)
      return read_finite_rows(*tensors_, name, 0, {into.data, into.rows * into.cols});
    for (std::size_t row = 0; row < into.rows; ++row) read_finite_rows(*tensors_, name, row, into[row]);
  }

  // `into` has as many columns as the tensor has rows.
  void read_transposed(const std::string& name, MatrixView<float> into) const {
    const std::size_t at_once = rows_at_once(into.rows);
    std::vector<float> buffer(std::min(at_once, into.cols) * into.rows);
    for (std::size_t first = 0; first < into.cols; first += at_once) {
      const std::size_t now = std::min(at_once, into.cols - first);
      read_finite_rows(*tensors_, name, first, std::span(buffer).first(now * into.rows));
      transpose_into({buffer.data(), now, into.rows}, first, into);
    }
  }

  std::vector<float> read_map(std::string_view map, bool bias, Stored stored, MatrixView<float> into) const {
    const std::string name = find_one(map, ".weight");
    if (stored == Stored::in_by_out)
      read_straight(name, into);
    else
      read_transposed(name, into);
    return bias ? read_vector(find_one(map, ".bias"), into.cols) : std::vector<float>();
  }
  std::vector<float> read_map(const MapName& map, std::size_t layer, MatrixView<float> into) const {
    return read_map(in_layer(map.name, layer), plan_.has_bias(map.bias), family().stored, into);
  }

  void read_query_key_value(std::size_t layer, BlockWeights<float>& weights) const {
    const BlockSpec& block = spec().block;
    Matrix<float>& all = weights.query_key_value;
    all = Matrix<float>(block.width, block.query_width() + 2 * block.key_width());
    if (!family().query_key_value.name.empty()) {
      weights.query_key_value_bias = read_map(family().query_key_value, layer, all.view());
      return;
    }
    std::size_t column = 0;
    const auto read = [&](const MapName& map, std::size_t width) {
      const MatrixView<float> part(all.data() + column, block.width, width, all.cols());
      const std::vector<float> bias = read_map(map, layer, part);
      weights.query_key_value_bias.insert(weights.query_key_value_bias.end(), bias.begin(), bias.end());
      column += width;
    };
    read(family().query, block.query_width());
    read(family().key, block.key_width());
    read(family().value, block.key_width());
  }

  // A text is one segment, of type 0.
  void add_type(Matrix<float>& sum) const {
    if (family().type.empty() || sum.rows() == 0) return;
    std::vector<float> type(sum.cols());
    read_finite_rows(*tensors_, find_one(body(family().type), ".weight"), 0, type);
    for (std::size_t i = 0; i < sum.rows(); ++i) add(type, sum[i]);
  }

  void add_positions(std::span<const std::uint32_t> ids, Matrix<float>& sum) const {
    if (family().position.empty()) return;
    const std::string name = find_one(body(family().position), ".weight");
    std::vector<float> position(sum.cols());
    std::size_t counted = 0;  // tokens that are not padding
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool padding = plan_.padding == ids[i];
      if (!padding) ++counted;
      const std::size_t row = plan_.padding ? *plan_.padding + (padding ? 0 : counted) : i;
      read_finite_rows(*tensors_, name, row, position);
      add(position, sum[i]);
    }
  }

  static void add(std::span<const float> term, std::span<float> sum) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += term[k];
  }

  ModelPlan plan_;
  std::shared_ptr<const TensorSource> tensors_;
  std::string config_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<ModelWeights> model_weights(ModelPlan plan, std::shared_ptr<const TensorSource> tensors,
                                            std::string config, std::vector<std::string>* notes) {
  auto weights = std::make_unique<CheckpointWeights>(std::move(plan), std::move(tensors), std::move(config));
  if (notes != nullptr) {
    if (auto note = weights->ignored_output()) notes->push_back(std::move(*note));
  }
  return weights;
}

}  // namespace normscope::checkpoint
