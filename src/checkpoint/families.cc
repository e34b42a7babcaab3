#include "checkpoint/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope::checkpoint {
namespace {

// Widths far beyond any model: they keep products of two of them within 64 bits.
constexpr std::size_t kWidest = std::size_t{1} << 20, kMostLayers = 10'000;
constexpr std::size_t kMostWords = std::size_t{1} << 28;

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
constexpr NamedActivation kActivations[] = {
    {"gelu", Activation::gelu},           {"gelu_python", Activation::gelu},
    {"gelu_new", Activation::gelu_tanh},  {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh}, {"relu", Activation::relu},
    {"silu", Activation::silu},           {"swish", Activation::silu}};

Activation activation_of(const Config& config, std::string_view key, std::string_view name) {
  for (const NamedActivation& known : kActivations)
    if (known.name == name) return known.activation;
  config.reject_key(key, "gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, relu, silu or swish");
}

// Llama 3's rule: short wavelengths stay, long ones are stretched by `factor`, those between are blended.
// Single precision, as the model was trained.
void stretch_as_llama3(const Config& rope, std::vector<double>& frequencies) {
  const auto number = [&](std::string_view key) { return static_cast<float>(rope.number(key, 1e-3, 1e9)); };
  const float factor = number("factor"), low = number("low_freq_factor"), high = number("high_freq_factor");
  const float context = number("original_max_position_embeddings");
  if (!(low < high)) rope.reject_key("high_freq_factor", "a number above low_freq_factor");
  for (double& frequency : frequencies) {
    const auto f = static_cast<float>(frequency);
    const float wavelength = 2 * std::numbers::pi_v<float> / f;
    if (wavelength < context / high) continue;
    const float blend = std::max(0.0f, (context / wavelength - low) / (high - low));
    frequency = wavelength > context / low ? f / factor : (1 - blend) * f / factor + blend * f;
  }
}

Rotary rotary_of(const Config& config, std::size_t head_width) {
  config.require("partial_rotary_factor", "1.0");
  const std::optional<Config> newer = config.object("rope_parameters");  // holds rope_theta too
  const std::optional<Config> rope = newer ? newer : config.object("rope_scaling");
  const Config& holder = newer && newer->has("rope_theta") ? *newer : config;
  if (rope) rope->require("partial_rotary_factor", "1.0");
  Rotary rotary;
  rotary.frequencies = rotary_frequencies(head_width, holder.number_or("rope_theta", 10000, 1, 1e15));
  const std::string_view key = rope && rope->has("rope_type") ? "rope_type" : "type";
  const std::string kind = rope ? rope->word_or(key, "default") : "default";
  if (kind == "linear") {
    const double factor = rope->number("factor", 1e-3, 1e6);
    for (double& frequency : rotary.frequencies)
      frequency = static_cast<float>(frequency) / static_cast<float>(factor);
  } else if (kind == "llama3") {
    stretch_as_llama3(*rope, rotary.frequencies);
  } else if (kind != "default") {
    rope->reject_key(key, "\"default\", \"linear\" or \"llama3\"");
  }
  return rotary;
}

void adjust_roberta(const Config& config, ModelPlan& plan) {
  const auto padding = static_cast<std::size_t>(config.number_or("pad_token_id", 1, 0, kMostWords));
  if (plan.position_rows <= padding + 1)
    config.reject_key(plan.family.keys.positions,
                      fmt::format("more than pad_token_id + 1 = {}", padding + 1));
  plan.padding = static_cast<std::uint32_t>(padding);
  plan.spec.positions = plan.position_rows - padding - 1;
}

void adjust_albert(const Config& config, ModelPlan& plan) {
  plan.spec.embedding_width = config.count("embedding_size", kWidest);
  plan.spec.groups = config.count_or("num_hidden_groups", 1, kMostLayers);
  if (plan.spec.groups > plan.spec.layers)
    config.reject_key("num_hidden_groups", fmt::format("at most num_hidden_layers = {}", plan.spec.layers));
}

void adjust_gpt2(const Config& config, ModelPlan& plan) {
  BlockSpec& block = plan.spec.block;
  block.feed_forward = config.count_or("n_inner", 4 * block.width, 4 * kWidest);
  if (!config.flag_or("scale_attn_weights", true)) block.temperature = 1;
}

void describe_gpt2(const ModelSpec& spec, nlohmann::ordered_json& config) {
  config["n_inner"] = spec.block.feed_forward;
  config["n_ctx"] = spec.positions;
  config["scale_attn_weights"] = spec.block.temperature != 1;
}

void adjust_llama(const Config& config, ModelPlan& plan) {
  BlockSpec& block = plan.spec.block;
  block.key_heads = config.count_or("num_key_value_heads", block.heads, kWidest);
  if (block.heads % block.key_heads != 0)
    config.reject_key("num_key_value_heads",
                      fmt::format("a divisor of num_attention_heads = {}", block.heads));
  block.head_width = config.count_or("head_dim", 0, kWidest);
  if (block.width_of_head() % 2 != 0)
    config.reject_key(config.has("head_dim") ? "head_dim" : "hidden_size",
                      "an even number for each head, so that its coordinates make pairs,");
  block.rotary = rotary_of(config, block.width_of_head());
  plan.attention_bias = config.flag_or("attention_bias", false);
  plan.mlp_bias = config.flag_or("mlp_bias", false);
}

void adjust_mistral(const Config& config, ModelPlan& plan) {
  adjust_llama(config, plan);
  // null: no window; a file that does not have the key means the default of the library that wrote it.
  plan.spec.window =
      config.count_or("sliding_window", config.mentions("sliding_window") ? 0 : 4096, kMostWords);
}

// Layers from max_window_layers on look back through a window, those before do not; both at once is more than
// a ModelSpec says.
void adjust_qwen2(const Config& config, ModelPlan& plan) {
  adjust_llama(config, plan);
  const std::size_t layers = plan.spec.layers;
  std::size_t windowed = 0;
  if (const auto types = config.words("layer_types")) {
    windowed = static_cast<std::size_t>(std::count(types->begin(), types->end(), "sliding_attention"));
    if (types->size() != layers || (windowed != 0 && windowed != layers))
      config.reject_key("layer_types", "the same type for every layer, which alone is supported,");
  } else if (config.flag_or("use_sliding_window", false)) {
    const double first = config.number_or("max_window_layers", 28, 0, kMostLayers);
    windowed = first < static_cast<double>(layers) ? layers - static_cast<std::size_t>(first) : 0;
    if (windowed != 0 && windowed != layers)
      config.reject_key(
          "max_window_layers",
          fmt::format("0 or at least num_hidden_layers = {}, which alone is supported,", layers));
  }
  if (windowed != 0) plan.spec.window = config.count("sliding_window", kMostWords);
}

void adjust_t5(const Config& config, ModelPlan& plan) {
  BlockSpec& block = plan.spec.block;
  block.head_width = config.count("d_kv", kWidest);
  block.temperature = 1;
  block.relative.buckets = config.count_or("relative_attention_num_buckets", 32, kWidest);
  block.relative.max_distance = config.count_or("relative_attention_max_distance", 128, kWidest);
  // Half of the buckets for each direction, half of those for single distances.
  if (block.relative.buckets % 4 != 0) config.reject_key("relative_attention_num_buckets", "a multiple of 4");
  if (block.relative.max_distance <= block.relative.buckets / 4)
    config.reject_key("relative_attention_max_distance",
                      fmt::format("more than {}", block.relative.buckets / 4));
  constexpr std::string_view key = "feed_forward_proj", gated = "gated-";
  std::string activation = config.word_or(key, plan.family.keys.default_activation);
  block.gated = activation.starts_with(gated);
  if (block.gated) {
    activation.erase(0, gated.size());
    if (activation == "gelu") activation = "gelu_new";
    plan.family.up.name = "encoder.block.{}.layer.1.DenseReluDense.wi_1";
  } else {
    plan.family.gate.name = {};
  }
  block.activation = activation_of(config, key, activation);
}

Family bert() {
  return {
      .name = "bert",
      .model_types = {"bert"},
      .prefixes = {"bert.", ""},
      .keys = {.width = "hidden_size",
               .layers = "num_hidden_layers",
               .heads = "num_attention_heads",
               .feed_forward = "intermediate_size",
               .positions = "max_position_embeddings",
               .activation = "hidden_act",
               .default_activation = "gelu",
               .eps = "layer_norm_eps",
               .dropout = {"hidden_dropout_prob", "attention_probs_dropout_prob"}},
      .fixed = {{"position_embedding_type", "\"absolute\""},
                {"is_decoder", "false"},
                {"add_cross_attention", "false"}},
      .norm = "layernorm",
      .word = "embeddings.word_embeddings",
      .position = "embeddings.position_embeddings",
      .type = "embeddings.token_type_embeddings",
      .embedding_norm = "embeddings.LayerNorm",
      .query = {"encoder.layer.{}.attention.self.query"},
      .key = {"encoder.layer.{}.attention.self.key"},
      .value = {"encoder.layer.{}.attention.self.value"},
      .output = {"encoder.layer.{}.attention.output.dense"},
      .up = {"encoder.layer.{}.intermediate.dense"},
      .down = {"encoder.layer.{}.output.dense"},
      .attention_norm = "encoder.layer.{}.attention.output.LayerNorm",
      .feed_forward_norm = "encoder.layer.{}.output.LayerNorm",
      .head = {.transform = {"cls.predictions.transform.dense"},
               .norm = "cls.predictions.transform.LayerNorm",
               .output = "cls.predictions.decoder",
               .bias = "cls.predictions.bias|cls.predictions.decoder.bias"},
      .vocabulary = Family::Vocabulary::bert,
      .architectures = {"BertModel", "BertForMaskedLM", "BertForSequenceClassification"},
  };
}

Family roberta() {
  Family family = bert();
  family.name = "roberta";
  family.model_types = {"roberta", "xlm-roberta", "camembert"};
  family.prefixes = {"roberta.", ""};
  family.head = {.transform = {"lm_head.dense"},
                 .norm = "lm_head.layer_norm",
                 .output = "lm_head.decoder",
                 .bias = "lm_head.bias|lm_head.decoder.bias",
                 .activation = Activation::gelu};
  family.vocabulary = Family::Vocabulary::none;
  family.adjust = adjust_roberta;
  family.architectures = {};
  return family;
}

Family distilbert() {
  return {
      .name = "distilbert",
      .model_types = {"distilbert"},
      .prefixes = {"distilbert.", ""},
      .keys = {.width = "dim",
               .layers = "n_layers",
               .heads = "n_heads",
               .feed_forward = "hidden_dim",
               .positions = "max_position_embeddings",
               .activation = "activation",
               .default_activation = "gelu",
               .dropout = {"dropout", "attention_dropout"}},
      .norm = "layernorm",
      .word = "embeddings.word_embeddings",
      .position = "embeddings.position_embeddings",
      .embedding_norm = "embeddings.LayerNorm",
      .query = {"transformer.layer.{}.attention.q_lin"},
      .key = {"transformer.layer.{}.attention.k_lin"},
      .value = {"transformer.layer.{}.attention.v_lin"},
      .output = {"transformer.layer.{}.attention.out_lin"},
      .up = {"transformer.layer.{}.ffn.lin1"},
      .down = {"transformer.layer.{}.ffn.lin2"},
      .attention_norm = "transformer.layer.{}.sa_layer_norm",
      .feed_forward_norm = "transformer.layer.{}.output_layer_norm",
      .head = {.transform = {"vocab_transform"},
               .norm = "vocab_layer_norm",
               .output = "vocab_projector",
               .bias = "vocab_projector.bias"},
      .vocabulary = Family::Vocabulary::bert,
      .architectures = {"DistilBertModel", "DistilBertForMaskedLM", "DistilBertForSequenceClassification"},
  };
}

Family albert() {
  Family family = bert();
  family.name = "albert";
  family.model_types = {"albert"};
  family.prefixes = {"albert.", ""};
  family.keys.default_activation = "gelu_new";
  family.fixed.push_back({"inner_group_num", "1"});
  family.embedding_map = {"encoder.embedding_hidden_mapping_in"};
  family.query = {"encoder.albert_layer_groups.{}.albert_layers.0.attention.query"};
  family.key = {"encoder.albert_layer_groups.{}.albert_layers.0.attention.key"};
  family.value = {"encoder.albert_layer_groups.{}.albert_layers.0.attention.value"};
  family.output = {"encoder.albert_layer_groups.{}.albert_layers.0.attention.dense"};
  family.up = {"encoder.albert_layer_groups.{}.albert_layers.0.ffn"};
  family.down = {"encoder.albert_layer_groups.{}.albert_layers.0.ffn_output"};
  family.attention_norm = "encoder.albert_layer_groups.{}.albert_layers.0.attention.LayerNorm";
  family.feed_forward_norm = "encoder.albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm";
  family.head = {.transform = {"predictions.dense"},
                 .norm = "predictions.LayerNorm",
                 .output = "predictions.decoder",
                 .bias = "predictions.bias|predictions.decoder.bias"};
  family.vocabulary = Family::Vocabulary::none;
  family.adjust = adjust_albert;
  family.architectures = {};
  return family;
}

Family gpt2() {
  return {
      .name = "gpt2",
      .model_types = {"gpt2"},
      .prefixes = {"transformer.", ""},
      .keys = {.width = "n_embd",
               .layers = "n_layer",
               .heads = "n_head",
               .positions = "n_positions",
               .activation = "activation_function",
               .default_activation = "gelu_new",
               .eps = "layer_norm_epsilon",
               .default_eps = 1e-5,
               .dropout = {"embd_pdrop", "attn_pdrop", "resid_pdrop"}},
      .fixed = {{"scale_attn_by_inverse_layer_idx", "false"}, {"add_cross_attention", "false"}},
      .norm = "layernorm",
      .placement = Placement::pre,
      .causal = true,
      .stored = Stored::in_by_out,
      .word = "wte",
      .position = "wpe",
      .query_key_value = {"h.{}.attn.c_attn"},
      .output = {"h.{}.attn.c_proj"},
      .up = {"h.{}.mlp.c_fc"},
      .down = {"h.{}.mlp.c_proj"},
      .attention_norm = "h.{}.ln_1",
      .feed_forward_norm = "h.{}.ln_2",
      .final_norm = "ln_f",
      .head = {.output = "lm_head"},
      .vocabulary = Family::Vocabulary::gpt2,
      .adjust = adjust_gpt2,
      .describe = describe_gpt2,
      .architectures = {"GPT2Model", "GPT2LMHeadModel", "GPT2ForSequenceClassification"},
  };
}

Family llama() {
  return {
      .name = "llama",
      .model_types = {"llama"},
      .prefixes = {"model.", ""},
      .keys = {.width = "hidden_size",
               .layers = "num_hidden_layers",
               .heads = "num_attention_heads",
               .feed_forward = "intermediate_size",
               .positions = "max_position_embeddings",
               .activation = "hidden_act",
               .default_activation = "silu",
               .eps = "rms_norm_eps",
               .default_eps = 1e-6},
      .norm = "rmsnorm",
      .placement = Placement::pre,
      .causal = true,
      .word = "embed_tokens",
      .query = {"layers.{}.self_attn.q_proj", Bias::attention_bias},
      .key = {"layers.{}.self_attn.k_proj", Bias::attention_bias},
      .value = {"layers.{}.self_attn.v_proj", Bias::attention_bias},
      .output = {"layers.{}.self_attn.o_proj", Bias::attention_bias},
      .up = {"layers.{}.mlp.up_proj", Bias::mlp_bias},
      .gate = {"layers.{}.mlp.gate_proj", Bias::mlp_bias},
      .down = {"layers.{}.mlp.down_proj", Bias::mlp_bias},
      .attention_norm = "layers.{}.input_layernorm",
      .feed_forward_norm = "layers.{}.post_attention_layernorm",
      .final_norm = "norm",
      .head = {.output = "lm_head", .tied = false},
      .adjust = adjust_llama,
  };
}

Family mistral() {
  Family family = llama();
  family.name = "mistral";
  family.model_types = {"mistral"};
  family.adjust = adjust_mistral;
  return family;
}

Family qwen2() {
  Family family = llama();
  family.name = "qwen2";
  family.model_types = {"qwen2"};
  family.query.bias = family.key.bias = family.value.bias = Bias::always;
  family.output.bias = Bias::none;
  family.adjust = adjust_qwen2;
  return family;
}

Family t5() {
  return {
      .name = "t5",
      .model_types = {"t5"},
      .prefixes = {""},
      .keys = {.width = "d_model",
               .layers = "num_layers",
               .heads = "num_heads",
               .feed_forward = "d_ff",
               .default_activation = "relu",
               .eps = "layer_norm_epsilon",
               .default_eps = 1e-6},
      .norm = "rmsnorm",
      .placement = Placement::pre,
      .word = "shared|encoder.embed_tokens",
      .query = {"encoder.block.{}.layer.0.SelfAttention.q", Bias::none},
      .key = {"encoder.block.{}.layer.0.SelfAttention.k", Bias::none},
      .value = {"encoder.block.{}.layer.0.SelfAttention.v", Bias::none},
      .output = {"encoder.block.{}.layer.0.SelfAttention.o", Bias::none},
      .up = {"encoder.block.{}.layer.1.DenseReluDense.wi", Bias::none},
      .gate = {"encoder.block.{}.layer.1.DenseReluDense.wi_0", Bias::none},
      .down = {"encoder.block.{}.layer.1.DenseReluDense.wo", Bias::none},
      .attention_norm = "encoder.block.{}.layer.0.layer_norm",
      .feed_forward_norm = "encoder.block.{}.layer.1.layer_norm",
      .final_norm = "encoder.final_layer_norm",
      .relative = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
      .adjust = adjust_t5,
  };
}

Family mt5() {
  Family family = t5();
  family.name = "mt5";
  family.model_types = {"mt5"};
  family.keys.default_activation = "gated-gelu";
  return family;
}

Family umt5() {
  Family family = mt5();
  family.name = "umt5";
  family.model_types = {"umt5"};
  family.relative = "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias";
  return family;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = {bert(),    roberta(), distilbert(), albert(), gpt2(), llama(),
                                          mistral(), qwen2(),   t5(),         mt5(),    umt5()};
  return all;
}

const Family& family_of(const Config& config, bool& own_norms) {
  std::string type = config.word_or("model_type", "");
  own_norms = type.starts_with(kOwnNorms);
  if (own_norms) type.erase(0, kOwnNorms.size());
  std::vector<std::string> known;
  for (const Family& family : families()) {
    const bool is_type =
        std::find(family.model_types.begin(), family.model_types.end(), type) != family.model_types.end();
    if (is_type && (!own_norms || family.is_written())) return family;
    known.insert(known.end(), family.model_types.begin(), family.model_types.end());
    if (family.is_written()) known.push_back(fmt::format("{}{}", kOwnNorms, family.name));
  }
  config.reject_key("model_type", fmt::format("one of {}", fmt::join(known, ", ")));
}

NormSpec own_norm(const Config& norms, std::string_view site, std::size_t width, double eps) {
  const std::optional<Config> config = norms.object(site);
  if (!config) norms.reject_key(site, "an object with norm, affine and eps");
  const auto offered = norm_names_without_normals();
  NormSpec norm;
  try {
    norm = parse_norm(config->word_or("norm", ""));
  } catch (const InputError&) {
    config->reject_key("norm", fmt::format("one of {}", fmt::join(offered, ", ")));
  }
  // Learned normals are tensors that no family has a name for.
  if (norm.projection == Projection::normals)
    config->reject_key("norm", fmt::format("one of {}", fmt::join(offered, ", ")));
  if (norm.heads < 1 || width % static_cast<std::size_t>(norm.heads) != 0)
    config->reject_key("norm", fmt::format("as many heads as divide the width {}", width));
  norm.affine = config->flag_or("affine", false);
  norm.eps = config->number_or("eps", eps, 0, 1);
  return norm;
}

void read_own_norms(const Config& config, ModelPlan& plan) {
  const std::optional<Config> norms = config.object(kNormsKey);
  if (!norms) config.reject_key(kNormsKey, "an object that says which norm stands where");
  ModelSpec& spec = plan.spec;
  const std::size_t width = spec.block.width;
  const double eps = spec.block.norm.eps;
  for (const NormSite& site : norm_sites(plan.family, spec))
    if (site.tensor.empty() && norms->has(site.name))
      norms->reject_key(site.name, fmt::format("nothing: {} has no norm there; that", spec.family));
  spec.block.norm = own_norm(*norms, "attention", width, eps);
  const NormSpec feed_forward = own_norm(*norms, "feed_forward", width, eps);
  if (feed_forward != spec.block.norm) spec.block.feed_forward_norm = feed_forward;
  if (!plan.family.embedding_norm.empty())
    spec.embedding_norm = own_norm(*norms, "embedding", spec.width_of_embedding(), eps);
  if (!plan.family.final_norm.empty()) spec.final_norm = own_norm(*norms, "final", width, eps);
}

BlockSpec block_of(const Config& config, const Family& family) {
  const ConfigKeys& keys = family.keys;
  BlockSpec block;
  block.width = config.count(keys.width, kWidest);
  block.heads = config.count(keys.heads, kWidest);
  if (!keys.feed_forward.empty()) block.feed_forward = config.count(keys.feed_forward, 4 * kWidest);
  if (!keys.activation.empty())
    block.activation =
        activation_of(config, keys.activation, config.word_or(keys.activation, keys.default_activation));
  block.gated = !family.gate.name.empty();
  block.norm = parse_norm(family.norm);
  block.norm.affine = true;
  block.norm.eps = keys.eps.empty() ? keys.default_eps : config.number_or(keys.eps, keys.default_eps, 0, 1);
  block.placement = family.placement;
  return block;
}

}  // namespace

