#pragma once
// Verdicts on the tokens of a vocabulary: which a model can never put on top, and how close others come.
#include <cstdint>
#include <string>
#include <vector>

#include "report/keys_page.h"

namespace normscope {

struct VocabRun {
  struct Token {
    std::size_t id = 0;
    std::string text;  // empty: not known
    Verdict verdict = Verdict::selectable;
    bool robust = false;
    double size = 0;     // margin of a selectable token, depth of an unselectable one
    std::string covers;  // those whose mixture beats it
  };
  KeysRun keys;                // one set
  bool biased = false;         // scores have offsets
  std::vector<Token> lost;     // tied and unselectable, the first of them
  std::vector<Token> nearest;  // selectable, by rising margin
};

std::string vocab_verdict(const VocabRun& run);
ReportTable vocab_table(const std::string& title, const std::vector<VocabRun::Token>& tokens,
                        std::size_t whole);
Page vocab_page(const VocabRun& run, const Provenance& provenance, std::string data);

}  // namespace normscope
