#include "record/text_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "normscope/error.h"
#include "record/json.h"
#include "record/json_member.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kLog = kMetricsFile;
constexpr std::size_t kMostRuns = 4096;
constexpr std::pair<Schedule::Kind, const char*> kSchedules[] = {{Schedule::Kind::constant, "constant"},
                                                                 {Schedule::Kind::linear, "linear"},
                                                                 {Schedule::Kind::cosine, "cosine"}};

bool classifies(const TextPlan& plan) {
  return plan.settings.spec.classes > 0;
}

const char* name_of(Schedule::Kind kind) {
  for (const auto& [known, name] : kSchedules)
    if (known == kind) return name;
  return "";
}

Schedule::Kind schedule_kind(const std::string& text) {
  for (const auto& [kind, name] : kSchedules)
    if (text == name) return kind;
  throw InputError(fmt::format("The run's config.json holds the schedule '{}', which is not known.", text));
}

std::vector<std::string> texts(const Json& json, const char* name) {
  const Json list = member<Json>(json, name);
  std::vector<std::string> result;
  if (!list.is_array())
    throw InputError(fmt::format("The run's config.json holds a '{}' that cannot be read.", name));
  for (const Json& each : list) {
    if (!each.is_string())
      throw InputError(fmt::format("The run's config.json holds a '{}' that cannot be read.", name));
    result.push_back(each.get<std::string>());
  }
  return result;
}

Json data_json(const TextData& data) {
  return {{"source", data.source},
          {"files", data.files},
          {"test", data.test},
          {"text_column", data.text_column},
          {"label_column", data.label_column},
          {"seed", data.seed},
          {"most_tokens", data.most_tokens},
          {"held_out_share", data.held_out_share},
          {"most_test_texts", data.most_test_texts},
          {"tokenizer", data.tokenizer},
          {"description", data.description},
          {"tokenizer_description", data.tokenizer_description},
          {"generated", data.generated},
          {"classes", data.classes},
          {"content_hash", data.content_hash}};
}

TextData read_data(const Json& json) {
  TextData data;
  data.source = member<std::string>(json, "source");
  data.files = texts(json, "files");
  data.test = member<std::string>(json, "test");
  data.text_column = member<std::string>(json, "text_column");
  data.label_column = member<std::string>(json, "label_column");
  data.seed = member<std::uint64_t>(json, "seed");
  data.most_tokens = member<std::uint64_t>(json, "most_tokens");
  data.held_out_share = member<double>(json, "held_out_share");
  data.most_test_texts = member<std::uint64_t>(json, "most_test_texts");
  data.tokenizer = member<std::string>(json, "tokenizer");
  data.description = member<std::string>(json, "description");
  data.tokenizer_description = member<std::string>(json, "tokenizer_description");
  data.generated = member<bool>(json, "generated");
  data.classes = texts(json, "classes");
  data.content_hash = member<std::string>(json, "content_hash");
  return data;
}

TextTrainingSettings read_settings(const Json& json) {
  const auto family = member<std::string>(json, "model");
  if (family != "gpt2" && family != "bert")
    throw InputError(fmt::format("The run's config.json holds the model '{}', which is not known.", family));
  TextTrainingSettings settings =
      family == "bert" ? published_sentiment_training() : published_language_training();
  TransformerSpec& spec = settings.spec;
  spec.model.vocabulary = member<std::size_t>(json, "vocabulary");
  spec.model.block.width = member<std::size_t>(json, "dim");
  spec.model.layers = member<std::size_t>(json, "layers");
  spec.model.block.heads = member<std::size_t>(json, "heads");
  spec.model.block.feed_forward = member<std::size_t>(json, "feed_forward");
  spec.model.positions = member<std::size_t>(json, "positions");
  spec.model.block.dropout = member<double>(json, "dropout");
  spec.model.block.norm.affine = member<bool>(json, "norm_affine");
  spec.query_key_value_bias = member<bool>(json, "query_key_value_bias");
  spec.classes = member<std::size_t>(json, "classes");
  if ((spec.classes > 0) != (family == "bert"))
    throw InputError("The run's config.json holds a number of 'classes' that does not fit its model.");
  AdamSettings& adam = settings.adam;
  adam.learning_rate = member<double>(json, "learning_rate");
  adam.schedule.kind = schedule_kind(member<std::string>(json, "schedule"));
  adam.schedule.warmup = member<std::uint64_t>(json, "warmup");
  adam.schedule.steps = member<std::uint64_t>(json, "decay_steps");
  adam.weight_decay = member<double>(json, "weight_decay");
  adam.clip = member<double>(json, "clip");
  settings.steps = member<std::uint64_t>(json, "steps");
  settings.evaluate_every = member<std::uint64_t>(json, "evaluate_every");
  return settings;
}

std::vector<std::string> norms_of(const TextPlan& plan) {
  std::vector<std::string> norms;
  for (const TrainingRunId& id : plan.runs) norms.push_back(id.norm);
  return norms;
}

TextRow read_row(const Json& json) {
  TextRow row;
  row.step = member<std::uint64_t>(json, "step", kLog);
  row.train_loss = measure_member(json, "train_loss", kLog);
  if (json.contains("held_out_loss")) {
    TransformerLoss& measured = row.held_out.emplace();
    measured.loss = measure_member(json, "held_out_loss", kLog);
    measured.targets = member<std::size_t>(json, "held_out_targets", kLog);
    if (json.contains("accuracy")) measured.accuracy = measure_member(json, "accuracy", kLog);
  }
  return row;
}

// Without the names of files, which may move.
std::string settings_text(const TextPlan& plan) {
  return settings_json(plan).dump();
}

}  // namespace

