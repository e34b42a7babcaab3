#include "record/majority_record.h"

#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "normscope/error.h"
#include "normscope/version.h"
#include "record/json.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char *kLog = "metrics.jsonl", *kCheckpoint = "checkpoint.safetensors";
constexpr auto kBetweenCheckpoints = std::chrono::seconds(30);

constexpr std::pair<EncoderPath, const char*> kPaths[] = {
    {EncoderPath::automatic, "automatic"}, {EncoderPath::generic, "generic"}, {EncoderPath::bag, "bag"}};

// Members of a config that may be anyone's; what is missing or of another kind is said by its name.
template <class T>
T member(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) throw InputError(fmt::format("The run's config.json has no '{}'.", name));
  try {
    return found->get<T>();
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("The run's config.json holds a '{}' that cannot be read.", name));
  }
}

Json line(const MajorityRun& run, const MajorityRow& row) {
  Json json = {{"step", row.step}, {"norm", run.id.norm}, {"seed", run.id.seed}};
  json.update(to_json(row));
  return json;
}

MajorityRow read_row(const Json& json) {
  MajorityRow row;
  row.step = member<std::uint64_t>(json, "step");
  row.train_loss = json.contains("train_loss") && json["train_loss"].is_number()
                       ? json["train_loss"].get<double>()
                       : std::numeric_limits<double>::quiet_NaN();
  row.test.loss = member<double>(json, "test_loss");
  row.test.accuracy = member<double>(json, "accuracy");
  row.test.sequence_accuracy = member<double>(json, "sequence_accuracy");
  row.angle_mean = member<double>(json, "angle_mean");
  row.angle_sd = member<double>(json, "angle_sd");
  row.test.attention_entropy = member<double>(json, "attention_entropy");
  row.test.attention_distance = member<double>(json, "attention_distance");
  return row;
}

Json read_config(const fs::path& directory) {
  std::ifstream file(directory / "config.json", std::ios::binary);
  if (!file) {
    throw InputError(
        fmt::format("'{}' is not the directory of a run: it has no config.json.", directory.string()));
  }
  std::stringstream text;
  text << file.rdbuf();
  Json config = Json::parse(text.str(), nullptr, false);
  if (!config.is_object() || config.value("program", "") != "normscope") {
    throw InputError(
        fmt::format("'{}' is not a run of normscope: its config.json was written by something else.",
                    directory.string()));
  }
  return config;
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
               {"mask", settings.mask == AttentionMask::causal ? "causal" : "full"},
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
  for (const auto& [path, name] : kPaths) {
    if (path == settings.path) json["path"] = name;
  }
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
  settings.mask = member<std::string>(json, "mask") == "causal" ? AttentionMask::causal : AttentionMask::full;
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
  const auto path = member<std::string>(json, "path");
  for (const auto& [value, name] : kPaths) {
    if (path == name) settings.path = value;
  }
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

MajorityRecord::MajorityRecord(const fs::path& directory, std::string_view command,
                               const Provenance& provenance, const MajorityPlan& plan)
    : MajorityRecord(RunDirectory(directory), plan) {
  for (const char* name : {kLog, kCheckpoint}) {
    if (fs::exists(directory / name)) {
      throw InputError(
          fmt::format("'{}' holds a training already; go on with it by --resume {}, or name a new directory.",
                      directory.string(), directory.string()));
    }
  }
  Json options = {{"settings", to_json(plan.settings)}, {"runs", Json::array()}};
  for (const MajorityRunId& id : plan.runs) options["runs"].push_back({{"norm", id.norm}, {"seed", id.seed}});
  directory_.write_config(command, provenance, options.dump());
  log_.emplace(directory / kLog);
  written_.assign(plan.runs.size(), 0);
}

MajorityRecord MajorityRecord::open(const fs::path& directory, std::string_view command) {
  const Json config = read_config(directory);
  const auto made_by = member<std::string>(config, "command"),
             made_with = member<std::string>(config, "version");
  if (made_by != command) {
    throw InputError(fmt::format("'{}' is a run of 'normscope {}', not of 'normscope {}'.",
                                 directory.string(), made_by, command));
  }
  if (made_with != version()) {
    throw InputError(
        fmt::format("'{}' was begun by normscope {}, but this is {}, which may not give the same numbers; "
                    "finish it with that version or start anew.",
                    directory.string(), made_with, version()));
  }
  const auto options = member<Json>(config, "options");
  MajorityPlan plan;
  plan.settings = majority_settings(member<Json>(options, "settings"));
  for (const Json& run : member<Json>(options, "runs")) {
    plan.runs.push_back({member<std::string>(run, "norm"), member<std::uint64_t>(run, "seed")});
  }
  MajorityRecord record(RunDirectory(directory), std::move(plan));
  record.written_.assign(record.plan_.runs.size(), 0);
  return record;
}

void MajorityRecord::restore(MajorityTraining& training) {
  const fs::path log = directory_.path() / kLog, checkpoint = directory_.path() / kCheckpoint;
  std::string kept;
  if (fs::exists(checkpoint)) {
    const TensorFile file = TensorFile::open(checkpoint.string());
    std::vector<Tensor> tensors;
    for (const TensorInfo& info : file.tensors()) tensors.push_back(file.read(info.name));
    std::vector<std::vector<MajorityRow>> rows(plan_.runs.size());
    // The rows the checkpoint counts; the log may hold more, written after it.
    const auto recorded = file.metadata().find("rows");
    const Json counts =
        recorded == file.metadata().end() ? Json() : Json::parse(recorded->second, nullptr, false);
    if (!counts.is_array() || counts.size() != plan_.runs.size()) {
      throw InputError(fmt::format("'{}' is not a checkpoint of this training.", checkpoint.string()));
    }
    for (const std::string& text : whole_lines(log)) {
      const Json json = Json::parse(text, nullptr, false);
      if (!json.is_object())
        throw InputError(fmt::format("'{}' holds a line that is not a record.", log.string()));
      const MajorityRunId id{member<std::string>(json, "norm"), member<std::uint64_t>(json, "seed")};
      const auto found = std::find(plan_.runs.begin(), plan_.runs.end(), id);
      if (found == plan_.runs.end()) {
        throw InputError(
            fmt::format("'{}' holds a line of a run that is not of this training.", log.string()));
      }
      const auto r = static_cast<std::size_t>(found - plan_.runs.begin());
      if (!counts[r].is_number_unsigned() || rows[r].size() >= counts[r].get<std::size_t>()) continue;
      rows[r].push_back(read_row(json));
      kept += text + "\n";
    }
    for (std::size_t r = 0; r < rows.size(); ++r) written_[r] = rows[r].size();
    training.restore(tensors, std::move(rows));
  }
  directory_.write(kLog, kept);
  log_.emplace(log);
}

void MajorityRecord::add(const MajorityTraining& training) {
  std::string lines;
  for (std::size_t r = 0; r < written_.size(); ++r) {
    const MajorityRun& run = training.runs()[r];
    for (; written_[r] < run.rows.size(); ++written_[r])
      lines += line(run, run.rows[written_[r]]).dump() + "\n";
  }
  log_->append(lines);
  const auto now = std::chrono::steady_clock::now();
  if (!training.done() && now - last_checkpoint_ < kBetweenCheckpoints) return;
  log_->sync();
  write_checkpoint(training);
  last_checkpoint_ = now;
}

void MajorityRecord::write_checkpoint(const MajorityTraining& training) {
  const auto tensors = training.checkpoint();
  write_safetensors((directory_.path() / kCheckpoint).string(), tensors, {{"rows", Json(written_).dump()}});
}

}  // namespace normscope
