// normscope manual, normscope completion: what the commands say of themselves, for man and for shells. Options come
// from their `describe` through the command line's own list, so that nothing is said twice.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "normscope/error.h"
#include "normscope/record.h"
#include "normscope/version.h"

namespace normscope::cli {
namespace {

// A command that can be called, "train majority", or the program itself, "".
struct Word {
  std::string name;
  const CLI::App* app;
};

void collect(const CLI::App& app, const std::string& name, std::vector<Word>& words) {
  words.push_back({name, &app});
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    collect(*each, (name.empty() ? "" : name + " ") + each->get_name(), words);
}

std::vector<Word> words_of(const CLI::App& app) {
  std::vector<Word> words;
  collect(app, "", words);
  return words;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Those that --help lists: no old spellings.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> listed;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() && !option->get_lnames().empty()) listed.push_back(option);
  return listed;
}
std::vector<const CLI::Option*> inputs_of(const CLI::App& app) {
  std::vector<const CLI::Option*> inputs;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) inputs.push_back(option);
  return inputs;
}

std::string long_name(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}
bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}
// "exact|bound" is a choice; anything else that is written in capitals is not.
std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> choices;
  const std::string type = option.get_type_name();
  if (type.find('|') == std::string::npos) return choices;
  for (const std::string_view choice : split(type, '|')) choices.emplace_back(choice);
  return choices;
}

// What fits beside a name in a list: the first clause.
std::string clause(const std::string& sentence) {
  const std::size_t end = std::min(sentence.find_first_of(";:"), sentence.find(". "));
  return sentence.substr(0, end);
}

std::string replaced(std::string_view text, std::string_view of, std::string_view with) {
  std::string result;
  for (const char c : text) {
    if (of.find(c) != std::string_view::npos) result += with;
    result += c;
  }
  return result;
}
std::string in_quotes(const std::string& text) {  // of a shell
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// ---- bash

std::string bash_completion(const CLI::App& app) {
  std::string paths, values, words;
  for (const Word& word : words_of(app)) {
    std::string listed;
    for (const CLI::App* command : commands_of(*word.app)) listed += command->get_name() + " ";
    if (!word.name.empty()) {
      const std::size_t cut = word.name.rfind(' ');
      const std::string before = cut == std::string::npos ? "" : word.name.substr(0, cut);
      paths += fmt::format("{}\"{} {}\"", paths.empty() ? "" : " | ", before,
                           word.name.substr(cut == std::string::npos ? 0 : cut + 1));
    }
    for (const CLI::Option* option : options_of(*word.app)) {
      listed += long_name(*option) + " ";
      const std::string place = fmt::format("    \"{}/{}\")", word.name, long_name(*option));
      if (const auto choices = choices_of(*option); !choices.empty())
        values += fmt::format("{} COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n", place,
                              fmt::join(choices, " "));
      else if (takes_value(*option))
        values += place + " COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n";
    }
    words += fmt::format("    \"{}\") words='{}' ;;\n", word.name, listed);
  }
  return fmt::format(R"(# bash completion of normscope {}; made by `normscope completion bash`
_normscope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= word words=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $word" in
    {}) command="${{command:+$command }}$word" ;;
    esac
  done
  case "$command/$previous" in
{}  esac
  case "$command" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ $current == -* || ${{#COMPREPLY[@]}} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _normscope normscope
)",
                     version(), paths, values, words);
}

// ---- zsh

std::string zsh_text(const std::string& text) {
  return replaced(text, "\\[]:'", "\\");
}

std::string zsh_completion(const CLI::App& app) {
  std::string functions;
  for (const Word& word : words_of(app)) {
    std::string name = "_normscope" + (word.name.empty() ? "" : "_" + word.name);
    std::replace(name.begin(), name.end(), ' ', '_');
    std::string lines;
    for (const CLI::Option* option : options_of(*word.app)) {
      std::string value;
      if (const auto choices = choices_of(*option); !choices.empty())
        value = fmt::format(":{}:({})", option->get_lnames().front(), fmt::join(choices, " "));
      else if (takes_value(*option))
        value = fmt::format(":{}:_files", option->get_lnames().front());
      lines += fmt::format("    $'{}[{}]{}' \\\n", long_name(*option),
                           zsh_text(clause(option->get_description())), value);
    }
    const auto commands = commands_of(*word.app);
    if (commands.empty()) {
      functions += fmt::format("{}() {{\n  _arguments \\\n{}    '*:file:_files'\n}}\n", name, lines);
      continue;
    }
    std::string listed, cases;
    for (const CLI::App* command : commands) {
      listed +=
          fmt::format("    $'{}:{}'\n", command->get_name(), zsh_text(clause(command->get_description())));
      cases += fmt::format("      {}) {}_{} ;;\n", command->get_name(), name, command->get_name());
    }
    functions += fmt::format(R"({}() {{
  local -a commands=(
{}  )
  local curcontext=$curcontext state line
  _arguments -C \
{}    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument) case $line[1] in
{}    esac ;;
  esac
}}
)",
                             name, listed, lines, cases);
  }
  return fmt::format(
      "#compdef normscope\n# zsh completion of normscope {}; made by `normscope completion zsh`\n{}"
      "_normscope \"$@\"\n",
      version(), functions);
}

