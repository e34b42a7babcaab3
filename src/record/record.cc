#include "normscope/record.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <system_error>
#include <utility>

#include "io/replace_file.h"
#include "normscope/error.h"
#include "normscope/version.h"
#include "record/json.h"
#include "record/piece_store.h"
#include "record/run_lock.h"
#include "result/json_reader.h"
#include "result/json_writer.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

// A pipe or a device cannot be replaced, only written to; /dev/stdout may name a file that is open already.
bool takes_bytes_directly(const fs::path& path) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  const bool system = path.string().starts_with("/dev/") || path.string().starts_with("/proc/");
  return fs::is_character_file(status) || fs::is_fifo(status) || (system && fs::is_regular_file(status));
}

void write_through(const fs::path& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  const bool written = file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int first_error = written ? 0 : errno;
  const bool closed = file == nullptr || std::fclose(file) == 0;
  if (written && closed) return;
  throw Error(fmt::format("'{}' could not be written: {}.", path.string(),
                          std::generic_category().message(first_error != 0 ? first_error : errno)));
}

void replace(const fs::path& path, std::string_view bytes) {
  io::replace_file(path.string(), [&](const io::Append& append) { append(std::as_bytes(std::span(bytes))); });
}

[[noreturn]] void fail_log(const fs::path& path, int error) {
  throw Error(fmt::format("'{}' could not be written to: {}; what it held is intact.", path.string(),
                          std::generic_category().message(error)));
}

constexpr const char* kProgram = "normscope";

// config.json.
struct RunConfig {
  std::string program = {}, command = {};
  Provenance made = {};
  AnyJson options = {};
  std::optional<std::vector<std::string>> files = {};

  static void describe(auto& visit, auto& self) {
    visit("program", self.program, "that wrote it", {.always = kProgram});
    visit("command", self.command, "that was run");
    Provenance::describe(visit, self.made);
    visit("options", self.options, "as resolved, all of them");
    visit.when(self.files.has_value(), "files", self.files, "that the next run in its place removes");
  }
};

// The member of an object that may be anyone's; empty if it is not there or not a text.
std::string text_member(const nlohmann::ordered_json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// config.json of a run of ours; null if it is missing or a stranger's.
nlohmann::ordered_json config_of(const fs::path& directory) {
  constexpr std::size_t limit = 1 << 20;  // no config of ours is larger; a stranger's may be
  std::error_code unknown;
  if (!fs::is_regular_file(directory / "config.json", unknown)) return nullptr;
  std::ifstream file(directory / "config.json", std::ios::binary);
  std::string text(limit, '\0');
  file.read(text.data(), static_cast<std::streamsize>(limit));
  text.resize(static_cast<std::size_t>(file.gcount()));
  auto config = nlohmann::ordered_json::parse(text, nullptr, false);
  const bool ours = config.is_object() && text_member(config, "program") == kProgram;
  return ours ? std::move(config) : nullptr;
}

// A link planted inside the directory must not send the bytes elsewhere, nor a pipe hold us up.
void replace_inside(const fs::path& directory, std::string_view name, std::string_view bytes) {
  std::error_code ignored;
  const fs::path target = directory / name;
  if (fs::is_symlink(fs::symlink_status(target, ignored))) fs::remove(target, ignored);
  replace(target, bytes);
}

// Whether a run of ours leaves files of such names: a list may be anyone's.
bool may_be_ours(const fs::path& name) {
  constexpr std::string_view kinds[] = {".json", ".html", ".csv", ".svg", ".npy", ".safetensors"};
  return name == name.filename() && name != "config.json" &&
         std::find(std::begin(kinds), std::end(kinds), name.extension().string()) != std::end(kinds);
}

bool lists_files(const nlohmann::ordered_json& config) {
  return config.is_object() && config.contains("files") && config["files"].is_array();
}

// Files of the run that a directory holds, by the list in its config.json.
void remove_earlier_run(const fs::path& directory) {
  const auto config = config_of(directory);
  if (!lists_files(config)) return;
  for (const auto& file : config["files"]) {
    if (!file.is_string() || !may_be_ours(file.get<std::string>())) continue;
    const fs::path path = directory / file.get<std::string>();
    std::error_code ignored;
    const fs::file_status status = fs::symlink_status(path, ignored);
    if (fs::is_regular_file(status) || fs::is_symlink(status)) fs::remove(path, ignored);
  }
}

// What a killed run may have left before its config.json does not make a directory a stranger's.
bool holds_nothing(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const fs::path name = entry.path().filename();
    if (!io::is_temporary_name(name.string()) && name != kLockFile && name != kPiecesFolder) return false;
  }
  return true;
}

}  // namespace

nlohmann::ordered_json read_config(const fs::path& directory, std::string_view command) {
  auto config = config_of(directory);
  std::error_code unknown;
  if (!fs::exists(directory, unknown)) {
    throw InputError(
        fmt::format("The directory '{}' does not exist; name the one that --out named.", directory.string()));
  }
  if (config.is_null()) {
    throw InputError(
        fmt::format("'{}' is not the directory of a normscope run: it has no config.json of one; name the "
                    "directory that --out named.",
                    directory.string()));
  }
  const std::string made_by = text_member(config, "command"), made_with = text_member(config, "version");
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
  RunConfig known;
  JsonReader::read(config, "The run's config.json", known);
  return config;
}

