#pragma once
// What the checkpoints of each family look like: one table per family says which keys of config.json give its
// shape, and under which names its tensors stand. Adding a family is adding a table.
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

  bool has_bias(Bias bias) const;
};

// Throws InputError if the family is not known (which lists those that are) or something in config.json is
// not supported. The head is decided by the tensors, not here.
ModelPlan plan_of(const Config& config);

const Family& llama_family();

// θ^(−2m/d) for each pair m of a head of width d, in single precision as models are trained with it.
std::vector<double> rotary_frequencies(std::size_t head_width, double theta);

}  // namespace normscope::checkpoint
