#include "text/pre_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "text/metaspace.h"
#include "text/pattern.h"

namespace normscope::text {
namespace {

using Texts = std::vector<AlignedText>;

Texts one(AlignedText text) {
  Texts texts;
  texts.push_back(std::move(text));
  return texts;
}

Delimiter delimiter(const Node& node) {
  const std::string& name = node.string();
  if (name == "Removed") return Delimiter::removed;
  if (name == "Isolated") return Delimiter::isolated;
  if (name == "MergedWithPrevious") return Delimiter::merged_with_previous;
  if (name == "MergedWithNext") return Delimiter::merged_with_next;
  if (name == "Contiguous") return Delimiter::contiguous;
  node.fail(fmt::format("unknown behavior \"{}\"", name));
}

// Cuts at characters of one kind.
template <class Predicate>
class AtCharacters final : public PreTokenizer {
 public:
  AtCharacters(Predicate wanted, Delimiter delimiter) : wanted_(wanted), delimiter_(delimiter) {}
  void apply(std::vector<Piece>& pieces) const override {
    cut_pieces(pieces, [&](const AlignedText& text) {
      return text.split(find_characters(text.text(), wanted_), delimiter_);
    });
  }

 private:
  Predicate wanted_;
  Delimiter delimiter_;
};

template <class Predicate>
std::unique_ptr<const PreTokenizer> at_characters(Predicate wanted, Delimiter delimiter) {
  return std::make_unique<AtCharacters<Predicate>>(wanted, delimiter);
}

class Bert final : public PreTokenizer {
 public:
  void apply(std::vector<Piece>& pieces) const override {
    cut_pieces(pieces, [](const AlignedText& text) {
      return text.split(find_characters(text.text(), is_white_space), Delimiter::removed);
    });
    cut_pieces(pieces, [](const AlignedText& text) {
      return text.split(find_characters(text.text(), is_punctuation), Delimiter::isolated);
    });
  }
};

// \w+|[^\w\s]+
class Whitespace final : public PreTokenizer {
 public:
  void apply(std::vector<Piece>& pieces) const override {
    cut_pieces(pieces, [](const AlignedText& text) {
      enum class Kind { space, word, other };
      Texts words;
      std::size_t begin = 0;
      Kind before = Kind::space;
      for (std::size_t i = 0; i < text.text().size();) {
        const std::size_t at = i;
        const char32_t c = next_character(text.text(), i);
        const Kind kind = is_word(c) ? Kind::word : is_white_space(c) ? Kind::space : Kind::other;
        if (kind != before) {
          if (before != Kind::space) words.push_back(text.slice(begin, at));
          begin = at;
          before = kind;
        }
      }
      if (before != Kind::space) words.push_back(text.slice(begin, text.text().size()));
      return words;
    });
  }
};

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const Node& node) : add_prefix_space_(node.at("add_prefix_space").boolean()) {
    // GPT-2's words.
    if (node.boolean("use_regex", true))
      regex_.emplace(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                     node.where());
  }
  void apply(std::vector<Piece>& pieces) const override {
    cut_pieces(pieces, [&](AlignedText text) {
      if (add_prefix_space_ && !text.text().starts_with(' ')) text.prepend(" ");
      return regex_ ? text.split(regex_->find(text.text()), Delimiter::isolated) : one(std::move(text));
    });
    for (Piece& piece : pieces) {
      if (!piece.id) piece.text.to_byte_characters();
    }
  }

 private:
  bool add_prefix_space_;
  std::optional<Regex> regex_;
};

class Split final : public PreTokenizer {
 public:
  explicit Split(const Node& node)
      : pattern_(node.at("pattern")),
        delimiter_(delimiter(node.at("behavior"))),
        invert_(node.boolean("invert", false)) {}
  void apply(std::vector<Piece>& pieces) const override {
    cut_pieces(pieces, [&](const AlignedText& text) {
      std::vector<Match> parts = pattern_.find(text.text());
      for (Match& part : parts) part.found = part.found != invert_;
      return text.split(std::move(parts), delimiter_);
    });
  }

 private:
  Pattern pattern_;
  Delimiter delimiter_;
  bool invert_;
};

class Spaces final : public PreTokenizer {
 public:
  explicit Spaces(const Node& node) : metaspace_(node) {}
  void apply(std::vector<Piece>& pieces) const override {
    cut_pieces(pieces, [&](AlignedText text) {
      const std::string mark = utf8(std::u32string(1, metaspace_.replacement));
      text.replace(find_literal(text.text(), " "), mark);
      const bool prepends = metaspace_.prepend == Metaspace::Prepend::always ||
                            (metaspace_.prepend == Metaspace::Prepend::first && text.origin() == 0);
      if (prepends && !text.text().starts_with(mark)) text.prepend(mark);
      if (!metaspace_.split) return one(std::move(text));
      return text.split(find_literal(text.text(), mark), Delimiter::merged_with_next);
    });
  }

 private:
  Metaspace metaspace_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(const Node& node) {
    for (const Node& item : node.at("pretokenizers").items()) parts_.push_back(make_pre_tokenizer(item));
  }
  void apply(std::vector<Piece>& pieces) const override {
    for (const auto& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<std::unique_ptr<const PreTokenizer>> parts_;
};

}  // namespace

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Node& node) {
  const std::string type = node.at("type").string();
  if (type == "BertPreTokenizer") return std::make_unique<Bert>();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(node);
  if (type == "Split") return std::make_unique<Split>(node);
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return at_characters(&is_white_space, Delimiter::removed);
  if (type == "Metaspace") return std::make_unique<Spaces>(node);
  if (type == "Punctuation") {
    const auto behavior = node.find("behavior");
    return at_characters(&is_punctuation, behavior ? delimiter(*behavior) : Delimiter::isolated);
  }
  if (type == "Digits")
    return at_characters(
        &is_numeric, node.boolean("individual_digits", false) ? Delimiter::isolated : Delimiter::contiguous);
  if (type == "CharDelimiterSplit" || type == "Delimiter") {
    const char32_t wanted = node.at("delimiter").character();
    return at_characters([wanted](char32_t c) { return c == wanted; }, Delimiter::removed);
  }
  if (type == "Sequence") return std::make_unique<Sequence>(node);
  node.fail(fmt::format("unknown pre-tokenizer \"{}\"", type));
}

}  // namespace normscope::text
