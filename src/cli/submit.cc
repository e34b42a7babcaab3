// normscope submit: writes, and does not send, a Slurm script for a command.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/options.h"
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
constexpr double kMegabyte = 1 << 20, kLeastMemory = 512;
constexpr std::size_t kLongestSentence = 2048;

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

// What a dry run has shown: a command that runs for some seconds on one thread and is then stopped.
struct DryRun {
  bool ended = false;   // before its time was over
  std::string refused;  // why it failed; empty: it did not
  double seconds = 0, share = 0;
  double megabytes = 0;
  std::size_t runs = 0;  // of a training
};

// How many runs a training has, by what it keeps in its directory; 0: it is none, or had not begun.
std::size_t runs_kept_in(const fs::path& run) {
  const std::string command = command_of(run);
  if (!command.starts_with("train ")) return 0;
  const auto options = read_config(run, command).at("options");
  return options.contains("runs") ? options["runs"].size() : 0;
}

// A process of its own, which may be stopped and whose memory can be told. There are no threads yet.
DryRun try_out(std::vector<std::string> words, double seconds, const RunCommand& run_command) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("normscope-dry-{}", ::getpid());
  words.insert(words.end(), {"--threads", "1", "--quiet", "--out", (folder / "run").string()});
  int ends[2] = {};
  if (::pipe(ends) != 0) throw Error("The dry run could not be started.");
  const pid_t child = ::fork();
  if (child < 0) throw Error("The dry run could not be started.");
  if (child == 0) {
    ::close(ends[0]);
    be_silent_when_stopped();  // Ctrl-C reaches both
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    int code = 0;
    const auto tell = [&](const void* bytes, std::size_t size) {
      [[maybe_unused]] const auto told = ::write(ends[1], bytes, size);
    };
    const auto refuse = [&](const std::string& why) {
      const double none = -1;  // before a sentence, in one piece with it
      std::string bytes(reinterpret_cast<const char*>(&none), sizeof none);
      bytes += why.substr(0, kLongestSentence);
      tell(bytes.data(), bytes.size());
      code = 2;
    };
    try {
      run_command(words, [&](double share) { tell(&share, sizeof share); });
    } catch (const std::exception& error) {
      refuse(error.what());
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const auto start = std::chrono::steady_clock::now();
  DryRun found;
  double first_share = 0, first_seconds = 0;
  rusage usage{};
  bool failed = false;
  while (true) {
    double share = 0;
    found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    while (::read(ends[0], &share, sizeof share) == static_cast<ssize_t>(sizeof share)) {
      if (share < 0) {
        char text[kLongestSentence];
        const ssize_t size = ::read(ends[0], text, sizeof text);
        found.refused.assign(text, size > 0 ? static_cast<std::size_t>(size) : 0);
        break;
      }
      if (found.share == 0) first_share = share, first_seconds = found.seconds;
      found.share = std::max(found.share, share);
    }
    if (found.ended) {
      if (failed && found.refused.empty()) found.refused = "The command was killed in its dry run.";
      break;
    }
    int status = 0;
    if (::wait4(child, &status, WNOHANG, &usage) == child) {
      found.ended = true;  // once more, for its last words
      failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
      continue;
    }
    const bool stopped = was_interrupted();
    if (stopped || found.seconds >= seconds) {
      ::kill(child, SIGKILL);
      ::wait4(child, &status, 0, &usage);
      if (!stopped) break;
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      throw Cancelled();
    }
    ::usleep(10'000);
  }
  ::close(ends[0]);
  found.runs = runs_kept_in(folder / "run");
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  found.megabytes = static_cast<double>(usage.ru_maxrss) * 1024 / kMegabyte;
  // What it takes to begin is not work that is shared.
  if (!found.ended && found.share > first_share)
    found.seconds =
        first_seconds + (found.seconds - first_seconds) * (1 - first_share) / (found.share - first_share);
  return found;
}

struct Estimate {
  double seconds = 0;    // of the job
  double megabytes = 0;  // of a process
  std::string why;       // for who reads the script
};

Estimate estimate(const SubmitCall& call, const std::vector<std::string>& words,
                  const RunCommand& run_command) {
  Estimate result;
  DryRun tried;
  if (call.time.empty() || call.memory.empty()) {
    tried = try_out(words, call.dry_run, run_command);
    if (!tried.refused.empty()) throw InputError(tried.refused);
    result.megabytes = std::max(kLeastMemory, 2 * tried.megabytes);
  }
  double workers = static_cast<double>(call.nodes * call.tasks * call.threads);
  if (!call.time.empty()) {
    result.seconds = parse_slurm_time(call.time, "--time");
    result.why = "The time was given.";
    return result;
  }
  if (!tried.ended && tried.share <= 0)
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
  const double parallel = tried.seconds / (workers * (workers > 1 ? kEfficiency : 1));
  result.seconds = std::max(kLeastSeconds, kSafety * parallel);
  result.why = fmt::format(
      "A dry run says: {} on one thread{}; {:.0f} worker{}{} at {:.0f} % of their time, and half as much again.",
      duration(tried.seconds),
      tried.ended ? ", to the end" : fmt::format(", of which {:.2g} % were seen", 100 * tried.share), workers,
      workers == 1 ? "" : "s", few, 100 * (workers > 1 ? kEfficiency : 1));
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
