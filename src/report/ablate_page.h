#pragma once
// A trained model with another norm in front of attention, as tables, figures and a page.
#include <string>
#include <vector>

#include "normscope/ablate.h"
#include "report/run_view.h"
#include "result/ablate.h"
#include "result/model_on_text.h"

namespace normscope {

// A header, and a row per model: loss, hidden states and attention (means over layers), retrieval.
std::vector<std::vector<std::string>> ablate_table(const Ablation& ablation);
// row,layer,measure,mean,low,high
std::string ablate_csv(const AblateResult& result);

Page ablate_page(const AblateResult& result, const Ablation& ablation, const ModelOnText& about,
                 std::string data);
// From results.json alone.
RunView ablate_view(const AblateResult& result, const Provenance& made);

}  // namespace normscope
