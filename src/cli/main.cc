// normscope: the command line. Exit codes: 0 fine, 1 the run failed, 2 the call or the input was wrong, 130
// and 143 it was stopped by Ctrl-C or SIGTERM, 141 whoever read its output went away (as of programs that end by
// SIGPIPE).
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "cli/common.h"
#include "cli/interrupt.h"
#include "cluster/join.h"
#include "normscope/error.h"
#include "normscope/version.h"

namespace {

using namespace normscope;
using namespace normscope::cli;

constexpr int kFailed = 1, kWrongCall = 2, kReaderGone = 128 + SIGPIPE;

int complain(int code, std::string_view sentence) {
  const std::size_t room = screen_width(STDERR_FILENO).value_or(std::string::npos);
  std::fputs((wrapped("normscope: " + printable(sentence), room) + "\n").c_str(), stderr);
  return code;
}

// Without this the first file opened would take the number of a closed standard stream and receive what is
// printed. Standard output becomes unwritable rather than a silent sink, so that lost results are noticed.
void occupy_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1) {
      [[maybe_unused]] const int opened =
          ::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

void replace_stream(int stream, int by) {
  if (by < 0 || ::dup2(by, stream) < 0) throw Error("A standard stream could not be replaced.");
  ::close(by);
}

void print_nothing() {
  replace_stream(STDOUT_FILENO, ::open("/dev/null", O_WRONLY));
  be_silent_when_stopped();
}

// Launchers connect standard input to the first process only: where it is asked for, all get what that reads.
void share_standard_input(const std::vector<std::string>& arguments, cluster::Job& job) {
  if (std::find(arguments.begin(), arguments.end(), "-") == arguments.end()) return;
  const std::string bytes = job.from_first([] {
    std::string all;
    char part[1 << 16];
    while (true) {
      const ssize_t count = ::read(STDIN_FILENO, part, sizeof part);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Error("Standard input cannot be read.");
      if (count == 0) return all;
      all.append(part, static_cast<std::size_t>(count));
    }
  });
  std::FILE* file = std::tmpfile();
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() ||
      std::fflush(file) != 0)
    throw Error("Standard input could not be kept for the processes of the job: is the disk full?");
  std::rewind(file);
  replace_stream(STDIN_FILENO, ::dup(::fileno(file)));
  std::fclose(file);
  ::lseek(STDIN_FILENO, 0, SEEK_SET);
}

std::string about() {
  return fmt::format("normscope {} (commit {}, {})\n", version(), commit(), instruction_set());
}

// What a first call without anything is answered with.
std::string things_to_try() {
  return fitted_help(
      "Normscope shows what normalization and masks do to a transformer's attention, and decides it exactly.\n"
      "Five things to try:\n\n"
      "  normscope tour              the questions below on small examples, and a page: a minute\n"
      "  normscope keys KEYS.npy     which of your keys attention can select, and why\n"
      "  normscope heatmap           how often random keys cannot be selected, with and without LayerNorm\n"
      "  normscope collapse          how fast tokens become alike with depth, under which mask and norm\n"
      "  normscope paper --out audit whether the claims of two papers hold\n\n"
      "normscope --help lists all commands, normscope doctor tells what this machine has and lacks.\n",
      screen_width(STDERR_FILENO).value_or(std::string::npos));
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // an old spelling, unlisted
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string suggestion(const std::optional<std::string>& meant) {
  return meant ? fmt::format("; did you mean '{}'?", *meant) : "";
}

// A command that has commands takes only flags besides, so the first argument that is not one names which.
void require_known_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : arguments) {
    const auto names = command_names(*command);
    if (names.empty()) return;
    if (word.starts_with('-')) {
      const bool known = command != &app || word == "-h" || word == "--help" || word == "--version";
      if (known) continue;
      throw InputError(fmt::format("Options come after the command: normscope COMMAND … {}.", word));
    }
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      const auto meant = nearest_spelling(word, names);
      throw InputError(fmt::format("There is no command '{}'{}", word,
                                   meant ? suggestion(meant) : fmt::format("; {} --help lists them.", name)));
    }
    command = command->get_subcommand(word);
    name += " " + word;
  }
}

// Commands that write or serve without a study in pieces would do it as often as there are processes.
void require_divisible(const std::vector<std::string>& arguments, const cluster::Job& job) {
  const auto command = std::find_if(arguments.begin(), arguments.end(),
                                    [](const std::string& word) { return !word.starts_with('-'); });
  if (job.processes() <= 1 || command == arguments.end() || is_divisible(*command)) return;
  throw InputError(
      fmt::format("normscope {} is not work for {} processes; start it once, without mpirun or srun.",
                  *command, job.processes()));
}

// `normscope train majority`: the command that was meant is the innermost.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* command = &app;
  for (auto parsed = app.get_subcommands(); !parsed.empty(); parsed = command->get_subcommands()) {
    command = parsed.front();
  }
  return *command;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

