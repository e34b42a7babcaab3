#include "study/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/spelling.h"
#include "normscope/error.h"
#include "record/json.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "result/ranges.h"
#include "study/paper_evidence.h"
#include "study/parse.h"
#include "study/train_majority.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

// The parts named, in the order in which they are run; all if none is.
std::vector<std::string> parse_parts(const std::string& only) {
  std::vector<std::string> known, parts;
  for (const PaperPart& part : paper_parts()) known.emplace_back(part.name);
  if (only.empty()) return known;
  const auto wanted = split(only, ',');
  for (const std::string_view name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto meant = nearest_spelling(name, known);
    throw InputError(fmt::format("--only does not know '{}'{} It takes one or several of {}.", name,
                                 meant ? fmt::format("; did you mean '{}'?", *meant) : ".",
                                 fmt::join(known, ", ")));
  }
  for (const std::string& name : known) {
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) parts.push_back(name);
  }
  return parts;
}

// Those that would need it, as "fig4, table1 and table2".
std::string parts_with(std::initializer_list<Need> any) {
  std::vector<std::string> names;
  for (const PaperPart& part : paper_parts()) {
    if (std::any_of(any.begin(), any.end(), [&](Need what) { return part.needs(what); }))
      names.emplace_back(part.name);
  }
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

// Options that no part uses are refused rather than ignored.
void require_part(const PaperPlan& plan, const char* option, bool given, std::initializer_list<Need> any) {
  const bool used = std::any_of(any.begin(), any.end(), [&](Need what) { return plan_needs(plan, what); });
  if (given && !used)
    throw InputError(fmt::format("{} is for {}, none of which --only names.", option, parts_with(any)));
}

// Which pretrained models are looked at, and what they read.
void resolve_models(const PaperOptions& options, PaperPlan& plan, const Note& note) {
  require_part(plan, "--models", !options.models.empty(), {Need::models});
  require_part(plan, "--text", !options.text.empty(), {Need::models, Need::sentences});
  if (options.text == "-")
    throw InputError("--text: a run that can be resumed needs a file, not standard input.");
  const bool looks_at_models = plan_needs(plan, Need::models) && options.models != "none";
  if (looks_at_models || plan_needs(plan, Need::sentences)) plan.text = options.text;
  if (!looks_at_models) return;
  if (options.models.empty()) {
    for (const std::string& name : models_at_hand()) {
      PaperPlan alone = plan;
      alone.models = {name};
      try {
        open_models(alone);
        plan.models.push_back(name);
      } catch (const InputError& error) {
        note(fmt::format("Left out: {}: {}", name, error.what()));
      }
    }
    return;
  }
  for (const std::string_view name : split(options.models, ',')) {
    if (name.empty()) throw InputError("--models has an empty name.");
    if (std::find(plan.models.begin(), plan.models.end(), name) == plan.models.end())
      plan.models.emplace_back(name);
  }
  open_models(plan);
}

// A part that has ended, as it is kept beside the runs.
struct KeptPart {
  PaperPlan plan;
  Findings found;
  static void describe(auto& visit, auto& self) {
    visit("plan", self.plan, "of the audit it is a part of");
    visit("seed", self.plan.seed, "");
    Findings::describe(visit, self.found);
  }
};

// None if there is no such file, or if it is of other settings or cannot be ours; the part is then run again.
std::optional<Findings> read_part(const fs::path& file, const PaperPlan& plan) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  try {
    KeptPart part = from_json<KeptPart>(text, file.string());
    if (json_of(part.plan) != json_of(plan) || part.plan.seed != plan.seed) return std::nullopt;
    const bool passive = std::all_of(part.found.figures.begin(), part.found.figures.end(),
                                     [](const Figure& figure) { return is_passive_svg(figure.svg); });
    if (!passive) return std::nullopt;
    return std::move(part.found);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// What parts look at: trained or opened by the first that does, and kept for the others.
class Laboratory {
 public:
  Laboratory(const PaperPlan& plan, const fs::path& directory, const PaperContext& context)
      : plan_(plan), directory_(directory), context_(context) {}

  // The first part of the plan that needs it also shows what it is.
  bool is_first(const PaperPart& part, Need what) const {
    for (const PaperPart& each : paper_parts()) {
      if (plan_.has(each.name) && each.needs(what)) return &each == &part;
    }
    return false;
  }
  double seconds(const PaperPart& part) const {
    for (const auto shared : {Need::majority, Need::language}) {
      if (part.needs(shared) && !is_first(part, shared)) return 1;
    }
    return std::max(0.1, part.seconds(plan_));
  }

  Findings look(const PaperPart& part) {
    Findings found;
    Evidence evidence{plan_, context_.executor};
    evidence.progress = [&](const std::string& label, const char* unit) {
      return context_.step(label, unit).progress;
    };
    evidence.collapse = [&](const std::string& label, const std::vector<CollapseCase>& cases,
                            const CollapseSettings& settings) {
      return collapse(cases, settings, context_.executor, context_.step(label, "layers").progress);
    };
    std::optional<MajorityTraining> in_3d;
    std::optional<PaperText> sentiment;
    PaperText* text = nullptr;
    if (part.needs(Need::majority)) {
      if (!majority_) {
        MajoritySettings settings;
        settings.steps = plan_.steps;
        majority_ = train("majority", "Majority", settings, Need::majority);
      }
      evidence.majority = majority_->runs();
    }
    if (part.needs(Need::majority_3d)) {
      MajoritySettings settings = majority_in_3d();
      settings.steps = plan_.steps_3d;
      in_3d = train("majority-3d", "Fig. 1a/b", settings, Need::majority_3d);
      evidence.majority = in_3d->runs();
    }
    if (part.needs(Need::language)) {
      if (!language_) language_.emplace(paper_language(plan_, directory_ / "language", context_));
      text = &*language_;
      if (is_first(part, Need::language)) found.tables.push_back(language_recipe(text->recipe));
    }
    if (part.needs(Need::sentiment))
      text = &sentiment.emplace(paper_sentiment(plan_, directory_ / "sentiment", context_));
    if (part.needs(Need::sentences))
      mark_sentences(*text, plan_, part.needs(Need::language) ? "Table 3" : "Table 4", context_);
    if (text != nullptr) {
      evidence.texts = text->runs;
      evidence.recipe = text->recipe;
    }
    if (part.needs(Need::models)) {
      if (!models_) models_ = open_models(plan_);
      evidence.models = *models_;
      if (is_first(part, Need::models) && !models_->empty())
        found.tables.push_back(pretrained_table(*models_, text_source(plan_)));
    }
    found.add(judge(part.exhibit, evidence));
    for (Figure& figure : found.figures) figure.settings = part.settings(plan_);
    for (TextFinding& finding : found.texts) finding.settings = part.settings(plan_);
    return found;
  }

 private:
  // Every norm with every seed, begun or resumed.
  MajorityTraining train(const char* name, const char* label, const MajoritySettings& settings,
                         Need what) const {
    const MajorityPlan plan = plan_majority(settings, every_run(norms_for(plan_, what), plan_.seeds));
    MajorityRecord record = MajorityRecord::begin_or_open(directory_ / name, "train majority",
                                                          provenance(0, context_.executor.threads()), plan);
    return study_majority(plan, &record, context_.step(label, "steps")).training;
  }

  const PaperPlan& plan_;
  const fs::path directory_;
  const PaperContext& context_;
  std::optional<MajorityTraining> majority_;
  std::optional<PaperText> language_;
  std::optional<std::vector<PretrainedModel>> models_;
};

}  // namespace

PaperPlan plan_paper(const PaperOptions& options, std::uint64_t seed, const Note& note) {
  check_options(options);
  // All parts at once are a first look of some minutes; who names parts wants to know.
  const bool is_short = options.only.empty() && !options.full;
  PaperPlan plan;
  plan.parts = parse_parts(options.only);
  const auto ten = paper_seeds();
  const std::size_t count = options.seeds.value_or(is_short ? 3 : ten.size());
  plan.seeds.assign(ten.begin(), ten.begin() + static_cast<std::ptrdiff_t>(count));
  if (options.full && options.steps)
    throw InputError("--full is the published number of steps; give it or --steps, not both.");
  plan.steps = options.steps.value_or(options.full ? 17'000 : is_short ? 4'000 : 6'000);
  plan.steps_3d = majority_in_3d().steps;
  if (options.steps) plan.steps_3d = std::min(plan.steps, plan.steps_3d);
  if (is_short) plan.samples = 2;
  if (options.full) {
    plan.samples = 200;
    plan.deep_samples = 4;
  }
  if (options.samples) {
    plan.samples = *options.samples;
    plan.deep_samples = std::min(plan.deep_samples, plan.samples);
  }
  plan.seed = seed;
  resolve_models(options, plan, note);
  require_part(plan, "--text-steps", options.text_steps.has_value(), {Need::language, Need::sentiment});
  if (options.full && options.text_steps)
    throw InputError("--full is the published number of steps; give it or --text-steps, not both.");
  require_part(plan, "--corpus", !options.corpus.empty(), {Need::language});
  require_part(plan, "--reviews", !options.reviews.empty(), {Need::sentences});
  resolve_text(plan, options);
  return plan;
}

PaperPlan read_paper_plan(const fs::path& directory) {
  const nlohmann::ordered_json config = read_config(directory, "paper");
  PaperPlan plan;
  try {
    JsonReader::read(config.at("options"), "options", plan);
    require_in_ranges(plan, "options");
    config.at("seed").get_to(plan.seed);
  } catch (const nlohmann::json::exception&) {
    throw InputError(
        fmt::format("'{}' cannot be resumed: its config.json has no options or no seed; start anew.",
                    directory.string()));
  } catch (const InputError& error) {
    throw InputError(fmt::format("'{}' cannot be resumed: in its config.json {} Start anew.",
                                 directory.string(), error.what()));
  }
  if ((plan_needs(plan, Need::language) && !plan.language) ||
      (plan_needs(plan, Need::sentiment) && !plan.sentiment))
    throw InputError(fmt::format(
        "'{}' cannot be resumed: its config.json does not say how the models of its parts are trained; start "
        "anew.",
        directory.string()));
  return plan;
}

PaperStudy study_paper(const PaperPlan& plan, const RunDirectory& directory, const PaperContext& context) {
  Laboratory laboratory(plan, directory.path(), context);
  double total = 0, before = 0;
  for (const PaperPart& part : paper_parts()) total += plan.has(part.name) ? laboratory.seconds(part) : 0;
  PaperStudy study{{}, {provenance(plan.seed, context.executor.threads()), plan, {}}};
  for (const PaperPart& part : paper_parts()) {
    if (!plan.has(part.name)) continue;
    const std::string file = fmt::format("part-{}.json", part.name);
    const double seconds = laboratory.seconds(part);
    auto found = read_part(directory.path() / file, plan);
    if (found) {
      total -= seconds;
    } else {
      context.begins(total, before, seconds);
      found = laboratory.look(part);
      directory.write(file, json_of(KeptPart{plan, *found}));
      before += seconds;
    }
    study.found.add(std::move(*found));
  }
  for (const Judgement& claim : study.found.claims)
    study.result.claims.push_back(
        {claim.where, claim.claim, claim.published, claim.measured, verdict_of(claim), claim.why});
  return study;
}

}  // namespace normscope
