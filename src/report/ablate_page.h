#pragma once
// A trained model with another norm in front of attention, as tables, figures and a page.
#include <string>
#include <vector>

#include "normscope/ablate.h"
#include "normscope/report.h"
#include "report/model_on_text.h"

namespace normscope {

struct AblateRun : ModelOnText {
  std::size_t prompts = 0;
  bool causal = false;
  bool post = false;  // norms come after a block, so the skip path changes with attention
  Ablation ablation;
};

// A header, and a row per model: loss, hidden states and attention (means over layers), retrieval.
std::vector<std::vector<std::string>> ablate_table(const AblateRun& run);
// Per row and layer.
std::vector<std::vector<std::string>> ablate_layer_table(const AblateRun& run);
// "Removing the norm degrades sharp retrieval": claim, row, measure, as trained, changed, difference,
// verdict.
std::vector<std::vector<std::string>> ablate_claim_table(const AblateRun& run);
// What was done, what the loss and the probe are, in sentences.
std::vector<std::string> ablate_sentences(const AblateRun& run);
std::string ablate_verdict(const AblateRun& run);
// row,layer,measure,mean,low,high
std::string ablate_csv(const AblateRun& run);

Page ablate_page(const AblateRun& run, const Provenance& provenance, std::string data);

}  // namespace normscope
