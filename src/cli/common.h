#pragma once
// What every command shares: the common options, output that notices a full disk, progress, tables.
//
// A command is one file that defines `void add_<name>(CLI::App& app, Common& common)`: it calls add_command,
// adds its own options and sets the callback. The callback runs after the whole command line was accepted; it
// throws InputError if the call was wrong (exit code 2) and Error if the run failed (exit code 1).
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pace.h"
#include "core/printable.h"
#include "core/spelling.h"
#include "normscope/executor.h"
#include "normscope/record.h"
#include "result/options.h"
#include "study/context.h"
#include "study/parse.h"

namespace CLI {
class App;
}
namespace normscope::cluster {
class Job;
}

namespace normscope::cli {

struct Common {
  std::uint64_t seed = 0;
  int threads = 0;  // 0: as many as the machine has
  bool json = false;
  bool quiet = false;
  std::string out = {};                          // directory of the run; empty: nothing is written
  const std::atomic<bool>* stop = nullptr;       // for executors: becomes true when the run is interrupted
  cluster::Job* job = nullptr;                   // the processes this one was started with, or it alone
  std::function<void(double share)> watch = {};  // is told which share of all work is done, if set

  static void describe(auto& visit, auto& self) {
    visit("seed", self.seed, "Seed of every random number; same seed, same result");
    visit("threads", self.threads,
          "Threads to use, up to 1024; 0: as many as the machine has. Results do not depend on it",
          OptionFacts{.low = 0, .high = 1024});
    describe_json(visit, self);
    visit(
        "out", self.out,
        "Directory for the files of this run: new, empty, or an earlier run, whose files are removed; `train` "
        "and `paper` neither overwrite runs nor are overwritten",
        OptionFacts{.type = "DIR", .needs = "the name of a directory"});
    describe_quiet(visit, self);
  }
  static void describe_json(auto& visit, auto& self) {
    visit("json", self.json, "Print one JSON object instead of text");
  }
  static void describe_quiet(auto& visit, auto& self) {
    visit("quiet", self.quiet, "No progress and no notes on standard error");
  }
};

// What is left of them where nothing is random, parallel or a run.
struct PrintedOnly {
  static void describe(auto& visit, auto& common) {
    Common::describe_json(visit, common);
    Common::describe_quiet(visit, common);
  }
};

// A subcommand with a footer of examples (one command line each, without the program), and with the common options.
CLI::App* add_plain_command(CLI::App& app, const std::string& name, const std::string& description,
                            const std::vector<std::string>& examples);
CLI::App* add_command(CLI::App& app, Common& common, const std::string& name, const std::string& description,
                      const std::vector<std::string>& examples);

// One that has commands of its own, of which one must be named.
CLI::App* add_commands(CLI::App& app, const std::string& name, const std::string& description);

void add_ablate(CLI::App& app, Common& common);
void add_collapse(CLI::App& app, Common& common);
void add_data(CLI::App& app, Common& common);
void add_doctor(CLI::App& app, Common& common);
void add_heatmap(CLI::App& app, Common& common);
void add_equilibria(CLI::App& app, Common& common);
void add_keys(CLI::App& app, Common& common);
void add_manual(CLI::App& app);
void add_mask(CLI::App& app, Common& common);
void add_train(CLI::App& app, Common& common);
void add_paper(CLI::App& app, Common& common);
void add_scan(CLI::App& app, Common& common);
// run_command: does what a command line says, in a Common that is watched.
using RunCommand =
    std::function<void(const std::vector<std::string>& arguments, std::function<void(double)> watch)>;
void add_submit(CLI::App& app, Common& common, const RunCommand& run_command);
void add_tour(CLI::App& app, const RunCommand& run_command);
void add_vocab(CLI::App& app, Common& common);
void add_serve(CLI::App& app, Common& common);
void add_report(CLI::App& app, Common& common);

// Threads of --threads, and the processes of the job. Several on one machine share its threads.
Executor executor_of(const Common& common);
// Whether this process prints and writes: of a job only the first does.
bool speaks(const Common& common);

// The directory of --out for a run that takes the place of an earlier one; null: there is no --out, or this is
// not the process that writes. Throws
// InputError as RunDirectory, if it holds what can be resumed, a training or an audit of `paper`, and if one of
// the inputs, files with or without the name of a tensor, lies in it and would be gone with the earlier run.
std::unique_ptr<RunDirectory> replaceable_directory(const Common& common,
                                                    std::initializer_list<std::string> inputs = {});

// Whether the work of a command can be shared by several processes.
bool is_divisible(std::string_view command);

// Whether --resume was given. Throws InputError if anything but `allowed` and the options that do not change
// results was given with it, or if an option was given an empty value, which would be taken for its default.
bool resumes(const CLI::App& command, std::initializer_list<std::string_view> allowed = {});

// "0.3s", "42s", "3m07s", "2h05m"
std::string duration(double seconds);
// The norms by name, for help texts.
std::string norm_list();

// Whoever read standard output has seen enough: `normscope keys FILE | head`.
struct ReaderGone {};
// Standard output. Throws Error if it cannot be written to, ReaderGone if nobody reads it any more.
void print(std::string_view text);
void flush_output();
// A line on standard error, unless --quiet.
void note(const Common& common, std::string_view text);

bool colour_output();  // standard output is a terminal that takes colours and NO_COLOR is not set
// Columns of the screen that standard output or standard error goes to: those of COLUMNS, else of the terminal.
// None: it is no screen.
std::optional<std::size_t> screen_width(int descriptor);
std::size_t terminal_width();  // of standard output; 80 where it is none

// Work that consists of several parts, each with its own Progress: how far the whole is, in any unit.
struct Whole {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double total = 1, before = 0,
         part = 0;  // before: what parts that ended took; part: what the present one takes
};

// Of the forms of a line, the most telling first, the first that fits; else the last, cut off.
std::string fitting_line(const std::vector<std::string>& forms, std::size_t width);

// Rate and time left, on standard error, not if --quiet. On a terminal a line that is erased at the end, and is never
// longer than the screen is wide: what wraps cannot be erased. Of a job, whose launcher takes standard error, a line
// now and then; else nothing. update may be called from any thread.
class Progress {
 public:
  // whole: shown beside the part, with the time left of all; it must outlive this.
  Progress(const Common& common, std::string label, std::string unit, const Whole* whole = nullptr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(std::size_t done, std::size_t total);
  // What stands before the rate from now on, such as the current loss.
  void set_detail(std::string detail);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_, unit_, detail_;
  const Whole* whole_;
  bool shown_, told_;  // on a terminal; as lines that stay
  Clock::time_point start_, last_;
  Pace pace_;
  SparseLines lines_;
  std::function<void(double)> watch_;
  std::mutex mutex_;
};

// What a study is given: its notes go to standard error, how far it is to `progress`, which must outlive it.
Context context_of(const Common& common, const Executor& executor, Progress* progress = nullptr);

// What `ask` answers in such a context, whose progress is shown meanwhile.
template <class Ask>
auto with_progress(const Common& common, const Executor& executor, const char* label, const char* unit,
                   const Ask& ask) {
  Progress progress(common, label, unit);
  return ask(context_of(common, executor, &progress));
}

// The report of a run that has ended was written.
void note_report(const Common& common, const RunDirectory& directory);

// Columns aligned by width: the first row is the header; numbers to the right, words to the left. On a screen
// that is too narrow for all columns they are stacked: each block begins with the first column; a cell that is
// still too wide is shortened.
std::string table(const std::vector<std::vector<std::string>>& rows);
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t width);
// A sentence as it is, or on a screen in lines that end between words.
std::string wrapped(std::string_view sentence);
std::string wrapped(std::string_view sentence, std::size_t width);
// "rank              12 of 64": a line with its label, on a screen in lines below each other.
std::string labelled(std::string_view label, std::string_view text);
std::string labelled(std::string_view label, std::string_view text, std::size_t width,
                     std::size_t indent = 18);
// Help as it is, or on a screen with the sentences of options in lines below each other.
std::string fitted_help(const std::string& help);
std::string fitted_help(const std::string& help, std::size_t width);

}  // namespace normscope::cli
