#pragma once
// A scan of a model as tables, figures and a page.
#include <string>
#include <vector>

#include "normscope/report.h"
#include "normscope/scan.h"
#include "report/model_on_text.h"

namespace normscope {

struct ScanRun : ModelOnText {
  // What a place of a window sees: all tokens, or those before it and itself, or of these the last few.
  bool prefixes = false;
  std::size_t sliding_window = 0;  // 0: none
  bool as_model = true;            // as the model's queries do
  bool lower_bounds = true;
  std::vector<ScanWindow> scanned;
  std::vector<std::vector<std::string>> spelled;  // tokens of each window
  std::vector<KeySpace> spaces;
};

// Means over windows.
struct ScanSummary {
  struct Head {
    double unselectable = 0, tied = 0, undecided = 0;  // shares; NaN: not asked for
    double reachable_unselectable = 0, reachable_tied = 0, reachable_undecided = 0;
    double median_margin = 0, median_largest_weight = 0, least_largest_weight = 0;
    double entropy = 0, largest_weight = 0;  // of the real queries
    double never_won = 0;                    // share of tokens that were no query's favourite
  };
  struct Layer {
    std::size_t layer = 0;
    double before = 0, before_tied = 0, model = 0, model_tied = 0;
    double median_margin_before = 0, median_margin_model = 0;
    NormShare norm_in, norm_out;
    std::vector<Head> heads;
    // Over the heads that were asked for.
    double mean(double Head::*member) const;
    double highest(double Head::*member) const;
  };
  std::vector<Layer> layers;
};
ScanSummary summarize(const ScanRun& run);

// Tokens by how many of a space's sets cannot select them.
struct UnselectableTokens {
  std::size_t tokens = 0, sets = 0;
  std::size_t in_some = 0, in_all = 0;
};
UnselectableTokens unselectable_tokens(const ScanRun& run, KeySpace space);
// What a set of the space is, in words: "layer", "layer and head".
const char* set_name(KeySpace space);

std::string scan_verdict(const ScanRun& run, const ScanSummary& summary);
// What to know before two columns of the table are compared; empty, or lines.
std::string scan_readings(const ScanRun& run);
ReportTable scan_table(const ScanRun& run, const ScanSummary& summary);
// The tokens of a window, marked by the share of the space's sets that cannot select them.
TextFigure scan_text(const ScanRun& run, std::size_t window, KeySpace space);
Page scan_page(const ScanRun& run, const ScanSummary& summary, const Provenance& provenance,
               std::string data);

}  // namespace normscope