bool ModelPlan::has_bias(Bias bias) const {
  switch (bias) {
    case Bias::none:
      return false;
    case Bias::always:
      return true;
    case Bias::attention_bias:
      return attention_bias;
    case Bias::mlp_bias:
      return mlp_bias;
  }
  return false;
}

ModelPlan plan_of(const Config& config) {
  ModelPlan plan;
  const Family& family = family_of(config, plan.own_norms);
  plan.family = family;
  if (config.has("quantization_config"))
    config.reject_key("quantization_config", "a model that is not quantized");
  for (const Fixed& fixed : family.fixed) config.require(fixed.key, fixed.json);

  ModelSpec& spec = plan.spec;
  spec.family = family.name;
  spec.vocabulary = config.count("vocab_size", kMostWords);
  spec.layers = config.count(family.keys.layers, kMostLayers);
  spec.block = block_of(config, family);
  spec.causal = family.causal;
  if (!family.keys.positions.empty()) spec.positions = config.count(family.keys.positions, kMostWords);
  if (!family.position.empty()) plan.position_rows = spec.positions;
  if (!family.type.empty()) plan.type_rows = config.count_or("type_vocab_size", 2, kMostWords);
  if (!family.embedding_norm.empty()) spec.embedding_norm = spec.block.norm;
  if (!family.final_norm.empty()) spec.final_norm = spec.block.norm;
  spec.initializer_range = config.number_or("initializer_range", 0.02, 0, 1e6);
  plan.tie_word_embeddings = config.flag_or("tie_word_embeddings", family.head.tied);
  if (family.adjust != nullptr) family.adjust(config, plan);
  if (plan.own_norms)
    read_own_norms(config, plan);
  else if (config.has(kNormsKey))
    config.reject_key("model_type", fmt::format("{}{}, as {} is there,", kOwnNorms, family.name, kNormsKey));
  if (spec.block.head_width == 0 && spec.block.width % spec.block.heads != 0)
    config.reject_key(family.keys.heads,
                      fmt::format("a divisor of {} = {}", family.keys.width, spec.block.width));
  return plan;
}

