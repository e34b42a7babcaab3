#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "paper/part.h"

namespace normscope {
namespace {

// 3.5 ms per step of one run on two cores; the first part that looks at the runs trains them for all.
double majority_seconds(const PaperPlan& plan) {
  const double norms = plan.has("fig2") || plan.has("fig3") ? 4 : 2, learned = plan.has("followups") ? 3 : 0;
  return 3.5e-3 * (norms + learned) * static_cast<double>(plan.seeds.size() * plan.steps);
}
double majority_3d_seconds(const PaperPlan& plan) {
  return 1e-3 * 3 * static_cast<double>(plan.seeds.size() * plan.steps_3d);
}
// Seconds per token of a step, by the size of the vocabulary; again for all that look at it.
double language_seconds(const PaperPlan& plan) {
  if (!plan.language) return 0;
  const LanguagePlan& language = *plan.language;
  const double per_token = language.tokenizer == "bytes" ? 4e-6 : 3e-5, per_window = 0.3;
  const double runs = 2 * static_cast<double>(language.seeds);
  return runs *
         (per_token * static_cast<double>(language.steps * language.batch * language.context) +
          per_window * static_cast<double>(language.windows + language.trend_windows * language.snapshots));
}
double sentiment_seconds(const PaperPlan& plan) {
  if (!plan.sentiment) return 0;
  return 0.05 * static_cast<double>(plan.sentiment->seeds * plan.sentiment->steps);
}
template <int per_sample, int per_model>
double sample_seconds(const PaperPlan& plan) {
  return static_cast<double>(plan.samples * (per_sample + per_model * plan.models.size()));
}
double deep_seconds(const PaperPlan& plan) {
  return 60 * static_cast<double>(plan.deep_samples);
}
template <int seconds>
double about(const PaperPlan&) {
  return seconds;
}

std::string in_8d(const PaperPlan& plan) {
  return fmt::format("seeds {}, {} training steps", fmt::join(plan.seeds, ", "), plan.steps);
}
std::string in_3d(const PaperPlan& plan) {
  return fmt::format("seeds {}, at most {} training steps", fmt::join(plan.seeds, ", "), plan.steps_3d);
}
std::string drawn(const PaperPlan& plan) {
  return fmt::format("{} draws per cell", plan.draws);
}
std::string sampled(const PaperPlan& plan) {
  return counted(plan.samples, "sample");
}
std::string deep(const PaperPlan& plan) {
  return counted(plan.deep_samples, "sample");
}
std::string first_seeds(const PaperPlan& plan, std::size_t count) {
  return fmt::format("seeds {}",
                     fmt::join(std::span(plan.seeds).first(std::min(count, plan.seeds.size())), ", "));
}
std::string language(const PaperPlan& plan) {
  if (!plan.language) return "";
  const LanguagePlan& each = *plan.language;
  return fmt::format("{}, {} steps of {} × {} tokens, {}, {}", first_seeds(plan, each.seeds), each.steps,
                     each.batch, each.context, each.corpus, each.tokenizer);
}
std::string sentiment(const PaperPlan& plan) {
  if (!plan.sentiment) return "";
  const SentimentPlan& each = *plan.sentiment;
  return fmt::format("{}, {} steps of {} texts, {}, {}", first_seeds(plan, each.seeds), each.steps,
                     each.batch, each.reviews, each.tokenizer);
}
std::string none(const PaperPlan&) {
  return "";
}

constexpr const char *kFigureNorms = "layernorm,rmsnorm,xsigma,published",
                     *kLearnedNormals = "layernorm,rmsnorm,project:1,project:2,project:4",
                     *kLanguageNorms = "layernorm,center";
constexpr Needs kNothing{}, kMajority{.majority = true}, kLanguage{.language = true}, kModels{.models = true};

}  // namespace

std::span<const PaperPart> paper_parts() {
  static constexpr PaperPart parts[] = {
      {"fig1ab",
       "keys and queries of the majority task in three dimensions",
       {.majority_3d = true},
       "layernorm,rmsnorm,published",
       majority_3d_seconds,
       in_3d,
       brody_fig1ab},
      {"fig1cd", "heat maps of unselectable random keys", kNothing, "", about<5>, drawn, brody_fig1cd},
      {"fig2", "majority: training loss and the angle of queries to 1", kMajority, kFigureNorms,
       majority_seconds, in_8d, brody_fig2},
      {"fig3", "majority: test accuracy", kMajority, kFigureNorms, majority_seconds, in_8d, brody_fig3},
      {"followups", "majority: learned normals instead of 1 (the paper's open questions)", kMajority,
       kLearnedNormals, majority_seconds, in_8d, brody_followups},
      {"fig4", "language model: loss with and without scaling", kLanguage, kLanguageNorms, language_seconds,
       language, brody_fig4},
      {"table1", "language model: unselectable keys with and without scaling, also in its heads", kLanguage,
       kLanguageNorms, language_seconds, language, brody_table1},
      {"table2", "language model: unselectable keys before and after LayerNorm", kLanguage, kLanguageNorms,
       language_seconds, language, brody_table2},
      {"table3",
       "language model without scaling: unselectable words of sentences",
       {.language = true, .sentences = true},
       kLanguageNorms,
       language_seconds,
       language,
       brody_table3},
      {"table4",
       "sentiment model without norms: unselectable words of sentences",
       {.sentiment = true, .sentences = true},
       "none",
       sentiment_seconds,
       sentiment,
       brody_table4},
      {"wu1", "two tokens in the plane, with and without LayerNorm", kNothing, "", about<1>, none, wu_fig1},
      {"wu2", "collapse over 12 layers, random init (eval mode and dropout) and pretrained", kModels, "",
       sample_seconds<5, 1>, sampled, wu_fig2},
      {"wu3", "temperature d_QK in pretrained models", kModels, "", sample_seconds<0, 1>, sampled, wu_fig3},
      {"wu4", "rank and cosines by layer of pretrained models", kModels, "", sample_seconds<0, 1>, sampled,
       wu_fig4},
      {"wu5", "phase portrait and equilibria of every rank", kNothing, "", about<5>, none, wu_fig5},
      {"wu6", "collapse over 128 layers", kNothing, "", deep_seconds, deep, wu_fig6},
      {"wu7", "temperature d_QK and collapse", kNothing, "", sample_seconds<5, 0>, sampled, wu_fig7},
      {"wu8", "singular values by layer, random init and pretrained", kModels, "", sample_seconds<1, 0>,
       sampled, wu_fig8},
      {"wu9", "cosines of the initial embeddings, random init and pretrained", kModels, "", about<1>, sampled,
       wu_fig9},
      {"beyond", "other norms, placements, weights; masks of equal sparsity", kNothing, "",
       sample_seconds<5, 0>, sampled, wu_beyond},
  };
  return parts;
}

void Findings::add(Findings more) {
  const auto move_to = [](auto& all, auto& from) {
    std::move(from.begin(), from.end(), std::back_inserter(all));
  };
  move_to(claims, more.claims);
  move_to(figures, more.figures);
  move_to(texts, more.texts);
  move_to(tables, more.tables);
}

}  // namespace normscope
