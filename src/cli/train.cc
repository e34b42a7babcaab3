// normscope train majority: the paper's task, for any norm and many seeds at once.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "cli/train_text.h"
#include "cli/training.h"
#include "cli/training_marks.h"
#include "normscope/error.h"
#include "normscope/mask.h"
#include "normscope/statistics.h"
#include "record/json.h"
#include "train/runs_by_norm.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kCommand = "train majority";
constexpr std::uint64_t kMost = 1'000'000'000;

// As typed; empty: the default.
struct MajorityCall {
  std::string norm = "layernorm", seeds, dim, classes, length, samples, margin, steps, heads, layers,
              feed_forward, batch, learning_rate, weight_decay, clip, decay_steps, evaluate_every,
              stop_accuracy, data_seed, path, mask, checkpoint_every, resume;
  bool three_dimensional = false;
};

struct Setting {
  const char* name;
  std::string MajorityCall::*text;
  const char* type;
  const char* help;
};
constexpr Setting kSettings[] = {
    {"--seeds", &MajorityCall::seeds, "LIST",
     "Seeds of the runs: 10: the paper's ten (3: its first three); 11,42: a list [that of --seed]"},
    {"--dim", &MajorityCall::dim, "N", "Width d of the encoder [8]"},
    {"--classes", &MajorityCall::classes, "N", "Token types [20]"},
    {"--length", &MajorityCall::length, "N", "Tokens of a sequence [50]"},
    {"--samples", &MajorityCall::samples, "N", "Sequences, 80 % of them to train on [100000]"},
    {"--margin", &MajorityCall::margin, "N", "By how many tokens a majority leads at least [6]"},
    {"--steps", &MajorityCall::steps, "N", "Training steps [17000]"},
    {"--heads", &MajorityCall::heads, "N", "Attention heads [1]"},
    {"--layers", &MajorityCall::layers, "N", "Layers [1]"},
    {"--feed-forward", &MajorityCall::feed_forward, "N", "Width of the feed-forward part [as --dim]"},
    {"--mask", &MajorityCall::mask, "NAME", "A mask by name, such as causal or window:2 [full]"},
    {"--batch", &MajorityCall::batch, "N", "Sequences of a batch [6000]"},
    {"--lr", &MajorityCall::learning_rate, "X", "Learning rate of Adam at the start [0.001]"},
    {"--decay-steps", &MajorityCall::decay_steps, "N",
     "Steps over which it falls linearly to 0, where it stays [170000]"},
    {"--weight-decay", &MajorityCall::weight_decay, "X", "Decoupled weight decay (AdamW) [0]"},
    {"--clip", &MajorityCall::clip, "X", "Largest norm of the gradient; 0: no limit [0]"},
    {"--evaluate-every", &MajorityCall::evaluate_every, "N", "Steps between two records [100]"},
    {"--stop-accuracy", &MajorityCall::stop_accuracy, "X",
     "End a run at this test accuracy, from 0 to 1 [never]"},
    {"--data-seed", &MajorityCall::data_seed, "N",
     "Seed of the sequences [that of the run, as in the paper]"},
    {"--path", &MajorityCall::path, "NAME",
     "How gradients are computed: automatic, generic or bag [automatic]"},
};

