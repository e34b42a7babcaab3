// Fig. 1a/b, 2 and 3 and the open questions: trainings of the majority task, in run directories of their own.
#include "cli/paper_parts.h"
#include "paper/majority_claims.h"
#include "study/train_majority.h"

namespace normscope::cli {
namespace {

// Every norm with every seed, begun or resumed.
MajorityTraining run_training(const Audit& audit, const char* name, const std::string& label,
                              const MajoritySettings& settings, const std::vector<std::string>& norms) {
  const MajorityPlan plan = plan_majority(settings, every_run(norms, audit.plan.seeds));
  MajorityRecord record = MajorityRecord::begin_or_open(audit.directory / name, "train majority",
                                                        provenance(0, audit.executor.threads()), plan);
  Progress progress(audit.common, label, "steps", &audit.whole);
  return study_majority(plan, &record, context_of(audit.common, audit.executor, &progress)).training;
}

// The norms of Fig. 2 and 3, or of them those that the open questions are held against.
std::vector<std::string> norms_of_figures(const PaperPlan& plan) {
  if (!plan.has("fig2") && !plan.has("fig3")) return {"layernorm", "rmsnorm"};
  return {"layernorm", "rmsnorm", "xsigma", "published"};
}

std::span<const MajorityRun> majority_runs(Audit& audit) {
  if (!audit.majority) {
    std::vector<std::string> norms = norms_of_figures(audit.plan);
    if (audit.plan.has("followups")) norms.insert(norms.end(), {"project:1", "project:2", "project:4"});
    MajoritySettings settings;
    settings.steps = audit.plan.steps;
    audit.majority = run_training(audit, "majority", "Majority", settings, norms);
  }
  return audit.majority->runs();
}

// Those of the paper itself.
std::span<const MajorityRun> figure_runs(Audit& audit) {
  return majority_runs(audit).first(norms_of_figures(audit.plan).size() * audit.plan.seeds.size());
}

}  // namespace

void run_fig1ab(Audit& audit) {
  MajoritySettings settings = majority_in_3d();
  settings.steps = audit.plan.steps_3d;
  const auto training =
      run_training(audit, "majority-3d", "Fig. 1a/b", settings, {"layernorm", "rmsnorm", "published"});
  audit.add(claims_of_figure1ab(training.runs()));
  audit.figures.push_back(figure1ab(training.runs()));
}

void run_fig2(Audit& audit) {
  const auto runs = figure_runs(audit);
  audit.add(claims_of_figure2(runs));
  audit.figures.push_back(figure2(runs));
}

void run_fig3(Audit& audit) {
  const auto runs = figure_runs(audit);
  audit.add(claims_of_figure3(runs));
  audit.figures.push_back(figure3(runs));
}

void run_followups(Audit& audit) {
  const auto runs = majority_runs(audit);
  audit.add(answers_to_followups(runs));
  audit.figures.push_back(followup_figure(runs));
}

}  // namespace normscope::cli
