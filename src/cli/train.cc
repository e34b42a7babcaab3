// normscope train majority, lm, sentiment: small models with any norm and many seeds at once.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/training_marks.h"
#include "core/number_text.h"
#include "normscope/error.h"
#include "normscope/mask.h"
#include "report/training_page.h"
#include "result/columns.h"
#include "study/train_majority.h"
#include "study/train_text.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMajority = "train majority";
constexpr IntervalStyle kOnScreen{.sign = " ±", .none = "-"};
constexpr const char* kByAGrammar =
    "The text was written by a built-in grammar: these are not results on real text.";

// A command as it was called.
template <class Options>
struct TrainCall : TrainingCall<Options> {
  const char* name;  // "train lm"
  const Common& common;
  const CLI::App& command;
};

template <class Options>
using Run = void (*)(const TrainCall<Options>& call, const Executor& executor);

template <class Options>
void add_training(CLI::App& train, Common& common, const char* name, const char* description,
                  const std::vector<std::string>& examples, Run<Options> run) {
  CLI::App* command =
      add_command(train, common, name + std::string_view(name).find(' ') + 1, description, examples);
  // Runs have seeds of their own, of which the paper's first is the default.
  describe_seed(*command, "Seed of a single run; same seed, same result [11]", "");
  auto call = std::make_shared<TrainCall<Options>>(TrainCall<Options>{{}, name, common, *command});
  add_options(*command, *call);
  add_to_footer(*command, "Norms: " + norm_list());
  when_called(*command, [call, run, command] {
    const Common& given = call->common;
    if (was_given(*command, "--seed")) call->study.seed = given.seed;
    run(*call, Executor(given.threads, given.stop));
  });
}

// The record of --resume, if it was given.
template <class Record, class Options>
std::optional<Record> opened(const TrainCall<Options>& call) {
  if (!resumes(call.command, {"--checkpoint-every", "--steps"})) return std::nullopt;
  Record record = Record::open(call.resume, call.name);
  if (was_given(call.command, "--steps"))
    record.extend(call.name, std::optional(call.study.steps).value_or(0));
  return record;
}

// That of --out, once there is a plan. From here on what is finished is kept.
template <class Record, class Plan, class Options>
void begin(std::optional<Record>& record, const Plan& plan, const TrainCall<Options>& call,
           const Executor& executor) {
  if (!record && !call.common.out.empty())
    record.emplace(call.common.out, call.name, provenance(0, executor.threads()), plan);
  if (!record) return;
  if (const auto steps = call.study.checkpoint_every) record->set_checkpoint_every(*steps);
  const fs::path& path = record->directory().path();
  set_kept(kept_of(record->directory(), call.name), (path / "checkpoint.safetensors").string(),
           fmt::format("Stopped before the first checkpoint: normscope {} --resume {} begins at step 0.",
                       call.name, path.string()));
}

// results.json and report.html, unless the training had ended before with both.
template <class Study>
void write_results(const RunDirectory& directory, const Study& study, const TrainingAbout& about,
                   const Common& common) {
  const auto written = [&](const char* name) { return fs::exists(directory.path() / name); };
  if (study.time.steps == 0 && written("results.json") && written("report.html")) return;
  directory.write("results.json", json_of(study.result));
  std::string data = json_of(study.result, -1);
  data.pop_back();  // the newline
  const RunFiles run = read_run(directory.path());
  const auto& settings = object_of(object_of(run.config, "options"), "settings");
  directory.write("report.html", render_html(training_page(about, run.log.series, training_marks(settings),
                                                           settings, study.result.made.made, data)));
  note(common, "Wrote " + directory.path().string());
}

// Of the runs of a norm, the values of a measure that are finite.
template <class RunResult, class Value>
std::vector<double> values_of(const std::vector<RunResult>& runs, const std::string& norm,
                              const Value& value) {
  std::vector<double> values;
  for (const RunResult& run : runs)
    if (run.run.norm == norm && std::isfinite(value(run))) values.push_back(value(run));
  return values;
}

