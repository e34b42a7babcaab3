// normscope train majority, lm, sentiment: small models with any norm and many seeds at once.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "core/number_text.h"
#include "core/run_pieces.h"
#include "normscope/error.h"
#include "normscope/mask.h"
#include "report/training_results.h"
#include "result/json_writer.h"
#include "run/finished.h"
#include "study/train_majority.h"
#include "study/train_text.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

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
    run(*call, executor_of(given));
  });
}

// The record of --resume, if it was given, in the process that writes.
template <class Record, class Options>
std::optional<Record> opened(const TrainCall<Options>& call) {
  if (!resumes(call.command, {"--checkpoint-every", "--steps"}) || !speaks(call.common)) return std::nullopt;
  Record record = Record::open(call.resume, call.name);
  if (was_given(call.command, "--steps"))
    record.extend(call.name, std::optional(call.study.steps).value_or(0));
  return record;
}

// That of the record of --resume, in all processes; none if it was not given.
template <class Plan, class Record, class Options>
std::optional<Plan> resumed_plan(const std::optional<Record>& record, const TrainCall<Options>& call,
                                 const Executor& executor) {
  if (call.resume.empty()) return std::nullopt;
  const std::string plan = from_first(executor, [&] { return json_of(record->plan()); });
  return record ? record->plan() : from_json<Plan>(plan, "The plan of the run");
}

// That of --out, once there is a plan. From here on what is finished is kept.
template <class Record, class Plan, class Options>
void begin(std::optional<Record>& record, const Plan& plan, const TrainCall<Options>& call,
           const Executor& executor) {
  if (!record && !call.common.out.empty() && speaks(call.common))
    record.emplace(call.common.out, call.name, provenance(0, executor.threads()), plan);
  if (!record) return;
  if (const auto steps = call.study.checkpoint_every) record->set_checkpoint_every(*steps);
  const fs::path& path = record->directory().path();
  set_kept(kept_of(record->directory(), call.name), (path / "checkpoint.safetensors").string(),
           fmt::format("Stopped before the first checkpoint: normscope {} --resume {} begins at step 0.",
                       call.name, path.string()));
}

template <class Record>
void note_written(const Record& record, const Common& common) {
  note(common, "Wrote " + record.directory().path().string());
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

std::string screen(const MajorityStudy& study) {
  const MajorityResult& result = study.result;
  const ReportTable norms = majority_table(result);
  std::string text = table(norms.rows);
  for (const MajorityRunResult& run : result.runs) {
    if (run.diverged)
      text += wrapped(fmt::format("{} with seed {} diverged after step {}: its loss is not finite.",
                                  run.run.norm, run.run.seed, run.step)) +
              "\n";
  }
  const MajorityTask& task = result.settings.task;
  text += "\n" +
          wrapped(fmt::format("Majority of {} classes in sequences of {}, lead at least {}; uniform "
                              "attention has entropy {:.2f}.",
                              task.classes, task.length, task.margin, uniform_entropy(result.settings))) +
          "\n";
  if (study.time.steps > 0)
    text +=
        wrapped(fmt::format("{:.2f} ms per step over {} in {}; {}.", result.ms_per_step,
                            counted(study.time.steps, "step"), duration(study.time.seconds), norms.note)) +
        "\n";
  return text;
}

void run_majority(const TrainCall<MajorityOptions>& call, const Executor& executor) {
  auto record = opened<MajorityRecord>(call);
  const auto resumed = resumed_plan<MajorityPlan>(record, call, executor);
  const MajorityPlan plan = resumed ? *resumed : plan_majority(call.study);
  begin(record, plan, call, executor);
  const MajorityStudy study = [&] {
    Progress progress(call.common, "Training", "steps");
    return study_majority(plan, record ? &*record : nullptr, context_of(call.common, executor, &progress));
  }();
  if (record && write_results(record->directory(), study)) note_written(*record, call.common);
  print(call.common.json ? json_of(study.result, -1) : screen(study));
}

std::string screen(const TextTrainingStudy& study, const TextsRead& texts) {
  const TextResult& result = study.result;
  const ReportTable norms = text_training_table(result);
  std::string text = table(norms.rows) + "\n" + wrapped(texts.sentence) + "\n";
  if (result.data.generated) text += wrapped(kWrittenByAGrammar) + "\n";
  if (!norms.note.empty()) text += wrapped(norms.note + ".") + "\n";
  if (study.time.steps > 0)
    text += wrapped(fmt::format("{} in {}, evaluations included: {:.0f} tokens/s.",
                                counted(study.time.tokens, "token"), duration(study.time.seconds),
                                result.tokens_per_second)) +
            "\n";
  return text;
}

template <class Options>
void run_text(const TrainCall<Options>& call, const Executor& executor) {
  constexpr bool language = std::is_same_v<Options, LanguageOptions>;
  const Common& common = call.common;
  auto record = opened<TextRecord>(call);
  if (call.resume.empty() && call.study.save_every && common.out.empty())
    throw InputError("--save-every keeps models in the directory of the run; name it with --out.");
  const Context reading = context_of(common, executor);
  PlannedTexts planned;
  if (const auto resumed = resumed_plan<TextPlan>(record, call, executor)) {
    planned = {*resumed, read_again(*resumed, executor)};
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
  if (record && write_results(record->directory(), study, plan, texts)) note_written(*record, common);
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
      *train, common, kTrainMajority,
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
