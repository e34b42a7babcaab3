#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "text/aligned_text.h"
#include "text/node.h"

namespace normscope::text {

// A word on its way to the model, or an added token that was found in the text.
struct Piece {
  AlignedText text;
  std::optional<std::uint32_t> id;
};

// Every piece that is no token yet becomes what `cut` makes of it, a list of AlignedText; empty ones are
// dropped.
template <class Cut>
void cut_pieces(std::vector<Piece>& pieces, const Cut& cut) {
  std::vector<Piece> result;
  result.reserve(pieces.size());
  for (Piece& piece : pieces) {
    if (piece.id) {
      result.push_back(std::move(piece));
      continue;
    }
    for (AlignedText& part : cut(std::move(piece.text))) {
      if (!part.empty()) result.push_back({std::move(part), std::nullopt});
    }
  }
  pieces = std::move(result);
}

// Cuts text into words, which the model never looks beyond.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(std::vector<Piece>& pieces) const = 0;
};

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Node& node);

}  // namespace normscope::text