// The mean if all runs got there, "-" if none did; otherwise the median of all and how many did.
std::string steps_cell(std::span<const MajorityRun> runs, const std::string& norm, double loss) {
  std::vector<double> steps;
  std::vector<Range> ranges;
  for (const MajorityRun& run : runs) {
    if (run.id.norm != norm) continue;
    const auto reached = run.steps_to(loss);
    const auto made = static_cast<double>(reached.value_or(run.step));
    if (reached) steps.push_back(made);
    ranges.push_back({made, reached ? made : std::numeric_limits<double>::infinity()});
  }
  if (steps.empty() || steps.size() == ranges.size()) return mean_or_both(steps, 0, 1, kOnScreen);
  const Range median = ratio_interval(ranges).estimate;
  return fmt::format("median {}{:.0f} ({} of {})", median.low == median.high ? "" : ">", median.low,
                     steps.size(), ranges.size());
}

// Mean over positions of the entropy of attention that is uniform over what the mask leaves.
double uniform_entropy(const MajoritySettings& settings) {
  const Mask mask = parse_mask(settings.mask, settings.task.length);
  double sum = 0;
  for (std::size_t i = 0; i < mask.n(); ++i) {
    std::size_t keys = 0;
    for (const Mask::Run& run : mask.row(i)) keys += run.last - run.first;
    sum += std::log(static_cast<double>(keys));
  }
  return sum / static_cast<double>(mask.n());
}

struct MajorityLine {
  std::string norm;
  std::size_t runs;
  std::uint64_t steps;
  MajorityMeasures<std::string> measures;
  std::string to_1, to_half, to_fifth;

  static void describe(auto& visit, auto& self) {
    const auto& measures = self.measures;
    visit("norm", self.norm, "before attention");
    visit("runs", self.runs, "of this norm");
    visit("steps", self.steps, "of the longest");
    visit("train loss", measures.train_loss, "since the evaluation before");
    visit("test loss", measures.test_loss, "of the held-out fifth");
    visit("accuracy %", measures.accuracy, "of positions");
    visit("whole seq. %", measures.sequence_accuracy, "right at every position");
    visit("angle to 1", measures.angle_mean + "°", "of the first layer's queries");
    visit("entropy", measures.attention_entropy, "of the attention rows, in nats");
    visit("from uniform", measures.attention_distance, "total variation distance");
    visit("to 1.0", self.to_1, "steps until the train loss is at most this");
    visit("to 0.5", self.to_half, "likewise");
    visit("to 0.2", self.to_fifth, "likewise");
  }
};

std::string screen(const MajorityStudy& study) {
  using M = MajorityMeasures<double>;
  const MajorityResult& result = study.result;
  const auto trained = study.training.runs();
  std::vector<MajorityLine> rows;
  std::vector<std::size_t> counts;
  for (const MajorityNormResult& norm : result.norms) {
    const std::string& name = norm.norm;
    counts.push_back(norm.runs);
    std::uint64_t steps = 0;
    for (const MajorityRun& run : trained)
      if (run.id.norm == name) steps = std::max(steps, run.step);
    const auto cell = [&](double M::*measure, int digits, double factor = 1) {
      const auto values =
          values_of(result.runs, name, [&](const MajorityRunResult& run) { return run.measures.*measure; });
      return mean_or_both(values, digits, factor, kOnScreen);
    };
    rows.push_back({name,
                    norm.runs,
                    steps,
                    {.train_loss = cell(&M::train_loss, 3),
                     .test_loss = cell(&M::test_loss, 3),
                     .accuracy = cell(&M::accuracy, 1, 100),
                     .sequence_accuracy = cell(&M::sequence_accuracy, 1, 100),
                     .angle_mean = cell(&M::angle_mean, 1),
                     .angle_sd = "",
                     .attention_entropy = cell(&M::attention_entropy, 2),
                     .attention_distance = cell(&M::attention_distance, 3)},
                    steps_cell(trained, name, 1.0),
                    steps_cell(trained, name, 0.5),
                    steps_cell(trained, name, 0.2)});
  }
  std::string text = table(table_of(rows));
  for (const MajorityRunResult& run : result.runs) {
    if (run.diverged)
      text += fmt::format("{} with seed {} diverged after step {}: its loss is not finite.\n", run.run.norm,
                          run.run.seed, run.step);
  }
  const MajorityTask& task = result.settings.task;
  text += fmt::format(
      "\nMajority of {} classes in sequences of {}, lead at least {}; uniform attention has entropy "
      "{:.2f}.\n",
      task.classes, task.length, task.margin, uniform_entropy(result.settings));
  if (study.time.steps > 0)
    text += fmt::format("{:.2f} ms per step over {} steps in {}; {}.\n", result.ms_per_step, study.time.steps,
                        duration(study.time.seconds), over_seeds(counts));
  return text;
}

