#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "paper/majority_measures.h"
#include "paper/part.h"

namespace normscope {
namespace {

// 3.5 ms per step of one run on two cores; the first part that looks at the runs trains them for all.
double majority_seconds(const PaperPlan& plan) {
  return 3.5e-3 *
         static_cast<double>(norms_for(plan, Need::majority).size() * plan.seeds.size() * plan.steps);
}
// Beside them LayerNorm with attention frozen at equal weights, and what is made by hand.
double with_references(const PaperPlan& plan) {
  return majority_seconds(plan) +
         static_cast<double>(plan.seeds.size()) * (3.5e-3 * static_cast<double>(plan.steps) + 0.5);
}
double unnormed_seconds(const PaperPlan& plan) {
  return 1e-3 * static_cast<double>(plan.seeds.size() * plan.steps_3d);
}
double wide_seconds(const PaperPlan& plan) {
  const auto seeds = static_cast<double>(plan.seeds.size());
  return seeds * (0.3 * static_cast<double>(std::min(plan.steps, kWideSteps)) +
                  2 * 3.5e-3 * static_cast<double>(plan.steps));
}
// Nine ways to train 12 layers; at the published scale 12, 24 and 32.
double deep_training_seconds(const PaperPlan& plan) {
  const double layers = plan.asked && plan.asked->full ? 12 + 24 + 32 : 12;
  return 1.3e-3 * layers * static_cast<double>(plan.seeds.size() * std::min(plan.steps, kDeepSteps));
}
double majority_3d_seconds(const PaperPlan& plan) {
  return 1e-3 *
         static_cast<double>(norms_for(plan, Need::majority_3d).size() * plan.seeds.size() * plan.steps_3d);
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
  return 36 * static_cast<double>(plan.deep_samples);
}
double page_seconds(const PaperPlan& plan) {
  return 5 + 60 * static_cast<double>(plan.models.size());
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
std::string wide(const PaperPlan& plan) {
  return fmt::format("seeds {}, {} training steps", fmt::join(plan.seeds, ", "),
                     std::min(plan.steps, kWideSteps));
}
std::string deep_training(const PaperPlan& plan) {
  return fmt::format("seeds {}, {} training steps", fmt::join(plan.seeds, ", "),
                     std::min(plan.steps, kDeepSteps));
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
std::string no_settings(const PaperPlan&) {
  return "";
}

Exhibit both(Exhibit shown, const Exhibit& more) {
  shown.claims.insert(shown.claims.end(), more.claims.begin(), more.claims.end());
  if (!more.shown) return shown;
  shown.shown = [first = shown.shown, second = more.shown](const Evidence& evidence) {
    Findings found = first(evidence);
    found.add(second(evidence));
    return found;
  };
  return shown;
}

void take_seeds(PaperPlan& plan, std::size_t count) {
  plan.seeds.resize(std::min(plan.seeds.size(), count));
}
void take_text_seeds(PaperPlan& plan, std::size_t count) {
  take_seeds(plan, count);
  if (plan.language) plan.language->seeds = plan.seeds.size();
  if (plan.sentiment) plan.sentiment->seeds = plan.seeds.size();
}
void take_samples(PaperPlan& plan, std::size_t count) {
  plan.samples = std::min(plan.samples, count);
}
void take_deep_samples(PaperPlan& plan, std::size_t count) {
  plan.deep_samples = std::min(plan.deep_samples, count);
}
void take_all(PaperPlan&, std::size_t) {}

}  // namespace

std::string Effort::amount(std::size_t level) const {
  return amounts.empty() ? "all" : counted(amounts.at(level - 1), unit);
}

PaperPlan at_level(PaperPlan plan, const Effort& effort, std::size_t level) {
  effort.limit(plan, level == 0 || effort.amounts.empty() ? 0 : effort.amounts.at(level - 1));
  return plan;
}

std::span<const Effort> paper_efforts() {
  // With two seeds Student's interval is wider than most effects; ten are the paper's.
  static const std::vector<std::size_t> seeds = {3, 5, 7, 10}, samples = {4, 8, 16, 32, 64, 128};
  static const Effort efforts[] = {
      {"majority-3d", "seed", {3, 5, 10}, true, take_seeds},
      {"fig1cd", "", {}, false, take_all},
      {"majority", "seed", seeds, true, take_seeds},
      {"normals", "seed", seeds, true, take_seeds, "majority"},
      {"language", "seed", seeds, true, take_text_seeds},
      {"sentiment", "seed", seeds, true, take_text_seeds},
      {"wu1", "", {}, false, take_all},
      {"wu2", "sample", samples, false, take_samples},
      {"wu3", "sample", samples, false, take_samples},
      {"wu4", "sample", samples, false, take_samples},
      {"wu5", "", {}, false, take_all},
      {"wu6", "sample", {2, 4, 8}, false, take_deep_samples},
      {"wu7", "sample", samples, false, take_samples},
      {"wu8", "sample", {4, 8, 16}, false, take_samples},
      {"wu9", "sample", samples, false, take_samples},
      {"beyond", "sample", samples, false, take_samples},
      {"fig1a-none", "seed", {3, 5, 10}, true, take_seeds},
      {"identities", "", {}, false, take_all},
      {"limits", "seed", {3, 5, 10}, true, take_seeds},
      {"page", "", {}, false, take_all},
      {"theorems", "sample", samples, false, take_samples},
      {"steps", "sample", {4, 8, 16}, false, take_samples},
      {"deep", "seed", {3, 5, 10}, true, take_seeds},
  };
  return efforts;
}

std::span<const PaperPart> paper_parts() {
  static const PaperPart parts[] = {
      {"fig1ab", "majority-3d", "keys and queries of the majority task in three dimensions", brody_fig1ab(),
       majority_3d_seconds, in_3d},
      {"fig1cd", "fig1cd", "heat maps of unselectable random keys", brody_fig1cd(), about<5>, drawn},
      {"fig2", "majority", "majority: training loss and the angle of queries to 1", brody_fig2(),
       with_references, in_8d},
      {"fig3", "majority", "majority: test accuracy", brody_fig3(), majority_seconds, in_8d},
      {"followups", "normals", "majority: learned normals instead of 1 (the paper's open questions)",
       brody_followups(), majority_seconds, in_8d},
      {"fig4", "language", "language model: loss with and without scaling", brody_fig4(), language_seconds,
       language},
      {"table1", "language", "language model: unselectable keys with and without scaling, also in its heads",
       brody_table1(), language_seconds, language},
      {"table2", "language", "language model: unselectable keys before and after LayerNorm", brody_table2(),
       language_seconds, language},
      {"table3", "language", "language model without scaling: unselectable words of sentences",
       brody_table3(), language_seconds, language},
      {"table4", "sentiment", "sentiment model without norms: unselectable words of sentences",
       brody_table4(), sentiment_seconds, sentiment},
      {"wu1", "wu1", "two tokens in the plane, with and without LayerNorm", wu_fig1(), about<1>, no_settings},
      {"wu2", "wu2", "collapse over 12 layers, random init (eval mode and dropout) and pretrained", wu_fig2(),
       sample_seconds<5, 1>, sampled},
      {"wu3", "wu3", "temperature d_QK in pretrained models", wu_fig3(), sample_seconds<0, 1>, sampled},
      {"wu4", "wu4", "rank and cosines by layer of pretrained models", wu_fig4(), sample_seconds<0, 1>,
       sampled},
      {"wu5", "wu5", "phase portrait and equilibria of every rank", both(wu_fig5(), wu_theorem3()), about<5>,
       no_settings},
      {"wu6", "wu6", "collapse over 128 layers", wu_fig6(), deep_seconds, deep},
      {"wu7", "wu7", "temperature d_QK and collapse", wu_fig7(), sample_seconds<5, 0>, sampled},
      {"wu8", "wu8", "singular values by layer, random init and pretrained", wu_fig8(), sample_seconds<1, 0>,
       sampled},
      {"wu9", "wu9", "cosines of the initial embeddings, random init and pretrained", wu_fig9(), about<1>,
       sampled},
      {"beyond", "beyond",
       "other norms, placements, weights; masks of equal sparsity; anisotropy beside selectable keys",
       both(wu_beyond(), wu_anisotropy()), sample_seconds<5, 1>, sampled},
      {"fig1a-none", "fig1a-none", "keys and queries in three dimensions without any norm",
       brody_fig1a_none(), unnormed_seconds, in_3d, true},
      {"table3-none", "language", "language model without norms: unselectable words of sentences",
       brody_table3_none(), language_seconds, language, true},
      {"followups-lm", "language", "language model: learned normals in every layer instead of 1",
       brody_followups_lm(), language_seconds, language, true},
      {"identities", "identities", "projection and scaling, equation by equation, and the plane of Fig. 5",
       brody_identities(), about<5>, no_settings, true},
      {"limits", "limits", "majority and random keys in more dimensions", brody_limits(), wide_seconds, wide,
       true},
      {"page", "page", "large keys, and which half of LayerNorm makes keys selectable", demo_page(),
       page_seconds, no_settings, true},
      {"theorems", "theorems", "bounds over masks and value matrices of every kind", wu_theorems(), about<5>,
       sampled, true},
      {"steps", "steps", "layers as steps of h: discrete against continuous time", wu_steps(),
       sample_seconds<1, 0>, sampled, true},
      {"deep", "deep", "majority in many layers, trained with and without what keeps tokens apart", wu_deep(),
       deep_training_seconds, deep_training, true},
  };
  return parts;
}

bool PaperPart::needs(Need what) const {
  return std::any_of(exhibit.claims.begin(), exhibit.claims.end(), [&](const Claim& claim) {
    return std::any_of(claim.needs.begin(), claim.needs.end(),
                       [&](const Runs& runs) { return runs.what == what; });
  });
}

bool plan_needs(const PaperPlan& plan, Need what) {
  const auto parts = paper_parts();
  return std::any_of(parts.begin(), parts.end(),
                     [&](const PaperPart& part) { return part.needs(what) && plan.has(part.name); });
}

std::vector<std::string> norms_for(const PaperPlan& plan, Need what) {
  std::vector<std::string> norms;
  for (const PaperPart& part : paper_parts()) {
    if (!plan.has(part.name)) continue;
    for (const Claim& claim : part.exhibit.claims) {
      for (const Runs& runs : claim.needs) {
        if (runs.what != what) continue;
        for (const std::string& norm : runs.norms) {
          if (std::find(norms.begin(), norms.end(), norm) == norms.end()) norms.push_back(norm);
        }
      }
    }
  }
  return norms;
}

Findings judge(const Exhibit& exhibit, const Evidence& evidence) {
  Findings found;
  for (std::size_t c = 0; c < exhibit.claims.size(); ++c) {
    if (auto judged = judge(exhibit.claims[c], evidence)) {
      judged->id = std::to_string(c + 1);
      found.claims.push_back(std::move(*judged));
    }
  }
  if (exhibit.shown) found.add(exhibit.shown(evidence));
  return found;
}

std::string paper_of(const PaperPart& part) {
  const std::string_view name = part.name;
  return name == "beyond" || name == "steps" || name == "deep" ? "beyond"
         : name.starts_with("wu") || name == "theorems"        ? "wu2024"
                                                               : "brody2023";
}

Findings judge(const PaperPart& part, const Evidence& evidence) {
  Findings found = judge(part.exhibit, evidence);
  const std::string name = part.name;
  for (Judgement& claim : found.claims) {
    claim.id = fmt::format("{}-{}", name, claim.id);
    claim.part = name;
    claim.paper = paper_of(part);
    for (const Figure& figure : found.figures) claim.figures.push_back(figure.name);
    for (const TextFinding& text : found.texts) claim.figures.push_back(text.name);
  }
  return found;
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
