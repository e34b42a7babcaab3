#include "record/training_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "core/read_number.h"
#include "normscope/error.h"
#include "record/json.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Metadata = TrainingRecord::Metadata;

constexpr auto kBetweenCheckpoints = std::chrono::seconds(30);
constexpr std::uint64_t kHashBegin = 0xcbf29ce484222325, kHashPrime = 0x100000001b3;
constexpr const char *kLogBytes = "log_bytes", *kLogHash = "log_hash";
// Of a checkpoint of doubles or floats, which are told apart so that each is read as it was written.
constexpr const char *kStateHash = "state_hash", *kFloatHash = "float_hash";

// FNV-1a, which takes line after line.
std::uint64_t hash(std::string_view bytes, std::uint64_t before) {
  std::uint64_t value = before ^ kHashBegin;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * kHashPrime;
  return value ^ kHashBegin;
}

std::uint64_t hash(std::span<const double> values, std::uint64_t before) {
  const auto bytes = std::as_bytes(values);
  return hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, before);
}

// The same, four bytes at a time: there may be many.
std::uint64_t hash(std::span<const float> values, std::uint64_t before) {
  std::uint64_t value = before ^ kHashBegin;
  for (const float each : values) value = (value ^ std::bit_cast<std::uint32_t>(each)) * kHashPrime;
  return value ^ kHashBegin;
}

bool is_ours(const std::string& key) {
  return key == kLogBytes || key == kLogHash || key == kStateHash || key == kFloatHash;
}

// Of the settings and the metadata that a checkpoint is made with: a changed byte would go unnoticed
// otherwise.
std::uint64_t hash_before_tensors(std::string_view settings, const Metadata& metadata) {
  std::uint64_t state = hash(settings, 0);
  for (const auto& [key, value] : metadata)
    if (!is_ours(key)) state = hash(value, hash(key, state));
  return state;
}

template <class SomeTensor>
std::vector<const SomeTensor*> by_name(std::span<const SomeTensor> tensors) {
  std::vector<const SomeTensor*> sorted;
  for (const SomeTensor& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const SomeTensor* a, const SomeTensor* b) { return a->name < b->name; });
  return sorted;
}

template <class SomeTensor>
std::uint64_t state_hash(std::string_view settings, const Metadata& metadata,
                         std::span<const SomeTensor> tensors) {
  std::uint64_t state = hash_before_tensors(settings, metadata);
  for (const SomeTensor* tensor : by_name(tensors))
    state = hash(std::span(tensor->values), hash(tensor->name, state));
  return state;
}

std::optional<std::size_t> size_of(const TensorInfo& info) {
  std::size_t size = 1;
  for (const std::size_t extent : info.shape)
    if (__builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  return size;
}

// The same hash of floats in a file, a tensor at a time.
std::uint64_t float_hash(std::string_view settings, const TensorFile& file) {
  std::uint64_t state = hash_before_tensors(settings, file.metadata());
  for (const TensorInfo* info : by_name(std::span(file.tensors()))) {
    std::vector<float> values(size_of(*info).value_or(0));
    if (!values.empty()) file.read_rows(static_cast<std::size_t>(info - file.tensors().data()), 0, values);
    state = hash(std::span<const float>(values), hash(info->name, state));
  }
  return state;
}

std::optional<std::uint64_t> number(const TensorFile& file, const char* name) {
  const auto found = file.metadata().find(name);
  if (found == file.metadata().end()) return std::nullopt;
  return read_number<std::uint64_t>(found->second);
}

}  // namespace

std::vector<Tensor> TrainingState::tensors() const {
  std::vector<Tensor> all;
  for (const TensorInfo& info : file_.tensors()) all.push_back(file_.read(info.name));
  return all;
}

void TrainingState::read(const std::string& name, std::span<float> into) const {
  for (std::size_t i = 0; i < file_.tensors().size(); ++i) {
    const TensorInfo& info = file_.tensors()[i];
    if (info.name != name || size_of(info) != into.size()) continue;
    if (!into.empty()) file_.read_rows(i, 0, into);
    return;
  }
  throw InputError(fmt::format(
      "The checkpoint holds no tensor '{}' of {} numbers; it is of another training.", name, into.size()));
}

const std::string& TrainingState::metadata(const std::string& name) const {
  const auto found = file_.metadata().find(name);
  if (found == file_.metadata().end())
    throw InputError(fmt::format("The checkpoint does not say '{}'; it is of another training.", name));
  return found->second;
}

TrainingRecord::TrainingRecord(const fs::path& directory, std::string_view command,
                               const Provenance& provenance, std::string_view options, std::string settings)
    : TrainingRecord(RunDirectory(directory), std::move(settings)) {
  if (directory_.holds_run()) {
    try {
      read_config(directory, command);
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("'{}' holds a run already, which cannot be resumed here: {} Name a "
                      "new directory.",
                      directory.string(), error.what()));
    }
    throw InputError(
        fmt::format("'{}' holds a run already; go on with it by --resume {}, or name a new directory.",
                    directory.string(), directory.string()));
  }
  directory_.write_config(command, provenance, options);
  log_.emplace(log_path());
}