MajoritySettings parse_settings(const MajorityCall& call) {
  MajoritySettings settings = call.three_dimensional ? majority_in_3d() : MajoritySettings();
  const auto count = [&](const std::string& text, const char* name, std::uint64_t low, auto& value) {
    if (!text.empty()) value = parse_count(text, name, low, kMost);
  };
  const auto number = [&](const std::string& text, const char* name, double low, double high, double& value) {
    if (!text.empty()) value = parse_number(text, name, low, high);
  };
  count(call.dim, "--dim", 1, settings.dimension);
  count(call.classes, "--classes", 1, settings.task.classes);
  count(call.length, "--length", 1, settings.task.length);
  count(call.samples, "--samples", 1, settings.task.samples);
  count(call.margin, "--margin", 1, settings.task.margin);
  count(call.steps, "--steps", 0, settings.steps);
  count(call.heads, "--heads", 1, settings.heads);
  count(call.layers, "--layers", 1, settings.layers);
  count(call.feed_forward, "--feed-forward", 1, settings.feed_forward);
  count(call.batch, "--batch", 1, settings.batch);
  count(call.evaluate_every, "--evaluate-every", 1, settings.evaluate_every);
  count(call.decay_steps, "--decay-steps", 1, settings.adam.schedule.steps);
  number(call.learning_rate, "--lr", 1e-12, 1e3, settings.adam.learning_rate);
  number(call.weight_decay, "--weight-decay", 0, 1e3, settings.adam.weight_decay);
  number(call.clip, "--clip", 0, 1e9, settings.adam.clip);
  number(call.stop_accuracy, "--stop-accuracy", 0, 1, settings.stop_accuracy);
  if (!call.data_seed.empty()) settings.data_seed = parse_count(call.data_seed, "--data-seed", 0, UINT64_MAX);
  const auto choose = [](const std::string& text, const char* name, const auto& choices, auto& value) {
    if (text.empty()) return;
    std::string names;
    for (const auto& [word, choice] : choices) {
      if (text == word) {
        value = choice;
        return;
      }
      names += fmt::format("{}{}", names.empty() ? "" : ", ", word);
    }
    throw InputError(fmt::format("{} takes one of {}, not '{}'.", name, names, text));
  };
  if (!call.mask.empty()) settings.mask = call.mask;
  choose(call.path, "--path",
         std::array<std::pair<const char*, EncoderPath>, 3>{{{"automatic", EncoderPath::automatic},
                                                             {"generic", EncoderPath::generic},
                                                             {"bag", EncoderPath::bag}}},
         settings.path);
  return settings;
}

// A measure of the last row of a run.
struct Measure {
  const char* name;
  double (*value)(const MajorityRow&);
};
constexpr Measure kMeasures[] = {
    {"train_loss", [](const MajorityRow& row) { return row.train_loss; }},
    {"test_loss", [](const MajorityRow& row) { return row.test.loss; }},
    {"accuracy", [](const MajorityRow& row) { return row.test.accuracy; }},
    {"sequence_accuracy", [](const MajorityRow& row) { return row.test.sequence_accuracy; }},
    {"angle_mean", [](const MajorityRow& row) { return row.angle_mean; }},
    {"angle_sd", [](const MajorityRow& row) { return row.angle_sd; }},
    {"attention_entropy", [](const MajorityRow& row) { return row.test.attention_entropy; }},
    {"attention_distance", [](const MajorityRow& row) { return row.test.attention_distance; }},
};
constexpr std::pair<const char*, double> kLosses[] = {{"1.0", 1.0}, {"0.5", 0.5}, {"0.2", 0.2}};

std::vector<double> values_of(const std::vector<const MajorityRun*>& runs, const Measure& measure) {
  std::vector<double> values;
  for (const MajorityRun* run : runs) {
    if (const double value = measure.value(run->rows.back()); std::isfinite(value)) values.push_back(value);
  }
  return values;
}

// Steps until a loss, of those runs that got there; others would need more than they made.
std::vector<double> steps_of(const std::vector<const MajorityRun*>& runs, double loss) {
  std::vector<double> values;
  for (const MajorityRun* run : runs) {
    if (const auto steps = run->steps_to(loss)) values.push_back(static_cast<double>(*steps));
  }
  return values;
}

Json to_json(const Interval& interval) {
  return {{"runs", interval.count},
          {"mean", number_or_null(interval.mean)},
          {"low", number_or_null(interval.low)},
          {"high", number_or_null(interval.high)}};
}

// A mean over those runs alone that got there would leave out the slowest: there is one only if all did.
Json steps_json(const std::vector<const MajorityRun*>& runs, double loss) {
  const std::vector<double> steps = steps_of(runs, loss);
  Json json = to_json(mean_interval(steps.size() == runs.size() ? steps : std::vector<double>()));
  json["runs"] = steps.size();
  return json;
}

Json run_json(const MajorityRun& run) {
  const TypeGeometry geometry = type_geometry(run.spec, run.parameters);
  Json json = {{"norm", run.id.norm}, {"seed", run.id.seed}, {"parameters", run.parameters.size()}};
  json.update(normscope::to_json(run.rows.back()));
  if (run.diverged) json["diverged"] = true;
  json["keys_out_of_plane"] = out_of_plane(geometry.keys);
  json["steps_to"] = Json::object();
  for (const auto& [name, loss] : kLosses) {
    const auto steps = run.steps_to(loss);
    json["steps_to"][name] = steps ? Json(*steps) : Json();
  }
  return json;
}

