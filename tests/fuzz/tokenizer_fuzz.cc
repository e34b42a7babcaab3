// Any bytes handed to a reader of tokenizers are a tokenizer or rejected with InputError; a tokenizer encodes
// any text with offsets inside it, and decodes any ids. The first byte chooses the reader; what follows a
// zero byte (for tokenizer.bin: two of them at the end of the tokens) is the text.
#include <algorithm>

#include "normscope/error.h"
#include "normscope/tokenizer.h"

namespace {

using normscope::Tokenizer;

Tokenizer read(char kind, std::string_view file) {
  switch (kind) {
    case 'b':
      return Tokenizer::from_bert_vocab(file, {.lowercase = true});
    case 'g': {
      const std::size_t middle = std::min(file.find("}\n"), file.size());
      return Tokenizer::from_gpt2(file.substr(0, middle + 1), file.substr(std::min(middle + 2, file.size())));
    }
    case 'l':
      return Tokenizer::from_llama2c(file);
    default:
      return Tokenizer::from_json(file);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const char kind = bytes.empty() ? '{' : bytes[0];
  const std::size_t skipped = kind == '{' || bytes.empty() ? 0 : 1;
  const std::size_t end = std::min(kind == 'l' ? bytes.rfind('\0') : bytes.find('\0'), size);
  const std::string_view file = bytes.substr(skipped, std::max(end, skipped) - skipped);
  const std::string_view text = bytes.substr(std::min(end + 1, size));
  try {
    const Tokenizer tokenizer = read(kind, file);
    std::vector<std::uint32_t> ids;
    for (const normscope::Token& token : tokenizer.encode(text)) {
      if (token.begin > token.end || token.end > text.size()) __builtin_trap();
      ids.push_back(token.id);
    }
    ids.push_back(static_cast<std::uint32_t>(tokenizer.size()));
    tokenizer.decode(ids);
  } catch (const normscope::InputError&) {
  }
  return 0;
}
