// Bindings of the explanation's model: a text, and which of its words each layer and head can select. What the page calls:
//
//   const model = new core.ScannedModel()
//   model.open("none")       one of web/wasm/models, by name: what it is
//   model.scan(text)         its tokens, and the verdicts of every layer and head
//   model.delete()
//
// `normscope scan web/wasm/models/NAME --text FILE --mask full` decides the same sets.
#include "normscope/scan.h"

#include <optional>
#include <string>

#include "bridge.h"
#include "normscope/checkpoint.h"
#include "normscope/text_windows.h"

namespace normscope::web {
namespace {

constexpr std::size_t kMostBytes = 2000;  // of a text that someone types

// A letter per token, as in results: s selectable, t tied, u unselectable, ? undecided.
std::string letters_of(const ScanSet& set) {
  std::string letters;
  for (const auto& verdict : set.verdicts) letters += verdict ? name_of(*verdict)[0] : '?';
  return letters;
}

val set_of(const ScanSet& set) {
  val result = val::object();
  result.set("verdicts", letters_of(set));
  result.set("unselectable", static_cast<double>(set.count(Verdict::unselectable)));
  result.set("share", set.share(Verdict::unselectable));
  result.set("rank", static_cast<double>(set.rank));
  return result;
}

val layer_of(const ScanLayer& layer) {
  val heads = val::array();
  for (const ScanHead& head : layer.heads) heads.call<void>("push", set_of(head.keys));
  val result = val::object();
  result.set("model", set_of(layer.model));
  result.set("heads", heads);
  return result;
}

class ScannedModel {
 public:
  val open(const std::string& name) {
    return answer([&] {
      checkpoint_ = open_checkpoint("/models/" + name);
      if (!checkpoint_->tokenizer) throw InputError(checkpoint_->no_tokenizer);
      const ModelSpec& spec = checkpoint_->weights->spec();
      val result = val::object();
      result.set("family", spec.family);
      result.set("layers", static_cast<double>(spec.layers));
      result.set("heads", static_cast<double>(spec.block.heads));
      result.set("width", static_cast<double>(spec.block.width));
      result.set("vocabulary", static_cast<double>(spec.vocabulary));
      result.set("positions", static_cast<double>(spec.positions));
      return result;
    });
  }

  val scan(const std::string& text) {
    return answer([&] {
      if (!checkpoint_) throw InputError("There is no model yet: open one.");
      if (text.size() > kMostBytes)
        throw InputError("The text has " + std::to_string(text.size()) + " bytes; the page reads up to " +
                         std::to_string(kMostBytes) + ".");
      const auto encoded = checkpoint_->tokenizer->encode(text);
      const std::size_t most = checkpoint_->weights->spec().positions;
      const TextWindow window = text_windows(encoded, most, most, 1).front();
      ScanSettings settings;
      settings.spaces = {KeySpace::model, KeySpace::head};
      settings.largest_weights = false;
      const std::vector<std::vector<std::uint32_t>> ids{window.ids()};
      const ScanWindow scanned = normscope::scan(*checkpoint_->weights, ids, settings, Executor(1)).front();
      val layers = val::array();
      for (const ScanLayer& layer : scanned.layers) layers.call<void>("push", layer_of(layer));
      val result = val::object();
      result.set("tokens", tokens_of(text, window));
      result.set("layers", layers);
      result.set("cut", window.tokens.size() < encoded.size());
      return result;
    });
  }

 private:
  val tokens_of(const std::string& text, const TextWindow& window) const {
    const auto unknown = checkpoint_->tokenizer->id("[UNK]");
    val tokens = val::array();
    for (const Token& token : window.tokens) {
      val each = val::object();
      each.set("words", is_added(token) ? checkpoint_->tokenizer->token(token.id).value_or("")
                                        : text.substr(token.begin, token.end - token.begin));
      each.set("added", is_added(token));
      each.set("known", token.id != unknown);
      tokens.call<void>("push", each);
    }
    return tokens;
  }

  std::optional<Checkpoint> checkpoint_;
};

}  // namespace
}  // namespace normscope::web

EMSCRIPTEN_BINDINGS(scan) {
  emscripten::class_<normscope::web::ScannedModel>("ScannedModel")
      .constructor<>()
      .function("open", &normscope::web::ScannedModel::open)
      .function("scan", &normscope::web::ScannedModel::scan);
}
