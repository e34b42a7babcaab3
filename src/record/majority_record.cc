#include "record/majority_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "normscope/error.h"
#include "record/json.h"
#include "record/json_member.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kLog = kMetricsFile;

constexpr std::pair<EncoderPath, const char*> kPaths[] = {
    {EncoderPath::automatic, "automatic"}, {EncoderPath::generic, "generic"}, {EncoderPath::bag, "bag"}};

template <class T>
T choice(const Json& json, const char* name, std::span<const std::pair<T, const char*>> choices) {
  const auto text = member<std::string>(json, name);
  for (const auto& [value, word] : choices) {
    if (text == word) return value;
  }
  throw InputError(fmt::format("The run's config.json holds the {} '{}', which is not known.", name, text));
}

template <class T, std::size_t n>
const char* name_of(T value, const std::pair<T, const char*> (&choices)[n]) {
  for (const auto& [known, word] : choices) {
    if (known == value) return word;
  }
  return "";
}

Json line(const MajorityRun& run, const MajorityRow& row) {
  Json json = {{"step", row.step}, {"norm", run.id.norm}, {"seed", run.id.seed}};
  json.update(to_json(row));
  return json;
}

double measure(const Json& json, const char* name) {
  return measure_member(json, name, kLog);
}

MajorityRow read_row(const Json& json) {
  MajorityRow row;
  row.step = member<std::uint64_t>(json, "step", kLog);
  row.train_loss = measure(json, "train_loss");
  row.test.loss = measure(json, "test_loss");
  row.test.accuracy = measure(json, "accuracy");
  row.test.sequence_accuracy = measure(json, "sequence_accuracy");
  row.angle_mean = measure(json, "angle_mean");
  row.angle_sd = measure(json, "angle_sd");
  row.test.attention_entropy = measure(json, "attention_entropy");
  row.test.attention_distance = measure(json, "attention_distance");
  return row;
}

std::vector<std::string> norms_of(const MajorityPlan& plan) {
  std::vector<std::string> norms;
  for (const TrainingRunId& id : plan.runs) norms.push_back(id.norm);
  return norms;
}

}  // namespace

Json to_json(const MajoritySettings& settings) {
  Json json = {{"classes", settings.task.classes},
               {"length", settings.task.length},
               {"samples", settings.task.samples},
               {"margin", settings.task.margin},
               {"assignments", settings.task.assignments},
               {"dim", settings.dimension},
               {"heads", settings.heads},
               {"layers", settings.layers},
               {"feed_forward", settings.feed_forward == 0 ? settings.dimension : settings.feed_forward},
               {"mask", settings.mask},
               {"batch", settings.batch},
               {"learning_rate", settings.adam.learning_rate},
               {"decay_steps", settings.adam.schedule.steps},
               {"weight_decay", settings.adam.weight_decay},
               {"clip", settings.adam.clip},
               {"steps", settings.steps},
               {"evaluate_every", settings.evaluate_every},
               {"stop_accuracy", settings.stop_accuracy},
               {"data_seed", nullptr}};
  if (settings.data_seed) json["data_seed"] = *settings.data_seed;
  json["path"] = name_of(settings.path, kPaths);
  return json;
}

MajoritySettings majority_settings(const Json& json) {
  MajoritySettings settings;
  settings.task.classes = member<std::size_t>(json, "classes");
  settings.task.length = member<std::size_t>(json, "length");
  settings.task.samples = member<std::size_t>(json, "samples");
  settings.task.margin = member<std::size_t>(json, "margin");
  settings.task.assignments = member<std::size_t>(json, "assignments");
  settings.dimension = member<std::size_t>(json, "dim");
  settings.heads = member<std::size_t>(json, "heads");
  settings.layers = member<std::size_t>(json, "layers");
  settings.feed_forward = member<std::size_t>(json, "feed_forward");
  settings.mask = member<std::string>(json, "mask");
  settings.batch = member<std::size_t>(json, "batch");
  settings.adam.learning_rate = member<double>(json, "learning_rate");
  settings.adam.schedule.steps = member<std::uint64_t>(json, "decay_steps");
  settings.adam.weight_decay = member<double>(json, "weight_decay");
  settings.adam.clip = member<double>(json, "clip");
  settings.steps = member<std::uint64_t>(json, "steps");
  settings.evaluate_every = member<std::uint64_t>(json, "evaluate_every");
  settings.stop_accuracy = member<double>(json, "stop_accuracy");
  if (json.contains("data_seed") && !json["data_seed"].is_null()) {
    settings.data_seed = member<std::uint64_t>(json, "data_seed");
  }
  settings.path = choice<EncoderPath>(json, "path", kPaths);
  return settings;
}