// ---- fish

std::string fish_completion(const CLI::App& app) {
  std::string lines;
  for (const Word& word : words_of(app)) {
    const auto commands = commands_of(*word.app);
    std::string inner;
    for (const CLI::App* command : commands) inner += " " + command->get_name();
    const std::size_t cut = word.name.rfind(' ');
    std::string here = word.name.empty() ? "__fish_use_subcommand"
                                         : "__fish_seen_subcommand_from " +
                                               word.name.substr(cut == std::string::npos ? 0 : cut + 1);
    if (!word.name.empty() && !inner.empty()) here += "; and not __fish_seen_subcommand_from" + inner;
    for (const CLI::App* command : commands)
      lines += fmt::format("complete -c normscope -n {} -f -a {} -d {}\n", in_quotes(here),
                           command->get_name(), in_quotes(clause(command->get_description())));
    for (const CLI::Option* option : options_of(*word.app)) {
      lines += fmt::format("complete -c normscope -n {} -l {} -d {}", in_quotes(here),
                           option->get_lnames().front(), in_quotes(clause(option->get_description())));
      if (const auto choices = choices_of(*option); !choices.empty())
        lines += fmt::format(" -x -a '{}'", fmt::join(choices, " "));
      else if (takes_value(*option))
        lines += " -r";
      lines += "\n";
    }
  }
  return fmt::format("# fish completion of normscope {}; made by `normscope completion fish`\n{}", version(),
                     lines);
}

// ---- man

// A line of text: dashes that stay dashes, and nothing that begins a request.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  if (!result.empty() && (result.front() == '.' || result.front() == '\'')) result = "\\&" + result;
  return result;
}

std::string type_of(const CLI::Option& option) {
  return takes_value(option) ? fmt::format(" \\fI{}\\fR", roff(option.get_type_name())) : "";
}

std::string roff_of_footer(const std::string& footer) {
  std::string result;
  bool code = false;
  for (const std::string_view line : split(footer, '\n')) {
    const bool indented = line.starts_with("  ");
    if (indented != code) result += indented ? ".PP\n.nf\n" : ".fi\n.PP\n";
    code = indented;
    if (line == "Examples:")
      result += ".SH EXAMPLES\n";
    else if (line.empty())
      result += ".PP\n";
    else
      result += roff(line) + "\n";
  }
  return result + (code ? ".fi\n" : "");
}

