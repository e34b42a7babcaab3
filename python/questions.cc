#include "questions.h"

#include <fmt/format.h>

#include <memory>

#include "io/mask_file.h"
#include "normscope/error.h"
#include "record/json.h"
#include "report/report_options.h"
#include "report/runs_page.h"
#include "result/doctor.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "run/calls.h"
#include "run/finished.h"
#include "run/training_marks.h"

namespace normscope::python {
namespace {

namespace fs = std::filesystem;

template <class Options>
std::vector<OptionNote> notes_of() {
  OptionNotes notes;
  const Options options;
  Options::describe(notes, options);
  return std::move(notes).notes();
}

Context context_of(const Executor& executor, std::uint64_t seed, Watch& watch) {
  Context context{executor, seed};
  context.progress = [&watch](std::size_t done, std::size_t total) {
    watch.total = total;
    watch.done = done;
  };
  context.note = [&watch](std::string_view sentence) { watch.note(sentence); };
  return context;
}

// result: of what `owner` holds.
template <Described Result>
Answer answer_of(std::string command, const std::shared_ptr<const Result>& result,
                 std::function<CardedPage()> page) {
  Answer answer;
  answer.command = std::move(command);
  answer.json = [result](int indent) { return json_of(*result, indent); };
  answer.object = [result](ObjectSink& sink) { ObjectWriter(sink).value(*result); };
  answer.page = std::move(page);
  return answer;
}

// Of a study that needs nothing beside itself for its page and its files.
template <class Study>
Answer answer_of(std::string command, Study study, const std::string& out,
                 std::initializer_list<std::string> inputs = {}) {
  const auto held = std::make_shared<const Study>(std::move(study));
  using Result = std::remove_const_t<decltype(held->result)>;
  Answer answer = answer_of(std::move(command), std::shared_ptr<const Result>(held, &held->result),
                            [held] { return page_of(*held); });
  answer.save = [held](const fs::path& path) { write_run(*replaceable_directory(path.string()), *held); };
  if (!out.empty()) write_run(*replaceable_directory(out, inputs), *held);
  return answer;
}

// A directory that cannot be written to is told before the work.
void check_place(const Call& call, std::initializer_list<std::string> inputs = {}) {
  if (!call.out.empty()) replaceable_directory(call.out, inputs);
}

Answer ask_keys(const OptionValues& values, const Call& call, Watch& watch) {
  const auto options = filled<KeysOptions>(values);
  check_place(call, {options.file, options.bias});
  const Executor executor(call.threads, &watch.stop);
  const Context context = context_of(executor, call.seed.value_or(0), watch);
  const auto study = std::make_shared<const KeysStudy>(
      call.array || call.bias
          ? study_keys(keys_of(options,
                               call.array ? *call.array
                                          : TensorFile::open(options.file)
                                                .read(options.tensor.empty() ? std::nullopt
                                                                             : std::optional(options.tensor)),
                               call.bias),
                       options, context)
          : study_keys(options, context));
  const auto result = options.summary ? std::make_shared<const KeysResult>(without_keys(study->result))
                                      : std::shared_ptr<const KeysResult>(study, &study->result);
  Answer answer = answer_of("keys", result, [study] { return page_of(*study); });
  answer.save = [study, result](const fs::path& path) {
    write_run(*replaceable_directory(path.string()), *study, *result);
  };
  if (!call.out.empty()) write_run(*replaceable_directory(call.out), *study, *result);
  return answer;
}

Answer ask_vocab(const OptionValues& values, const Call& call, Watch& watch) {
  const auto options = filled<VocabOptions>(values);
  check_place(call, {options.source, options.bias});
  const Executor executor(call.threads, &watch.stop);
  const Context context = context_of(executor, call.seed.value_or(0), watch);
  VocabStudy study = call.array
                         ? study_vocab(vocabulary_of(options, *call.array, call.bias), options, context)
                         : study_vocab(options, context);
  for (const std::string& sentence : study.given.notes) watch.note(sentence);
  return answer_of("vocab", std::move(study), call.out);
}

Answer ask_scan(const OptionValues& values, const Call& call, Watch& watch) {
  auto options = filled<ScanOptions>(values);
  options.text.held = call.held;
  check_place(call);
  struct Held {
    ScanPlan plan;
    ScanStudy study;
  };
  const auto held = std::make_shared<Held>();
  held->plan = plan_scan(options, call.out);
  const auto directory = call.out.empty() ? nullptr : replaceable_directory(call.out);
  const Executor executor(call.threads, &watch.stop);
  const Provenance made = provenance(call.seed.value_or(0), executor.threads());
  // Traces are written on the way; without them an earlier run stays until there are results.
  if (directory && !held->plan.trace.empty()) begin_run(*directory, held->plan, made);
  held->study = run_scan(held->plan, context_of(executor, call.seed.value_or(0), watch));
  for (const std::string& sentence : held->plan.about.notes) watch.note(sentence);
  if (directory) {
    if (held->plan.trace.empty()) begin_run(*directory, held->plan, made);
    write_run(*directory, held->plan, held->study);
  }
  held->plan.checkpoint.weights.reset();  // a result outlives the model it came from
  Answer answer = answer_of("scan", std::shared_ptr<const ScanResult>(held, &held->study.result),
                            [held] { return page_of(held->plan, held->study); });
  if (!held->plan.trace.empty()) {
    answer.directory = fs::absolute(call.out);
    return answer;
  }
  answer.save = [held, made](const fs::path& path) {
    const auto place = replaceable_directory(path.string());
    begin_run(*place, held->plan, made);
    write_run(*place, held->plan, held->study);
  };
  return answer;
}

Answer ask_ablate(const OptionValues& values, const Call& call, Watch& watch) {
  auto options = filled<AblateOptions>(values);
  options.text.held = call.held;
  check_place(call);
  struct Held {
    AblatePlan plan;
    AblateStudy study;
  };
  const Executor executor(call.threads, &watch.stop);
  const Context context = context_of(executor, call.seed.value_or(0), watch);
  const auto held = std::make_shared<Held>(Held{plan_ablate(options, context), {}});
  held->study = run_ablate(held->plan, context);
  held->plan.checkpoint.weights.reset();
  Answer answer = answer_of("ablate", std::shared_ptr<const AblateResult>(held, &held->study.result),
                            [held] { return page_of(held->plan, held->study); });
  answer.save = [held](const fs::path& path) {
    write_run(*replaceable_directory(path.string()), held->plan, held->study);
  };
  if (!call.out.empty()) answer.save(call.out);
  return answer;
}

Answer ask_heatmap(const OptionValues& values, const Call& call, Watch& watch) {
  const HeatmapSettings settings = plan_heatmap(filled<HeatmapStudyOptions>(values));
  check_place(call);
  const Executor executor(call.threads, &watch.stop);
  return answer_of("heatmap", study_heatmap(settings, context_of(executor, call.seed.value_or(0), watch)),
                   call.out);
}

Answer ask_mask(const OptionValues& values, const Call& call, Watch& watch) {
  auto options = filled<MaskOptions>(values);
  check_place(call);
  const Executor executor(1, &watch.stop);
  const Context context = context_of(executor, call.seed.value_or(0), watch);
  if (!call.array) return answer_of("mask", study_masks(options, context), call.out);
  check_options(options);
  MaskPlan plan;
  plan.masks = {io::mask_from_tensor(*call.array, call.array->name)};
  plan.settings.masks = {call.array->name};
  plan.settings.n = {plan.masks.front().n()};
  return answer_of("mask", study_masks(std::move(plan), context), call.out);
}

Answer ask_collapse(const OptionValues& values, const Call& call, Watch& watch) {
  auto asked = filled<CollapseCall>(values);
  asked.study.held = call.held;
  const std::uint64_t seed = call.seed.value_or(0);
  CollapsePlan plan = plan_collapse(asked.study, read_collapse_model(asked.model, asked.study), seed);
  check_place(call);
  const Executor executor(call.threads, &watch.stop);
  return answer_of("collapse", study_collapse(std::move(plan), context_of(executor, seed, watch)), call.out);
}

Answer ask_equilibria(const OptionValues& values, const Call& call, Watch& watch) {
  const EquilibriaSettings settings = plan_equilibria(filled<EquilibriaOptions>(values));
  check_place(call);
  const Executor executor(call.threads, &watch.stop);
  const Context context = context_of(executor, call.seed.value_or(0), watch);
  return answer_of("equilibria",
                   study_equilibria(settings, context, call.out.empty() ? FateMaps::no : FateMaps::yes),
                   call.out);
}

// The record of a training to go on with, or a new one in the directory of the call.
template <class Record, class Options, class MakePlan>
Record record_of(const TrainingCall<Options>& asked, const OptionValues& values, const char* command,
                 const Call& call, const Executor& executor, const MakePlan& make_plan) {
  if (asked.resume.empty()) {
    Record record(call.out, command, provenance(0, executor.threads()), make_plan());
    if (const auto steps = asked.study.checkpoint_every) record.set_checkpoint_every(*steps);
    return record;
  }
  Record record = Record::open(asked.resume, command);
  if (values.contains("steps")) record.extend(command, std::optional(asked.study.steps).value_or(0));
  if (const auto steps = asked.study.checkpoint_every) record.set_checkpoint_every(*steps);
  return record;
}

Answer ask_majority(const OptionValues& values, const Call& call, Watch& watch) {
  auto asked = filled<TrainingCall<MajorityOptions>>(values);
  asked.study.seed = call.seed;
  const Executor executor(call.threads, &watch.stop);
  auto record = record_of<MajorityRecord>(asked, values, kTrainMajority, call, executor,
                                          [&] { return plan_majority(asked.study); });
  const auto directory = std::make_shared<const RunDirectory>(record.directory());
  const auto study = std::make_shared<const MajorityStudy>(
      study_majority(record.plan(), &record, context_of(executor, 0, watch)));
  write_results(*directory, *study);
  Answer answer = answer_of(kTrainMajority, std::shared_ptr<const MajorityResult>(study, &study->result),
                            [study, directory] { return page_of(*directory, *study); });
  answer.directory = fs::absolute(directory->path());
  return answer;
}

template <class Options>
Answer ask_text(const OptionValues& values, const Call& call, Watch& watch) {
  constexpr bool language = std::is_same_v<Options, LanguageOptions>;
  const char* command = language ? "train lm" : "train sentiment";
  auto asked = filled<TrainingCall<Options>>(values);
  asked.study.seed = call.seed;
  const Executor executor(call.threads, &watch.stop);
  const Context context = context_of(executor, 0, watch);
  struct Held {
    PlannedTexts planned;
    std::optional<TextTrainingStudy> study;
  };
  const auto held = std::make_shared<Held>();
  auto record = record_of<TextRecord>(asked, values, command, call, executor, [&] {
    if constexpr (language) {
      held->planned = plan_language(asked.study, context);
    } else {
      held->planned = plan_sentiment(asked.study, context);
    }
    return held->planned.plan;
  });
  if (!asked.resume.empty()) held->planned = {record.plan(), read_again(record.plan(), executor)};
  const auto& [plan, texts] = held->planned;
  held->study.emplace(study_text(plan, texts, &record, context));
  const auto directory = std::make_shared<const RunDirectory>(record.directory());
  write_results(*directory, *held->study, plan, texts);
  for (const std::string& sentence : troubles(held->study->training.runs(), record.checkpoint()))
    watch.note(sentence);
  Answer answer =
      answer_of(command, std::shared_ptr<const TextResult>(held, &held->study->result), [held, directory] {
        return page_of(*directory, *held->study, held->planned.plan, held->planned.texts);
      });
  answer.directory = fs::absolute(directory->path());
  return answer;
}

Answer ask_paper(const OptionValues& values, const Call& call, Watch& watch) {
  const auto asked = filled<PaperCall>(values);
  const bool resume = !asked.resume.empty();
  const fs::path out = resume ? asked.resume : call.out;
  const auto tell = [&](std::string_view sentence) { watch.note(sentence); };
  const PaperPlan plan = resume ? read_paper_plan(out) : plan_paper(asked.study, call.seed.value_or(0), tell);
  const Executor executor(call.threads, &watch.stop);
  const auto directory = paper_directory(out, resume, plan, executor.threads());
  const auto progress = [&watch](std::size_t done, std::size_t total) {
    watch.total = total;
    watch.done = done;
  };
  PaperContext context{executor, tell, {}, {}};
  context.step = [&](const std::string&, const char*) {
    Context step{executor};
    step.note = tell;
    step.progress = progress;
    return step;
  };
  context.begins = [](double, double, double) {};
  const auto study = std::make_shared<const PaperStudy>(study_paper(plan, directory.get(), context));
  directory->write("results.json", json_of(study->result));
  directory->write("report.html", render_html(paper_page(*study)));
  Answer answer = answer_of("paper", std::shared_ptr<const PaperResult>(study, &study->result),
                            [study] { return paper_page(*study); });
  answer.directory = fs::absolute(out);
  return answer;
}

template <class Result>
Answer loaded(const RunFiles& run) {
  // All of it: what pages are made of leaves out what they do not show.
  const fs::path directory = fs::absolute(run.directory);
  const auto result = std::make_shared<const Result>(
      from_json<Result>(read_text_file((directory / "results.json").string(), "load_run"), "results.json"));
  Answer answer = answer_of(run.command, result, [directory] {
    RunsReport report({directory, training_marks, 1});
    report.add(read_run(directory));
    return report.page(provenance(0, 1));
  });
  answer.directory = directory;
  return answer;
}

template <class Result>
void note_result(ClassNotes& classes) {
  ClassNoter::note_class<Result>(classes);
}

// A row for each question: how it is asked, and how its kept answers are read.
struct Row {
  Question question;
  const char* command;
  Answer (*load)(const RunFiles&);
  void (*note)(ClassNotes&);
};
template <class Options, class Result>
Row row(const char* name, const char* command, const char* sentence,
        Answer (*ask)(const OptionValues&, const Call&, Watch&)) {
  static const std::string result = class_name<Result>();
  return {
      {name, sentence, result.c_str(), notes_of<Options>, ask}, command, loaded<Result>, note_result<Result>};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      row<KeysOptions, KeysResult>(
          "keys", "keys", "Which keys can attention select? Verdict, margin and certificate for each.",
          ask_keys),
      row<ScanOptions, ScanResult>(
          "scan", "scan", "Which tokens of a text the layers and heads of a trained model can select.",
          ask_scan),
      row<VocabOptions, VocabResult>("vocab", "vocab",
                                     "Which tokens a language model can never put on top, with certificates.",
                                     ask_vocab),
      row<AblateOptions, AblateResult>(
          "ablate", "ablate",
          "A trained model with another norm, or none, in front of attention: what changes.", ask_ablate),
      row<HeatmapStudyOptions, HeatmapResult>(
          "heatmap", "heatmap",
          "How often random keys are unselectable, over their number n and dimension d.", ask_heatmap),
      row<MaskOptions, MasksResult>(
          "mask", "mask", "Attention masks as graphs: their centres, radius and diameter.", ask_mask),
      row<CollapseCall, CollapseResult>(
          "collapse", "collapse",
          "How fast tokens become alike with depth, under masks, norms, temperatures, weights.",
          ask_collapse),
      row<EquilibriaOptions, EquilibriaResult>(
          "equilibria", "equilibria",
          "Where attention layers with a norm lead tokens: collapse, or equilibria of any rank.",
          ask_equilibria),
      row<TrainingCall<MajorityOptions>, MajorityResult>(
          "train.majority", kTrainMajority,
          "The majority task of Brody et al. 2023, for any norm and many seeds at once.", ask_majority),
      row<TrainingCall<LanguageOptions>, TextResult>(
          "train.lm", "train lm", "A language model: GPT-2 of any size, by default the paper's of d 8.",
          ask_text<LanguageOptions>),
      row<TrainingCall<SentimentOptions>, TextResult>(
          "train.sentiment", "train sentiment",
          "A classifier of texts: BERT of any size, by default the paper's without norms.",
          ask_text<SentimentOptions>),
      row<PaperCall, PaperResult>(
          "paper", "paper",
          "Rerun the figures of Brody et al. 2023 and Wu et al. 2024 and say which claims hold.", ask_paper),
  };
  return all;
}

}  // namespace

