#pragma once
// A struct that names its fields once, so that JSON, its schema, tables and Python all take them from there:
//
//   struct KeyCounts {
//     std::size_t selectable = 0, undecided = 0;
//     static void describe(auto& visit, auto& self) {
//       visit("selectable", self.selectable, "keys that some query gives the strictly highest score");
//       visit.when(self.undecided > 0, "undecided", self.undecided, "beyond rational arithmetic's effort",
//                  {.low = 1});
//     }
//   };
//
// A visitor takes name, field, sentence and perhaps Facts, in order; `when` marks a field that is there only
// under a condition, and is not null then; `of_kind` one that some structs of the type have and others never
// do (texts of a classifier, tokens of a language model). Visitors: json_writer.h, json_reader.h, schema.h, columns.h,
// ranges.h, setting_words.h. Fields may be numbers, words, enumerations with name_of and values_of, optional ones (null if
// there is none), lists, Named ones (an object with a member per entry), AnyJson, and structs that
// describe themselves.
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace normscope {

// What is true of a field besides its kind, for the schema; numbers and patterns hold for the entries of a
// list.
struct Facts {
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  double low = -infinity, high = infinity;
  // A number is null if it is not finite; with `finite`, or with a range, it always is, unless `or_null`.
  bool finite = false, or_null = false;
  const char *pattern = nullptr, *always = nullptr;  // a regular expression; the only word
  std::size_t least = 0, most = 0;                   // entries of a list; most 0: any number
  std::span<const std::string_view> members = {};    // of a Named field, all of them
  // There if, and only if, another field is one of some words: {"verdict", "tied|unselectable"}.
  struct {
    const char *field = nullptr, *words = nullptr;
  } only_if = {};
  const char* with = nullptr;     // a field that is there, too
  const char* heading = nullptr;  // of its column in a table; null: the name
};

// Visits nothing; only there to ask whether something can be visited.
struct NoVisitor {};

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

// A value of any kind, as JSON: options of whatever command.
struct AnyJson {
  std::string text = "null";
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