void run_majority(const TrainCall<MajorityOptions>& call, const Executor& executor) {
  auto record = opened<MajorityRecord>(call);
  const MajorityPlan plan = record ? record->plan() : plan_majority(call.study);
  begin(record, plan, call, executor);
  const MajorityStudy study = [&] {
    Progress progress(call.common, "Training", "steps");
    return study_majority(plan, record ? &*record : nullptr, context_of(call.common, executor, &progress));
  }();
  if (record) write_results(record->directory(), study, about_majority(), call.common);
  print(call.common.json ? json_of(study.result, -1) : screen(study));
}

struct TextLine {
  std::string norm;
  std::size_t runs;
  std::uint64_t steps, seen;
  bool classes;
  std::string train_loss, held_out_loss, quality;

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "by name");
    visit("runs", self.runs, "without those with trouble");
    visit("steps", self.steps, "of the longest");
    visit("train loss", self.train_loss, "since the evaluation before");
    visit(self.classes ? "test loss" : "held-out loss", self.held_out_loss, "of what is not trained on");
    visit(self.classes ? "accuracy %" : "perplexity", self.quality, "of the same");
    visit(self.classes ? "texts seen" : "tokens seen", self.seen, "in training");
  }
};

std::string screen(const TextTrainingStudy& study, const TextsRead& texts) {
  const TextResult& result = study.result;
  const bool classes = result.settings.classifies();
  std::vector<TextLine> rows;
  std::vector<std::size_t> counts;
  std::vector<TextRunResult> sound = result.runs;
  std::erase_if(sound, [](const TextRunResult& run) { return run.trouble.has_value(); });
  for (const TextNormResult& norm : result.norms) {
    counts.push_back(norm.runs);
    std::uint64_t steps = 0;
    for (const TextRunResult& run : sound)
      if (run.run.norm == norm.norm) steps = std::max(steps, run.step);
    const auto cell = [&](const MeanResult& mean, int digits, double unit, const auto& value) {
      const auto values = values_of(sound, norm.norm, value);
      return values.size() == 2 ? mean_or_both(values, digits, unit, kOnScreen)
                                : with_interval(mean, digits, unit, kOnScreen);
    };
    using Run = TextRunResult;
    rows.push_back(
        {.norm = norm.norm,
         .runs = norm.runs,
         .steps = steps,
         .seen = steps * result.settings.batch * (classes ? 1 : result.settings.context),
         .classes = classes,
         .train_loss = cell(norm.train_loss, 3, 1, [](const Run& run) { return run.measures.train_loss; }),
         .held_out_loss =
             cell(norm.held_out_loss, 3, 1, [](const Run& run) { return run.measures.held_out_loss; }),
         .quality = classes
                        ? cell(*norm.accuracy, 1, 100, [](const Run& run) { return run.measures.accuracy; })
                        : cell(*norm.perplexity, 1, 1, [](const Run& run) { return run.perplexity; })});
  }
  std::string text = table(table_of(rows)) + "\n" + texts.sentence + "\n";
  if (result.data.generated) text += fmt::format("{}\n", kByAGrammar);
  if (result.runs.size() > result.norms.size()) {
    text += fmt::format("{}.\n", over_seeds(counts));
  } else if (classes) {
    text += "± is the 95 % interval of a share of the texts that were tested.\n";
  }
  if (study.time.steps > 0)
    text += fmt::format("{} tokens in {}, evaluations included: {:.0f} tokens/s.\n", study.time.tokens,
                        duration(study.time.seconds), result.tokens_per_second);
  return text;
}

