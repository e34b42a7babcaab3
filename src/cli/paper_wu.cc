// Wu et al. 2024: two tokens in the plane, and collapse at BERT-base shape, random init, and in pretrained
// models.
#include <algorithm>
#include <string_view>

#include "cli/paper_parts.h"
#include "paper/wu_collapse.h"
#include "paper/wu_equilibria.h"

namespace normscope::cli {
namespace {

WuCollapseSettings settings_of(const PaperPlan& plan) {
  return {plan.samples, plan.deep_samples, plan.seed};
}

RunCollapse runner(const Audit& audit, const char* label) {
  return [&audit, label](const std::vector<CollapseCase>& cases, const CollapseSettings& settings) {
    Progress progress(audit.common, label, "layers", &audit.whole);
    return collapse(cases, settings, audit.executor,
                    [&](std::size_t done, std::size_t total) { progress.update(done, total); });
  };
}

void add_part(Audit& audit, WuPart part) {
  audit.add(std::move(part.claims));
  for (Figure& figure : part.figures) audit.figures.push_back(std::move(figure));
  for (ReportTable& table : part.tables) audit.tables.push_back(std::move(table));
}

// The pretrained models; the first part of the plan that looks at them also tells what they are.
const std::vector<PretrainedModel>& models_of(Audit& audit, std::string_view part) {
  if (!audit.models) audit.models = open_models(audit.plan);
  const auto& parts = audit.plan.parts;
  const auto first =
      std::find_if(parts.begin(), parts.end(), [](const std::string& each) { return needs_models(each); });
  if (first != parts.end() && *first == part && !audit.models->empty())
    audit.tables.push_back(pretrained_table(*audit.models, text_source(audit.plan)));
  return *audit.models;
}

WuSettings equilibria_settings(const PaperPlan& plan) {
  WuSettings settings;
  settings.seed = plan.seed;
  return settings;
}

}  // namespace

void run_wu1(Audit& audit) {
  const WuSettings settings = equilibria_settings(audit.plan);
  audit.add(claims_of_wu1(settings, audit.executor));
  audit.figures.push_back(wu1_figure(settings, audit.executor));
}
void run_wu5(Audit& audit) {
  const WuSettings settings = equilibria_settings(audit.plan);
  audit.add(claims_of_wu5(settings, audit.executor));
  audit.add(claims_of_wu_theorem3(settings, audit.executor));
  audit.figures.push_back(wu5_figure(settings, audit.executor));
}
void run_wu2(Audit& audit) {
  const auto& models = models_of(audit, "wu2");
  add_part(audit, wu_figure2(settings_of(audit.plan), runner(audit, "Wu Fig. 2")));
  add_part(audit, wu_figure2_pretrained(models, runner(audit, "Wu Fig. 2, pretrained")));
}
void run_wu3(Audit& audit) {
  const auto& models = models_of(audit, "wu3");
  add_part(audit, wu_figure3(models, runner(audit, "Wu Fig. 3")));
}
void run_wu4(Audit& audit) {
  const auto& models = models_of(audit, "wu4");
  add_part(audit, wu_figure4(models, runner(audit, "Wu Fig. 4")));
}
void run_wu6(Audit& audit) {
  add_part(audit, wu_figure6(settings_of(audit.plan), runner(audit, "Wu Fig. 6")));
}
void run_wu7(Audit& audit) {
  add_part(audit, wu_figure7(settings_of(audit.plan), runner(audit, "Wu Fig. 7")));
}
void run_wu8(Audit& audit) {
  const auto& models = models_of(audit, "wu8");
  add_part(audit, wu_figure8(settings_of(audit.plan), runner(audit, "Wu Fig. 8")));
  add_part(audit, wu_figure8_pretrained(models, runner(audit, "Wu Fig. 8, pretrained")));
}
void run_wu9(Audit& audit) {
  const auto& models = models_of(audit, "wu9");
  add_part(audit, wu_figure9(settings_of(audit.plan)));
  add_part(audit, wu_figure9_pretrained(models, audit.executor));
}
void run_beyond(Audit& audit) {
  add_part(audit, wu_beyond(settings_of(audit.plan), runner(audit, "Beyond")));
}

}  // namespace normscope::cli