std::span<const Question> questions() {
  static const std::vector<Question> all = [] {
    std::vector<Question> list;
    for (const Row& each : rows()) list.push_back(each.question);
    return list;
  }();
  return all;
}

ClassNotes answer_classes() {
  ClassNotes classes;
  for (const Row& each : rows()) each.note(classes);
  note_result<DoctorResult>(classes);
  return classes;
}

Answer read_doctor(const std::string& json) {
  const auto result =
      std::make_shared<const DoctorResult>(from_json<DoctorResult>(json, "what doctor printed"));
  Answer answer = answer_of("doctor", result, [result] {
    Page page;
    page.title = "What this machine has and lacks";
    ReportTable& table = page.tables.emplace_back();
    table.rows = {{"part", "found", "how to get what is missing"}};
    std::string missing;
    for (const DoctorPart& part : result->parts) {
      table.rows.push_back({part.name, part.found, part.advice});
      if (!part.advice.empty()) missing += (missing.empty() ? "" : ", ") + part.name;
    }
    page.verdict = missing.empty() ? "Nothing is missing." : "Missing: " + missing + ".";
    return CardedPage(std::move(page));
  });
  answer.save = [](const fs::path&) {
    throw InputError("What doctor tells is of this machine, and no run: keep its to_json().");
  };
  return answer;
}

