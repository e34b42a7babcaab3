#include "text/post_processor.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/aligned_text.h"
#include "text/model.h"

namespace normscope::text {
namespace {

// Leaves white space at the ends of byte-level tokens out of their offsets.
void trim(Encoded& tokens, bool add_prefix_space) {
  const auto is_space = [](char32_t c) { return c == byte_character(' ') || is_white_space(c); };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EncodedToken& token = tokens[i];
    const std::u32string spelled = characters(token.text);
    auto leading = static_cast<std::size_t>(std::find_if_not(spelled.begin(), spelled.end(), is_space) -
                                            spelled.begin());
    const auto trailing = static_cast<std::size_t>(
        std::find_if_not(spelled.rbegin(), spelled.rend(), is_space) - spelled.rbegin());
    if (leading > 0) {
      // One space at the beginning was added, and stands for no character.
      if ((i == 0 || token.begin == 0) && add_prefix_space && leading == 1) leading = 0;
      token.begin = std::min(token.begin + leading, token.end);
    }
    if (trailing > 0 && token.end >= trailing) token.end = std::max(token.end - trailing, token.begin);
  }
}

class ByteLevel final : public PostProcessor {
 public:
  explicit ByteLevel(const Node& node)
      : trim_(node.boolean("trim_offsets", true)),
        add_prefix_space_(node.boolean("add_prefix_space", true)) {}
  void apply(std::vector<Encoded>& parts, bool) const override {
    if (!trim_) return;
    for (Encoded& part : parts) trim(part, add_prefix_space_);
  }

 private:
  bool trim_, add_prefix_space_;
};

EncodedToken special_token(std::uint64_t id) {
  EncodedToken token;
  token.id = static_cast<std::uint32_t>(id);
  token.special = true;
  return token;
}

// BertProcessing, RobertaProcessing: one token in front, one behind.
class Around final : public PostProcessor {
 public:
  Around(const Node& node, bool trims)
      : front_(token(node.at("cls"))),
        behind_(token(node.at("sep"))),
        trim_(trims && node.boolean("trim_offsets", true)),
        add_prefix_space_(node.boolean("add_prefix_space", true)) {}
  void apply(std::vector<Encoded>& parts, bool add_special_tokens) const override {
    for (Encoded& part : parts) {
      if (trim_) trim(part, add_prefix_space_);
      if (!add_special_tokens) continue;
      part.insert(part.begin(), front_);
      part.push_back(behind_);
    }
  }
  bool adds_tokens() const override { return true; }

 private:
  static EncodedToken token(const Node& node) {
    const std::vector<Node> both = node.items();
    if (both.size() != 2) node.fail("expected [token, id]");
    return special_token(both[1].integer(highest_id));
  }
  EncodedToken front_, behind_;
  bool trim_, add_prefix_space_;
};

class Template final : public PostProcessor {
 public:
  explicit Template(const Node& node) {
    for (const Node& piece : node.at("single").items()) {
      if (const auto sequence = piece.find("Sequence")) {
        if (sequence->at("id").string() != "A") sequence->fail("the template for one text uses another one");
        if (++texts_ > 8) piece.fail("the text is in the template too often");
        pieces_.push_back({true, {}});
        continue;
      }
      const std::string name = piece.at("SpecialToken").at("id").string();
      Encoded tokens;
      for (const Node& id : node.at("special_tokens").at(name).at("ids").items())
        tokens.push_back(special_token(id.integer(highest_id)));
      pieces_.push_back({false, std::move(tokens)});
    }
  }
  void apply(std::vector<Encoded>& parts, bool add_special_tokens) const override {
    const Encoded text = parts.at(0);
    parts.clear();
    for (const Part& piece : pieces_) {
      if (piece.is_text) {
        parts.push_back(text);
      } else if (add_special_tokens) {
        parts.push_back(piece.tokens);
      }
    }
  }
  bool adds_tokens() const override { return true; }

 private:
  struct Part {
    bool is_text;
    Encoded tokens;
  };
  std::vector<Part> pieces_;
  int texts_ = 0;
};

class Sequence final : public PostProcessor {
 public:
  explicit Sequence(const Node& node) {
    for (const Node& item : node.at("processors").items()) {
      parts_.push_back(make_post_processor(item));
      if (!parts_.back()->adds_tokens()) continue;
      if (adds_tokens_) item.fail("a second post-processor that adds tokens");
      adds_tokens_ = true;
    }
  }
  void apply(std::vector<Encoded>& parts, bool add_special_tokens) const override {
    for (const auto& part : parts_) part->apply(parts, add_special_tokens);
  }
  bool adds_tokens() const override { return adds_tokens_; }

 private:
  std::vector<std::unique_ptr<const PostProcessor>> parts_;
  bool adds_tokens_ = false;
};

}  // namespace

std::unique_ptr<const PostProcessor> make_post_processor(const Node& node) {
  const std::string type = node.at("type").string();
  if (type == "TemplateProcessing") return std::make_unique<Template>(node);
  if (type == "BertProcessing") return std::make_unique<Around>(node, false);
  if (type == "RobertaProcessing") return std::make_unique<Around>(node, true);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(node);
  if (type == "Sequence") return std::make_unique<Sequence>(node);
  node.fail(fmt::format("unknown post-processor \"{}\"", type));
}

}  // namespace normscope::text