std::string command_of(const fs::path& directory) {
  const auto config = config_of(directory);
  return config.is_null() ? "" : text_member(config, "command");
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  takes_bytes_directly(path) ? write_through(path, bytes) : replace(path, bytes);
}

void require_place_for_file(const fs::path& path) {
  std::error_code unknown;
  if (path.empty() || fs::is_directory(path, unknown)) {
    throw InputError(fmt::format("'{}' cannot be written: the name of a file is expected.", path.string()));
  }
  if (takes_bytes_directly(path)) return;
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    throw InputError(fmt::format("'{}' cannot be written: the directory '{}' {}.", path.string(),
                                 directory.string(), errno == ENOENT ? "does not exist" : "is not writable"));
  }
}

RunDirectory::RunDirectory(fs::path path, Use use) : path_(std::move(path)), use_(use) {
  if (path_.empty()) throw InputError("The directory of a run needs a name, but the one given is empty.");
  std::error_code failed;
  const fs::file_status status = fs::status(path_, failed);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw InputError(fmt::format("'{}' is a file; a run needs a directory.", path_.string()));
  }
  std::vector<fs::path> missing;  // the innermost first
  for (fs::path at = fs::absolute(path_, failed); !fs::exists(at, failed) && at.has_relative_path();
       at = at.parent_path())
    missing.push_back(at);
  fs::create_directories(path_, failed);
  if (failed) {
    throw InputError(
        fmt::format("The directory '{}' cannot be created: {}.", path_.string(), failed.message()));
  }
  try {
    if (!holds_nothing(path_) && !holds_run()) {
      throw InputError(
          fmt::format("'{}' holds files that are not a normscope run; name a new or an empty directory.",
                      path_.string()));
    }
    if (use_ == Use::replaced && holds_run() && !lists_files(config_of(path_))) {
      throw InputError(fmt::format(
          "'{}' holds a run of 'normscope {}' that does not list its files, so that they cannot be "
          "replaced; name a new directory.",
          path_.string(), command_of(path_)));
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError(fmt::format("'{}' cannot be read: {}.", path_.string(), error.code().message()));
  }
  if (::access(path_.c_str(), W_OK | X_OK) != 0) {
    throw InputError(fmt::format("The directory '{}' cannot be written to: {}.", path_.string(),
                                 std::generic_category().message(errno)));
  }
  // That it can be made has been seen.
  if (use_ == Use::replaced)
    for (const fs::path& made : missing) fs::remove(made, failed);
  if (use_ == Use::kept || missing.empty()) lock();
}

void RunDirectory::lock() const {
  if (lock_) return;
  std::error_code failed;  // which the first file then says
  fs::create_directories(path_, failed);
  lock_ = std::make_shared<const RunLock>(path_);
}

bool RunDirectory::holds_run() const {
  return !config_of(path_).is_null();
}

void RunDirectory::remove_leftovers() const {
  io::remove_stale_temporaries(path_);
}

void RunDirectory::write_config(std::string_view command, const Provenance& provenance,
                                std::string_view options) const {
  if (use_ == Use::replaced) remove_earlier_run(path_);
  config_ = json_of(RunConfig{kProgram, std::string(command), provenance, {std::string(options)}, {}});
  remove_leftovers();
  write_config_file();
}

void RunDirectory::set_options(std::string_view command, std::string_view options) const {
  RunConfig config;
  JsonReader::read(read_config(path_, command), "The run's config.json", config);
  config.options = {std::string(options)};
  replace_inside(path_, "config.json", json_of(config));
}

void RunDirectory::write_config_file() const {
  RunConfig config;
  JsonReader::read(nlohmann::ordered_json::parse(config_), "config.json", config);
  if (use_ == Use::replaced) config.files = files_;
  lock();
  replace_inside(path_, "config.json", json_of(config));
}

void RunDirectory::add_file(std::string_view name) const {
  if (name.empty() || fs::path(name).filename() != fs::path(name) || name == "." || name == "..") {
    throw Error(fmt::format("'{}' is not the name of a file inside a run directory.", name));
  }
  if (use_ == Use::kept || std::find(files_.begin(), files_.end(), name) != files_.end()) return;
  files_.emplace_back(name);
  if (!config_.empty()) write_config_file();
}

void RunDirectory::write(std::string_view name, std::string_view bytes) const {
  add_file(name);
  lock();
  replace_inside(path_, name, bytes);
}

LineLog::LineLog(const fs::path& path) : path_(path) {
  // A link planted there must not send the lines elsewhere.
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) fail_log(path_, errno);
  // The lock ends with the process, however that ends. File systems without locks do without.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw InputError(fmt::format("Another process is writing '{}'; wait until it ends.", path.string()));
  }
}

LineLog::~LineLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LineLog::LineLog(LineLog&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

LineLog& LineLog::operator=(LineLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void LineLog::append(std::string_view lines) {
  while (!lines.empty()) {
    const ssize_t put = ::write(descriptor_, lines.data(), lines.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_log(path_, errno);
    lines.remove_prefix(static_cast<std::size_t>(put));
  }
}

void LineLog::cut(std::uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail_log(path_, errno);
}

void LineLog::sync() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail_log(path_, errno);
}

std::vector<std::string> whole_lines(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(text, line) && !text.eof())
    lines.push_back(line);  // at the end of file there was no newline
  return lines;
}

}  // namespace normscope