Answer scan_trace(const LiveTrace& trace, const OptionValues& values, const Call& call, Watch& watch) {
  const auto options = filled<ScanOptions>(values);
  check_place(call);
  const Executor executor(call.threads, &watch.stop);
  const auto held = std::make_shared<const LiveStudy>(
      study_live(trace, options, context_of(executor, call.seed.value_or(0), watch)));
  Answer answer = answer_of("scan", std::shared_ptr<const ScanResult>(held, &held->study.result),
                            [held] { return page_of(held->plan, held->study); });
  answer.save = [held](const fs::path& path) {
    const auto directory = replaceable_directory(path.string());
    begin_run(*directory, held->plan, held->study.result.made);
    write_run(*directory, held->plan, held->study);
  };
  if (!call.out.empty()) answer.save(call.out);
  return answer;
}

Answer load_answer(const fs::path& directory) {
  const RunFiles run = read_run(directory);
  const std::string place = directory.string();
  if (!run.finished)
    throw InputError(
        fmt::format("'{}' holds a run of 'normscope {}' that has not ended: there is no results.json.", place,
                    run.command));
  if (!run.results.is_object())
    throw InputError(fmt::format("'{}': results.json cannot be read. {}", place, run.note));
  for (const Row& each : rows())
    if (run.command == each.command) return each.load(run);
  throw InputError(fmt::format("'{}' holds a run of 'normscope {}', which this version does not know.", place,
                               run.command));
}

}  // namespace normscope::python
