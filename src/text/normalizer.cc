#include "text/normalizer.h"

#include <fmt/format.h>

#include "text/charsmap.h"
#include "text/pattern.h"

namespace normscope::text {
namespace {

void lower(AlignedText& text) {
  std::vector<Change> changes;
  changes.reserve(text.text().size());
  for (std::size_t i = 0; i < text.text().size();) {
    int inserted = 0;
    for (const char32_t c : lower_case(next_character(text.text(), i)))
      changes.push_back({c, inserted++ > 0 ? 1 : 0});
  }
  text.transform(changes);
}

// As BERT's own code has it, which leaves out a few blocks that came later.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class Bert final : public Normalizer {
 public:
  explicit Bert(const Node& node)
      : clean_(node.at("clean_text").boolean()),
        space_chinese_(node.at("handle_chinese_chars").boolean()),
        lowercase_(node.at("lowercase").boolean()),
        strip_accents_(node.boolean("strip_accents", lowercase_)) {}

  void apply(AlignedText& text) const override {
    if (clean_) {
      const auto is_line_space = [](char32_t c) { return c == '\t' || c == '\n' || c == '\r'; };
      text.keep_if([&](char32_t c) { return c != 0 && c != 0xFFFD && (is_line_space(c) || !is_control(c)); });
      text.map([&](char32_t c) { return is_white_space(c) ? U' ' : c; });
    }
    if (space_chinese_) {
      std::vector<Change> changes;
      for (std::size_t i = 0; i < text.text().size();) {
        const char32_t c = next_character(text.text(), i);
        if (is_chinese(c)) {
          changes.insert(changes.end(), {{U' ', 0}, {c, 1}, {U' ', 1}});
        } else {
          changes.push_back({c, 0});
        }
      }
      text.transform(changes);
    }
    if (strip_accents_) {
      text.transform(normalize(text.text(), NormalForm::d));
      text.keep_if([](char32_t c) { return !is_nonspacing_mark(c); });
    }
    if (lowercase_) lower(text);
  }

 private:
  bool clean_, space_chinese_, lowercase_, strip_accents_;
};

class Form final : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  void apply(AlignedText& text) const override { text.transform(normalize(text.text(), form_)); }

 private:
  NormalForm form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(AlignedText& text) const override { lower(text); }
};

class StripAccents final : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    text.keep_if([](char32_t c) { return !is_combining_mark(c); });
  }
};

// The clean-up of machine translation: control characters go, odd spaces become plain ones.
class Nmt final : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    text.keep_if([](char32_t c) {
      return !((c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
               c == 0x9F);
    });
    text.map([](char32_t c) {
      const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                         c == 0xFEFF || c == 0xFFFD;
      return space ? U' ' : c;
    });
  }
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const Node& node) : pattern_(node.at("pattern")), content_(node.at("content").string()) {}
  void apply(AlignedText& text) const override { text.replace(pattern_.find(text.text()), content_); }

 private:
  Pattern pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const Node& node) : prefix_(node.at("prepend").string()) {}
  void apply(AlignedText& text) const override { text.prepend(prefix_); }

 private:
  std::string prefix_;
};

class Strip final : public Normalizer {
 public:
  explicit Strip(const Node& node)
      : left_(node.at("strip_left").boolean()), right_(node.at("strip_right").boolean()) {}
  void apply(AlignedText& text) const override { text.strip(left_, right_); }

 private:
  bool left_, right_;
};

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const Node& node) : map_(node.at("precompiled_charsmap")) {}
  void apply(AlignedText& text) const override { map_.apply(text); }

 private:
  Charsmap map_;
};

class Bytes final : public Normalizer {
 public:
  void apply(AlignedText& text) const override { text.to_byte_characters(); }
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(const Node& node) {
    for (const Node& item : node.at("normalizers").items()) parts_.push_back(make_normalizer(item));
  }
  void apply(AlignedText& text) const override {
    for (const auto& part : parts_) part->apply(text);
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> parts_;
};

}  // namespace

std::unique_ptr<const Normalizer> make_normalizer(const Node& node) {
  const std::string type = node.at("type").string();
  if (type == "BertNormalizer") return std::make_unique<Bert>(node);
  if (type == "NFC") return std::make_unique<Form>(NormalForm::c);
  if (type == "NFD") return std::make_unique<Form>(NormalForm::d);
  if (type == "NFKC") return std::make_unique<Form>(NormalForm::kc);
  if (type == "NFKD") return std::make_unique<Form>(NormalForm::kd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Replace") return std::make_unique<Replace>(node);
  if (type == "Prepend") return std::make_unique<Prepend>(node);
  if (type == "Strip") return std::make_unique<Strip>(node);
  if (type == "Precompiled") return std::make_unique<Precompiled>(node);
  if (type == "ByteLevel") return std::make_unique<Bytes>();
  if (type == "Sequence") return std::make_unique<Sequence>(node);
  node.fail(fmt::format("unknown normalizer \"{}\"", type));
}

}  // namespace normscope::text
