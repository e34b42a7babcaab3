#include "checkpoint/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/file_errors.h"
#include "normscope/error.h"
#include "normscope/version.h"

namespace normscope::checkpoint {
namespace {

using Json = nlohmann::ordered_json;
using Shape = std::vector<std::size_t>;

constexpr std::size_t kTypesOfBert = 2;

bool is_affine_or_equal(const NormSpec& written, NormSpec norm) {
  if (written.affine) norm.affine = true;  // gains 1 and biases 0 are the same norm
  return norm == written;
}

bool is_absent(const NormSpec& norm) {
  return norm.projection == Projection::none && norm.scaling == Scaling::none && !norm.affine;
}

Json id_or_null(const std::optional<std::uint32_t>& id) {
  return id ? Json(*id) : Json(nullptr);
}

void add_shape(const Family& family, const ModelSpec& spec, Json& config) {
  const ConfigKeys& keys = family.keys;
  const auto add = [&](std::string_view key, const auto& value) {
    if (!key.empty()) config[std::string(key)] = value;
  };
  config["vocab_size"] = spec.vocabulary;
  add(keys.width, spec.block.width);
  add(keys.layers, spec.layers);
  add(keys.heads, spec.block.heads);
  add(keys.feed_forward, spec.block.feed_forward);
  add(keys.positions, spec.positions);
  add(keys.activation, config_name(spec.block.activation));
  add(keys.eps, spec.block.norm.eps);
  if (family.describe != nullptr) family.describe(spec, config);
  for (const Fixed& fixed : family.fixed) config[std::string(fixed.key)] = Json::parse(fixed.json);
}

void add_labels(const std::vector<std::string>& labels, Json& config) {
  if (labels.empty()) return;
  config["num_labels"] = labels.size();
  Json names = Json::object(), ids = Json::object();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    names[std::to_string(i)] = labels[i];
    ids[labels[i]] = i;
  }
  config["id2label"] = std::move(names);
  config["label2id"] = std::move(ids);
}

Json config_of(const Family& family, const ModelSpec& spec, std::size_t types,
               const CheckpointExtras& extras) {
  const Architectures& names = family.architectures;
  const bool head = spec.head != ModelSpec::Head::none;
  Json config;
  config["architectures"] = {!extras.labels.empty() ? names.classifier : head ? names.head : names.body};
  config["model_type"] = family.model_types.front();
  add_shape(family, spec, config);
  if (!family.type.empty()) config["type_vocab_size"] = types > 0 ? types : kTypesOfBert;
  config["initializer_range"] = spec.initializer_range;
  // A linear head is there as soon as it is tied; one with a transform, if its tensors are.
  config["tie_word_embeddings"] = head ? spec.tied : !family.head.transform.name.empty();
  for (const std::string_view key : family.keys.dropout)
    if (!key.empty()) config[std::string(key)] = extras.dropout;
  config["bos_token_id"] = config["eos_token_id"] = id_or_null(extras.end_of_text);
  config["pad_token_id"] = id_or_null(extras.padding);
  add_labels(extras.labels, config);
  config["torch_dtype"] = "float32";
  config["normscope_version"] = version();
  return config;
}

void add_own_norms(const Family& family, const ModelSpec& spec, Json& config) {
  Json norms = Json::object();
  for (const NormSite& site : norm_sites(family, spec)) {
    if (!site.tensor.empty())
      norms[std::string(site.name)] = {
          {"norm", name_of(site.norm)}, {"affine", site.norm.affine}, {"eps", site.norm.eps}};
  }
  config.erase("architectures");
  config["model_type"] = fmt::format("{}{}", kOwnNorms, family.name);
  config[std::string(kNormsKey)] = std::move(norms);
}

bool has_norms_of(const ModelPlan& plan, const ModelSpec& spec) {
  const std::vector<NormSite> read = norm_sites(plan.family, plan.spec),
                              given = norm_sites(plan.family, spec);
  for (std::size_t i = 0; i < read.size(); ++i)
    if (!read[i].tensor.empty() && !is_affine_or_equal(read[i].norm, given[i].norm)) return false;
  return true;
}

// The reader decides what a layout can hold: what it makes of config.json must be the model.
void require_same(const ModelPlan& plan, const ModelSpec& spec, const std::string& label) {
  const BlockSpec &read = plan.spec.block, &given = spec.block;
  std::vector<std::string_view> lost;
  const auto check = [&](bool same, std::string_view what) {
    if (!same) lost.push_back(what);
  };
  check(plan.spec.positions == spec.positions, "the number of positions");
  check(plan.spec.groups == spec.groups, "shared layers");
  check(plan.spec.causal == spec.causal, "who attends to whom");
  check(plan.spec.window == spec.window, "the window of attention");
  check(plan.spec.width_of_embedding() == spec.width_of_embedding(), "the width of the embedding");
  check(read.key_head_count() == given.key_head_count(), "shared heads of keys");
  check(read.width_of_head() == given.width_of_head(), "the width of a head");
  check(read.feed_forward == given.feed_forward, "the width of feed-forward");
  check(read.activation == given.activation, "the activation");
  check(read.gated == given.gated, "gates");
  check(read.skip == given.skip, "skip connections");
  check(read.placement == given.placement, "where norms stand");
  check(read.score_scale() == given.score_scale(), "the temperature of attention");
  check(read.normalize_query_key == given.normalize_query_key, "qknorm");
  check(read.rotary.frequencies == given.rotary.frequencies, "rotation");
  check(read.relative.buckets == given.relative.buckets, "offsets by distance");
  check(has_norms_of(plan, spec), "norms");
  check(!plan.family.embedding_norm.empty() || is_absent(spec.embedding_norm), "a norm of embeddings");
  check(!plan.family.final_norm.empty() || is_absent(spec.final_norm), "a final norm");
  const bool transform = !plan.family.head.transform.name.empty();
  check(spec.head == ModelSpec::Head::none || transform == (spec.head == ModelSpec::Head::transform),
        "the kind of head");
  if (!lost.empty())
    io::reject(label,
               fmt::format("cannot hold this model: the layout of {} does not have {} as they are here",
                           spec.family, fmt::join(lost, ", ")),
               "such a model cannot be written as a checkpoint");
}

// Shows one model's tensors.
class Showing {
 public:
  Showing(const ModelWeights& weights, const ModelPlan& plan, const ShowTensor& show)
      : weights_(weights), spec_(weights.spec()), plan_(plan), family_(plan.family), show_(show) {}

