#include "study/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "core/duration.h"
#include "core/printable.h"
#include "core/run_pieces.h"
#include "core/spelling.h"
#include "normscope/error.h"
#include "paper/schedule.h"
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

constexpr const char* kUsualBudget = "10m";
// As published.
constexpr std::uint64_t kPublishedSteps = 17'000;
constexpr std::size_t kPublishedSamples = 200, kPublishedDeepSamples = 4;

// The parts named, in the order in which they are run; all if none is.
std::vector<std::string> parse_parts(const std::string& only) {
  std::vector<std::string> known, parts;
  for (const PaperPart& part : paper_parts()) {
    known.emplace_back(part.name);
    if (!part.if_named) parts.emplace_back(part.name);
  }
  if (only.empty()) return parts;
  parts.clear();
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

// The first part of the plan that needs it also shows what it is.
bool is_first(const PaperPart& part, Need what, const PaperPlan& plan) {
  for (const PaperPart& each : paper_parts()) {
    if (plan.has(each.name) && each.needs(what)) return &each == &part;
  }
  return false;
}

// An option of an earlier run, and what is asked for beside it. That of the run stays, unless none of its parts
// uses the option.
template <class Value>
void keep_option(const char* name, Value& kept, const Value& more, bool used) {
  if (more == Value() || more == kept) return;
  if (used)
    throw InputError(
        fmt::format("Parts are added with the settings of the run, which was begun {} {}; leave {} out, or "
                    "begin a new run with --out.",
                    kept == Value() ? "without" : "with another", name, name));
  kept = more;
}

// What a part looks at: of a plan with more parts it may be the same, and what was found then is.
std::string basis_of(const PaperPart& part, const PaperPlan& whole) {
  PaperPlan plan = whole;
  plan.parts = {part.name};
  plan.asked.reset();
  plan.budget.reset();
  plan.repeats.clear();
  if (!part.needs(Need::language)) plan.language.reset();
  if (!part.needs(Need::sentiment)) plan.sentiment.reset();
  if (!part.needs(Need::sentences)) plan.sentences.reset();
  if (!part.needs(Need::models)) plan.models.clear();
  if (!part.needs(Need::models) && !part.needs(Need::sentences)) plan.text.clear();
  std::string basis = fmt::format("{}seed {}", json_of(plan), plan.seed);
  for (const auto what :
       {Need::majority, Need::majority_3d, Need::language, Need::sentiment, Need::keys, Need::models}) {
    if (part.needs(what))
      basis += fmt::format("; {} {}", is_first(part, what, whole), fmt::join(norms_for(whole, what), ","));
  }
  return basis;
}

// With as much of everything as --full runs.
PaperPlan at_published_scale(PaperPlan plan) {
  const auto ten = paper_seeds();
  plan.seeds.assign(ten.begin(), ten.end());
  plan.steps = std::max(plan.steps, kPublishedSteps);
  plan.steps_3d = majority_in_3d().steps;
  plan.samples = std::max(plan.samples, kPublishedSamples);
  plan.deep_samples = std::max(plan.deep_samples, kPublishedDeepSamples);
  publish_texts(plan);
  return plan;
}

// What more there is to run of a claim that is open. next: of its part in an audit, if there is more and it can settle
// the claim. Of models that are not at hand nothing more can be run.
void tell_more(Judgement& claim, const PaperPart& part, const PaperPlan& plan,
               const std::optional<std::pair<std::string, double>>& next) {
  claim.more.clear();
  claim.more_seconds.reset();
  if (claim.holds != Holds::open) return;
  if (next) {
    claim.more = next->first;
    claim.more_seconds = next->second;
  } else if (!claim.comparisons.empty() || !part.needs(Need::models)) {
    PaperPlan alone = plan;
    alone.parts = {part.name};
    const double full = part.seconds(at_published_scale(alone));
    if (full <= 1.01 * part.seconds(alone)) return;
    claim.more = fmt::format("the published scale (--only {} --full)", part.name);
    claim.more_seconds = full;
  }
  if (claim.more_seconds) claim.more += ", about " + rough_duration(*claim.more_seconds);
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

// None if there is no such file, or if it looked at something else or cannot be ours; the part is then run again.
std::optional<KeptPart> read_part(const fs::path& file, const PaperPart& of, const PaperPlan& plan,
                                  const Executor& executor) {
  const std::string text = from_first(executor, [&] {
    std::ifstream stream(file);
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  });
  try {
    KeptPart part = from_json<KeptPart>(text, file.string());
    if (basis_of(of, part.plan) != basis_of(of, plan)) return std::nullopt;
    const bool passive = std::all_of(part.found.figures.begin(), part.found.figures.end(),
                                     [](const Figure& figure) { return is_passive_svg(figure.svg); });
    if (!passive) return std::nullopt;
    return part;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

const Effort& effort_of(const PaperPart& part) {
  const auto all = paper_efforts();
  return *std::find_if(all.begin(), all.end(),
                       [&](const Effort& effort) { return std::string_view(effort.name) == part.effort; });
}
// With the parts alone that look at an effort.
PaperPlan of_effort(PaperPlan plan, std::string_view effort) {
  std::erase_if(plan.parts, [&](const std::string& name) {
    const auto all = paper_parts();
    return std::none_of(all.begin(), all.end(),
                        [&](const PaperPart& part) { return part.name == name && part.effort == effort; });
  });
  return plan;
}

// Of a training some seeds, in a directory of their own.
struct Batch {
  std::string directory;
  std::vector<std::uint64_t> seeds;
};
// All levels of an effort up to one; level 0: all of the plan at once.
std::vector<Batch> batches_of(const PaperPlan& plan, const Effort& effort, const char* name,
                              std::size_t level) {
  if (level == 0) return {{name, plan.seeds}};
  std::vector<Batch> batches;
  std::size_t done = 0;
  for (std::size_t l = 1; l <= level; ++l) {
    const std::size_t count = at_level(plan, effort, l).seeds.size();
    const auto seeds = plan.seeds.begin();
    if (count > done)
      batches.push_back(
          {l == 1 ? name : fmt::format("{}-{}", name, l),
           {seeds + static_cast<std::ptrdiff_t>(done), seeds + static_cast<std::ptrdiff_t>(count)}});
    done = std::max(done, count);
  }
  return batches;
}

// What parts look at: trained or opened by the first that does, and kept for the others.
class Laboratory {
 public:
  Laboratory(const PaperPlan& plan, const fs::path& directory, const PaperContext& context)
      : plan_(plan), directory_(directory), context_(context) {}

  double seconds(const PaperPart& part) const {
    for (const auto shared : {Need::majority, Need::language}) {
      if (part.needs(shared) && !is_first(part, shared, plan_)) return 1;
    }
    return std::max(0.1, part.seconds(plan_));
  }

  // With as much of its effort as a level has, which is looked at for the look-th time; level 0: with all of the
  // plan, once.
  Findings look(const PaperPart& part, std::size_t level = 0, std::size_t look = 0) {
    const Effort& effort = effort_of(part);
    const PaperPlan plan = level == 0 ? plan_ : at_level(plan_, effort, level);
    Findings found;
    Evidence evidence{plan, context_.executor};
    evidence.look = look;
    evidence.progress = [&](const std::string& label, const char* unit) {
      return context_.step(label, unit).progress;
    };
    evidence.collapse = [&](const std::string& label, const std::vector<CollapseCase>& cases,
                            const CollapseSettings& settings) {
      return collapse(cases, settings, context_.executor, context_.step(label, "layers").progress);
    };
    evidence.train_majority = [&](const std::string& name, const MajoritySettings& settings,
                                  const std::vector<std::string>& norms) {
      return own_majority_runs(effort, level, name, settings, norms);
    };
    evidence.ablate = [&](const PretrainedModel& model) {
      return ablate_model(plan, model, context_.step("Without norms: " + model.name, "passes"));
    };
    std::vector<MajorityRun> majority;
    std::vector<TextEvidence> texts;
    std::vector<PretrainedModel> models;
    if (part.needs(Need::majority) || part.needs(Need::majority_3d)) {
      majority = majority_runs(part, level);
      evidence.majority = majority;
    }
    if (part.needs(Need::language) || part.needs(Need::sentiment)) {
      for (PaperText* text : text_runs(part, level)) {
        if (part.needs(Need::sentences) && text->recipe.sentences == 0)
          mark_sentences(*text, plan_, part.needs(Need::language) ? "Table 3" : "Table 4", context_);
        texts.insert(texts.end(), text->runs.begin(), text->runs.end());
        evidence.recipe = text->recipe;
      }
      evidence.texts = texts;
      if (is_first(part, Need::language, plan_)) found.tables.push_back(language_recipe(evidence.recipe));
    }
    if (part.needs(Need::models)) {
      if (!models_) models_ = open_models(plan_);
      models = *models_;
      for (PretrainedModel& model : models)
        model.texts.resize(std::min(model.texts.size(), std::max<std::size_t>(1, plan.samples)));
      evidence.models = models;
      if (is_first(part, Need::models, plan_) && !models.empty())
        found.tables.push_back(pretrained_table(models, text_source(plan)));
    }
    found.add(judge(part, evidence));
    for (Figure& figure : found.figures) figure.settings = part.settings(plan);
    for (TextFinding& finding : found.texts) finding.settings = part.settings(plan);
    for (Judgement& claim : found.claims)
      claim.amount = level == 0 ? part.settings(plan) : effort.amount(level);
    return found;
  }

 private:
  // Every norm with every seed of a batch, begun or resumed.
  const MajorityTraining& trained(const Batch& batch, const char* label, const MajoritySettings& settings,
                                  const std::vector<std::string>& norms) {
    const auto known = majority_.find(batch.directory);
    if (known != majority_.end()) return known->second;
    const MajorityPlan plan = plan_majority(settings, every_run(norms, batch.seeds));
    std::optional<MajorityRecord> record;
    if (is_first_process(context_.executor))
      record = MajorityRecord::begin_or_open(directory_ / batch.directory, "train majority",
                                             provenance(0, context_.executor.threads()), plan);
    return majority_
        .emplace(batch.directory,
                 study_majority(plan, record ? &*record : nullptr, context_.step(label, "steps")).training)
        .first->second;
  }

  std::vector<MajorityRun> majority_runs(const PaperPart& part, std::size_t level) {
    std::vector<MajorityRun> runs;
    const auto add = [&](const Effort& effort, const char* label, const MajoritySettings& settings,
                         const std::vector<std::string>& norms) {
      for (const Batch& batch : batches_of(plan_, effort, effort.name, level)) {
        const auto more = trained(batch, label, settings, norms).runs();
        runs.insert(runs.end(), more.begin(), more.end());
      }
    };
    const Effort& effort = effort_of(part);
    if (part.needs(Need::majority_3d)) {
      MajoritySettings settings = majority_in_3d();
      settings.steps = plan_.steps_3d;
      add(effort, "Fig. 1a/b", settings, norms_for(plan_, Need::majority_3d));
      return runs;
    }
    MajoritySettings settings;
    settings.steps = plan_.steps;
    const auto efforts = paper_efforts();
    const Effort& shared = *std::find_if(efforts.begin(), efforts.end(), [](const Effort& each) {
      return std::string_view(each.name) == "majority";
    });
    std::vector<std::string> norms =
        norms_for(level == 0 ? plan_ : of_effort(plan_, shared.name), Need::majority);
    if (!norms.empty()) add(shared, "Majority", settings, norms);
    if (level > 0 && &effort != &shared) {
      std::vector<std::string> own = norms_for(of_effort(plan_, effort.name), Need::majority);
      std::erase_if(own, [&](const std::string& norm) {
        return std::find(norms.begin(), norms.end(), norm) != norms.end();
      });
      add(effort, "Learned normals", settings, own);
      norms.insert(norms.end(), own.begin(), own.end());
    }
    sort_by_norm(runs, norms);
    return runs;
  }

  // Those that one part alone looks at.
  std::vector<MajorityRun> own_majority_runs(const Effort& effort, std::size_t level, const std::string& name,
                                             const MajoritySettings& settings,
                                             const std::vector<std::string>& norms) {
    std::vector<MajorityRun> runs;
    for (const Batch& batch : batches_of(plan_, effort, name.c_str(), level)) {
      const auto more = trained(batch, name.c_str(), settings, norms).runs();
      runs.insert(runs.end(), more.begin(), more.end());
    }
    sort_by_norm(runs, norms);
    return runs;
  }

  // Norm by norm, as if all seeds had been trained at once.
  static void sort_by_norm(std::vector<MajorityRun>& runs, const std::vector<std::string>& norms) {
    std::stable_sort(runs.begin(), runs.end(), [&](const MajorityRun& a, const MajorityRun& b) {
      return std::find(norms.begin(), norms.end(), a.id.norm) <
             std::find(norms.begin(), norms.end(), b.id.norm);
    });
  }

  std::vector<PaperText*> text_runs(const PaperPart& part, std::size_t level) {
    const bool language = part.needs(Need::language);
    std::vector<PaperText*> all;
    for (const Batch& batch :
         batches_of(plan_, effort_of(part), language ? "language" : "sentiment", level)) {
      auto known = texts_.find(batch.directory);
      if (known == texts_.end()) {
        PaperPlan plan = plan_;
        if (level > 0) {
          plan.seeds = batch.seeds;
          (language ? plan.language->seeds : plan.sentiment->seeds) = batch.seeds.size();
        }
        const auto train = language ? paper_language : paper_sentiment;
        known = texts_.emplace(batch.directory, train(plan, directory_ / batch.directory, context_)).first;
      }
      all.push_back(&known->second);
    }
    return all;
  }

  const PaperPlan& plan_;
  const fs::path directory_;
  const PaperContext& context_;
  std::map<std::string, MajorityTraining> majority_;  // by directory
  std::map<std::string, PaperText> texts_;
  std::optional<std::vector<PretrainedModel>> models_;
};

}  // namespace

PaperPlan plan_paper(const PaperOptions& options, std::uint64_t seed, const Note& note) {
  check_options(options);
  // All parts at once are a first look of some minutes; who names parts wants to know.
  const bool is_short = options.only.empty() && !options.full;
  PaperPlan plan;
  plan.parts = parse_parts(options.only);
  const bool fixed = options.seeds || options.steps || options.text_steps || options.samples || options.full;
  if (fixed && (!options.budget.empty() || !options.pieces.empty()))
    throw InputError(
        "--budget and --pieces run as much of everything as verdicts need; give them, or --seeds, --steps, "
        "--text-steps, --samples or --full, not both.");
  const auto ten = paper_seeds();
  const std::size_t count = options.seeds.value_or(is_short ? 3 : ten.size());
  plan.seeds.assign(ten.begin(), ten.begin() + static_cast<std::ptrdiff_t>(count));
  if (options.full && options.steps)
    throw InputError("--full is the published number of steps; give it or --steps, not both.");
  plan.steps = options.steps.value_or(options.full ? kPublishedSteps : is_short ? 4'000 : 6'000);
  plan.steps_3d = majority_in_3d().steps;
  if (options.steps) plan.steps_3d = std::min(plan.steps, plan.steps_3d);
  if (is_short) plan.samples = 2;
  if (options.full) {
    plan.samples = kPublishedSamples;
    plan.deep_samples = kPublishedDeepSamples;
  }
  if (options.samples) {
    plan.samples = *options.samples;
    plan.deep_samples = std::min(plan.deep_samples, plan.samples);
  }
  if (!fixed) {
    plan.budget = parse_duration(options.budget.empty() ? kUsualBudget : options.budget, "--budget");
    if (!options.pieces.empty()) plan.repeats = read_piece_log(options.pieces, plan);
    // The most there may be of each.
    plan.seeds.assign(ten.begin(), ten.end());
    plan.steps = 5'000;  // at which the last of the published losses and accuracies stand
    plan.samples = 128;
    plan.deep_samples = 8;
  }
  plan.seed = seed;
  resolve_models(options, plan, note);
  require_part(plan, "--text-steps", options.text_steps.has_value(), {Need::language, Need::sentiment});
  if (options.full && options.text_steps)
    throw InputError("--full is the published number of steps; give it or --text-steps, not both.");
  require_part(plan, "--corpus", !options.corpus.empty(), {Need::language});
  require_part(plan, "--reviews", !options.reviews.empty(), {Need::sentences});
  require_part(plan, "--squad", !options.squad.empty(), {Need::keys});
  require_part(plan, "--test-text", !options.test_text.empty(), {Need::language});
  resolve_text(plan, options);
  plan.asked = PaperAsked{options.seeds,  options.samples, options.steps,     options.text_steps,
                          options.models, options.text,    options.corpus,    options.reviews,
                          options.budget, options.squad,   options.test_text, options.full};
  return plan;
}

PaperPlan widened_plan(const PaperPlan& run, const PaperOptions& more, std::optional<std::uint64_t> seed,
                       const Note& note) {
  check_options(more);
  if (seed && *seed != run.seed)
    throw InputError(fmt::format(
        "--seed {}: parts are added with the settings of the run, whose seed is {}; leave --seed out, or begin a "
        "new run with --out.",
        *seed, run.seed));
  if (!run.asked)
    throw InputError(
        "--only: the run's config.json does not say with which options it was begun, so that no part can be added "
        "to it; begin a new run with --out.");
  const bool texts = plan_needs(run, Need::language) || plan_needs(run, Need::sentiment);
  const bool sentences = plan_needs(run, Need::sentences), models = plan_needs(run, Need::models);
  PaperAsked asked = *run.asked;
  keep_option("--seeds", asked.seeds, more.seeds, true);
  keep_option("--steps", asked.steps, more.steps, true);
  keep_option("--samples", asked.samples, more.samples, true);
  keep_option("--full", asked.full, more.full, true);
  keep_option("--budget", asked.budget, more.budget, true);
  keep_option("--squad", asked.squad, more.squad, plan_needs(run, Need::keys));
  keep_option("--test-text", asked.test_text, more.test_text, plan_needs(run, Need::language));
  keep_option("--text-steps", asked.text_steps, more.text_steps, texts);
  keep_option("--models", asked.models, more.models, models);
  keep_option("--text", asked.text, more.text, models || sentences);
  keep_option("--corpus", asked.corpus, more.corpus, plan_needs(run, Need::language));
  keep_option("--reviews", asked.reviews, more.reviews, sentences);

  PaperOptions options{.only = more.only,
                       .seeds = asked.seeds,
                       .steps = asked.steps,
                       .text_steps = asked.text_steps,
                       .samples = asked.samples,
                       .models = models ? "none" : asked.models,
                       .text = asked.text,
                       .corpus = run.language ? "" : asked.corpus,
                       .reviews = run.sentences ? run.sentences->reviews : asked.reviews,
                       .full = asked.full,
                       .budget = asked.budget,
                       .squad = run.language ? "" : asked.squad,
                       .test_text = run.language ? "" : asked.test_text};
  for (const std::string& part : run.parts) options.only += "," + part;
  PaperPlan plan = run;
  plan.parts = parse_parts(options.only);
  if (plan.parts == run.parts) return run;
  // What the run has resolved stays; the rest is resolved now.
  const PaperPlan added = plan_paper(options, run.seed, note);
  if (!plan.language) plan.language = added.language;
  if (!plan.sentiment) plan.sentiment = added.sentiment;
  if (!plan.sentences) plan.sentences = added.sentences;
  if (!models) plan.models = added.models;
  if (plan.text.empty()) plan.text = added.text;
  plan.asked = asked;
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

PaperPlan plan_of_first(const std::function<PaperPlan()>& plan, const Executor& executor) {
  struct Told {
    std::string plan;
    std::uint64_t seed = 0;
  };
  if (is_alone(executor)) return plan();
  std::optional<PaperPlan> made;
  const std::string bytes = from_first(executor, [&] {
    made = plan();
    return packed(Told{json_of(*made), made->seed});
  });
  if (made) return *made;
  const auto told = unpacked<Told>(bytes);
  PaperPlan taken = from_json<PaperPlan>(told.plan, "The plan of the first process");
  taken.seed = told.seed;
  return taken;
}

namespace {

// The whole plan, part by part.
Findings fixed_recipe(const PaperPlan& plan, const RunDirectory* directory, const PaperContext& context) {
  const fs::path kept = directory == nullptr ? fs::path() : directory->path();
  Laboratory laboratory(plan, kept, context);
  double total = 0, before = 0;
  for (const PaperPart& part : paper_parts()) total += plan.has(part.name) ? laboratory.seconds(part) : 0;
  Findings all;
  for (const PaperPart& part : paper_parts()) {
    if (!plan.has(part.name)) continue;
    const std::string file = fmt::format("part-{}.json", part.name);
    const double seconds = laboratory.seconds(part);
    auto part_found = read_part(kept / file, part, plan, context.executor);
    const bool same_plan = part_found && json_of(part_found->plan) == json_of(plan);
    if (part_found) {
      total -= seconds;
    } else {
      context.begins(total, before, seconds);
      const PieceScope scope(context.executor, part.name);
      part_found = {plan, laboratory.look(part)};
      before += seconds;
    }
    if (!same_plan && directory != nullptr)
      directory->write(file, json_of(KeptPart{plan, part_found->found}));
    for (Judgement& claim : part_found->found.claims) tell_more(claim, part, plan, std::nullopt);
    all.add(std::move(part_found->found));
  }
  return all;
}

// A piece as the log has it.
struct LoggedPiece {
  PieceResult piece;
  double seconds = 0;
  static void describe(auto& visit, auto& self) {
    PieceResult::describe(visit, self.piece);
    visit("seconds", self.seconds, "that it took", {.low = 0});
  }
};
constexpr const char* kPieceLog = "pieces.jsonl";
// None if there is no such file; lines that are no pieces are refused.
std::vector<LoggedPiece> logged_pieces(const fs::path& file) {
  std::vector<LoggedPiece> pieces;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const std::string place = fmt::format("Line {} of '{}'", pieces.size() + 1, file.string());
    pieces.push_back(from_json<LoggedPiece>(line, place));
    require_in_ranges(pieces.back(), place);
  }
  return pieces;
}

// An audit, piece by piece.
class Audit {
 public:
  Audit(const PaperPlan& plan, const RunDirectory* directory, const PaperContext& context)
      : plan_(plan),
        directory_(directory),
        context_(context),
        laboratory_(plan, directory == nullptr ? fs::path() : directory->path(), context) {
    for (const Effort& effort : paper_efforts()) {
      Line line{effort.name, 0, effort.levels()};
      const PaperPlan own = of_effort(plan, effort.name);
      if (own.parts.empty()) continue;
      double before = 0;
      for (std::size_t level = 1; level <= line.levels; ++level) {
        const double all = seconds_of(at_level(own, effort, level));
        line.seconds.push_back(effort.adds ? all - before : all);
        before = all;
      }
      if (effort.after != nullptr) {
        for (std::size_t i = 0; i < lines_.size(); ++i)
          if (lines_[i].name == effort.after) line.after = i;
      }
      line.waiting = 0;
      for (const PaperPart& part : paper_parts())
        if (own.has(part.name)) line.waiting += part.exhibit.claims.size();
      lines_.push_back(line);
      efforts_.push_back(&effort);
    }
  }

  Findings run(std::vector<PieceResult>& pieces) {
    const std::string told = from_first(context_.executor, [&] {
      std::string lines;
      for (LoggedPiece& piece : logged_pieces(directory_->path() / kPieceLog)) lines += json_of(piece, -1);
      return lines;
    });
    std::vector<LoggedPiece> log;
    for (const std::string_view line : split(told, '\n'))
      if (!line.empty()) log.push_back(from_json<LoggedPiece>(std::string(line), kPieceLog));
    double spent = 0;
    for (const LoggedPiece& each : log) spent += each.seconds;
    for (std::size_t done = 0;; ++done) {
      const auto next = next_of(done);
      if (!next || (done >= log.size() && plan_.repeats.empty() && is_over(spent, *next, done))) break;
      context_.begins(std::max(*plan_.budget, spent), spent, next_seconds(*next));
      const Clock::time_point begun = Clock::now();
      const PieceResult piece = run_piece(*next);
      pieces.push_back(piece);
      if (done < log.size()) continue;
      log.push_back({piece, std::chrono::duration<double>(Clock::now() - begun).count()});
      spent += log.back().seconds;
      if (directory_ == nullptr) continue;
      std::string lines;
      for (const LoggedPiece& each : log) lines += json_of(each, -1);
      directory_->write(kPieceLog, lines);
    }
    Findings all;
    for (const PaperPart& part : paper_parts()) {
      if (!plan_.has(part.name)) continue;
      const auto seen = found_.find(part.name);
      Findings found = seen != found_.end() ? std::move(seen->second) : not_run(part);
      for (Judgement& claim : found.claims) tell_more(claim, part, plan_, next_for(claim, part));
      all.add(std::move(found));
    }
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // What the parts of a plan take, which is of one effort.
  static double seconds_of(const PaperPlan& plan) {
    double most = 0;
    for (const PaperPart& part : paper_parts())
      if (plan.has(part.name)) most = std::max(most, part.seconds(plan));
    return std::max(0.1, most);
  }
  double next_seconds(std::size_t line) const { return lines_[line].seconds[lines_[line].level]; }

  std::optional<std::size_t> next_of(std::size_t done) const {
    if (plan_.repeats.empty()) return next_line(lines_, *plan_.budget - planned_);
    if (done == plan_.repeats.size()) return std::nullopt;
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].name == plan_.repeats[done].effort && lines_[i].level < lines_[i].levels) return i;
    return std::nullopt;
  }

  // The clock of the first process counts. The first piece is run in any case.
  bool is_over(double spent, std::size_t next, std::size_t done) const {
    return done > 0 && from_first(context_.executor, [&] {
                         return std::string(spent + next_seconds(next) > *plan_.budget ? "over" : "");
                       }) == "over";
  }

  PieceResult run_piece(std::size_t at) {
    Line& line = lines_[at];
    const Effort& effort = *efforts_[at];
    planned_ += line.seconds[line.level];
    ++line.level;
    if (line.level < line.levels)
      line.growth = static_cast<double>(effort.amounts[line.level]) /
                    static_cast<double>(effort.amounts[line.level - 1]);
    PieceResult piece{effort.name, line.level, effort.amount(line.level), {}};
    line.claims.clear();
    const PaperPlan plan = at_level(plan_, effort, line.level);
    for (const PaperPart& part : paper_parts()) {
      if (part.effort != line.name || !plan_.has(part.name)) continue;
      piece.parts.emplace_back(part.name);
      const std::string file = fmt::format("part-{}-{}.json", part.name, line.level);
      auto kept = read_part(directory_ == nullptr ? fs::path() : directory_->path() / file, part, plan,
                            context_.executor);
      if (!kept) {
        const PieceScope scope(context_.executor, fmt::format("{}-{}", part.name, line.level));
        kept = {plan, laboratory_.look(part, line.level, line.level)};
        leave_settled(found_[part.name], kept->found, line.level);
        if (directory_ != nullptr) directory_->write(file, json_of(*kept));
      }
      found_[part.name] = std::move(kept->found);
      const auto& claims = found_[part.name].claims;
      line.claims.insert(line.claims.end(), claims.begin(), claims.end());
    }
    return piece;
  }

  // A verdict stays as it was when it was reached: by then 95 % had been spent on it as often as it was looked at.
  static void leave_settled(const Findings& before, Findings& now, std::size_t pieces) {
    for (Judgement& claim : now.claims) {
      for (const Judgement& earlier : before.claims) {
        if (earlier.id == claim.id && earlier.holds != Holds::open) claim = earlier;
      }
      claim.pieces = pieces;
    }
  }

  // The next level of a part's effort, and what it takes, if it can settle the claim.
  std::optional<std::pair<std::string, double>> next_for(const Judgement& claim,
                                                         const PaperPart& part) const {
    const auto at = static_cast<std::size_t>(std::distance(
        lines_.begin(), std::find_if(lines_.begin(), lines_.end(),
                                     [&](const Line& line) { return line.name == part.effort; })));
    const Line& line = lines_[at];
    const Effort& effort = *efforts_[at];
    if (line.level == line.levels || (line.level > 0 && promise_of(claim, line.growth) == 0))
      return std::nullopt;
    double seconds = line.seconds[line.level];
    if (line.after && lines_[*line.after].level <= line.level) {
      const Line& before = lines_[*line.after];
      if (before.level == before.levels) return std::nullopt;
      seconds += before.seconds[before.level];
    }
    const std::string more = effort.amount(line.level + 1);
    return std::pair(
        line.level == 0 ? more : fmt::format("{} in place of {}", more, effort.amount(line.level)), seconds);
  }

  static Findings not_run(const PaperPart& part) {
    Findings found;
    for (std::size_t c = 0; c < part.exhibit.claims.size(); ++c) {
      const Claim& claim = part.exhibit.claims[c];
      Judgement open{claim.where, claim.sentence, "see the paper", "not run: the budget ended before",
                     "open"};
      open.id = fmt::format("{}-{}", part.name, c + 1);
      open.part = part.name;
      open.paper = paper_of(part);
      open.topic = claim.topic;
      open.missing = "A larger --budget.";
      open.looks = open.pieces = 0;
      found.claims.push_back(std::move(open));
    }
    return found;
  }

  const PaperPlan& plan_;
  const RunDirectory* directory_;
  const PaperContext& context_;
  Laboratory laboratory_;
  std::vector<Line> lines_;
  std::vector<const Effort*> efforts_;
  double planned_ = 0;  // seconds that the pieces so far would have taken, about; not what they took
  std::map<std::string, Findings> found_;  // of the last look at every part
};

}  // namespace

double parse_duration(const std::string& text, const char* option) {
  double seconds = 0;
  std::size_t used = 0;
  try {
    seconds = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const double factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86'400 : 0;
  if (used == 0 || factor == 0 || !(seconds > 0) || !(seconds * factor < 1e9))
    throw InputError(
        fmt::format("{} takes a time with its unit, such as 90s, 10m or 2h, not '{}'.", option, text));
  return seconds * factor;
}

std::vector<PieceResult> read_piece_log(const std::string& file, const PaperPlan& plan) {
  std::vector<PieceResult> pieces;
  std::map<std::string, std::size_t> levels;
  for (LoggedPiece& each : logged_pieces(file)) {
    const auto efforts = paper_efforts();
    const auto effort = std::find_if(efforts.begin(), efforts.end(), [&](const Effort& known) {
      return each.piece.effort == known.name && each.piece.level <= known.levels();
    });
    if (effort == efforts.end() || each.piece.level != ++levels[each.piece.effort])
      throw InputError(fmt::format(
          "--pieces: in '{}' piece {}, level {} of '{}', does not follow on those before it; give the {} of an audit.",
          file, pieces.size() + 1, each.piece.level, printable(each.piece.effort), kPieceLog));
    if (of_effort(plan, each.piece.effort).parts.empty())
      throw InputError(
          fmt::format("--pieces: '{}' has a piece of '{}', which no part of this audit looks at.", file,
                      each.piece.effort));
    pieces.push_back(std::move(each.piece));
  }
  if (pieces.empty())
    throw InputError(fmt::format(
        "--pieces: '{}' cannot be read or is empty; give the {} of an earlier audit.", file, kPieceLog));
  return pieces;
}

PaperStudy study_paper(const PaperPlan& plan, const RunDirectory* directory, const PaperContext& context) {
  PaperStudy study{{}, {provenance(plan.seed, context.executor.threads()), plan, {}, {}}};
  study.found = plan.budget ? Audit(plan, directory, context).run(study.result.pieces)
                            : fixed_recipe(plan, directory, context);
  study.result.claims = study.found.claims;
  return study;
}

}  // namespace normscope
