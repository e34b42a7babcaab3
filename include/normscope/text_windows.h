#pragma once
// Long texts, cut into what a model reads at once.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "normscope/tokenizer.h"

namespace normscope {

// Put around the text by the tokenizer ("[CLS]", "<s>"): it stands for no byte of it.
inline bool is_added(const Token& token) {
  return token.special && token.begin == token.end;
}
std::size_t count_added(std::span<const Token> tokens);

// Tokens of a text as a model takes them: at most `window` at once (special tokens at either end, which every
// window gets, included), one every `stride` of those in between, as long as a whole one fits; a shorter text
// is one window. At most `most` windows; 0: all.
struct TextWindow {
  std::size_t first = 0;  // of its tokens between the special ones, in the text
  std::vector<Token> tokens;
  std::vector<std::uint32_t> ids() const;
};
std::vector<TextWindow> text_windows(std::span<const Token> tokens, std::size_t window, std::size_t stride,
                                     std::size_t most = 0);

}  // namespace normscope
