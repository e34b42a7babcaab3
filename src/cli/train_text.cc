#include "cli/train_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/interrupt.h"
#include "cli/text_model.h"
#include "cli/training.h"
#include "normscope/error.h"
#include "normscope/statistics.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMost = 1'000'000'000;
constexpr const char* kModels = "models";

struct Setting {
  const char* name;
  std::string TrainTextCall::*text;
  const char* type;
  const char* help;
};
constexpr Setting kSettings[] = {
    {"--seeds", &TrainTextCall::seeds, "LIST",
     "Seeds of the runs: 10: the paper's ten (3: its first three); 11,42: a list [that of --seed]"},
    {"--dimension", &TrainTextCall::dimension, "N", "Width d of the model [8]"},
    {"--layers", &TrainTextCall::layers, "N", "Layers [4]"},
    {"--heads", &TrainTextCall::heads, "N", "Attention heads [4]"},
    {"--learning-rate", &TrainTextCall::learning_rate, "X",
     "Learning rate of AdamW, which falls linearly to 0 over the steps [5e-5]"},
    {"--warmup", &TrainTextCall::warmup, "N", "Steps over which it first rises from 0 [0]"},
    {"--weight-decay", &TrainTextCall::weight_decay, "X", "Decoupled weight decay [0]"},
    {"--clip", &TrainTextCall::clip, "X", "Largest norm of the gradient; 0: no limit [0]"},
    {"--dropout", &TrainTextCall::dropout, "P", "Share of numbers that dropout leaves out [0.1]"},
    {"--steps", &TrainTextCall::steps, "N", "Training steps [50000]"},
    {"--data-seed", &TrainTextCall::data_seed, "N",
     "Seed of text that a grammar writes, and of the choice of texts to test on [0]"},
    {"--checkpoint-every", &TrainTextCall::checkpoint_every, "N",
     "Steps between two checkpoints, rounded up to a record [half a minute]"},
    {"--save-every", &TrainTextCall::save_every, "N",
     "With --out: also keep the model every N steps, rounded up to a record"},
    {"--resume", &TrainTextCall::resume, "DIR", "Go on with the training in this directory"},
};

bool classifies(const TextPlan& plan) {
  return plan.settings.spec.classes > 0;
}

TextPlan parse_plan(const TextCommand& kind, const TrainTextCall& call, const Common& common,
                    bool seed_given) {
  TextPlan plan;
  plan.settings = kind.defaults;
  plan.batch = kind.batch;
  plan.context = kind.context;
  const auto count = [&](const std::string& text, const char* name, std::uint64_t low, auto& value) {
    if (!text.empty()) value = parse_count(text, name, low, kMost);
  };
  const auto number = [&](const std::string& text, const char* name, double low, double high, double& value) {
    if (!text.empty()) value = parse_number(text, name, low, high);
  };
  TransformerSpec& spec = plan.settings.spec;
  BlockSpec& block = spec.model.block;
  AdamSettings& adam = plan.settings.adam;
  const bool language = spec.classes == 0;
  count(call.dimension, "--dimension", 1, block.width);
  if (language) block.feed_forward = 4 * block.width;
  count(call.feed_forward, "--feed-forward", 1, block.feed_forward);
  count(call.layers, "--layers", 1, spec.model.layers);
  count(call.heads, "--heads", 1, block.heads);
  count(call.context, language ? "--context" : "--length", 1, plan.context);
  count(call.batch, "--batch", 1, plan.batch);
  spec.model.positions = language ? plan.context : std::max(spec.model.positions, plan.context);
  number(call.dropout, "--dropout", 0, 1, block.dropout);
  count(call.steps, "--steps", 0, plan.settings.steps);
  // A checkpoint comes with a record: about a minute of the published models on two cores.
  plan.settings.evaluate_every = language ? 100 : std::clamp<std::uint64_t>(plan.settings.steps / 20, 1, 500);
  count(call.evaluate_every, "--evaluate-every", 1, plan.settings.evaluate_every);
  count(call.save_every, "--save-every", 1, plan.save_every);
  if (!call.checkpoint_every.empty())
    count(call.checkpoint_every, "--checkpoint-every", 1, plan.checkpoint_every.emplace());
  number(call.learning_rate, "--learning-rate", 1e-12, 1e38, adam.learning_rate);
  number(call.weight_decay, "--weight-decay", 0, 1e3, adam.weight_decay);
  number(call.clip, "--clip", 0, 1e9, adam.clip);
  adam.schedule.steps = std::max<std::uint64_t>(1, plan.settings.steps);
  count(call.warmup, "--warmup", 0, adam.schedule.warmup);
  if (adam.schedule.warmup > plan.settings.steps)
    throw InputError(fmt::format("--warmup {} is longer than the {} steps of the training (--steps).",
                                 adam.schedule.warmup, plan.settings.steps));
  if (call.train_all) {
    block.norm.affine = true;
    spec.query_key_value_bias = true;
  }
  if (plan.save_every > 0 && common.out.empty())
    throw InputError("--save-every keeps models in the directory of the run; name it with --out.");
  for (const std::string& norm : parse_norms(call.norm.empty() ? kind.norm : call.norm)) {
    for (const std::uint64_t seed : parse_seeds(call.seeds, common, seed_given))
      plan.runs.push_back({norm, seed});
  }
  return plan;
}