std::string numbered(Name name, std::size_t layer) {
  const std::size_t at = name.find("{}");
  if (at == Name::npos) return std::string(name);
  return fmt::format("{}{}{}", name.substr(0, at), layer, name.substr(at + 2));
}

std::vector<NormSite> norm_sites(const Family& family, const ModelSpec& spec) {
  return {{"embedding", family.embedding_norm, spec.embedding_norm},
          {"attention", family.attention_norm, spec.block.norm},
          {"feed_forward", family.feed_forward_norm, spec.block.feed_forward_norm.value_or(spec.block.norm)},
          {"final", family.final_norm, spec.final_norm}};
}

const Family& written_family(std::string_view name) {
  std::vector<std::string_view> written;
  for (const Family& family : families()) {
    if (!family.is_written()) continue;
    if (family.name == name) return family;
    written.push_back(family.name);
  }
  io::reject(io::quoted_name(name), "is not a family whose checkpoints are written",
             fmt::format("those are {}", fmt::join(written, ", ")));
}

std::string_view config_name(Activation activation) {
  for (const NamedActivation& known : kActivations)
    if (known.activation == activation) return known.name;
  return "";
}

const Family& llama_family() {
  const auto found = std::find_if(families().begin(), families().end(),
                                  [](const Family& family) { return family.name == "llama"; });
  return *found;
}

std::vector<double> rotary_frequencies(std::size_t head_width, double theta) {
  std::vector<double> frequencies(head_width / 2);
  for (std::size_t m = 0; m < frequencies.size(); ++m) {
    const float exponent = static_cast<float>(2 * m) / static_cast<float>(head_width);
    frequencies[m] = 1.0f / std::pow(static_cast<float>(theta), exponent);
  }
  return frequencies;
}

}  // namespace normscope::checkpoint
