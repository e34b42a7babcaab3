#pragma once
// The pretrained halves of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: Fig. 2, 3, 4, 8 and 9. The paper has
// bert-base-uncased (2, 3, 8), gpt2, t5-base and albert-base-v2 beside it (4), and BERT and ALBERT (9); any
// model of a like kind stands in for them, and it is said which.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/model.h"
#include "paper/wu_collapse.h"

namespace normscope {

struct PretrainedModel {
  std::string name;
  std::shared_ptr<const ModelWeights> weights;
  std::vector<std::vector<std::uint32_t>> texts;  // windows of equally many tokens, one per sample
};

// The model of the paper that one of this family is like: "bert-base-uncased", "gpt2", …; empty: none.
std::string published_model(std::string_view family);

// An encyclopedia of 22 short articles, written for this purpose.
std::string_view builtin_text();

// What stands in for what, and what was read: a table of the report. source: of the text, for people.
ReportTable pretrained_table(const std::vector<PretrainedModel>& models, const std::string& source);

// Fig. 2: μ by layer, five variants under four masks.
WuPart wu_figure2_pretrained(const std::vector<PretrainedModel>& models, const RunCollapse& run);
// Fig. 3: d_QK of 1/64, 1, 64.
WuPart wu_figure3(const std::vector<PretrainedModel>& models, const RunCollapse& run);
// Fig. 4: rank, least singular value and mean |cosine| of the models as they are.
WuPart wu_figure4(const std::vector<PretrainedModel>& models, const RunCollapse& run);
// Fig. 8: all singular values by layer.
WuPart wu_figure8_pretrained(const std::vector<PretrainedModel>& models, const RunCollapse& run);
// Fig. 9: cosines of what enters the first layer.
WuPart wu_figure9_pretrained(const std::vector<PretrainedModel>& models, const Executor& executor);

}  // namespace normscope
