#pragma once
// Verdicts on sets of keys: counts, and how near to losing them the keys are.
#include <span>
#include <string>
#include <vector>

#include "normscope/keys.h"
#include "normscope/matrix.h"
#include "report/curves.h"
#include "report/run_view.h"
#include "result/keys.h"

namespace normscope {

struct KeysRun {
  struct Set {
    std::size_t n = 0, d = 0, rank = 0;
    KeyCounts counts, robust;
    std::vector<double> margins, depths;  // of the selectable and of the unselectable keys; empty: not known
    std::string name = {};                // of a head; empty: its number names it
  };
  std::string source, norm;   // the file, and what was applied to its keys
  bool lower_bounds = false;  // of margins
  std::vector<Set> sets;
  std::vector<ReportTable> advice = {};  // what would help, set by set
};
KeysRun::Set summary_of(const KeySet& set);
KeysRun::Set summary_of(const KeySetResult& set);

std::string keys_verdict(const KeysRun& run);
// A header and a row per set, of at most `most` sets.
ReportTable keys_table(const KeysRun& run, std::size_t most);
// What would make the keys of a set selectable, a row for each of at most `most` that are not. Without rows the
// note says that none is in need.
ReportTable advice_table(const KeySetResult& set, std::size_t most);
// Of all sets that have such keys, as far as a page goes.
std::vector<ReportTable> advice_tables(const KeysResult& result);
// "at least 0.5 for the neediest key; …"
std::string offsets_words(const OffsetsForAll& offsets, const char* one = "key");
// The same of the rows of a vocabulary, without margins.
ReportTable tokens_table(const std::string& source, const KeysRun& run);
// Histograms of margins and depths; no figure if none is known.
std::vector<Figure> keys_figures(const KeysRun& run, const std::string& settings);
// Keys of two or three dimensions as they lie: n × 2 or n × 3, decided without score offsets. projected: they lie in the
// plane orthogonal to 1, which is drawn.
Figure keys_picture(MatrixView<const double> keys, std::span<const Verdict> verdicts, bool projected,
                    const std::string& title, const std::string& settings);
Page keys_page(const KeysRun& run, const Provenance& provenance, std::string data);
RunView keys_view(const KeysResult& result, const Provenance& made);

}  // namespace normscope
