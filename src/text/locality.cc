#include "text/locality.h"

#include <algorithm>
#include <array>

namespace normscope::text {
namespace {

bool is_visible(char c) {
  return c > ' ' && c < 0x7f;
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_mark(char c) {
  return c == '.' || c == ',' || c == ';' || c == ':' || c == '!' || c == '?';
}

bool local_normalizer(const Node& node) {
  const std::string type = node.at("type").string();
  if (type == "Sequence") {
    const std::vector<Node> parts = node.at("normalizers").items();
    return std::all_of(parts.begin(), parts.end(), local_normalizer);
  }
  constexpr std::array known = {"BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"};
  return std::find(known.begin(), known.end(), type) != known.end();
}

bool local_pre_tokenizer(const Node& node) {
  const std::string type = node.at("type").string();
  if (type == "ByteLevel") return !node.at("add_prefix_space").boolean();
  constexpr std::array known = {"BertPreTokenizer", "Whitespace"};
  return std::find(known.begin(), known.end(), type) != known.end();
}

// A model that is given whole stretches of text, as byte-level BPE without GPT-2's pattern is, merges across
// spaces, unless there are no merges.
bool gives_words(const Node& pre_tokenizer, const Node& tokenizer) {
  if (pre_tokenizer.at("type").string() != "ByteLevel" || pre_tokenizer.boolean("use_regex", true))
    return true;
  const auto model = tokenizer.find("model");
  if (!model || !model->value().is_object() || model->string("type", "") != "BPE") return false;
  const auto merges = model->find("merges");
  return merges && merges->value().empty() && !model->boolean("ignore_merges", false) &&
         !model->find("unk_token") && model->string("continuing_subword_prefix", "").empty() &&
         model->string("end_of_word_suffix", "").empty();
}

bool local_added_token(const Node& node) {
  const std::string content = node.at("content").string();
  return !node.boolean("rstrip", false) && std::all_of(content.begin(), content.end(), is_visible) &&
         std::none_of(content.begin(), content.end(), is_mark);
}

}  // namespace

bool never_looks_across_spaces(const Node& tokenizer) {
  const auto normalizer = tokenizer.find("normalizer"), pre_tokenizer = tokenizer.find("pre_tokenizer"),
             added = tokenizer.find("added_tokens");
  if (normalizer && !local_normalizer(*normalizer)) return false;
  if (!pre_tokenizer || !local_pre_tokenizer(*pre_tokenizer) || !gives_words(*pre_tokenizer, tokenizer))
    return false;
  if (!added) return true;
  const std::vector<Node> tokens = added->items();
  return std::all_of(tokens.begin(), tokens.end(), local_added_token);
}

std::size_t local_cut(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i], before = text[i - 1];
    if ((is_space(c) && is_visible(before)) || (is_mark(c) && is_letter(before))) return i;
  }
  return text.size();
}

}  // namespace normscope::text
