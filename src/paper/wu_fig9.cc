// Fig. 9 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: cosines of what enters the first layer.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "paper/wu_curves.h"

namespace normscope {
namespace {

constexpr const char* kSentence = "Cosines of the initial embeddings are at least 0 (what Cor. 1 asks)";

struct Cosines {
  std::vector<double> mean, least;  // of every sample or window

  void add(const TokenMeasures& measures) {
    least.push_back(measures.min_cosine);
    mean.push_back(measures.mean_cosine);
  }
};

Cosines of_random(const Evidence& evidence) {
  Cosines cosines;
  for (std::size_t sample = 0; sample < evidence.plan.samples; ++sample) {
    const Matrix<double> x = draw_tokens(parse_token_start("bert"), kTokens, 768, sample, evidence.plan.seed);
    cosines.add(measure_tokens<double>(x.view(), Spectrum::no));
  }
  return cosines;
}
std::map<std::string, Cosines> of_models(const Evidence& evidence) {
  std::map<std::string, Cosines> of;
  for (const PretrainedModel& model : evidence.models) {
    for (const Matrix<float>& x : embed(*model.weights, model.texts, evidence.executor))
      of[model.name].add(measure_tokens<float>(x.view(), Spectrum::no));
  }
  return of;
}
const Cosines& cosines_of(const Evidence& evidence, const PretrainedModel& model) {
  return once<of_models>(evidence).at(model.name);
}

// Those that the figure is about.
bool is_meant(const PretrainedModel& model) {
  const std::string published = published_model(spec_of(model).family);
  return published == "bert-base-uncased" || published == "albert-base-v2";
}

Claim random_init() {
  const auto least = mean_of(of(once<of_random>, &Cosines::least)),
             mean = mean_of(of(once<of_random>, &Cosines::mean));
  return {
      .where = "Wu Fig. 9, random init",
      .sentence = kSentence,
      .published = "shown for pretrained BERT and ALBERT only: all ≥ 0",
      .measured = written(
          "random init: least {} of a sample, mean {} over {} of {} tokens", least, mean,
          [](const Evidence& evidence) { return counted(evidence.plan.samples, "sample"); }, kTokens),
      .why =
          "Word, position and type embeddings have equal variance and the type is common to all tokens, so that cosines of about 1/3 are expected at random init already: that they are not negative does not by itself tell of training.",
      .holds = at_least(least, 0, "least cosine of a sample"),
      .granted = "the embeddings share a part, here the token type",
      .topic = "embeddings"};
}

Claim pretrained() {
  return by_model(
      {.where = "Wu Fig. 9, pretrained",
       .sentence = kSentence,
       .published = "all ≥ 0 for pretrained BERT and ALBERT",
       .otherwise = kNoModel,
       .measured = over_models([](const Evidence& evidence, const PretrainedModel& model) {
         const Cosines& cosines = cosines_of(evidence, model);
         const double level = level_of(evidence);
         return fmt::format("least {} of a window, mean {}",
                            with_interval(mean_interval(cosines.least, level)),
                            with_interval(mean_interval(cosines.mean, level)));
       }),
       .why =
           [](const Evidence& evidence) {
             std::string meant;
             bool own = false;
             for (const PretrainedModel& model : evidence.models) {
               if (!is_meant(model)) continue;
               append(meant, model.name);
               own = own || stands_in(model) == "the paper's own";
             }
             return fmt::format(
                 "The verdict is over models like BERT and ALBERT ({}), which the figure is about; the others stand beside them.{}",
                 meant.empty() ? "none here" : meant,
                 own ? "" : " The paper's own two are not here, so nothing is said of them.");
           },
       .not_at_hand = absent({"bert-base-uncased", "albert-base-v2"}),
       .topic = "embeddings"},
      [](const Evidence& evidence, const PretrainedModel& model) {
        return at_least(evidence, mean_interval(cosines_of(evidence, model).least, level_of(evidence)), 0,
                        model.name + ": least cosine of a window");
      },
      is_meant);
}

}  // namespace

Exhibit wu_fig9() {
  return {{random_init(), pretrained()}};
}

}  // namespace normscope