Json settings_json(const TextPlan& plan) {
  const TransformerSpec& spec = plan.settings.spec;
  const AdamSettings& adam = plan.settings.adam;
  return {{"model", spec.model.family},
          {"vocabulary", spec.model.vocabulary},
          {"dim", spec.model.block.width},
          {"layers", spec.model.layers},
          {"heads", spec.model.block.heads},
          {"feed_forward", spec.model.block.feed_forward},
          {"positions", spec.model.positions},
          {"dropout", spec.model.block.dropout},
          {"norm_affine", spec.model.block.norm.affine},
          {"query_key_value_bias", spec.query_key_value_bias},
          {"classes", spec.classes},
          {"batch", plan.batch},
          {"context", plan.context},
          {"learning_rate", adam.learning_rate},
          {"schedule", name_of(adam.schedule.kind)},
          {"warmup", adam.schedule.warmup},
          {"decay_steps", adam.schedule.steps},
          {"weight_decay", adam.weight_decay},
          {"clip", adam.clip},
          {"steps", plan.settings.steps},
          {"evaluate_every", plan.settings.evaluate_every},
          {"text", plan.data.description},
          {"tokenizer", plan.data.tokenizer_description},
          {"content_hash", plan.data.content_hash}};
}

Json to_json(const TextPlan& plan) {
  Json json = {{"settings", settings_json(plan)},
               {"runs", Json::array()},
               {"save_every", plan.save_every},
               {"checkpoint_every", plan.checkpoint_every ? Json(*plan.checkpoint_every) : Json()},
               {"data", data_json(plan.data)}};
  for (const TrainingRunId& id : plan.runs) json["runs"].push_back({{"norm", id.norm}, {"seed", id.seed}});
  return json;
}

TextPlan text_plan(const Json& json) {
  TextPlan plan;
  const Json settings = member<Json>(json, "settings");
  plan.settings = read_settings(settings);
  plan.batch = member<std::size_t>(settings, "batch");
  plan.context = member<std::size_t>(settings, "context");
  const Json runs = member<Json>(json, "runs");
  if (!runs.is_array() || runs.empty() || runs.size() > kMostRuns)
    throw InputError(
        fmt::format("The run's config.json names no norm and seed to train, or more than {}.", kMostRuns));
  for (const Json& run : runs)
    plan.runs.push_back({member<std::string>(run, "norm"), member<std::uint64_t>(run, "seed")});
  plan.save_every = member<std::uint64_t>(json, "save_every");
  if (!member<Json>(json, "checkpoint_every").is_null())
    plan.checkpoint_every = member<std::uint64_t>(json, "checkpoint_every");
  plan.data = read_data(member<Json>(json, "data"));
  check_text_training(plan.settings, norms_of(plan));
  return plan;
}

Json to_json(const TextRow& row, const TextPlan& plan) {
  Json json = {{"step", row.step}, {"train_loss", number_or_null(row.train_loss)}};
  if (row.held_out) {
    json["held_out_loss"] = number_or_null(row.held_out->loss);
    if (classifies(plan)) json["accuracy"] = number_or_null(row.held_out->accuracy);
    json["held_out_targets"] = row.held_out->targets;
  }
  // Texts of a classifier have lengths of their own.
  if (classifies(plan)) {
    json["texts"] = row.step * plan.batch;
  } else {
    json["tokens"] = row.step * plan.batch * plan.context;
  }
  return json;
}

void require_same_data(const TextPlan& plan, const std::string& content_hash, std::size_t vocabulary) {
  const std::size_t expected = plan.settings.spec.model.vocabulary;
  if (vocabulary != expected) {
    throw InputError(
        fmt::format("The tokenizer '{}' has {} tokens, but the model of the run was begun with {}; put the "
                    "tokenizer back as it was, or start anew.",
                    plan.data.tokenizer, vocabulary, expected));
  }
  if (content_hash != plan.data.content_hash) {
    throw InputError(
        fmt::format("The text is not what the run was begun with ({}): its tokens hash to {}, not to {}; put "
                    "the same text and tokenizer back, or start anew.",
                    plan.data.description, content_hash, plan.data.content_hash));
  }
}

TextRecord::TextRecord(const fs::path& directory, std::string_view command, const Provenance& provenance,
                       const TextPlan& plan)
    : TextRecord(TrainingRecord(directory, command, provenance, to_json(plan), settings_text(plan)), plan) {}

TextRecord TextRecord::open(const fs::path& directory, std::string_view command) {
  TextPlan plan = text_plan(TrainingRecord::options(directory, command));
  TrainingRecord record = TrainingRecord::open(directory, settings_text(plan));
  return {std::move(record), std::move(plan)};
}

void TextRecord::restore(TextTraining& training) {
  record_.restore([&](const TrainingState& state) {
    std::vector<std::vector<TextRow>> rows(plan_.runs.size());
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

void TextRecord::add(const TextTraining& training) {
  std::string lines;
  for (std::size_t r = 0; r < written_.size(); ++r) {
    const TextRun& run = training.runs()[r];
    for (; written_[r] < run.rows.size(); ++written_[r]) {
      const TextRow& row = run.rows[written_[r]];
      Json json = {{"step", row.step}, {"norm", run.id.norm}, {"seed", run.id.seed}};
      json.update(to_json(row, plan_));
      lines += json.dump() + "\n";
    }
  }
  if (!lines.empty()) record_.append(lines);
  if (training.calm() && record_.checkpoint_due(training.step(), training.done()))
    record_.write_checkpoint(training.step(), training.checkpoint());
}

std::optional<fs::path> TextRecord::checkpoint() const {
  return record_.checkpoint_step() ? std::optional(record_.checkpoint_path()) : std::nullopt;
}

}  // namespace normscope
