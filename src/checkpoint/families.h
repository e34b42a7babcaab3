#pragma once
// What the checkpoints of each family look like: one table per family says which keys of config.json give its
// shape, and under which names its tensors stand. Adding a family is adding a table.
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "normscope/model.h"

namespace normscope::checkpoint {

// Names are without ".weight" and ".bias"; {} stands for the number of the layer, | between names that mean
// the same in files of different age. An empty name: the family has no such thing.
using Name = std::string_view;

// Whether a linear map has a bias; the last two are keys of config.json that say so.
enum class Bias { none, always, attention_bias, mlp_bias };

struct MapName {
  Name name = {};
  Bias bias = Bias::always;
};

// nn.Linear keeps a matrix out × in, GPT-2's Conv1D in × out.
enum class Stored { out_by_in, in_by_out };

struct ConfigKeys {
  std::string_view width = {}, layers = {}, heads = {}, feed_forward = {};
  std::string_view positions = {};  // empty: no table of positions and no limit
  std::string_view activation = {}, default_activation = {};
  std::string_view eps = {};  // empty: always the default
  double default_eps = 1e-12;
  std::array<std::string_view, 3> dropout = {};  // written, not read: only training has any
};

// What the Hugging Face library calls a model of the family: without head, with the head that predicts
// tokens, with a head of classes.
struct Architectures {
  std::string_view body = {}, head = {}, classifier = {};
};

struct HeadNames {
  MapName transform = {};  // with `norm`: what comes before the output. None: the head is a linear map only
  Name norm = {};
  Name output = {};  // V × d
  Name bias = {};    // of the output; names of tensors as they are
  bool tied = true;  // unless config.json says otherwise, the output is the word embedding
  // Of the transform, where it is not that of the blocks.
  std::optional<Activation> activation = {};
};

// "a.{}.b" of a layer.
std::string numbered(Name name, std::size_t layer);

// A key with the only value that is supported, as JSON.
struct Fixed {
  std::string_view key, json;
};

struct ModelPlan;

struct Family {
  std::string_view name = {};
  std::vector<std::string_view> model_types = {};  // of config.json
  std::vector<std::string_view> prefixes = {};  // of all names but the head's; the one the file uses is taken
  ConfigKeys keys = {};
  std::vector<Fixed> fixed = {};
  std::string_view norm = {};  // "layernorm" or "rmsnorm"
  Placement placement = Placement::post;
  bool causal = false;
  Stored stored = Stored::out_by_in;

  Name word = {}, position = {}, type = {}, embedding_norm = {};
  MapName embedding_map = {};
  MapName query = {}, key = {}, value = {};  // or all three in one
  MapName query_key_value = {};
  MapName output = {}, up = {}, gate = {}, down = {};
  Name attention_norm = {}, feed_forward_norm = {}, final_norm = {};
  Name relative = {};  // buckets × heads; without {} all layers share it
  HeadNames head = {};

  enum class Vocabulary { none, bert, gpt2 };  // files that say all that tokenizer.json would
  Vocabulary vocabulary = Vocabulary::none;

  void (*adjust)(const Config&, ModelPlan&) = nullptr;  // what the other entries cannot say
  // And how to write what adjust reads. A family is written if it has architectures.
  void (*describe)(const ModelSpec&, nlohmann::ordered_json&) = nullptr;
  Architectures architectures = {};

  bool is_written() const { return !architectures.body.empty(); }
};

// One model: its shape, and the table adjusted to its config.json.
struct ModelPlan {
  Family family;
  ModelSpec spec;
  bool attention_bias = false, mlp_bias = false;
  std::size_t position_rows = 0, type_rows = 0;
  // RoBERTa counts positions from padding + 1, and tokens of padding are not counted.
  std::optional<std::uint32_t> padding;
  bool tie_word_embeddings = false;
  // Norms that the Hugging Face library has not: model_type is that of the family after kOwnNorms, and
  // normscope_norms says what stands where, so that no other program takes it for a model of the family.
  bool own_norms = false;

  bool has_bias(Bias bias) const;
};

// Throws InputError if the family is not known (which lists those that are) or something in config.json is
// not supported. The head is decided by the tensors, not here.
ModelPlan plan_of(const Config& config);

inline constexpr std::string_view kOwnNorms = "normscope-", kNormsKey = "normscope_norms";

// A place for a norm, by its name under kNormsKey.
struct NormSite {
  std::string_view name;
  Name tensor;  // empty: the family has no norm there
  NormSpec norm;
};
std::vector<NormSite> norm_sites(const Family& family, const ModelSpec& spec);

const Family& llama_family();
// Throws InputError if the family is not one that is written (which lists those that are).
const Family& written_family(std::string_view name);
// The name config.json gives an activation.
std::string_view config_name(Activation activation);

// θ^(−2m/d) for each pair m of a head of width d, in single precision as models are trained with it.
std::vector<double> rotary_frequencies(std::size_t head_width, double theta);

}  // namespace normscope::checkpoint