template <class Options>
void run_text(const TrainCall<Options>& call, const Executor& executor) {
  constexpr bool language = std::is_same_v<Options, LanguageOptions>;
  const Common& common = call.common;
  auto record = opened<TextRecord>(call);
  if (!record && call.study.save_every && common.out.empty())
    throw InputError("--save-every keeps models in the directory of the run; name it with --out.");
  const Context reading = context_of(common, executor);
  PlannedTexts planned;
  if (record) {
    planned = {record->plan(), read_again(record->plan(), executor)};
  } else if constexpr (language) {
    planned = plan_language(call.study, reading);
  } else {
    planned = plan_sentiment(call.study, reading);
  }
  const TextPlan& plan = planned.plan;
  const TextsRead& texts = planned.texts;
  begin(record, plan, call, executor);
  const TextTrainingStudy study = [&] {
    Progress progress(common, "Training", "tokens");
    return study_text(plan, texts, record ? &*record : nullptr, context_of(common, executor, &progress));
  }();
  const auto runs = study.training.runs();
  if (record) {
    TrainingAbout about = language ? about_language() : about_sentiment();
    about.paragraphs.push_back(texts.sentence);
    if (plan.data.generated) about.paragraphs.emplace_back(kByAGrammar);
    for (std::string& sentence : troubles(runs, kCheckpointFile))
      about.paragraphs.push_back(std::move(sentence));
    write_results(record->directory(), study, about, common);
  }
  print(common.json ? json_of(study.result, -1) : screen(study, texts));
  const auto stopped = troubles(runs, record ? record->checkpoint() : std::nullopt);
  if (stopped.empty()) return;
  flush_output();
  throw Error(fmt::format("{}", fmt::join(stopped, "\n")));
}

}  // namespace

void add_train(CLI::App& app, Common& common) {
  CLI::App* train = add_commands(app, "train", "Train small models with any norm: majority, lm, sentiment");
  add_training<MajorityOptions>(
      *train, common, kMajority,
      "The majority task of Brody et al. 2023, for any norm and many seeds at once",
      {"train majority --steps 2000",
       "train majority --norm layernorm,rmsnorm,published --seeds 10 --out runs/majority",
       "train majority --norm project:2 --seeds 11,42 --json",
       "train majority --3d --norm layernorm --seeds 10", "train majority --resume runs/majority"},
      run_majority);
  add_training<LanguageOptions>(
      *train, common, "train lm", "A language model: GPT-2 of any size, by default the paper's of d 8",
      {"train lm --norm layernorm,center --out runs/lm", "train lm --text book.txt --steps 2000",
       "train lm --corpus grammar --tokenizer bytes --context 128 --steps 500", "train lm --resume runs/lm",
       "scan runs/lm/models/center-seed11 --text book.txt"},
      run_text<LanguageOptions>);
  add_training<SentimentOptions>(
      *train, common, "train sentiment",
      "A classifier of texts: BERT of any size, by default the paper's without norms",
      {"train sentiment --steps 2000 --out runs/sentiment", "train sentiment --norm none,layernorm --seeds 3",
       "train sentiment --data train.tsv --test dev.tsv", "train sentiment --resume runs/sentiment"},
      run_text<SentimentOptions>);
}

}  // namespace normscope::cli