std::string manual_page(const Word& word) {
  std::string page_name = "normscope" + (word.name.empty() ? "" : "-" + word.name);
  std::replace(page_name.begin(), page_name.end(), ' ', '-');
  std::string synopsis = "\\fBnormscope" + (word.name.empty() ? "" : " " + word.name) + "\\fR";
  const auto commands = commands_of(*word.app);
  if (!commands.empty()) synopsis += " \\fICOMMAND\\fR";
  for (const CLI::Option* input : inputs_of(*word.app)) {
    const bool needed = input->get_required();
    synopsis +=
        fmt::format(" {}\\fI{}\\fR{}", needed ? "" : "[", roff(input->get_name(true)), needed ? "" : "]");
  }
  if (!options_of(*word.app).empty()) synopsis += " [\\fIOPTIONS\\fR]";
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"normscope {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n.SH DESCRIPTION\n{}.\n",
      roff(page_name), version(), roff(page_name), roff(clause(word.app->get_description())), synopsis,
      roff(word.app->get_description()));
  if (!commands.empty()) page += ".SH COMMANDS\n";
  for (const CLI::App* command : commands)
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command->get_name()), roff(command->get_description()));
  const auto inputs = inputs_of(*word.app);
  const auto options = options_of(*word.app);
  if (!inputs.empty() || !options.empty()) page += ".SH OPTIONS\n";
  for (const CLI::Option* input : inputs)
    page += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(input->get_name(true)), roff(input->get_description()));
  for (const CLI::Option* option : options) {
    const std::string fallback = option->get_default_str();
    page += fmt::format(".TP\n\\fB{}\\fR{}\n{}{}\n", roff(long_name(*option)), type_of(*option),
                        roff(option->get_description()),
                        fallback.empty() ? "." : fmt::format(" (default {}).", roff(fallback)));
  }
  page += roff_of_footer(word.app->get_footer());
  page +=
      ".SH EXIT STATUS\n0 fine, 1 the run failed, 2 the call or the input was wrong, 130 and 143 it was stopped.\n";
  if (!word.name.empty()) page += ".SH SEE ALSO\n\\fBnormscope\\fR(1)\n";
  return page;
}

std::string page_file(const Word& word) {
  std::string name = "normscope" + (word.name.empty() ? "" : "-" + word.name) + ".1";
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

// ----

constexpr struct {
  const char* name;
  std::string (*completion)(const CLI::App& app);
} kShells[] = {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

struct CompletionCall {
  std::string shell = {};

  static void describe(auto& visit, auto& self) {
    visit.input("SHELL", self.shell, "bash, zsh or fish", OptionFacts{.type = ""});
  }
};

struct ManualCall {
  std::vector<std::string> command = {};
  std::string install = {};

  static void describe(auto& visit, auto& self) {
    visit.input("COMMAND", self.command, "Of which command; the program's own page without one",
                OptionFacts{.type = "", .otherwise = "the program"});
    visit(
        "install", self.install,
        "Write all pages, and the completions of bash, zsh and fish, below this directory, such as /usr/local/share",
        OptionFacts{.type = "DIR", .needs = "the name of a directory"});
  }
};

void run_completion(const CLI::App& app, const CompletionCall& call) {
  for (const auto& shell : kShells)
    if (call.shell == shell.name) return print(shell.completion(app));
  throw InputError(fmt::format("SHELL is bash, zsh or fish, not '{}'.", printable(call.shell)));
}

void write_below(const std::filesystem::path& folder, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(folder);
  write_file_atomically((folder / name).string(), text);
}

void run_manual(const CLI::App& app, const ManualCall& call) {
  const std::vector<Word> words = words_of(app);
  if (!call.install.empty()) {
    const std::filesystem::path share = call.install;
    for (const Word& word : words) write_below(share / "man" / "man1", page_file(word), manual_page(word));
    write_below(share / "bash-completion" / "completions", "normscope", bash_completion(app));
    write_below(share / "zsh" / "site-functions", "_normscope", zsh_completion(app));
    write_below(share / "fish" / "vendor_completions.d", "normscope.fish", fish_completion(app));
    return;
  }
  const std::string name = fmt::format("{}", fmt::join(call.command, " "));
  for (const Word& word : words)
    if (word.name == name) return print(manual_page(word));
  throw InputError(fmt::format("There is no command '{}'; normscope --help lists them.", printable(name)));
}

}  // namespace

void add_manual(CLI::App& app) {
  CLI::App* manual = add_plain_command(app, "manual", "Manual pages, for man",
                                       {"manual keys | man -l -", "manual --install /usr/local/share"});
  auto pages = std::make_shared<ManualCall>();
  add_options(*manual, *pages);
  when_called(*manual, [pages, &app] { run_manual(app, *pages); });
  CLI::App* completions =
      add_plain_command(app, "completion", "Completion of commands and options, for bash, zsh or fish",
                        {"completion bash > ~/.local/share/bash-completion/completions/normscope",
                         "completion zsh > ~/.zfunc/_normscope",
                         "completion fish > ~/.config/fish/completions/normscope.fish"});
  auto shell = std::make_shared<CompletionCall>();
  add_options(*completions, *shell);
  when_called(*completions, [shell, &app] { run_completion(app, *shell); });
}

}  // namespace normscope::cli
