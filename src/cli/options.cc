#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "cli/common.h"
#include "normscope/error.h"

namespace normscope::cli {
namespace {

void require_value(const std::string& text, const std::string& name) {
  if (text.empty()) throw InputError(fmt::format("{} needs a value, not an empty one.", name));
}

}  // namespace

void add_input(CLI::App& command, const char* name, const char* help, std::string& field) {
  command.add_option(name, field, help)->required();
}
void add_input(CLI::App& command, const char* name, const char* help, std::vector<std::string>& field) {
  command.add_option(name, field, help)->type_name("")->required();
}

void add_option(CLI::App& command, const TextOption& option) {
  CLI::Option* added = command.add_option_function<std::string>(
      option.name, [option](const std::string& text) { option.take(text, option.name); }, option.help);
  added->type_name(option.type);
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
}

void add_flag(CLI::App& command, const TextOption& option, bool& field) {
  command.add_flag(option.name, field, option.help);
}

void add_text(CLI::App& command, const char* name, const char* type, const char* help, std::string& field) {
  command.add_option(name, field, help)->type_name(type);
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

double number_within(const std::string& text, const std::string& name, const OptionFacts& facts) {
  require_value(text, name);
  return facts.low == 0 && std::isinf(facts.high) ? parse_non_negative(text, name)
                                                  : parse_number(text, name, facts.low, facts.high);
}

std::uint64_t count_within(const std::string& text, const std::string& name, const OptionFacts& facts,
                           std::uint64_t most) {
  require_value(text, name);
  const auto limit = [&](double given, std::uint64_t otherwise) {
    return std::isfinite(given) ? static_cast<std::uint64_t>(given) : otherwise;
  };
  return parse_count(text, name, limit(facts.low, 0), limit(facts.high, most));
}

void refuse_choice(const std::string& text, const std::string& name,
                   const std::vector<std::string>& choices) {
  throw InputError(fmt::format("{} takes {}, not '{}'.", name, fmt::join(choices, " or "), printable(text)));
}

std::string OptionAdder::number_text(double value) {
  return fmt::format("{:g}", value);
}

}  // namespace normscope::cli