std::vector<std::string> norms_of(const TextPlan& plan) {
  std::vector<std::string> norms;
  for (const TrainingRunId& id : plan.runs)
    if (std::find(norms.begin(), norms.end(), id.norm) == norms.end()) norms.push_back(id.norm);
  return norms;
}

// Runs of a norm that are as good as their last row says.
std::vector<const TextRun*> sound_runs(std::span<const TextRun> runs, const std::string& norm) {
  std::vector<const TextRun*> chosen;
  for (const TextRun& run : runs)
    if (run.id.norm == norm && !run.trouble) chosen.push_back(&run);
  return chosen;
}

// A measure of the last row of a run.
struct Measure {
  const char* name;
  double (*value)(const TextRow&);
};
double held_out_loss(const TextRow& row) {
  return row.held_out ? row.held_out->loss : std::nan("");
}
constexpr Measure kTrainLoss{"train_loss", [](const TextRow&row) { return row.train_loss; }},
    kHeldOutLoss{"held_out_loss", held_out_loss},
    kPerplexity{"perplexity", [](const TextRow&row) { return std::exp(held_out_loss(row)); }},
    kAccuracy{"accuracy",
              [](const TextRow&row) { return row.held_out ? row.held_out->accuracy : std::nan(""); }};

std::vector<Measure> measures_of(const TextPlan& plan) {
  return {kTrainLoss, kHeldOutLoss, classifies(plan) ? kAccuracy : kPerplexity};
}

std::vector<double> values_of(const std::vector<const TextRun*>& runs, const Measure& measure) {
  std::vector<double> values;
  for (const TextRun* run : runs) {
    if (const double value = measure.value(run->rows.back()); std::isfinite(value)) values.push_back(value);
  }
  return values;
}

// Over seeds; the accuracy of a single run is a share of the texts it was tested on.
Interval interval_of(const std::vector<const TextRun*>& runs, const Measure& measure) {
  const std::vector<double> values = values_of(runs, measure);
  if (values.size() == 1 && measure.name == kAccuracy.name) {
    const TransformerLoss& tested = *runs.front()->rows.back().held_out;
    Interval interval = share_interval(
        static_cast<std::size_t>(std::llround(tested.accuracy * static_cast<double>(tested.targets))),
        tested.targets);
    interval.count = 1;
    interval.mean = tested.accuracy;
    return interval;
  }
  return mean_interval(values);
}

Json to_json(const Interval& interval) {
  return {{"runs", interval.count},
          {"mean", number_or_null(interval.mean)},
          {"low", number_or_null(interval.low)},
          {"high", number_or_null(interval.high)}};
}

