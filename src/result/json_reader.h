#pragma once
// Results from JSON, as if written by an enemy.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "normscope/error.h"
#include "result/describe.h"

namespace normscope {

// A visitor of describe.h that fills what it visits. Throws InputError that names what is missing, unknown or
// of another kind, by its place ("sets[2].keys[0].margin").
class JsonReader {
 public:
  JsonReader(const nlohmann::ordered_json& object, std::string place)
      : object_(object), place_(std::move(place)) {
    if (!object.is_object()) throw InputError(fmt::format("{} is not an object.", place_));
  }

  template <class Field>
  void operator()(const char* name, Field& field, const char*, const Facts& = {}) {
    const auto found = object_.find(name);
    if (found == object_.end()) throw InputError(fmt::format("{} has no '{}'.", place_, name));
    take(name, *found, field);
  }
  // The condition may rest on fields that are read by now, or on what is not in the file at all; what is
  // there is read.
  template <class Field>
  void when(bool, const char* name, Field& field, const char*, const Facts& = {}) {
    if (const auto found = object_.find(name); found != object_.end()) take(name, *found, field);
  }
  template <class Field>
  void of_kind(bool, bool, const char* name, Field& field, const char* sentence, const Facts& = {}) {
    when(true, name, field, sentence);
  }
  // To be called last: what nobody asked for.
  void require_all_known() const {
    for (const auto& [name, ignored] : object_.items())
      if (!known_.contains(name)) throw InputError(fmt::format("{} has an unknown '{}'.", place_, name));
  }

  template <class T>
  static void read(const nlohmann::ordered_json& json, const std::string& place, T& into) {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      JsonReader reader(json, place);
      T::describe(reader, into);
      reader.require_all_known();
    } else if constexpr (Kind::optional) {
      if (json.is_null()) return into.reset();
      read(json, place, into.emplace());
    } else if constexpr (Kind::named) {
      if (!json.is_object()) wrong(place, "an object", json);
      into.clear();
      for (const auto& [name, each] : json.items())
        read(each, fmt::format("{}.{}", place, name), into.emplace_back(name, typename Kind::Inner{}).second);
    } else if constexpr (Kind::list) {
      if (!json.is_array()) wrong(place, "a list", json);
      into.clear();
      for (std::size_t i = 0; i < json.size(); ++i) {
        typename Kind::Inner each{};
        read(json[i], fmt::format("{}[{}]", place, i), each);
        into.push_back(std::move(each));
      }
    } else if constexpr (std::is_same_v<T, AnyJson>) {
      into.text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    } else if constexpr (NamedEnumeration<T>) {
      read_name(json, place, into);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) wrong(place, "true or false", json);
      into = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      read_integer(json, place, into);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number() && !json.is_null()) wrong(place, "a number", json);
      into = json.is_null() ? std::numeric_limits<T>::quiet_NaN() : json.get<T>();
    } else {
      static_assert(std::is_same_v<T, std::string>);
      if (!json.is_string()) wrong(place, "a text", json);
      into = json.get<std::string>();
    }
  }

 private:
  [[noreturn]] static void wrong(const std::string& place, std::string_view wanted,
                                 const nlohmann::ordered_json& json) {
    constexpr std::size_t longest = 60;
    throw InputError(
        fmt::format("{} is not {}: '{}' is {}.", place, wanted, place.substr(place.rfind('.') + 1),
                    json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, longest)));
  }

  template <class T>
  static void read_integer(const nlohmann::ordered_json& json, const std::string& place, T& into) {
    if (json.is_number_unsigned()) {
      const auto value = json.get<std::uint64_t>();
      if (value <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
        return static_cast<void>(into = static_cast<T>(value));
    } else if (json.is_number_integer()) {
      const auto value = json.get<std::int64_t>();
      if (std::is_signed_v<T> && value >= static_cast<std::int64_t>(std::numeric_limits<T>::min()))
        return static_cast<void>(into = static_cast<T>(value));
    }
    wrong(place, "a whole number that fits", json);
  }

  template <class T>
  static void read_name(const nlohmann::ordered_json& json, const std::string& place, T& into) {
    std::string names;
    for (const T value : values_of(into)) {
      if (json.is_string() && json.get_ref<const std::string&>() == name_of(value))
        return static_cast<void>(into = value);
      names += fmt::format("{}{}", names.empty() ? "one of " : ", ", name_of(value));
    }
    wrong(place, names, json);
  }

  template <class Field>
  void take(const char* name, const nlohmann::ordered_json& json, Field& field) {
    known_.insert(name);
    read(json, place_.empty() ? name : fmt::format("{}.{}", place_, name), field);
  }

  const nlohmann::ordered_json& object_;
  std::string place_;
  std::set<std::string, std::less<>> known_;
};

// label: what the text is called in messages.
template <Described T>
T from_json(std::string_view text, const std::string& label) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) throw InputError(fmt::format("{} is no JSON.", label));
  T result{};
  JsonReader::read(json, label, result);
  return result;
}

}  // namespace normscope
