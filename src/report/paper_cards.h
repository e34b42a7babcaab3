#pragma once
// The claims of `paper` as cards: of results.json, and of nothing else.
#include "report/carded_page.h"
#include "result/paper.h"

namespace normscope {

// At most so many of the claims.
std::vector<Card> paper_cards(const PaperResult& result, std::size_t most);
// Paper by paper, and whether the run was reduced.
Scorecard scorecard_of(const PaperResult& result);
// "Of 17 claims 8 hold, 5 hold only under a condition, 1 does not, 3 are open; 2 questions are answered."
std::string counts_sentence(std::span<const Card> cards);

}  // namespace normscope
