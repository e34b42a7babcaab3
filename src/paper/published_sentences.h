#pragma once
// The sentences that Tables 3 and 4 of Brody, Alon, Yahav 2023 show, with the words they mark.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "paper/text_measures.h"

namespace normscope {

struct PublishedSentence {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> marked;  // from byte, to byte
};
// table: 3 or 4.
std::vector<PublishedSentence> published_sentences(int table);

// The words that a table marks, beside what the runs found of the same words, as one more table where any run
// looked at the sentences.
std::vector<ReportTable> with_published_marks(int table, const TextRuns& runs,
                                              std::vector<ReportTable> tables = {});

}  // namespace normscope
