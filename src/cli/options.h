#pragma once
// Options of a command from the struct that describes them (study/options.h). CLI11 stays in the files behind
// this and behind main: each that reads it takes three seconds more to compile.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "result/describe.h"
#include "study/options.h"

namespace CLI {
class App;
}

namespace normscope::cli {

// What the command line has to know of an option, whatever the kind of its field.
struct TextOption {
  std::string name, help, type, shown_default, old_name;
  std::function<void(const std::string& text, const std::string& name)> take;  // throws InputError
};
void add_input(CLI::App& command, const char* name, const char* help, std::string& field);
void add_input(CLI::App& command, const char* name, const char* help, std::vector<std::string>& field);
void add_option(CLI::App& command, const TextOption& option);
void add_list(CLI::App& command, const TextOption& option, std::vector<std::string>& field);
void add_flag(CLI::App& command, const TextOption& option, bool& field);
// One that only the command line has.
void add_text(CLI::App& command, const char* name, const char* type, const char* help, std::string& field);

// What --seed means where it is not the seed of every random number.
void describe_seed(CLI::App& command, const char* help, const char* shown_default = "0");
bool was_given(const CLI::App& command, const char* option);

// Below the examples of --help.
void add_to_footer(CLI::App& command, const std::string& text);
// What a command does, once the whole command line was accepted.
void when_called(CLI::App& command, std::function<void()> action);

double number_within(const std::string& text, const std::string& name, const OptionFacts& facts);
std::uint64_t count_within(const std::string& text, const std::string& name, const OptionFacts& facts,
                           std::uint64_t most);
[[noreturn]] void refuse_choice(const std::string& text, const std::string& name,
                                const std::vector<std::string>& choices);

// A visitor that adds each option to a command. The struct must live as long as the command.
class OptionAdder {
 public:
  explicit OptionAdder(CLI::App& command) : command_(command) {}

  template <class Field>
  void input(const char* name, Field& field, const char* sentence) {
    add_input(command_, name, sentence, field);
  }

  template <class Field>
  void operator()(const char* name, Field& field, const char* sentence, const OptionFacts& facts = {}) {
    TextOption option{std::string("--") + name, sentence, "", "", "", {}};
    if (facts.otherwise != nullptr) option.help += std::string(" [") + facts.otherwise + "]";
    option.type = facts.type != nullptr ? facts.type : usual_type<Field>();
    if constexpr (std::is_same_v<Field, bool>) {
      add_flag(command_, option, field);
    } else if constexpr (FieldKind<Field>::list) {
      add_list(command_, option, field);
    } else {
      if (facts.otherwise == nullptr) option.shown_default = text_of(field);
      if (facts.old_name != nullptr) option.old_name = std::string("--") + facts.old_name;
      option.take = [&field, facts](const std::string& text, const std::string& given) {
        take(text, given, facts, field);
      };
      add_option(command_, option);
    }
  }

 private:
  template <class Field>
  static const char* usual_type() {
    if constexpr (NamedEnumeration<Field>) return "NAME";
    if constexpr (FieldKind<Field>::list) return "NAME…";
    if constexpr (std::is_same_v<Field, std::string>) return "TEXT";
    return "N";
  }

  template <class Field>
  static std::string text_of(const Field& field) {
    if constexpr (FieldKind<Field>::optional) {
      return "";
    } else if constexpr (NamedEnumeration<Field>) {
      return name_of(field);
    } else if constexpr (std::is_same_v<Field, std::string>) {
      return field;
    } else {
      return number_text(field);
    }
  }
  static std::string number_text(double value);
  static std::string number_text(std::uint64_t value) { return std::to_string(value); }

  template <class Field>
  static void take(const std::string& text, const std::string& name, const OptionFacts& facts, Field& field) {
    if constexpr (FieldKind<Field>::optional) {
      take(text, name, facts, field.emplace());
    } else if constexpr (NamedEnumeration<Field>) {
      std::vector<std::string> names;
      for (const Field value : values_of(field)) {
        if (text == name_of(value)) return static_cast<void>(field = value);
        names.emplace_back(name_of(value));
      }
      refuse_choice(text, name, names);
    } else if constexpr (std::is_floating_point_v<Field>) {
      field = number_within(text, name, facts);
    } else if constexpr (std::is_integral_v<Field>) {
      field = static_cast<Field>(count_within(text, name, facts, std::numeric_limits<Field>::max()));
    } else {
      field = text;
    }
  }

  CLI::App& command_;
};

template <class Options>
void add_options(CLI::App& command, Options& options) {
  OptionAdder add(command);
  Options::describe(add, options);
}

}  // namespace normscope::cli
