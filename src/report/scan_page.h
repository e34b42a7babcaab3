#pragma once
// A scan of a model as tables, figures and a page.
#include <string>
#include <vector>

#include "report/run_view.h"
#include "report/text.h"
#include "result/model_on_text.h"
#include "result/scan_summary.h"

namespace normscope {

struct ScanAbout : ModelOnText {
  bool as_model = true;  // a place sees what the model's queries do
};

// What is measured, of what and in which unit: the line above the table.
std::string scan_heading(const ScanResult& result);
// The columns of the table in one line; why one is missing or has gaps; from where a token is looked at:
// sentences below the table.
std::vector<std::string> scan_readings(const ScanResult& result, const ScanSummary& summary, bool as_model);
ReportTable scan_table(const ScanResult& result, const ScanSummary& summary);
// The tokens of a window: of the unselectable the share of the space's sets that cannot select them, of those
// that are so in none and tied in some the share in which they are tied.
TextFigure scan_text(const ScanResult& result, std::size_t window, KeySpace space);
// Tokens of which nothing is left to show, such as the later bytes of a character, joined with the one before.
TextFigure with_whole_characters(const TextFigure& figure);
// Kinds of tokens in it.
inline constexpr const char *kUnselectableInAll = "unselectable in all",
                            *kUnselectableInSome = "unselectable in some", *kTiedInAll = "tied in all",
                            *kTiedInSome = "tied in some";
// Whether some token of the space is unselectable in some set; or that or tied.
bool any_unselectable(const ScanResult& result, KeySpace space);
bool any_marked(const ScanResult& result, KeySpace space);

Page scan_page(const ScanResult& result, const ScanSummary& summary, const ScanAbout& about,
               std::string data);
// From results.json alone. Throws InputError if that does not hold together.
RunView scan_view(const ScanResult& result, const Provenance& made);

}  // namespace normscope
