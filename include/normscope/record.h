#pragma once
// What a run leaves behind: files that are either whole or absent, and a directory that says what made them.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/provenance.h"

namespace normscope {

class RunLock;

// A reader of `path` sees the old bytes or all of the new ones, whatever happens in between (kill, full disk,
// power loss). Symbolic links are followed; pipes and devices are written to directly. Throws InputError if
// the path cannot be a file here, Error if writing fails; the temporary file beside the target is then gone.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Throws InputError if a file cannot be written there; to be asked before the work, not after it.
void require_place_for_file(const std::filesystem::path& path);

// The directory of one run: config.json (all resolved options), results.json, report.html, …
// A directory is a run of ours if its config.json says so.
class RunDirectory {
 public:
  // kept: what is in it stays, and can be gone on with. replaced: config.json lists the files of the run, and
  // the next one in this directory takes their place; a directory that is not there yet comes into being with
  // the first file, so that a run that ends before leaves nothing behind.
  enum class Use { kept, replaced };
  // Creates the directory, and its parents, if missing. Throws InputError if the path is a file, is not
  // writable, or is a directory that holds something other than a run, or one to be replaced without a list.
  explicit RunDirectory(std::filesystem::path path, Use use = Use::kept);

  const std::filesystem::path& path() const { return path_; }
  // Whether the directory holds a run, finished or not.
  bool holds_run() const;
  // Removes the temporary files that a run killed while it wrote has left here, and nothing else. To be
  // called before going on with a run; write_config, which begins one, does so itself.
  void remove_leftovers() const;
  // options: a JSON object with the options as resolved. Adds program, command and provenance to it. Begins a
  // run: where runs are replaced, the files of an earlier one, by its own list, are gone then.
  void write_config(std::string_view command, const Provenance& provenance, std::string_view options) const;
  // Of a run of that command that goes on with other options.
  void set_options(std::string_view command, std::string_view options) const;
  // name: a plain file name inside the directory.
  void write(std::string_view name, std::string_view bytes) const;
  // A file of the run that somebody else is about to write there.
  void add_file(std::string_view name) const;
  // The directory is this process's while this or a copy of it lives: a directory that is there from the
  // beginning, another from its first file, or from this call, on. Throws InputError that says who has it.
  void lock() const;

 private:
  void write_config_file() const;

  std::filesystem::path path_;
  Use use_;
  // Where runs are replaced: config.json without the list of files, empty before it is written; and the list.
  mutable std::string config_;
  mutable std::vector<std::string> files_;
  mutable std::shared_ptr<const RunLock> lock_;
};

// A log that only grows, of one writer at a time. What was synced survives a power loss, what was appended a
// kill; the last line may be torn by either, and whole_lines leaves it out. Throws InputError if another
// process writes it, Error if the disk is full, with the lines before intact.
class LineLog {
 public:
  explicit LineLog(const std::filesystem::path& path);
  ~LineLog();
  LineLog(LineLog&& other) noexcept;
  LineLog& operator=(LineLog&& other) noexcept;

  void append(std::string_view lines);
  // Drops what follows the first `bytes`.
  void cut(std::uint64_t bytes);
  void sync();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};
// The lines of a log that end with a newline, without it. A missing file has none.
std::vector<std::string> whole_lines(const std::filesystem::path& path);

}  // namespace normscope
