// normscope submit: writes, and does not send, a Slurm script for a command.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cluster/dry_run.h"
#include "cluster/slurm.h"
#include "normscope/error.h"
#include "normscope/record.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

// Of the threads of a machine beyond the first little is lost; of what a dry run sees of its end more is not known.
constexpr double kEfficiency = 0.8, kSafety = 1.5, kLeastSeconds = 300;
// A step of texts is cut into eight, one of majority is too short to be shared.
constexpr std::size_t kWorkersOfTextRun = 8;
constexpr double kLeastMemory = 512;  // MB

// The value of an option of the command, and the command without it.
std::string take_option(std::vector<std::string>& words, const std::string& name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(name + "=")) {
      std::string value = words[i].substr(name.size() + 1);
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    if (words[i] != name || i + 1 >= words.size()) continue;
    std::string value = words[i + 1];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    return value;
  }
  return "";
}

// How many runs a training has, by what it keeps in its directory; 0: it is none, or had not begun.
std::size_t runs_kept_in(const fs::path& run) {
  const std::string command = command_of(run);
  if (!command.starts_with("train ")) return 0;
  const auto options = read_config(run, command).at("options");
  return options.contains("runs") ? options["runs"].size() : 0;
}

struct Tried {
  DryRun seen;
  std::size_t runs = 0;  // of a training
};

// A command for some seconds, on one thread.
Tried try_out(std::vector<std::string> words, double seconds, const RunCommand& run_command) {
  struct Folder {
    fs::path path = fs::temp_directory_path() / fmt::format("normscope-dry-{}", ::getpid());
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  } folder;
  words.insert(words.end(), {"--threads", "1", "--quiet", "--out", (folder.path / "run").string()});
  const auto command = [&](const auto& tell) {
    be_silent_when_stopped();  // Ctrl-C reaches both
    run_command(words, tell);
  };
  const DryRun seen = dry_run(command, seconds, was_interrupted);
  return {seen, runs_kept_in(folder.path / "run")};
}

struct Estimate {
  double seconds = 0;    // of the job
  double megabytes = 0;  // of a process
  std::string why;       // for who reads the script
};

Estimate estimate(const SubmitCall& call, const std::vector<std::string>& words,
                  const RunCommand& run_command) {
  Estimate result;
  Tried tried;
  if (call.time.empty() || call.memory.empty()) {
    tried = try_out(words, call.dry_run, run_command);
    if (!tried.seen.refused.empty()) throw InputError(tried.seen.refused);
    result.megabytes = std::max(kLeastMemory, 2 * tried.seen.megabytes);
  }
  double workers = static_cast<double>(call.nodes * call.tasks * call.threads);
  if (!call.time.empty()) {
    result.seconds = parse_slurm_time(call.time, "--time");
    result.why = "The time was given.";
    return result;
  }
  if (!tried.seen.ended && tried.seen.share <= 0)
    throw InputError(fmt::format(
        "The command has not told within {:.0f} s how far it is, so that its time cannot be estimated; give --time, or "
        "a longer --dry-run.",
        call.dry_run));
  std::string few;
  if (tried.runs > 0) {
    const std::size_t most = tried.runs * (words[1] == "majority" ? 1 : kWorkersOfTextRun);
    if (static_cast<double>(most) < workers) {
      few = fmt::format(" (no more of {:.0f} find work in {} run{})", workers, tried.runs,
                        tried.runs == 1 ? "" : "s");
      workers = static_cast<double>(most);
    }
  }
  const double parallel = tried.seen.seconds / (workers * (workers > 1 ? kEfficiency : 1));
  result.seconds = std::max(kLeastSeconds, kSafety * parallel);
  result.why = fmt::format(
      "A dry run says: {} on one thread{}; {:.0f} worker{}{} at {:.0f} % of their time, and half as much again.",
      duration(tried.seen.seconds),
      tried.seen.ended ? ", to the end"
                       : fmt::format(", of which {:.2g} % were seen", 100 * tried.seen.share),
      workers, workers == 1 ? "" : "s", few, 100 * (workers > 1 ? kEfficiency : 1));
  return result;
}

void run_submit(const SubmitCall& call, const RunCommand& run_command) {
  std::vector<std::string> words = call.command;
  if (!words.empty() && words[0] == "normscope") words.erase(words.begin());
  if (words.empty() || !is_divisible(words[0]))
    throw InputError(
        fmt::format("'{}' is not work for a cluster; submit takes keys, scan, vocab, heatmap, collapse, "
                    "equilibria, train and paper, with their options, after --.",
                    words.empty() ? "" : printable(words[0])));
  // With time and memory given nothing else looks at the command before the cluster does.
  constexpr std::string_view trainings[] = {"majority", "lm", "sentiment"};
  const std::string what = words.size() > 1 ? words[1] : "";
  if (words[0] == "train" &&
      std::find(std::begin(trainings), std::end(trainings), what) == std::end(trainings))
    throw InputError(fmt::format("train takes {}, not '{}'.", fmt::join(trainings, ", "), printable(what)));
  const std::string out = take_option(words, "--out");
  take_option(words, "--threads");
  std::erase(words, "--quiet");
  if (out.empty())
    throw InputError("A job needs --out DIR in its command: what it finds, and goes on with, is kept there.");
  if (std::find(words.begin(), words.end(), "-") != words.end())
    throw InputError("A job has no standard input; give a file in the place of '-'.");
  if (fs::exists(fs::path(out) / "results.json"))
    throw InputError(fmt::format("'{}' holds the results of an earlier run; name another directory.", out));
  if (call.script != "-") require_place_for_file(call.script);
  SlurmJob job{.words = words, .out = out, .nodes = call.nodes, .tasks = call.tasks, .threads = call.threads};
  job.limit = parse_slurm_time(call.limit, "--limit");
  job.launcher = call.launcher;
  const Estimate expected = estimate(call, words, run_command);
  job.seconds = expected.seconds;
  job.why = expected.why;
  job.memory = call.memory.empty()
                   ? fmt::format("{:.0f}M", std::ceil(expected.megabytes * static_cast<double>(call.tasks)))
                   : slurm_memory(call.memory, call.tasks);
  const std::string script = slurm_script(job);
  call.script == "-" ? print(script) : write_file_atomically(call.script, script);
}

}  // namespace

void add_submit(CLI::App& app, Common&, const RunCommand& run_command) {
  CLI::App* command = add_plain_command(
      app, "submit",
      "Write, not send, a Slurm script for a command: time and memory are estimated by a dry run",
      {"submit --nodes 4 --tasks 2 --threads 16 --script heat.sh -- heatmap --draws 100000 --out runs/heat",
       "submit --limit 12:00:00 -- paper --full --out runs/paper",
       "submit --time 2:00:00 --memory 4G -- scan minilm --text book.txt --samples 500 --out runs/book"});
  auto call = std::make_shared<SubmitCall>();
  add_options(*command, *call);
  when_called(*command, [call, run_command] { run_submit(*call, run_command); });
}

}  // namespace normscope::cli
