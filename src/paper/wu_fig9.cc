// Fig. 9 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: cosines of what enters the first layer.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

Claim random_init(const PaperPlan& plan) {
  std::vector<double> least, mean;
  for (std::size_t sample = 0; sample < plan.samples; ++sample) {
    const Matrix<double> x = draw_tokens(parse_token_start("bert"), kTokens, 768, sample, plan.seed);
    const TokenMeasures measures = measure_tokens<double>(x.view(), Spectrum::no);
    least.push_back(measures.min_cosine);
    mean.push_back(measures.mean_cosine);
  }
  const double lowest = *std::min_element(least.begin(), least.end());
  const Interval middle = mean_interval(mean);
  Claim claim = claim_of("Wu Fig. 9, random init",
                         "Cosines of the initial embeddings are at least 0 (what Cor. 1 asks)",
                         "shown for pretrained BERT and ALBERT only: all ≥ 0");
  claim.measured = fmt::format("random init: least {:.3f}, mean {:.3f} over {} of {} tokens", lowest,
                               middle.mean, counted(middle.count, "sample"), kTokens);
  claim.holds = lowest >= 0 ? Holds::conditionally : Holds::no;
  claim.condition = "the embeddings share a part, here the token type";
  claim.why =
      "Word, position and type embeddings have equal variance and the type is common to all tokens, so that "
      "cosines lie around 1/3 already at random init: the figure is no effect of training alone.";
  return claim;
}

Claim pretrained(Models models, const Executor& executor) {
  Claim claim =
      claim_of("Wu Fig. 9, pretrained", "Cosines of the initial embeddings are at least 0 (what Cor. 1 asks)",
               "all ≥ 0 for pretrained BERT and ALBERT");
  claim.measured = kNoModel;
  if (models.empty()) return claim;
  struct Cosines {
    std::vector<double> mean;
    double least = 1;
  };
  std::map<std::string, Cosines> of;
  std::vector<PretrainedModel> meant;
  for (const PretrainedModel& model : models) {
    Cosines& cosines = of[model.name];
    for (const Matrix<float>& x : embed(*model.weights, model.texts, executor)) {
      const TokenMeasures measures = measure_tokens<float>(x.view(), Spectrum::no);
      cosines.least = std::min(cosines.least, measures.min_cosine);
      cosines.mean.push_back(measures.mean_cosine);
    }
    const std::string published = published_model(spec_of(model).family);
    if (published == "bert-base-uncased" || published == "albert-base-v2") meant.push_back(model);
  }
  claim.measured = over_models(models, [&](const PretrainedModel& model) {
    const Cosines& cosines = of.at(model.name);
    return fmt::format("least {:.2f}, mean {}", cosines.least, with_interval(mean_interval(cosines.mean)));
  });
  judge(claim, meant, [&](const PretrainedModel& model) { return of.at(model.name).least >= 0; });
  const bool own = std::any_of(meant.begin(), meant.end(), [](const PretrainedModel& model) {
    return stands_in(model) == "the paper's own";
  });
  claim.why = fmt::format(
      "The verdict is over models like BERT and ALBERT ({}), which the figure is about; the others stand "
      "beside them.{}",
      meant.empty() ? "none here" : names_of(meant),
      own ? "" : " The paper's own two are not here, so nothing is said of them.");
  return claim;
}

}  // namespace

Findings wu_fig9(const Evidence& evidence) {
  return {{random_init(evidence.plan), pretrained(evidence.models, evidence.executor)}};
}

}  // namespace normscope