Json results_json(const MajorityTraining& training, const TrainingTime& time, const Provenance& origin) {
  Json json = {{"command", kCommand}};
  json.update(normscope::to_json(origin));
  json.erase("seed");  // the runs have their own
  json["seconds"] = time.seconds;
  json["ms_per_step"] = number_or_null(time.ms_per_step());
  json["settings"] = normscope::to_json(training.settings());
  json["runs"] = Json::array();
  for (const MajorityRun& run : training.runs()) json["runs"].push_back(run_json(run));
  json["norms"] = Json::array();
  for (const std::string& norm : norms_of(training.runs())) {
    const auto runs = runs_of(training.runs(), norm);
    Json summary = {{"norm", norm}, {"runs", runs.size()}};
    for (const Measure& measure : kMeasures)
      summary[measure.name] = to_json(mean_interval(values_of(runs, measure)));
    for (const auto& [name, loss] : kLosses) summary["steps_to"][name] = steps_json(runs, loss);
    json["norms"].push_back(std::move(summary));
  }
  return json;
}

// The mean if all runs got there, "-" if none did; otherwise the median of all and how many did.
std::string steps_cell(const std::vector<const MajorityRun*>& runs, double loss) {
  const std::vector<double> steps = steps_of(runs, loss);
  if (steps.empty() || steps.size() == runs.size()) return mean_or_both(steps, 0, 1, kOnScreen);
  std::vector<Range> ranges;
  ranges.reserve(runs.size());
  for (const double value : steps) ranges.push_back({value, value});
  for (const MajorityRun* run : runs) {
    if (!run->steps_to(loss))
      ranges.push_back({static_cast<double>(run->step), std::numeric_limits<double>::infinity()});
  }
  const Range median = ratio_interval(ranges).estimate;
  return fmt::format("median {}{:.0f} ({} of {})", median.low == median.high ? "" : ">", median.low,
                     steps.size(), runs.size());
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

std::string screen(const MajorityTraining& training, const TrainingTime& time) {
  std::vector<std::vector<std::string>> rows = {{"norm", "runs", "steps", "train loss", "test loss",
                                                 "accuracy %", "whole seq. %", "angle to 1", "entropy",
                                                 "from uniform", "to 1.0", "to 0.5", "to 0.2"}};
  std::vector<std::size_t> counts;
  for (const std::string& norm : norms_of(training.runs())) {
    const auto runs = runs_of(training.runs(), norm);
    counts.push_back(runs.size());
    std::uint64_t steps = 0;
    for (const MajorityRun* run : runs) steps = std::max(steps, run->step);
    const auto cell = [&](std::size_t measure, int digits, double factor = 1) {
      return mean_or_both(values_of(runs, kMeasures[measure]), digits, factor, kOnScreen);
    };
    rows.push_back({norm, std::to_string(runs.size()), std::to_string(steps), cell(0, 3), cell(1, 3),
                    cell(2, 1, 100), cell(3, 1, 100), cell(4, 1) + "°", cell(6, 2), cell(7, 3),
                    steps_cell(runs, 1.0), steps_cell(runs, 0.5), steps_cell(runs, 0.2)});
  }
  std::string text = table(rows);
  for (const MajorityRun& run : training.runs()) {
    if (run.diverged) {
      text += fmt::format("{} with seed {} diverged after step {}: its loss is not finite.\n", run.id.norm,
                          run.id.seed, run.rows.back().step);
    }
  }
  const MajorityTask& task = training.settings().task;
  text += fmt::format(
      "\nMajority of {} classes in sequences of {}, lead at least {}; uniform attention has entropy "
      "{:.2f}.\n",
      task.classes, task.length, task.margin, uniform_entropy(training.settings()));
  if (time.steps > 0) {
    text += fmt::format("{:.2f} ms per step over {} steps in {}; {}.\n", time.ms_per_step(), time.steps,
                        duration(time.seconds), over_seeds(counts));
  }
  return text;
}

std::string report(const MajorityTraining& training, const Provenance& origin, const Json& results) {
  std::vector<TrainingSeries> series;
  for (const MajorityRun& run : training.runs()) {
    TrainingSeries& each = series.emplace_back(TrainingSeries{run.id.norm, run.id.seed, {}});
    for (const MajorityRow& row : run.rows) {
      each.rows.push_back(
          {static_cast<double>(row.step),
           {row.train_loss, row.test.accuracy, row.angle_mean, row.test.attention_distance, std::nan("")}});
    }
  }
  const Json settings = normscope::to_json(training.settings());
  return render_html(
      training_page(about_majority(), series, training_marks(settings), settings, origin, results.dump()));
}

void run_majority(const MajorityCall& call, const Common& common, const CLI::App& command) {
  const Executor executor(common.threads, common.stop);
  std::optional<MajorityRecord> record;
  MajorityPlan plan;
  const bool resume = resumes(command, {"--checkpoint-every"});
  std::optional<std::uint64_t> checkpoint_every;
  if (!call.checkpoint_every.empty())
    checkpoint_every = parse_count(call.checkpoint_every, "--checkpoint-every", 1, kMost);
  if (resume) {
    record = MajorityRecord::open(call.resume, kCommand);
    plan = record->plan();
  } else {
    plan.settings = parse_settings(call);
    const auto norms = parse_norms(call.norm);
    check_majority(plan.settings, norms);
    const auto seeds = parse_seeds(call.seeds, common, command.get_option("--seed")->count() > 0);
    for (const std::string& norm : norms) {
      for (const std::uint64_t seed : seeds) plan.runs.push_back({norm, seed});
    }
  }
  const Provenance origin = provenance(0, executor.threads());
  if (!record && !common.out.empty()) record.emplace(common.out, kCommand, origin, plan);
  MajorityTraining training(plan.settings, plan.runs, executor);
  if (resume) record->restore(training);
  if (record) record->set_checkpoint_every(checkpoint_every);
  if (!training.done() && plan.settings.adam.schedule.steps < plan.settings.steps) {
    note(common, fmt::format("The learning rate is 0 from step {} on (--decay-steps), of {} steps (--steps).",
                             plan.settings.adam.schedule.steps, plan.settings.steps));
  }
  if (record) set_kept(kept_of(record->directory(), kCommand));
  const TrainingTime time = train(training, record ? &*record : nullptr, "Training", common, executor);

  const Json results = results_json(training, time, origin);
  const auto written = [&](const char* name) { return fs::exists(record->directory().path() / name); };
  const bool written_before = time.steps == 0 && resume && written("results.json") &&
                              written("geometry.safetensors") && written("report.html");
  if (record && !written_before) {
    write_geometry(record->directory(), training.runs());
    record->directory().write("results.json", json_text(results));
    record->directory().write("report.html", report(training, origin, results));
    note(common, "Wrote " + record->directory().path().string());
  }
  print(common.json ? json_text(results, -1) : screen(training, time));
}

}  // namespace

