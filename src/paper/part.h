#pragma once
// The parts of `paper`: a row of paper_parts() each, and a file with its claims and its figure. What the claims
// need is run before, by the study; a part only looks at it.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/ablate.h"
#include "normscope/collapse.h"
#include "normscope/executor.h"
#include "normscope/majority.h"
#include "normscope/model.h"
#include "paper/claim.h"
#include "paper/text_measures.h"
#include "paper/wu_dynamics.h"
#include "report/text.h"
#include "result/paper.h"

namespace normscope {

// A text with words marked; kept as tokens, so that its markup is always our own.
struct TextFinding {
  std::string name, title, caption, settings;
  TextFigure text;

  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "of its files");
    visit("title", self.title, "");
    visit("caption", self.caption, "");
    visit("settings", self.settings, "what it takes to make it again");
    visit("text", self.text, "tokens, in order");
  }
};

// What a part adds to the report.
struct Findings {
  std::vector<Judgement> claims = {};
  std::vector<Figure> figures = {};
  std::vector<TextFinding> texts = {};
  std::vector<ReportTable> tables = {};

  void add(Findings more);
  static void describe(auto& visit, auto& self) {
    visit("claims", self.claims, "");
    visit("figures", self.figures, "");
    visit("texts", self.texts, "");
    visit("tables", self.tables, "");
  }
};

struct PretrainedModel {
  std::string name;
  std::shared_ptr<const ModelWeights> weights;
  std::vector<std::vector<std::uint32_t>> texts;  // windows of equally many tokens, one per sample
};

// Shows how far something with this label is, in this unit.
using Tell = std::function<void(std::size_t done, std::size_t total)>;
using ShowProgress = std::function<Tell(const std::string& label, const char* unit)>;
// `collapse` with progress under a label.
using RunCollapse = std::function<std::vector<CollapseCurve>(
    const std::string& label, const std::vector<CollapseCase>&, const CollapseSettings&)>;
// Trainings of the majority task that one part alone looks at, of every norm with the seeds of the plan, in a
// directory of this name.
using TrainMajority = std::function<std::vector<MajorityRun>(const std::string& name, const MajoritySettings&,
                                                             const std::vector<std::string>& norms)>;

// `ablate` of a model on the text of the audit: the norm in front of attention removed, then also with a constant per
// layer that keeps the mean norm of what enters. No rows, and a note that says why, of a model without such a norm.
using AblateModel = std::function<Ablation(const PretrainedModel&)>;

// What claims look at, as far as they need it.
struct Evidence {
  const PaperPlan& plan;
  const Executor& executor;
  RunCollapse collapse = {};
  TrainMajority train_majority = {};
  AblateModel ablate = {};
  ShowProgress progress = {};
  std::span<const MajorityRun> majority = {};
  std::span<const TextEvidence> texts = {};
  TextRecipe recipe = {};  // of the texts
  std::span<const PretrainedModel> models = {};
  WuSettings dynamics = {};

  std::size_t look =
      0;  // how often was looked at the same thing with more of it each time; 0: once and for all
  Standard standard = {};  // by which it is judged

  // By once(): what is measured, never how sure one can be of it. Shared by copies.
  using Kept = std::map<const void*, std::shared_ptr<const void>>;
  std::shared_ptr<Kept> kept = std::make_shared<Kept>();
};

// What `run` makes of the evidence: run by the first claim or figure that looks, and kept for the others.
template <auto run>
const auto& once(const Evidence& evidence) {
  static constexpr char key = 0;
  using Result = decltype(run(evidence));
  std::shared_ptr<const void>& result = (*evidence.kept)[&key];
  if (!result) result = std::make_shared<const Result>(run(evidence));
  return *static_cast<const Result*>(result.get());
}

// A figure or table of a paper: what it claims, and what is shown of it here.
struct Exhibit {
  std::vector<Claim> claims;
  std::function<Findings(const Evidence& evidence)> shown = {};
};
Findings judge(const Exhibit& exhibit, const Evidence& evidence);

// What can be run more of, step by step: seeds of a training, samples.
struct Effort {
  const char* name;
  const char* unit;                  // "seed"
  std::vector<std::size_t> amounts;  // of the levels, ascending; none: there is nothing more to run
  bool adds;                         // a level runs only what it has more than the one before
  void (*limit)(PaperPlan& plan, std::size_t amount);
  const char* after = nullptr;  // an effort whose level must be as high

  std::size_t levels() const { return std::max<std::size_t>(1, amounts.size()); }
  std::string amount(std::size_t level) const;
};
// Plan with as much of an effort as a level has; level 0: none.
PaperPlan at_level(PaperPlan plan, const Effort& effort, std::size_t level);
std::span<const Effort> paper_efforts();

struct PaperPart {
  const char* name;
  const char* effort;
  const char* sentence;
  Exhibit exhibit;
  double (*seconds)(const PaperPlan& plan);        // about, on two cores: only for the time left
  std::string (*settings)(const PaperPlan& plan);  // of its figures
  bool if_named = false;                           // run only if --only names it

  bool needs(Need what) const;  // by its claims
};
// As claims have it: "brody2023", "wu2024" or "beyond".
std::string paper_of(const PaperPart& part);
// With the names and figures of the part beside every claim.
Findings judge(const PaperPart& part, const Evidence& evidence);
// In the order in which they are run.
std::span<const PaperPart> paper_parts();
// What the claims of the parts of a plan need; the norms that are trained for them, each once.
bool plan_needs(const PaperPlan& plan, Need what);
std::vector<std::string> norms_for(const PaperPlan& plan, Need what);

using MakeExhibit = Exhibit();
MakeExhibit brody_fig1ab, brody_fig1cd, brody_fig2, brody_fig3, brody_followups, brody_fig4, brody_table1,
    brody_table2, brody_table3, brody_table4, brody_fig1a_none, brody_table3_none, brody_followups_lm,
    brody_identities, brody_limits, demo_page;
MakeExhibit wu_fig1, wu_fig2, wu_fig3, wu_fig4, wu_fig5, wu_theorem3, wu_fig6, wu_fig7, wu_fig8, wu_fig9,
    wu_beyond, wu_anisotropy, wu_theorems, wu_steps, wu_deep;

// An encyclopedia of 22 short articles, which pretrained models read for want of another text.
std::string_view builtin_text();
// What stands in for what, and what was read: a table of the report. source: of the text, for people.
ReportTable pretrained_table(std::span<const PretrainedModel> models, const std::string& source);
// What was published beside what was done.
ReportTable language_recipe(const TextRecipe& recipe);

}  // namespace normscope