template <class... Kinds>
bool is_one_of(const CLI::ParseError& error) {
  return ((dynamic_cast<const Kinds*>(&error) != nullptr) || ...);
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::string help = full_name(command) + " --help";
  const auto extras = app.remaining(true);
  if (!extras.empty() && is_one_of<CLI::ExtrasError, CLI::RequiredError>(error)) {
    const std::string& extra = extras.front();
    const auto meant = extra.starts_with("--")
                           ? nearest_spelling(extra.substr(0, extra.find('=')), option_names(command))
                           : std::nullopt;
    if (meant) return fmt::format("There is no option '{}'{}", extra, suggestion(meant));
    if (extra.starts_with('-')) return fmt::format("There is no option '{}'; see {}.", extra, help);
    return fmt::format("The argument '{}' was not expected; see {}.", extra, help);
  }
  if (is_one_of<CLI::ArgumentMismatch>(error)) {  // CLI11 says "--seed: At Most 1 required but received 2"
    const std::string_view what = error.what();
    const bool repeated = what.find("received") != std::string_view::npos;
    return fmt::format("{} {}; see {}.", what.substr(0, what.find(':')),
                       repeated ? "was given more than once" : "needs a value", help);
  }
  if (const auto names = command_names(command); !names.empty() && is_one_of<CLI::RequiredError>(error))
    return fmt::format("{} needs a command: {}; see {}.", full_name(command), fmt::join(names, ", "), help);
  return fmt::format("{}; see {}.", error.what(), help);
}

int run(const std::vector<std::string>& arguments, cluster::Job& job, const std::atomic<bool>& stop,
        std::function<void(double)> watch = {}) {
  CLI::App app(
      "Normscope shows what normalization and masks do to a transformer's attention, and decides it exactly.",
      "normscope");
  app.footer("normscope COMMAND --help tells more about a command.");
  app.require_subcommand(1);
  bool show_version = false;
  app.add_flag_callback(
      "--version",
      [&] {
        show_version = true;
        throw CLI::Success();
      },
      "Print version, commit and instruction set");
  Common common;
  common.stop = &stop;
  common.job = &job;
  common.quiet = !job.first();
  common.watch = std::move(watch);
  add_keys(app, common);
  add_scan(app, common);
  add_vocab(app, common);
  add_ablate(app, common);
  add_heatmap(app, common);
  add_collapse(app, common);
  add_mask(app, common);
  add_equilibria(app, common);
  add_train(app, common);
  add_paper(app, common);
  add_serve(app, common);
  add_report(app, common);
  add_data(app, common);
  const RunCommand run_command = [&](const std::vector<std::string>& command,
                                     std::function<void(double)> watched) {
    run(command, job, stop, std::move(watched));
  };
  add_submit(app, common, run_command);
  add_tour(app, run_command);
  add_doctor(app, common);
  add_manual(app);

  if (arguments.empty()) {
    if (job.first()) std::fputs(things_to_try().c_str(), stderr);
    return kWrongCall;
  }
  require_known_command(app, arguments);
  require_divisible(arguments, job);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 wants them reversed
  } catch (const CLI::CallForHelp&) {
    const CLI::App& command = innermost(app);
    print(fitted_help(&command == &app ? app.help() : command.help(full_name(*command.get_parent()))));
  } catch (const CLI::Success&) {
    if (show_version) print(about());
  } catch (const CLI::ParseError& error) {
    throw InputError(explain(app, error));
  }
  flush_output();
  return 0;
}

// How a run ends that threw.
cluster::Ending ending_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Cancelled&) {
    const int code = code_of_interrupt();
    return {code, code == 0 ? "" : sentence_of_interrupt()};
  } catch (const ReaderGone&) {
    return {kReaderGone, ""};
  } catch (const InputError& error) {
    return {kWrongCall, error.what()};
  } catch (const std::bad_alloc&) {
    return {kFailed, "There is not enough memory for this run."};
  } catch (const std::exception& error) {
    return {kFailed, error.what()};
  }
}

// For bench/cluster, which tells from them what many machines would do: a file that takes what pieces took and what
// the first process sent.
const char* file_of_piece_times() {
  return std::getenv("NORMSCOPE_PIECE_TIMES");
}
void write_piece_times(cluster::Job& job) {
  if (file_of_piece_times() == nullptr || !job.first()) return;
  std::string works;
  for (const cluster::PieceTimes& work : job.times())
    works += fmt::format("{}{{\"work\": \"{}\", \"seconds\": [{}]}}", works.empty() ? "" : ",\n", work.work,
                         fmt::join(work.seconds, ", "));
  write_file_atomically(file_of_piece_times(),
                        fmt::format("{{\"bytes_sent\": {}, \"carried\": {{\"pieces\": {}, \"seconds\": {}}}, "
                                    "\"works\": [{}]}}\n",
                                    job.bytes_sent(), job.carried().pieces, job.carried().seconds, works));
}

int run_in(cluster::Job& job, const std::vector<std::string>& arguments, const std::atomic<bool>& stop) {
  cluster::Ending ending;
  try {
    job.require_same(cluster::sameness(arguments));
    if (!job.first()) print_nothing();
    if (file_of_piece_times() != nullptr) job.watch_times();
    if (job.processes() > 1) share_standard_input(arguments, job);
    ending.code = run(arguments, job, stop);
    write_piece_times(job);
  } catch (...) {
    ending = ending_of(std::current_exception());
  }
  return job.end(ending, [](const std::string& sentence) {
    be_silent_when_stopped();  // a launcher stops the others when one of them has ended
    complain(0, sentence);
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe shows as a failed write,
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit likewise
  try {
    occupy_standard_streams();
    std::atomic<bool>& stop = watch_for_interrupts();
    const auto job = cluster::join_job(stop);
    return run_in(*job, {argv + (argc > 0), argv + argc}, stop);
  } catch (const cluster::NotTheOneToSpeak& other) {
    return other.code;
  } catch (...) {
    const cluster::Ending ending = ending_of(std::current_exception());
    return complain(ending.code, ending.sentence);
  }
}
