#pragma once
// JSON Schema (2020-12) of what json_writer.h writes.
#include <nlohmann/json.hpp>
#include <string>

#include "result/describe.h"

namespace normscope {

// A visitor of describe.h that notes names, types and sentences.
class SchemaWriter {
 public:
  using Json = nlohmann::ordered_json;

  template <class Field>
  void operator()(const char* name, const Field&, const char* sentence) {
    required_.push_back(name);
    add<Field>(name, sentence);
  }
  template <class Field>
  void when(bool, const char* name, const Field&, const char* sentence) {
    add<Field>(name, sentence);
  }

  template <class T>
  static Json of() {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      SchemaWriter writer;
      const T plain{};
      T::describe(writer, plain);
      return {{"type", "object"},
              {"required", writer.required_},
              {"additionalProperties", false},
              {"properties", writer.properties_}};
    } else if constexpr (Kind::optional) {
      return {{"anyOf", {of<typename Kind::Inner>(), {{"type", "null"}}}}};
    } else if constexpr (Kind::named) {
      return {{"type", "object"}, {"additionalProperties", of<typename Kind::Inner>()}};
    } else if constexpr (Kind::list) {
      return {{"type", "array"}, {"items", of<typename Kind::Inner>()}};
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
  void add(const char* name, const char* sentence) {
    Json property = of<std::remove_cvref_t<Field>>();
    property["description"] = sentence;
    properties_[name] = std::move(property);
  }
  Json required_ = Json::array(), properties_ = Json::object();
};

template <Described T>
nlohmann::ordered_json schema_of(const std::string& title) {
  nlohmann::ordered_json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                   {"title", title}};
  schema.update(SchemaWriter::of<T>());
  return schema;
}

}  // namespace normscope
