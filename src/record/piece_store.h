#pragma once
// Finished pieces of work (pieces.h) in files, so that a run that was killed loses only what was under way.
//
// The folder `pieces` of a run directory holds files of finished pieces, named by a fingerprint of all that
// their results follow from and by a number. A file is written whole, synced, and has a checksum: one that was
// cut off or changed is told from the others, and its pieces are done again.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normscope {

inline constexpr const char* kPiecesFolder = "pieces";

// FNV-1a of 64 bits: tells accidents, not forgeries.
std::uint64_t checksum(std::string_view bytes, std::uint64_t before = 0xcbf29ce484222325);

// Not for several threads at once.
class PieceStore {
 public:
  // run: a directory, which need not be there before the first piece is kept. Files of other fingerprints are
  // left alone, but not looked at.
  PieceStore(const std::filesystem::path& run, std::uint64_t fingerprint);

  // What an earlier run has left; what of it was damaged, as a sentence, empty if nothing was.
  std::size_t found() const { return found_.size(); }
  const std::string& damage() const { return damage_; }
  // Of the piece of a work. A result is handed over once.
  std::optional<std::string> take(const std::string& work, std::size_t piece);

  // Written at once, or together with others that end within a second. Throws Error if the disk is full.
  void add(const std::string& work, std::size_t piece, std::string_view result);
  void flush();
  void flush_if_due();
  // What waits to be written need not be any more.
  void drop_waiting();

  // What stays beside the pieces for who goes on: a small file, before the first piece is kept.
  void set_plan(std::string plan) { plan_ = std::move(plan); }
  // Called before the first file is written.
  void set_first_time(std::function<void()> first_time) { first_time_ = std::move(first_time); }

 private:
  void read(const std::filesystem::path& file);

  std::filesystem::path folder_;
  std::string prefix_, plan_, damage_;
  std::function<void()> first_time_;
  std::size_t next_ = 0, waiting_ = 0, damaged_ = 0;
  std::map<std::pair<std::string, std::size_t>, std::string> found_;
  std::string written_;  // pieces that wait to be written
  std::chrono::steady_clock::time_point begin_, last_;
};

// The plan that an unfinished run has left; none: there is no such run.
std::optional<std::string> plan_of_unfinished_run(const std::filesystem::path& run);
// All files of the folder that can be ours, and the folder.
void remove_pieces(const std::filesystem::path& run);

}  // namespace normscope
