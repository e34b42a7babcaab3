#pragma once
// Text from a context-free grammar with features (number, tense, gender); see grammar_corpus in corpus.h.
#include <cstdint>
#include <string>

namespace normscope::corpus {

std::string grammar_story(std::uint64_t seed, std::uint64_t index);

// Of one to four sentences; the label decides the polarity of every judgement in it.
std::string grammar_review(std::uint64_t seed, std::uint64_t index, bool positive);

}  // namespace normscope::corpus