Json to_json(const MajorityRow& row) {
  Json json = {{"step", row.step}, {"train_loss", nullptr}};
  if (std::isfinite(row.train_loss)) json["train_loss"] = row.train_loss;
  json["test_loss"] = row.test.loss;
  json["accuracy"] = row.test.accuracy;
  json["sequence_accuracy"] = row.test.sequence_accuracy;
  json["angle_mean"] = row.angle_mean;
  json["angle_sd"] = row.angle_sd;
  json["attention_entropy"] = row.test.attention_entropy;
  json["attention_distance"] = row.test.attention_distance;
  return json;
}

Json to_json(const MajorityPlan& plan) {
  Json json = {{"settings", to_json(plan.settings)}, {"runs", Json::array()}};
  for (const TrainingRunId& id : plan.runs) json["runs"].push_back({{"norm", id.norm}, {"seed", id.seed}});
  return json;
}

MajorityRecord::MajorityRecord(const fs::path& directory, std::string_view command,
                               const Provenance& provenance, const MajorityPlan& plan)
    : MajorityRecord(
          TrainingRecord(directory, command, provenance, to_json(plan), to_json(plan.settings).dump()),
          plan) {}

MajorityRecord MajorityRecord::open(const fs::path& directory, std::string_view command) {
  const Json options = TrainingRecord::options(directory, command);
  MajorityPlan plan;
  plan.settings = majority_settings(member<Json>(options, "settings"));
  for (const Json& run : member<Json>(options, "runs")) {
    plan.runs.push_back({member<std::string>(run, "norm"), member<std::uint64_t>(run, "seed")});
  }
  if (plan.runs.empty()) throw InputError("The run's config.json names no norm and seed to train.");
  check_majority(plan.settings, norms_of(plan));
  TrainingRecord record = TrainingRecord::open(directory, to_json(plan.settings).dump());
  return {std::move(record), std::move(plan)};
}

void MajorityRecord::restore(MajorityTraining& training) {
  record_.restore([&](const TrainingState& state) {
    std::vector<std::vector<MajorityRow>> rows(plan_.runs.size());
    for (const std::string& text : state.lines()) {
      const Json json = Json::parse(text, nullptr, false);
      const TrainingRunId id{member<std::string>(json, "norm", kLog),
                             member<std::uint64_t>(json, "seed", kLog)};
      const auto found = std::find(plan_.runs.begin(), plan_.runs.end(), id);
      if (found == plan_.runs.end()) {
        throw InputError(fmt::format("'{}' holds a line of a run that is not of this training.",
                                     record_.log_path().string()));
      }
      rows[static_cast<std::size_t>(found - plan_.runs.begin())].push_back(read_row(json));
    }
    for (std::size_t r = 0; r < rows.size(); ++r) written_[r] = rows[r].size();
    training.restore(state.tensors(), std::move(rows));
    return training.step();
  });
}

void MajorityRecord::add(const MajorityTraining& training) {
  std::string lines;
  for (std::size_t r = 0; r < written_.size(); ++r) {
    const MajorityRun& run = training.runs()[r];
    for (; written_[r] < run.rows.size(); ++written_[r])
      lines += line(run, run.rows[written_[r]]).dump() + "\n";
  }
  record_.append(lines);
  if (record_.checkpoint_due(training.step(), training.done()))
    record_.write_checkpoint(training.step(), training.checkpoint());
}

}  // namespace normscope
