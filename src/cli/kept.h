#pragma once
// Runs that keep what is finished: --out and --resume of the commands whose work is in pieces (pieces.h).
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "record/piece_store.h"
#include "result/option_json.h"

namespace normscope::cli {

// Makes the inputs of a command ones that may be left out beside --resume.
void allow_resuming(CLI::App& command);

class KeptRun {
 public:
  // resume: the directory to go on with, empty: a new run. allowed: options that may be given with it.
  KeptRun(std::string name, const Common& common, const CLI::App& command, const std::string& resume,
          std::initializer_list<std::string_view> allowed = {});
  ~KeptRun();
  KeptRun(const KeptRun&) = delete;
  KeptRun& operator=(const KeptRun&) = delete;

  // Those of the run to go on with take the place of the ones given.
  template <class Options>
  void resume(Options& options) const {
    if (!resumed_.empty()) options = options_from_json<Options>(resumed_, "The plan of the run");
  }
  const Common& common() const { return common_; }

  // To be called once the options are known to make sense, before the work. The directory of the run; null:
  // there is none, or another process writes. inputs: files and models that results follow from; what comes
  // from standard input cannot be read again, and such a run is not kept before it ends.
  template <class Options>
  const RunDirectory* begin(const Options& options, std::initializer_list<std::string> inputs) {
    return begin_with(options_json(options), inputs);
  }
  // Writes the files of a study that has ended (run/finished.h), if there is a directory, and says so; what was
  // kept on the way is removed.
  template <class... Parts>
  void write(const Parts&... study) {
    if (write_files(study...)) note_report(common_, *directory_);
  }
  // The same without a word: whether there is a directory.
  template <class... Parts>
  bool write_files(const Parts&... study) {
    if (!directory_) return false;
    write_run(*directory_, study...);
    finish();
    return true;
  }

 private:
  void finish();
  const RunDirectory* begin_with(const std::string& options, std::initializer_list<std::string> inputs);

  std::string name_;
  Common common_;
  std::string resumed_;  // options of the run that is gone on with; empty: a new one
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<PieceStore> store_;
};

// Pieces of a run in a directory that is kept in other ways, too (paper); in the process that writes.
class KeptPieces {
 public:
  KeptPieces(const Common& common, const std::filesystem::path& directory, const std::string& plan);
  ~KeptPieces();
  KeptPieces(const KeptPieces&) = delete;
  KeptPieces& operator=(const KeptPieces&) = delete;
  // All that the pieces are of has ended.
  void finish();

 private:
  cluster::Job& job_;
  PieceStore store_;
};

}  // namespace normscope::cli