std::string cell(const std::vector<const TextRun*>& runs, const Measure& measure, int digits,
                 double unit = 1) {
  const std::vector<double> values = values_of(runs, measure);
  if (values.size() == 2) return mean_or_both(values, digits, unit, kOnScreen);
  return with_interval(interval_of(runs, measure), digits, unit, kOnScreen);
}

std::string model_name(const TrainingRunId& id) {
  return fmt::format("{}-seed{}", id.norm, id.seed);
}
std::string model_name(const TrainingRunId& id, std::uint64_t step) {
  return fmt::format("{}-step{}", model_name(id), step);
}
// Of the run as it ended: the trained model, or the last good one.
std::string model_name(const TextRun& run) {
  return run.trouble ? model_name(run.id, run.step) : model_name(run.id);
}

// Norms with weights of their own can be trained, but are part of no model that can be written.
bool can_be_written(const TextRun& run) {
  const auto slots = parameter_slots(run.spec);
  return std::none_of(slots.begin(), slots.end(), [](const ParameterSlot& slot) {
    return slot.name.ends_with(".normals") || slot.name.ends_with(".alpha");
  });
}

// Whether there is something to write: a run that failed before its first evaluation has learned nothing.
bool leaves_model(const TextRun& run) {
  return can_be_written(run) && (!run.trouble || run.step > 0);
}

// Models of the runs whose last evaluation was the first at or after a multiple of `every`.
void save_models(const fs::path& folder, const TextTraining& training, std::uint64_t every,
                 const ReadTexts& texts) {
  for (const TextRun& run : training.runs()) {
    if (run.rows.size() < 2 || run.trouble || !can_be_written(run)) continue;
    const std::uint64_t step = run.rows.back().step, before = run.rows[run.rows.size() - 2].step;
    if (step / every > before / every)
      write_text_model(folder / model_name(run.id, step), run, texts.tokenizer, texts.classes);
  }
}

Json trouble_json(const LossTrouble& trouble) {
  const bool spike = trouble.kind == LossTrouble::Kind::spike;
  return {{"kind", spike ? "spike" : "not finite"},
          {"step", trouble.step},
          {"loss", number_or_null(trouble.loss)},
          {"tensor", trouble.tensor}};
}

Json results_json(const TextCommand& kind, const TextPlan& plan, const TextTraining& training,
                  const ReadTexts& texts, const TrainingTime& time, const Provenance& origin, bool written) {
  Json json = {{"command", kind.name}};
  json.update(normscope::to_json(origin));
  json.erase("seed");  // the runs have their own
  json["seconds"] = time.seconds;
  json["tokens_per_second"] = number_or_null(time.tokens_per_second());
  json["settings"] = settings_json(plan);
  json["data"] = {{"source", plan.data.source},
                  {"description", plan.data.description},
                  {"generated", plan.data.generated},
                  {"tokenizer", plan.data.tokenizer_description}};
  json["data"].update(texts.counts);
  json["runs"] = Json::array();
  for (const TextRun& run : training.runs()) {
    Json each = {{"norm", run.id.norm}, {"seed", run.id.seed}, {"parameters", run.parameters.size()}};
    each.update(normscope::to_json(run.rows.back(), plan));
    if (!classifies(plan) && run.rows.back().held_out)
      each["perplexity"] = number_or_null(kPerplexity.value(run.rows.back()));
    if (run.trouble) each["trouble"] = trouble_json(*run.trouble);
    if (written && leaves_model(run)) each["model"] = fmt::format("{}/{}", kModels, model_name(run));
    json["runs"].push_back(std::move(each));
  }
  json["norms"] = Json::array();
  for (const std::string& norm : norms_of(plan)) {
    const auto runs = sound_runs(training.runs(), norm);
    Json summary = {{"norm", norm}, {"runs", runs.size()}};
    for (const Measure& measure : measures_of(plan))
      summary[measure.name] = to_json(interval_of(runs, measure));
    json["norms"].push_back(std::move(summary));
  }
  return json;
}

