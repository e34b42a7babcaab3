#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/common.h"
#include "normscope/error.h"

namespace normscope::cli {
namespace {

void place(CLI::Option& added, const TextOption& option) {
  if (!option.group.empty()) added.group(option.group);
}

}  // namespace

void add_input(CLI::App& command, const TextOption& input, const OptionFacts& facts, std::string& field) {
  CLI::Option* added = command.add_option(input.name, field, input.help);
  if (facts.type != nullptr) added->type_name(input.type);
  added->required(facts.otherwise == nullptr);
  place(*added, input);
}
void add_input(CLI::App& command, const TextOption& input, const OptionFacts& facts,
               std::vector<std::string>& field) {
  CLI::Option* added = command.add_option(input.name, field, input.help)->type_name(input.type);
  added->required(facts.otherwise == nullptr);
  place(*added, input);
}

void add_option(CLI::App& command, const TextOption& option) {
  CLI::Option* added = command.add_option_function<std::string>(
      option.name, [option](const std::string& text) { option.take(text, option.name); }, option.help);
  added->type_name(option.type);
  place(*added, option);
  if (!option.old_name.empty()) {
    const auto take = [option, added](const std::string& text) {
      if (added->count() > 0)
        throw InputError(
            fmt::format("{} is an older name of {}; give one of them.", option.old_name, option.name));
      option.take(text, option.old_name);
    };
    command.add_option_function<std::string>(option.old_name, take)->group("");
  }
  if (!option.shown_default.empty()) added->default_str(option.shown_default);
}

void add_list(CLI::App& command, const TextOption& option, std::vector<std::string>& field) {
  CLI::Option* added = command.add_option(option.name, field, option.help)->type_name(option.type);
  if (!field.empty()) added->capture_default_str();
  place(*added, option);
}

void add_flag(CLI::App& command, const TextOption& option, bool& field) {
  place(*command.add_flag(option.name, field, option.help), option);
}

void describe_seed(CLI::App& command, const char* help, const char* shown_default) {
  command.get_option("--seed")->description(help)->default_str(shown_default);
}

bool was_given(const CLI::App& command, const char* option) {
  return command.get_option(option)->count() > 0;
}

void add_to_footer(CLI::App& command, const std::string& text) {
  command.footer(command.get_footer() + "\n\n" + text);
}

void when_called(CLI::App& command, std::function<void()> action) {
  command.callback(std::move(action));
}

}  // namespace normscope::cli
