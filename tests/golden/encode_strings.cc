// encode_strings KIND FILE [FILE]: encodes strings from standard input with the tokenizer of a file, for
// record_tokenizers.py --compare. KIND is json, bert, bert-cased, gpt2 or llama2c. Each string is a 32-bit
// length and bytes; the answer is a 32-bit count and id, begin, end (bytes) of each token.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "normscope/error.h"
#include "normscope/tokenizer.h"

namespace {

std::string content(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

normscope::Tokenizer open(const std::string& kind, const char* path, const char* second) {
  using normscope::Tokenizer;
  if (kind == "json") return Tokenizer::from_json(content(path), path);
  if (kind == "bert") return Tokenizer::from_bert_vocab(content(path), {.lowercase = true}, path);
  if (kind == "bert-cased") return Tokenizer::from_bert_vocab(content(path), {.lowercase = false}, path);
  if (kind == "gpt2") return Tokenizer::from_gpt2(content(path), content(second), path);
  return Tokenizer::from_llama2c(content(path), path);
}

void put(std::uint32_t value) {
  std::cout.write(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    const auto tokenizer = open(argv[1], argv[2], argc > 3 ? argv[3] : "");
    std::uint32_t size = 0;
    while (std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) {
      std::string text(size, '\0');
      std::cin.read(text.data(), size);
      const auto tokens = tokenizer.encode(text);
      put(static_cast<std::uint32_t>(tokens.size()));
      for (const auto& token : tokens) {
        put(token.id);
        put(static_cast<std::uint32_t>(token.begin));
        put(static_cast<std::uint32_t>(token.end));
      }
    }
  } catch (const normscope::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