Json TrainingRecord::options(const fs::path& directory, std::string_view command) {
  const Json config = read_config(directory, command);
  const auto found = config.find("options");
  if (found == config.end() || !found->is_object())
    throw InputError("The run's config.json has no 'options' with the 'settings' of a training.");
  return *found;
}

void TrainingRecord::set_options(std::string_view command, std::string_view options) {
  for (const char* result : {"results.json", "report.html"}) {
    std::error_code ignored;
    fs::remove(directory_.path() / result, ignored);
  }
  directory_.set_options(command, options);
}

TrainingRecord TrainingRecord::open(const fs::path& directory, std::string settings) {
  // Before the log is opened, which would make it.
  if (!fs::exists(directory / kMetricsFile) && fs::exists(directory / kCheckpointFile)) {
    throw InputError(
        fmt::format("'{}' is missing, without which the checkpoint beside it cannot be resumed; put it "
                    "back, or remove the checkpoint to begin anew.",
                    (directory / kMetricsFile).string()));
  }
  TrainingRecord record(RunDirectory(directory), std::move(settings));
  record.log_.emplace(record.log_path());
  record.directory_.remove_leftovers();
  return record;
}

void TrainingRecord::restore(const std::function<std::uint64_t(const TrainingState&)>& take) {
  const fs::path checkpoint = checkpoint_path();
  if (fs::exists(checkpoint)) {
    const TensorFile file = TensorFile::open(checkpoint.string());
    const auto bytes = number(file, kLogBytes), hashed = number(file, kLogHash);
    if (!bytes || !hashed)
      throw InputError(fmt::format("'{}' is not a checkpoint of a training.", checkpoint.string()));
    // The lines that the checkpoint knows; those that follow were written after it.
    std::vector<std::string> lines = whole_lines(log_path());
    std::uint64_t length = 0, found = 0;
    std::size_t known = 0;
    for (; known < lines.size() && length < *bytes; ++known) {
      length += lines[known].size() + 1;
      found = hash("\n", hash(lines[known], found));
    }
    if (length != *bytes || found != *hashed) {
      throw InputError(
          fmt::format("'{}' does not begin with the {} bytes that the checkpoint beside it knows: it was "
                      "changed or is of another run; put the right one back or start anew.",
                      log_path().string(), *bytes));
    }
    lines.resize(known);
    const std::uint64_t step = take(TrainingState(file, lines));
    require_as_written(file);
    log_bytes_ = *bytes;
    log_hash_ = *hashed;
    checkpoint_step_ = step;
  }
  log_->cut(log_bytes_);
}

void TrainingRecord::require_as_written(const TensorFile& file) const {
  const auto doubles = number(file, kStateHash), floats = number(file, kFloatHash);
  bool same = true;  // without a hash: a checkpoint made by other means
  if (doubles) {
    const std::vector<Tensor> tensors = TrainingState(file, {}).tensors();
    same = *doubles == state_hash(settings_, file.metadata(), std::span<const Tensor>(tensors));
  } else if (floats) {
    same = *floats == float_hash(settings_, file);
  }
  if (!same) {
    throw InputError(fmt::format(
        "'{}' or the config.json beside it is not as it was written: they do not fit each other; put the "
        "right ones back or start anew.",
        checkpoint_path().string()));
  }
}

void TrainingRecord::append(std::string_view lines) {
  log_->append(lines);
  log_bytes_ += lines.size();
  log_hash_ = hash(lines, log_hash_);
}

bool TrainingRecord::checkpoint_due(std::uint64_t step, bool done) const {
  if (done) return true;
  if (checkpoint_every_) return step - checkpoint_step_.value_or(0) >= *checkpoint_every_;
  return std::chrono::steady_clock::now() - checkpoint_time_ >= kBetweenCheckpoints;
}

template <class SomeTensor>
void TrainingRecord::write(std::uint64_t step, std::span<const SomeTensor> tensors, Metadata metadata) {
  const auto mine =
      std::find_if(metadata.begin(), metadata.end(), [](const auto& entry) { return is_ours(entry.first); });
  if (mine != metadata.end())
    throw Error(fmt::format("'{}' is what a checkpoint itself says; give it another name.", mine->first));
  log_->sync();
  const std::uint64_t state = state_hash(settings_, metadata, tensors);
  metadata[std::is_same_v<SomeTensor, Tensor> ? kStateHash : kFloatHash] = std::to_string(state);
  metadata[kLogBytes] = std::to_string(log_bytes_);
  metadata[kLogHash] = std::to_string(log_hash_);
  write_safetensors(checkpoint_path().string(), tensors, metadata);
  checkpoint_step_ = step;
  checkpoint_time_ = std::chrono::steady_clock::now();
}

void TrainingRecord::write_checkpoint(std::uint64_t step, std::span<const Tensor> tensors,
                                      Metadata metadata) {
  write(step, tensors, std::move(metadata));
}

void TrainingRecord::write_checkpoint(std::uint64_t step, std::span<const FloatTensor> tensors,
                                      Metadata metadata) {
  write(step, tensors, std::move(metadata));
}

}  // namespace normscope
