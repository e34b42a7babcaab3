#pragma once
// Options of a command from the struct that describes them (result/options.h). CLI11 stays in the files behind
// this and behind main: each that reads it takes three seconds more to compile.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "result/describe.h"
#include "result/options.h"

namespace CLI {
class App;
}

namespace normscope::cli {

// What the command line has to know of an option, whatever the kind of its field.
struct TextOption {
  std::string name, help, type, group, shown_default = {}, old_name = {};
  std::function<void(const std::string& text, const std::string& name)> take = {};  // throws InputError
};
// Inputs come without a name before them; with `facts.otherwise` they may be left out.
void add_input(CLI::App& command, const TextOption& input, const OptionFacts& facts, std::string& field);
void add_input(CLI::App& command, const TextOption& input, const OptionFacts& facts,
               std::vector<std::string>& field);
void add_option(CLI::App& command, const TextOption& option);
void add_list(CLI::App& command, const TextOption& option, std::vector<std::string>& field);
void add_flag(CLI::App& command, const TextOption& option, bool& field);
// What --seed means where it is not the seed of every random number.
void describe_seed(CLI::App& command, const char* help, const char* shown_default = "0");
bool was_given(const CLI::App& command, const char* option);

// Below the examples of --help.
void add_to_footer(CLI::App& command, const std::string& text);
// What a command does, once the whole command line was accepted.
void when_called(CLI::App& command, std::function<void()> action);

// A visitor that adds each option to a command. The struct must live as long as the command.
class OptionAdder {
 public:
  // group: the heading of --help they stand under.
  explicit OptionAdder(CLI::App& command, const char* group = "") : command_(command), group_(group) {}

  template <class Field>
  void input(const char* name, Field& field, const char* sentence, const OptionFacts& facts = {}) {
    add_input(command_, {name, help_of(sentence, facts), facts.type == nullptr ? "" : facts.type, group_},
              facts, field);
  }

  template <class Field>
  void operator()(const char* name, Field& field, const char* sentence, const OptionFacts& facts = {}) {
    TextOption option{std::string("--") + name, help_of(sentence, facts), type_of(field, facts), group_};
    if constexpr (std::is_same_v<Field, bool>) {
      add_flag(command_, option, field);
    } else if constexpr (FieldKind<Field>::list) {
      add_list(command_, option, field);
    } else {
      option.shown_default = option_default(field, facts);
      if (facts.old_name != nullptr) option.old_name = std::string("--") + facts.old_name;
      option.take = [&field, facts](const std::string& text, const std::string& given) {
        take_option(text, given, facts, field);
      };
      add_option(command_, option);
    }
  }

 private:
  // A choice is shown as such, exact|bound: in --help, in manual pages, and for shells that complete it.
  template <class Field>
  static std::string type_of(const Field& field, const OptionFacts& facts) {
    if constexpr (FieldKind<Field>::optional) {
      return type_of(typename FieldKind<Field>::Inner(), facts);
    } else if constexpr (NamedEnumeration<Field>) {
      std::string names;
      for (const Field value : values_of(field))
        names += (names.empty() ? "" : "|") + std::string(name_of(value));
      return names;
    } else {
      return option_type<Field>(facts);
    }
  }
  static std::string help_of(const char* sentence, const OptionFacts& facts) {
    const std::string_view otherwise = facts.otherwise == nullptr ? "" : facts.otherwise;
    return otherwise.empty() ? sentence : sentence + std::string(" [") + std::string(otherwise) + "]";
  }

  CLI::App& command_;
  const char* group_;
};

template <class Options>
void add_options(CLI::App& command, Options& options, const char* group = "") {
  OptionAdder add(command, group);
  Options::describe(add, options);
}

}  // namespace normscope::cli
