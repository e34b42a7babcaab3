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

// What to know before two columns of the table are compared: lines.
std::string scan_readings(const ScanResult& result, const ScanAbout& about);
ReportTable scan_table(const ScanResult& result, const ScanSummary& summary);
// The tokens of a window, marked by the share of the space's sets that cannot select them.
TextFigure scan_text(const ScanResult& result, std::size_t window, KeySpace space);
// Whether some token is unselectable in some set of the space.
bool any_unselectable(const ScanResult& result, KeySpace space);

Page scan_page(const ScanResult& result, const ScanSummary& summary, const ScanAbout& about,
               std::string data);
// From results.json alone. Throws InputError if that does not hold together.
RunView scan_view(const ScanResult& result, const Provenance& made);

}  // namespace normscope
