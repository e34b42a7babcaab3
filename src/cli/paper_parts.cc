#include "cli/paper_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace normscope::cli {
namespace {

// 3.5 ms per step of one run on two cores. The first part that looks at the runs trains them for all.
double majority_seconds(const PaperPlan& plan, std::string_view part) {
  for (const std::string_view earlier : {"fig2", "fig3", "followups"}) {
    if (earlier == part) break;
    if (plan.has(earlier)) return 0.1;
  }
  const double norms = plan.has("fig2") || plan.has("fig3") ? 4 : 2, learned = plan.has("followups") ? 3 : 0;
  return 3.5e-3 * (norms + learned) * static_cast<double>(plan.seeds.size() * plan.steps);
}
double of_3d(const PaperPlan& plan) {
  return 1e-3 * 3 * static_cast<double>(plan.seeds.size() * plan.steps_3d);
}
double of_fig2(const PaperPlan& plan) {
  return majority_seconds(plan, "fig2");
}
double of_fig3(const PaperPlan& plan) {
  return majority_seconds(plan, "fig3");
}
double of_followups(const PaperPlan& plan) {
  return majority_seconds(plan, "followups");
}
template <int per_sample>
double of_samples(const PaperPlan& plan) {
  return per_sample * static_cast<double>(plan.samples);
}
template <int per_sample>
double of_models(const PaperPlan& plan) {
  return 0.1 + per_sample * static_cast<double>(plan.samples * plan.models.size());
}
double of_wu2(const PaperPlan& plan) {
  return of_samples<5>(plan) + of_models<1>(plan);
}
double of_deep(const PaperPlan& plan) {
  return 60 * static_cast<double>(plan.deep_samples);
}
// Seconds per token of a step on two cores, by the size of the vocabulary. The first part that looks at the
// language model trains it for all.
double language_seconds(const PaperPlan& plan, std::string_view part) {
  for (const std::string_view earlier : {"fig4", "table1", "table2", "table3"}) {
    if (earlier == part) break;
    if (plan.has(earlier)) return 1;
  }
  if (!plan.language) return 0.1;
  const LanguagePlan& language = *plan.language;
  const double per_token = language.tokenizer == "bytes" ? 4e-6 : 3e-5, per_window = 0.3;
  const double runs = 2 * static_cast<double>(language.seeds);
  return runs *
         (per_token * static_cast<double>(language.steps * language.batch * language.context) +
          per_window * static_cast<double>(language.windows + language.trend_windows * language.snapshots));
}
double of_fig4(const PaperPlan& plan) {
  return language_seconds(plan, "fig4");
}
double of_table1(const PaperPlan& plan) {
  return language_seconds(plan, "table1");
}
double of_table2(const PaperPlan& plan) {
  return language_seconds(plan, "table2");
}
double of_table3(const PaperPlan& plan) {
  return language_seconds(plan, "table3");
}
double of_table4(const PaperPlan& plan) {
  if (!plan.sentiment) return 0.1;
  return 0.05 * static_cast<double>(plan.sentiment->seeds * plan.sentiment->steps);
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
  return fmt::format("{} sample{}", plan.samples, plan.samples == 1 ? "" : "s");
}
std::string deep(const PaperPlan& plan) {
  return fmt::format("{} sample{}", plan.deep_samples, plan.deep_samples == 1 ? "" : "s");
}
std::string language(const PaperPlan& plan) {
  if (!plan.language) return "";
  const LanguagePlan& each = *plan.language;
  return fmt::format("seeds {}, {} steps of {} × {} tokens, {}, {}",
                     fmt::join(std::span(plan.seeds).first(each.seeds), ", "), each.steps, each.batch,
                     each.context, each.corpus, each.tokenizer);
}
std::string sentiment(const PaperPlan& plan) {
  if (!plan.sentiment) return "";
  const SentimentPlan& each = *plan.sentiment;
  return fmt::format("seeds {}, {} steps of {} texts, {}, {}",
                     fmt::join(std::span(plan.seeds).first(each.seeds), ", "), each.steps, each.batch,
                     each.reviews, each.tokenizer);
}
std::string none(const PaperPlan&) {
  return "";
}

}  // namespace

std::span<const PaperPart> paper_parts() {
  static constexpr PaperPart parts[] = {
      {"fig1ab", "keys and queries of the majority task in three dimensions", run_fig1ab, of_3d, in_3d},
      {"fig1cd", "heat maps of unselectable random keys", run_fig1cd, about<5>, drawn},
      {"fig2", "majority: training loss and the angle of queries to 1", run_fig2, of_fig2, in_8d},
      {"fig3", "majority: test accuracy", run_fig3, of_fig3, in_8d},
      {"followups", "majority: learned normals instead of 1 (the paper's open questions)", run_followups,
       of_followups, in_8d},
      {"fig4", "language model: loss with and without scaling", run_fig4, of_fig4, language},
      {"table1", "language model: unselectable keys with and without scaling, also in its heads", run_table1,
       of_table1, language},
      {"table2", "language model: unselectable keys before and after LayerNorm", run_table2, of_table2,
       language},
      {"table3", "language model without scaling: unselectable words of sentences", run_table3, of_table3,
       language},
      {"table4", "sentiment model without norms: unselectable words of sentences", run_table4, of_table4,
       sentiment},
      {"wu1", "two tokens in the plane, with and without LayerNorm", run_wu1, about<1>, none},
      {"wu2", "collapse over 12 layers, random init (eval mode and dropout) and pretrained", run_wu2, of_wu2,
       sampled},
      {"wu3", "temperature d_QK in pretrained models", run_wu3, of_models<1>, sampled},
      {"wu4", "rank and cosines by layer of pretrained models", run_wu4, of_models<1>, sampled},
      {"wu5", "phase portrait and equilibria of every rank", run_wu5, about<5>, none},
      {"wu6", "collapse over 128 layers", run_wu6, of_deep, deep},
      {"wu7", "temperature d_QK and collapse", run_wu7, of_samples<5>, sampled},
      {"wu8", "singular values by layer, random init and pretrained", run_wu8, of_samples<1>, sampled},
      {"wu9", "cosines of the initial embeddings, random init and pretrained", run_wu9, about<1>, sampled},
      {"beyond", "other norms, placements, weights; masks of equal sparsity", run_beyond, of_samples<5>,
       sampled},
  };
  return parts;
}

void Findings::add(std::vector<Claim> more) {
  std::move(more.begin(), more.end(), std::back_inserter(claims));
}

}  // namespace normscope::cli