std::string screen(const TextPlan& plan, const TextTraining& training, const ReadTexts& texts,
                   const TrainingTime& time) {
  const bool classes = classifies(plan);
  std::vector<std::vector<std::string>> rows = {
      {"norm", "runs", "steps", "train loss", classes ? "test loss" : "held-out loss",
       classes ? "accuracy %" : "perplexity", classes ? "texts seen" : "tokens seen"}};
  std::vector<std::size_t> counts;
  for (const std::string& norm : norms_of(plan)) {
    const auto runs = sound_runs(training.runs(), norm);
    counts.push_back(runs.size());
    std::uint64_t steps = 0;
    for (const TextRun* run : runs) steps = std::max(steps, run->step);
    rows.push_back({norm, std::to_string(runs.size()), std::to_string(steps), cell(runs, kTrainLoss, 3),
                    cell(runs, kHeldOutLoss, 3),
                    classes ? cell(runs, kAccuracy, 1, 100) : cell(runs, kPerplexity, 1),
                    std::to_string(steps * plan.batch * (classes ? 1 : plan.context))});
  }
  std::string text = table(rows) + "\n" + texts.sentence + "\n";
  if (plan.data.generated)
    text += "The text was written by a built-in grammar: these are not results on real text.\n";
  if (plan.runs.size() > norms_of(plan).size()) {
    text += fmt::format("{}.\n", over_seeds(counts));
  } else if (classes) {
    text += "± is the 95 % interval of a share of the texts that were tested.\n";
  }
  if (time.steps > 0)
    text += fmt::format("{} tokens in {}, evaluations included: {:.0f} tokens/s.\n", time.tokens,
                        duration(time.seconds), time.tokens_per_second());
  return text;
}

// Every run that stopped before its end, in one sentence each; empty: none did.
std::vector<std::string> troubles(const TextTraining& training, const std::optional<fs::path>& checkpoint) {
  std::vector<std::string> sentences;
  for (const TextRun& run : training.runs()) {
    if (!run.trouble) continue;
    std::optional<LastGood> good;
    if (checkpoint && run.step > 0) good = LastGood{*checkpoint, run.step};
    sentences.push_back(
        fmt::format("{} with seed {}: {}", run.id.norm, run.id.seed, sentence_of(*run.trouble, good)));
  }
  return sentences;
}

std::string report(const TextCommand& kind, const TextPlan& plan, const TextTraining& training,
                   const ReadTexts& texts, const Provenance& origin, const Json& results) {
  std::vector<TrainingSeries> series;
  for (const TextRun& run : training.runs()) {
    TrainingSeries& each = series.emplace_back(TrainingSeries{run.id.norm, run.id.seed, {}});
    for (const TextRow& row : run.rows) {
      const double accuracy = classifies(plan) ? kAccuracy.value(row) : std::nan("");
      each.rows.push_back({static_cast<double>(row.step),
                           {row.train_loss, accuracy, std::nan(""), std::nan(""), held_out_loss(row)}});
    }
  }
  TrainingAbout about = kind.about;
  about.paragraphs.push_back(texts.sentence);
  if (plan.data.generated)
    about.paragraphs.emplace_back(
        "The text was written by a built-in grammar: these are not results on real text.");
  for (std::string& sentence : troubles(training, kCheckpointFile))
    about.paragraphs.push_back(std::move(sentence));
  return render_html(training_page(about, series, {}, settings_json(plan), origin, results.dump()));
}

void note_what_cannot_be_written(const TextTraining& training, const Common& common) {
  for (const TextRun& run : training.runs()) {
    if (can_be_written(run)) continue;
    note(common, fmt::format("A model with the norm {} can be trained, but not be written as a checkpoint; "
                             "its parameters are in checkpoint.safetensors.",
                             run.id.norm));
    return;
  }
}

}  // namespace

