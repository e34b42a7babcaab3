#include "text/decoder.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

#include "text/metaspace.h"
#include "text/pattern.h"
#include "text/utf8.h"

namespace normscope::text {
namespace {

using Tokens = std::vector<std::string>;

std::string joined(const Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

std::string replaced(std::string_view text, const std::vector<Match>& parts, std::string_view content) {
  std::string result;
  for (const Match& part : parts)
    result += part.found ? content : text.substr(part.begin, part.end - part.begin);
  return result;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (!from.empty()) text = replaced(text, find_literal(text, from), to);
}

class ByteLevel final : public Decoder {
 public:
  Tokens apply(Tokens tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      std::string its;
      bool known = true;
      for (const char32_t c : characters(token)) {
        const int byte = byte_of_character(c);
        known = known && byte >= 0;
        its.push_back(static_cast<char>(byte));
      }
      bytes += known ? its : token;
    }
    return {lossy_utf8(bytes).text};
  }
};

class WordPiece final : public Decoder {
 public:
  explicit WordPiece(const Node& node)
      : prefix_(node.string("prefix", "##")), cleanup_(node.boolean("cleanup", true)) {}
  Tokens apply(Tokens tokens) const override {
    // English, as BERT's authors had it.
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> tidy = {
        {{" .", "."},
         {" ?", "?"},
         {" !", "!"},
         {" ,", ","},
         {" ' ", "'"},
         {" n't", "n't"},
         {" 'm", "'m"},
         {" do not", " don't"},
         {" 's", "'s"},
         {" 've", "'ve"},
         {" 're", "'re"}}};
    bool first = true;
    for (std::string& token : tokens) {
      if (!std::exchange(first, false)) {
        if (token.starts_with(prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (!cleanup_) continue;
      for (const auto& [from, to] : tidy) replace_all(token, from, to);
    }
    return tokens;
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class Spaces final : public Decoder {
 public:
  explicit Spaces(const Node& node) : metaspace_(node) {}
  Tokens apply(Tokens tokens) const override {
    const std::string mark = utf8(std::u32string(1, metaspace_.replacement));
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], mark, i == 0 && metaspace_.prepend != Metaspace::Prepend::never ? "" : " ");
    return tokens;
  }

 private:
  Metaspace metaspace_;
};

class EndOfWord final : public Decoder {
 public:
  explicit EndOfWord(const Node& node) : suffix_(node.string("suffix", "</w>")) {}
  Tokens apply(Tokens tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    return tokens;
  }

 private:
  std::string suffix_;
};

// Runs of <0x..> become the text their bytes are, or one U+FFFD for each if they are none.
class ByteFallback final : public Decoder {
 public:
  Tokens apply(Tokens tokens) const override {
    Tokens result;
    std::string bytes;
    const auto finish = [&] {
      if (bytes.empty()) return;
      if (is_valid_utf8(bytes)) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      unsigned value = 0;
      if (token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
          std::from_chars(token.data() + 3, token.data() + 5, value, 16).ptr == token.data() + 5) {
        bytes.push_back(static_cast<char>(value));
        continue;
      }
      finish();
      result.push_back(std::move(token));
    }
    finish();
    return result;
  }
};

class Fuse final : public Decoder {
 public:
  Tokens apply(Tokens tokens) const override { return {joined(tokens)}; }
};

class Strip final : public Decoder {
 public:
  explicit Strip(const Node& node)
      : content_(node.at("content").character()),
        start_(node.at("start").integer(std::numeric_limits<std::uint32_t>::max())),
        stop_(node.at("stop").integer(std::numeric_limits<std::uint32_t>::max())) {}
  Tokens apply(Tokens tokens) const override {
    for (std::string& token : tokens) {
      std::u32string_view rest;
      const std::u32string all = characters(token);
      rest = all;
      for (std::size_t i = 0; i < start_ && !rest.empty() && rest.front() == content_; ++i)
        rest.remove_prefix(1);
      for (std::size_t i = 0; i < stop_ && !rest.empty() && rest.back() == content_; ++i)
        rest.remove_suffix(1);
      token = utf8(rest);
    }
    return tokens;
  }

 private:
  char32_t content_;
  std::size_t start_, stop_;
};

class Replace final : public Decoder {
 public:
  explicit Replace(const Node& node) : pattern_(node.at("pattern")), content_(node.at("content").string()) {}
  Tokens apply(Tokens tokens) const override {
    for (std::string& token : tokens) token = replaced(token, pattern_.find(token), content_);
    return tokens;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Sequence final : public Decoder {
 public:
  explicit Sequence(const Node& node) {
    for (const Node& item : node.at("decoders").items()) parts_.push_back(make_decoder(item));
  }
  Tokens apply(Tokens tokens) const override {
    for (const auto& part : parts_) tokens = part->apply(std::move(tokens));
    return tokens;
  }

 private:
  std::vector<std::unique_ptr<const Decoder>> parts_;
};

}  // namespace

std::unique_ptr<const Decoder> make_decoder(const Node& node) {
  const std::string type = node.at("type").string();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "WordPiece") return std::make_unique<WordPiece>(node);
  if (type == "Metaspace") return std::make_unique<Spaces>(node);
  if (type == "BPEDecoder") return std::make_unique<EndOfWord>(node);
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return std::make_unique<Strip>(node);
  if (type == "Replace") return std::make_unique<Replace>(node);
  if (type == "Sequence") return std::make_unique<Sequence>(node);
  node.fail(fmt::format("unknown decoder \"{}\"", type));
}

}  // namespace normscope::text
