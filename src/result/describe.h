#pragma once
// A struct that names its fields once, so that JSON, its schema, tables and Python all take them from there:
//
//   struct KeyCounts {
//     std::size_t selectable = 0, undecided = 0;
//     static void describe(auto& visit, auto& self) {
//       visit("selectable", self.selectable, "keys that some query gives the strictly highest score");
//       visit.when(self.undecided > 0, "undecided", self.undecided, "keys beyond rational arithmetic's
//       effort");
//     }
//   };
//
// A visitor takes name, field and sentence, in order; `when` marks a field that is there only under a
// condition. Visitors: json_writer.h, json_reader.h, schema.h. Fields may be numbers, words, enumerations
// with name_of and values_of, optional ones (null if there is none), lists, Named ones (an object with a
// member per entry), and structs that describe themselves.
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace normscope {

// Visits nothing; only there to ask whether something can be visited.
struct NoVisitor {
  template <class Field>
  void operator()(const char*, Field&, const char*) {}
  template <class Field>
  void when(bool, const char*, Field&, const char*) {}
};

template <class T>
concept Described = std::is_class_v<T> && requires(NoVisitor& visit, T& self) {
  T::describe(visit, self);
};

// An enumeration whose values have names: `name_of` of each, `values_of` for all of them in order.
template <class T>
concept NamedEnumeration = std::is_enum_v<T> && requires(T value) {
  { name_of(value) } -> std::convertible_to<std::string>;
  { values_of(value) } -> std::convertible_to<std::span<const T>>;
};

// A member for each entry, in order.
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

template <class T>
struct FieldKind {
  static constexpr bool optional = false, list = false, named = false;
};
template <class T>
struct FieldKind<std::optional<T>> : FieldKind<void> {
  static constexpr bool optional = true;
  using Inner = T;
};
template <class T>
struct FieldKind<std::vector<T>> : FieldKind<void> {
  static constexpr bool list = true;
  using Inner = T;
};
template <class T>
struct FieldKind<std::vector<std::pair<std::string, T>>> : FieldKind<void> {
  static constexpr bool named = true;
  using Inner = T;
};

}  // namespace normscope