  void run() {
    embedding();
    for (std::size_t layer = 0; layer < spec_.layers; ++layer) block(layer);
    if (!family_.final_norm.empty()) {
      const NormWeights weights = weights_.final_norm();
      norm(spec_.final_norm, body(family_.final_norm), weights.gain, weights.bias, spec_.block.width);
    }
    head();
  }

 private:
  // Of several names the first is the one in use today.
  static std::string first(Name alternatives) {
    return std::string(alternatives.substr(0, alternatives.find('|')));
  }
  std::string body(Name name) const { return fmt::format("{}{}", family_.prefixes.front(), first(name)); }
  std::string in_layer(Name name, std::size_t layer) const { return body(numbered(name, layer)); }

  static void require(bool right, const std::string& tensor) {
    if (!right)
      throw InputError(
          fmt::format("The weights for tensor '{}' are not of the shape the model says.", tensor));
  }

  void table(const Matrix<float>& rows, const std::string& name, std::size_t count, std::size_t width) const {
    require(rows.rows() == count && rows.cols() == width, name);
    show_(name, {count, width}, rows.values());
  }

  void vector(std::span<const float> values, const std::string& name, std::size_t size,
              float otherwise) const {
    if (!values.empty()) {
      require(values.size() == size, name);
      return show_(name, {size}, values);
    }
    const std::vector<float> same(size, otherwise);
    show_(name, {size}, same);
  }

  // W is in × out, perhaps some columns of a wider matrix.
  void map(MatrixView<const float> weights, std::span<const float> bias, bool has_bias, Stored stored,
           const std::string& name) const {
    const bool turned = stored == Stored::out_by_in;
    std::vector<float> values(weights.rows * weights.cols);
    for (std::size_t i = 0; i < weights.rows; ++i)
      for (std::size_t j = 0; j < weights.cols; ++j)
        values[turned ? j * weights.rows + i : i * weights.cols + j] = weights(i, j);
    show_(name + ".weight", turned ? Shape{weights.cols, weights.rows} : Shape{weights.rows, weights.cols},
          values);
    if (has_bias) return vector(bias, name + ".bias", weights.cols, 0);
    require(bias.empty(), name + ".bias");
  }
  void map(const Matrix<float>& weights, std::span<const float> bias, const MapName& name, std::size_t layer,
           std::size_t in, std::size_t out) const {
    const std::string tensor = in_layer(name.name, layer);
    require(weights.rows() == in && weights.cols() == out, tensor + ".weight");
    map(weights.view(), bias, plan_.has_bias(name.bias), family_.stored, tensor);
  }

  void norm(const NormSpec& spec, const std::string& name, std::span<const float> gain,
            std::span<const float> bias, std::size_t width) const {
    if (plan_.own_norms && !spec.affine) return;
    vector(spec.affine ? gain : std::span<const float>(), name + ".weight", width, 1);
    vector(spec.affine ? bias : std::span<const float>(), name + ".bias", width, 0);
  }

