#pragma once
// From text to the token ids a model was trained with, and back. Every token knows which bytes of the text it
// stands for, so that words can be marked.
//
// The same steps, in the same order, as the Hugging Face library `tokenizers`, with the same ids and offsets:
//
//   text → added tokens cut out → normalizer → pre-tokenizer (words) → model (pieces) → post-processor
//
//   normalizers     BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Replace, Prepend, Strip,
//                   Nmt, Precompiled (SentencePiece), ByteLevel, Sequence
//   pre-tokenizers  BertPreTokenizer, ByteLevel, Split, Whitespace, WhitespaceSplit, Metaspace, Punctuation,
//                   Digits, CharDelimiterSplit, Sequence
//   models          BPE (with byte fallback, unknown token, ignore_merges), WordPiece, Unigram, WordLevel
//   post-processors TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence
//   decoders        ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace, Sequence
//
// A file with any other component is rejected with an InputError that names it. Left aside: truncation and
// padding (texts are never cut or filled up), the templates for pairs of texts, dropout.
//
// Text need not be valid UTF-8: what is not becomes U+FFFD, as Python's errors='replace' has it, and offsets
// still count the bytes that were given.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normscope {

struct Token {
  std::uint32_t id = 0;
  // Bytes [begin, end) of the text. Empty, at 0, if the post-processor added the token.
  std::size_t begin = 0;
  std::size_t end = 0;
  // Not words of the text: added by the post-processor, or written in the text as a special token ("[MASK]").
  bool special = false;

  friend bool operator==(const Token&, const Token&) = default;
};

enum class SpecialTokens { add, omit };

// Words that one tokenizer has met, with their ids; grows to a bounded size. Not for use by two threads at
// once.
class WordMemory {
 public:
  WordMemory() = default;

 private:
  friend class Tokenizer;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t word = 0, word_size = 0;  // bytes of words_; none: the slot is free
    std::uint32_t first = 0, count = 0;     // of ids_
  };
  // Where the word is, or may be put.
  Slot& slot(std::string_view word, std::uint64_t hash);
  void grow();

  std::vector<Slot> table_;  // open addressing: a word that is known costs one look into memory
  std::size_t size_ = 0;
  std::string words_;
  std::vector<std::uint32_t> ids_;
};

// Immutable, cheap to copy, and may be used from several threads at once.
class Tokenizer {
 public:
  // The content of a tokenizer.json. `label` names the file in messages. Throws InputError if the file is
  // damaged or asks for something this library does not do.
  static Tokenizer from_json(std::string_view tokenizer_json, std::string_view label = "tokenizer.json");

  // A vocab.txt of BERT, one token per line: WordPiece between [CLS] and [SEP].
  struct BertOptions {
    bool lowercase = true;  // "uncased": also removes accents
  };
  static Tokenizer from_bert_vocab(std::string_view vocab_txt, BertOptions options,
                                   std::string_view label = "vocab.txt");

  // vocab.json (or encoder.json) and merges.txt (or vocab.bpe) of GPT-2: byte-level BPE, no tokens added.
  static Tokenizer from_gpt2(std::string_view vocab_json, std::string_view merges_txt,
                             std::string_view label = "vocab.json");

  // tokenizer.bin of llama2.c: pieces with scores, pairs merged by the score of what they make; <s> in front.
  static Tokenizer from_llama2c(std::string_view tokenizer_bin, std::string_view label = "tokenizer.bin");

  // Throws InputError if the text holds what the vocabulary cannot express (no unknown token), if a pattern
  // of the file does not come to an end on it, or if it is longer than 2³¹ bytes.
  std::vector<Token> encode(std::string_view text, SpecialTokens special = SpecialTokens::add) const;

  // Appends the ids of encode(text, SpecialTokens::omit). Much faster on long texts if the tokenizer never
  // looks across white space (GPT-2's, BERT's, plain bytes): words met before are not cut again. A memory
  // belongs to one tokenizer.
  void append_ids(std::string_view text, WordMemory& memory, std::vector<std::uint32_t>& ids) const;

  // Ids without a token are passed over, special tokens too unless they are asked for.
  std::string decode(std::span<const std::uint32_t> ids, SpecialTokens special = SpecialTokens::omit) const;

  // As the vocabulary spells it: "Ġhello", "##ing", "▁the".
  std::optional<std::string> token(std::uint32_t id) const;
  std::optional<std::uint32_t> id(std::string_view token) const;

  // One more than the highest id: the rows an embedding needs at least.
  std::size_t size() const;

  struct Parts;  // src/text

 private:
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace normscope
