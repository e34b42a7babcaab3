#pragma once
// Verdicts on the tokens of a vocabulary: which a model can never put on top, and how close others come.
#include <string>
#include <vector>

#include "report/keys_page.h"
#include "result/vocab.h"

namespace normscope {

std::string vocab_verdict(const VocabResult& result);
// The first of the tokens, of `whole` in all.
ReportTable vocab_table(const std::string& title, const std::vector<VocabToken>& tokens, std::size_t most,
                        std::size_t whole);
// source: of the rows, for people. set: all tokens.
Page vocab_page(const VocabResult& result, const std::string& source, const KeySet& set, std::string data);
// From results.json alone, which lists the smallest margins and the tokens that never win.
RunView vocab_view(const VocabResult& result, const Provenance& made);

}  // namespace normscope