void add_train(CLI::App& app, Common& common) {
  CLI::App* train = app.add_subcommand("train", "Train small models with any norm: majority, lm, sentiment");
  train->require_subcommand(1);
  CLI::App* command = add_command(
      *train, common, "majority",
      "The majority task of Brody et al. 2023, for any norm and many seeds at once",
      {"train majority --steps 2000",
       "train majority --norm layernorm,rmsnorm,published --seeds 10 --out runs/majority",
       "train majority --norm project:2 --seeds 11,42 --json",
       "train majority --3d --norm layernorm --seeds 10", "train majority --resume runs/majority"});
  // Runs have seeds of their own, of which the paper's first is the default.
  command->get_option("--seed")
      ->description("Seed of a single run; same seed, same result [11]")
      ->default_str("");
  auto call = std::make_shared<MajorityCall>();
  command->add_option("--norm", call->norm, "Norm before attention, or several with commas")
      ->type_name("NAME")
      ->capture_default_str();
  for (const Setting& setting : kSettings) {
    command->add_option(setting.name, (*call).*setting.text, setting.help)->type_name(setting.type);
  }
  command->add_flag(
      "--3d", call->three_dimensional,
      "The 3-D version of Fig. 1a/b: 10 classes, length 30, 6000 sequences, d 3, until accuracy 1");
  command
      ->add_option("--checkpoint-every", call->checkpoint_every,
                   "Steps between two checkpoints, rounded up to a record [half a minute]")
      ->type_name("N");
  command->add_option("--resume", call->resume, "Go on with the training in this directory")
      ->type_name("DIR");
  command->footer(command->get_footer() + "\n\nNorms: " + norm_list());
  command->callback([call, &common, command] { run_majority(*call, common, *command); });
  add_train_lm(*train, common);
  add_train_sentiment(*train, common);
}

}  // namespace normscope::cli
