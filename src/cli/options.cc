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
  const auto add = [&](const std::string& name) {
    return command.add_option_function<std::string>(
        name, [take = option.take, name](const std::string& text) { take(text, name); }, option.help);
  };
  CLI::Option* added = add(option.name)->type_name(option.type);
  if (!option.old_name.empty()) add(option.old_name)->group("")->excludes(added);
  if (!option.shown_default.empty()) added->default_str(option.shown_default);
}

void add_list(CLI::App& command, const TextOption& option, std::vector<std::string>& field) {
  CLI::Option* added = command.add_option(option.name, field, option.help)->type_name(option.type);
  if (!field.empty()) added->capture_default_str();
}

void add_flag(CLI::App& command, const TextOption& option, bool& field) {
  command.add_flag(option.name, field, option.help);
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
