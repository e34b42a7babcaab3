#pragma once
// Options as JSON and back, for a run that is gone on with.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "normscope/error.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "result/options.h"

namespace normscope {

// Visitors of options.h. Every option is told, also where it has its default.
class OptionWriter {
 public:
  explicit OptionWriter(nlohmann::ordered_json& object) : object_(object) {}

  void input(const char* name, const auto& field, const char* sentence, const OptionFacts& facts = {}) {
    (*this)(name, field, sentence, facts);
  }
  template <class Field>
  void operator()(const char* name, const Field& field, const char*, const OptionFacts& = {}) {
    std::string text;
    JsonWriter writer([&](std::string_view part) { text += part; }, -1);
    writer.value(field);
    writer.flush();
    object_[name] = nlohmann::ordered_json::parse(text);
  }

 private:
  nlohmann::ordered_json& object_;
};

// Throws InputError that names what is missing or of another kind.
class OptionReader {
 public:
  OptionReader(const nlohmann::ordered_json& object, std::string place)
      : object_(object), place_(std::move(place)) {
    if (!object.is_object()) throw InputError(fmt::format("{} is not an object.", place_));
  }

  void input(const char* name, auto& field, const char* sentence, const OptionFacts& facts = {}) {
    (*this)(name, field, sentence, facts);
  }
  template <class Field>
  void operator()(const char* name, Field& field, const char*, const OptionFacts& = {}) {
    const auto found = object_.find(name);
    if (found == object_.end()) throw InputError(fmt::format("{} has no '{}'.", place_, name));
    JsonReader::read(*found, fmt::format("{}.{}", place_, name), field);
  }

 private:
  const nlohmann::ordered_json& object_;
  std::string place_;
};

template <class Options>
std::string options_json(const Options& options) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  OptionWriter writer(object);
  Options::describe(writer, options);
  return object.dump();
}
template <class Options>
Options options_from_json(std::string_view text, const std::string& place) {
  const auto object = nlohmann::ordered_json::parse(text, nullptr, false);
  OptionReader reader(object, place);
  Options options;
  Options::describe(reader, options);
  check_options(options);
  return options;
}

}  // namespace normscope
