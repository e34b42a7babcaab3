// normscope: the command line. Exit codes: 0 fine, 1 the run failed, 2 the call or the input was wrong, 130
// and 143 it was stopped by Ctrl-C or SIGTERM.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/common.h"
#include "cli/interrupt.h"
#include "normscope/error.h"
#include "normscope/version.h"

namespace {

using namespace normscope;
using namespace normscope::cli;

constexpr int kFailed = 1, kWrongCall = 2;

int complain(int code, std::string_view sentence) {
  std::fputs(fmt::format("normscope: {}\n", printable(sentence)).c_str(), stderr);
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

std::string about() {
  return fmt::format("normscope {} (commit {}, {})\n", version(), commit(), instruction_set());
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
    if (word.starts_with('-')) continue;
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      const auto meant = nearest(word, names);
      throw InputError(fmt::format("There is no command '{}'{}", word,
                                   meant ? suggestion(meant) : fmt::format("; {} --help lists them.", name)));
    }
    command = command->get_subcommand(word);
    name += " " + word;
  }
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
                           ? nearest(extra.substr(0, extra.find('=')), option_names(command))
                           : std::nullopt;
    if (meant) return fmt::format("There is no option '{}'{}", extra, suggestion(meant));
    return fmt::format("The argument '{}' was not expected; see {}.", extra, help);
  }
  if (is_one_of<CLI::ArgumentMismatch>(error)) {  // CLI11 says "--seed: At Most 1 required but received 2"
    const std::string_view what = error.what();
    const bool repeated = what.find("received") != std::string_view::npos;
    return fmt::format("{} {}; see {}.", what.substr(0, what.find(':')),
                       repeated ? "was given more than once" : "needs a value", help);
  }
  return fmt::format("{}; see {}.", error.what(), help);
}

int run(const std::vector<std::string>& arguments) {
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
  common.stop = &watch_for_interrupts();
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

  if (arguments.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kWrongCall;
  }
  require_known_command(app, arguments);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 wants them reversed
  } catch (const CLI::CallForHelp&) {
    const CLI::App& command = innermost(app);
    print(&command == &app ? app.help() : command.help(full_name(*command.get_parent())));
  } catch (const CLI::Success&) {
    if (show_version) print(about());
  } catch (const CLI::ParseError& error) {
    return complain(kWrongCall, explain(app, error));
  }
  flush_output();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe shows as a failed write,
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit likewise
  try {
    occupy_standard_streams();
    return run({argv + (argc > 0), argv + argc});
  } catch (const Cancelled&) {
    return tell_of_interrupt();
  } catch (const InputError& error) {
    return complain(kWrongCall, error.what());
  } catch (const std::bad_alloc&) {
    return complain(kFailed, "There is not enough memory for this run.");
  } catch (const std::exception& error) {
    return complain(kFailed, error.what());
  }
}