  void embedding() const {
    const std::size_t width = spec_.width_of_embedding();
    table(weights_.words(), body(family_.word) + ".weight", spec_.vocabulary, width);
    if (!family_.position.empty())
      table(weights_.positions(), body(family_.position) + ".weight", plan_.position_rows, width);
    if (!family_.type.empty()) {
      Matrix<float> types = weights_.types();
      if (types.rows() == 0) types = Matrix<float>(plan_.type_rows, width);
      table(types, body(family_.type) + ".weight", plan_.type_rows, width);
    }
    if (family_.embedding_norm.empty()) return;
    const EmbeddingWeights weights = weights_.embedding();
    norm(spec_.embedding_norm, body(family_.embedding_norm), weights.norm.gain, weights.norm.bias, width);
  }

  void block(std::size_t layer) const {
    const BlockSpec& block = spec_.block;
    const BlockWeights<float> weights = weights_.layer(layer);
    norm(block.norm, in_layer(family_.attention_norm, layer), weights.attention_gain, weights.attention_bias,
         block.width);
    query_key_value(layer, weights);
    map(weights.output, weights.output_bias, family_.output, layer, block.query_width(), block.width);
    norm(block.feed_forward_norm.value_or(block.norm), in_layer(family_.feed_forward_norm, layer),
         weights.feed_forward_gain, weights.feed_forward_bias, block.width);
    map(weights.up, weights.up_bias, family_.up, layer, block.width, block.feed_forward);
    map(weights.down, weights.down_bias, family_.down, layer, block.feed_forward, block.width);
  }

  void query_key_value(std::size_t layer, const BlockWeights<float>& weights) const {
    const BlockSpec& block = spec_.block;
    const Matrix<float>& all = weights.query_key_value;
    const std::size_t width = block.query_width() + 2 * block.key_width();
    if (!family_.query_key_value.name.empty())
      return map(all, weights.query_key_value_bias, family_.query_key_value, layer, block.width, width);
    require(all.rows() == block.width && all.cols() == width, in_layer(family_.query.name, layer));
    const std::span<const float> bias = weights.query_key_value_bias;
    require(bias.empty() || bias.size() == width, in_layer(family_.query.name, layer));
    std::size_t column = 0;
    const auto part = [&](const MapName& name, std::size_t columns) {
      map({all.data() + column, block.width, columns, all.cols()},
          bias.empty() ? bias : bias.subspan(column, columns), plan_.has_bias(name.bias), family_.stored,
          in_layer(name.name, layer));
      column += columns;
    };
    part(family_.query, block.query_width());
    part(family_.key, block.key_width());
    part(family_.value, block.key_width());
  }

  void head() const {
    if (spec_.head == ModelSpec::Head::none) return;
    const HeadNames& names = family_.head;
    const HeadWeights weights = weights_.head();
    if (spec_.head == ModelSpec::Head::transform) {
      const std::string name = first(names.transform.name);
      require(weights.transform.rows() == spec_.block.width &&
                  weights.transform.cols() == spec_.block.width &&
                  weights.activation == names.activation.value_or(spec_.block.activation),
              name);
      map(weights.transform.view(), weights.transform_bias, true, Stored::out_by_in, name);
      vector(weights.transform_norm.gain, first(names.norm) + ".weight", spec_.block.width, 1);
      vector(weights.transform_norm.bias, first(names.norm) + ".bias", spec_.block.width, 0);
    }
    if (!spec_.tied)
      table(weights.output, first(names.output) + ".weight", spec_.vocabulary, spec_.block.width);
    if (!names.bias.empty()) return vector(weights.bias, first(names.bias), spec_.vocabulary, 0);
    require(weights.bias.empty(), first(names.output) + ".bias");
  }

  const ModelWeights& weights_;
  const ModelSpec& spec_;
  const ModelPlan& plan_;
  const Family& family_;
  const ShowTensor& show_;
};

}  // namespace

std::string config_text(const Json& config) {
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Layout layout_of(const ModelSpec& spec, std::size_t types, const CheckpointExtras& extras,
                 const std::string& label) {
  const Family& family = written_family(spec.family);
  const std::string config_label = fmt::format("config.json of {}", label);
  const auto planned = [&](const Json& config) { return plan_of(Config(config_text(config), config_label)); };
  Layout layout;
  layout.config = config_of(family, spec, types, extras);
  layout.plan = planned(layout.config);
  if (!has_norms_of(layout.plan, spec)) {
    add_own_norms(family, spec, layout.config);
    layout.plan = planned(layout.config);
  }
  require_same(layout.plan, spec, label);
  return layout;
}

void show_tensors(const ModelWeights& weights, const ModelPlan& plan, const ShowTensor& show) {
  Showing(weights, plan, show).run();
}

}  // namespace normscope::checkpoint