void add_text_options(CLI::App& command, TrainTextCall& call, const TextCommand& kind) {
  // Runs have seeds of their own, of which the paper's first is the default.
  command.get_option("--seed")
      ->description("Seed of a single run; same seed, same result [11]")
      ->default_str("");
  const auto add = [&](const char* name, std::string& text, const char* type, const std::string& help) {
    command.add_option(name, text, help)->type_name(type);
  };
  for (const Setting& setting : kSettings) add(setting.name, call.*setting.text, setting.type, setting.help);
  add("--batch", call.batch, "N", fmt::format("Texts of a batch [{}]", kind.batch));
  command.footer(command.get_footer() + "\n\nNorms: " + norm_list());
}

void run_text(const TextCommand& kind, const TrainTextCall& call, const Common& common,
              const CLI::App& command) {
  const Executor executor(common.threads, common.stop);
  const bool resume = resumes(command, {"--checkpoint-every"});
  std::optional<TextRecord> record;
  TextPlan plan;
  if (resume) {
    record = TextRecord::open(call.resume, kind.name);
    plan = record->plan();
  } else {
    plan = parse_plan(kind, call, common, command.get_option("--seed")->count() > 0);
    check_text_training(plan.settings, norms_of(plan));
    plan.data = kind.resolve(call, plan, common);
  }
  ReadTexts texts = kind.read(plan, executor);
  if (resume) {
    require_same_data(plan, texts.content_hash, texts.tokenizer.size());
  } else {
    plan.settings.spec.model.vocabulary = texts.tokenizer.size();
    if (classifies(plan)) plan.settings.spec.classes = texts.classes.size();
    plan.data.description = texts.description;
    plan.data.tokenizer_description = texts.tokenizer.description;
    plan.data.generated = texts.generated;
    plan.data.classes = texts.classes;
    plan.data.content_hash = texts.content_hash;
    for (std::string& file : plan.data.files) file = lasting_path(file);
    plan.data.test = lasting_path(plan.data.test);
    if (fs::exists(plan.data.tokenizer)) plan.data.tokenizer = lasting_path(plan.data.tokenizer);
    check_text_training(plan.settings, norms_of(plan));
  }
  const Provenance origin = provenance(0, executor.threads());
  if (!record && !common.out.empty()) record.emplace(common.out, kind.name, origin, plan);
  TextTraining training(plan.settings, plan.runs, std::move(texts.batches));
  if (resume) record->restore(training);
  std::function<void()> evaluated;
  if (record) {
    set_kept(kept_of(record->directory(), kind.name));
    if (resume && !call.checkpoint_every.empty())
      record->set_checkpoint_every(parse_count(call.checkpoint_every, "--checkpoint-every", 1, kMost));
    note_what_cannot_be_written(training, common);
    if (plan.save_every > 0)
      evaluated = [&] {
        save_models(record->directory().path() / kModels, training, plan.save_every, texts);
      };
  }
  const TrainingTime time =
      train(training, record ? &*record : nullptr, "Training", common, executor, nullptr, evaluated);

  const Json results = results_json(kind, plan, training, texts, time, origin, record.has_value());
  const auto written = [&](const char* name) { return fs::exists(record->directory().path() / name); };
  if (record && !(time.steps == 0 && resume && written("results.json") && written("report.html"))) {
    for (const TextRun& run : training.runs()) {
      if (leaves_model(run))
        write_text_model(record->directory().path() / kModels / model_name(run), run, texts.tokenizer,
                         texts.classes);
    }
    record->directory().write("results.json", json_text(results));
    record->directory().write("report.html", report(kind, plan, training, texts, origin, results));
    note(common, "Wrote " + record->directory().path().string());
  }
  print(common.json ? json_text(results, -1) : screen(plan, training, texts, time));
  const std::vector<std::string> stopped =
      troubles(training, record ? record->checkpoint() : std::optional<fs::path>());
  if (stopped.empty()) return;
  flush_output();
  throw Error(fmt::format("{}", fmt::join(stopped, "\n")));
}

}  // namespace normscope::cli
