#pragma once
// JSON Schema (2020-12) of what json_writer.h writes.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "result/describe.h"

namespace normscope {

// A visitor of describe.h that notes names, types, sentences and facts. What it visits is an example of its kind: a
// field of another kind is never there, and one of this kind that the example has always is.
class SchemaWriter {
 public:
  using Json = nlohmann::ordered_json;

  template <class Field>
  void operator()(const char* name, const Field& field, const char* sentence, const Facts& facts = {}) {
    required_.push_back(name);
    add(name, field, sentence, facts);
  }
  template <class Field>
  void when(bool, const char* name, const Field& field, const char* sentence, const Facts& facts = {}) {
    if constexpr (FieldKind<Field>::optional)
      add(name, field.value_or(typename FieldKind<Field>::Inner()), sentence, facts);
    else
      add(name, field, sentence, facts);
  }
  template <class Field>
  void of_kind(bool kind, bool present, const char* name, const Field& field, const char* sentence,
               const Facts& facts = {}) {
    if (kind && present) required_.push_back(name);
    if (kind) when(present, name, field, sentence, facts);
  }

  template <class T>
  static Json of(const T& example) {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      SchemaWriter writer;
      T::describe(writer, example);
      Json schema = {{"type", "object"},
                     {"required", writer.required_},
                     {"additionalProperties", false},
                     {"properties", writer.properties_}};
      if (!writer.rules_.empty()) schema["allOf"] = writer.rules_;
      return schema;
    } else if constexpr (Kind::optional) {
      Json schema = of(example.value_or(typename Kind::Inner()));
      if (schema.contains("enum")) schema["enum"].push_back(nullptr);
      if (schema.contains("type") && schema["type"].is_string()) schema["type"] = {schema["type"], "null"};
      return schema;
    } else if constexpr (Kind::named) {
      return {
          {"type", "object"},
          {"additionalProperties", of(example.empty() ? typename Kind::Inner() : example.front().second)}};
    } else if constexpr (Kind::list) {
      return {
          {"type", "array"},
          {"items", of<typename Kind::Inner>(example.empty() ? typename Kind::Inner() : example.front())}};
    } else if constexpr (std::is_same_v<T, AnyJson>) {
      return Json::object();
    } else if constexpr (NamedEnumeration<T>) {
      Json names = Json::array();
      for (const T value : values_of(T{})) names.push_back(name_of(value));
      return {{"enum", names}};
    } else if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_unsigned_v<T>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::is_integral_v<T>) {
      return {{"type", "integer"}};
    } else if constexpr (std::is_floating_point_v<T>) {
      return {{"type", {"number", "null"}}};  // null: neither finite nor a number
    } else {
      return {{"type", "string"}};
    }
  }

 private:
  template <class Field>
  void add(const char* name, const Field& field, const char* sentence, const Facts& facts) {
    Json& property = properties_[name] = {{"description", sentence}};
    property.update(of(field));
    Json* each = &property;
    while (each->contains("items")) each = &(*each)["items"];
    const bool ranged = std::isfinite(facts.low) || std::isfinite(facts.high),
               object = each->contains("properties");
    if ((facts.finite || ranged) && !facts.or_null && !FieldKind<Field>::optional && !object &&
        (*each)["type"] != "integer")
      (*each)["type"] = "number";
    if (std::isfinite(facts.low) && !object) (*each)["minimum"] = static_cast<std::int64_t>(facts.low);
    if (std::isfinite(facts.high) && !object) (*each)["maximum"] = static_cast<std::int64_t>(facts.high);
    if (facts.pattern != nullptr) (*each)["pattern"] = facts.pattern;
    if (facts.always != nullptr) property = {{"description", sentence}, {"const", facts.always}};
    if (facts.least > 0) property["minItems"] = facts.least;
    if (facts.most > 0) property["maxItems"] = facts.most;
    if (!facts.members.empty()) name_members(property, facts.members);
    const Json there = {{"required", {name}}};
    if (facts.only_if.field != nullptr) {
      const std::string words = fmt::format("^({})$", facts.only_if.words);
      rules_.push_back({{"if", {{"properties", {{facts.only_if.field, {{"pattern", words}}}}}}},
                        {"then", there},
                        {"else", {{"not", there}}}});
    }
    if (facts.with != nullptr) rules_.push_back({{"if", there}, {"then", {{"required", {facts.with}}}}});
  }
  static void name_members(Json& property, std::span<const std::string_view> names) {
    const Json each = std::exchange(property["additionalProperties"], false);
    for (const std::string_view name : names) {
      property["required"].push_back(name);
      property["properties"][std::string(name)] = each;
    }
  }

  Json required_ = Json::array(), properties_ = Json::object(), rules_ = Json::array();
};

// example: as SchemaWriter has it.
template <Described T>
nlohmann::ordered_json schema_of(const std::string& title, const std::string& sentence = {},
                                 const T& example = {}) {
  nlohmann::ordered_json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                   {"title", title}};
  if (!sentence.empty()) schema["description"] = sentence;
  schema.update(SchemaWriter::of(example));
  return schema;
}

}  // namespace normscope
