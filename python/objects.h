#pragma once
// Results as objects, from their `describe` (result/describe.h): which classes there are, with their fields, and what one
// result holds. Nothing here knows Python; objects.cc makes the objects.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "result/present_only.h"

namespace normscope::python {

// "KeysResult", "ScanResultSettings": the name of a described struct, which Python's class has, too.
template <class T>
std::string class_name() {
  const std::string_view whole = __PRETTY_FUNCTION__;
  const std::size_t begin = whole.find("T = ") + 4;
  std::string_view type = whole.substr(begin, whole.find_first_of(";]<", begin) - begin);
  constexpr std::string_view house = "normscope::";
  if (type.starts_with(house)) type.remove_prefix(house.size());
  std::string name;
  for (const char c : type)
    if (c != ':') name += c;
  return name;
}

// Where values go, in the order of a tree.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void number(double value) = 0;
  virtual void whole(std::int64_t value) = 0;
  virtual void whole(std::uint64_t value) = 0;
  virtual void text(std::string_view value) = 0;
  virtual void json(std::string_view value) = 0;
  virtual void numbers(std::span<const double> values) = 0;
  virtual void wholes(std::span<const std::int64_t> values) = 0;
  virtual void begin_list() = 0;
  virtual void begin_object(const std::string& class_name) = 0;  // empty: a dict
  virtual void member(std::string_view name) = 0;
  virtual void end() = 0;
};

// A visitor of describe.h.
class ObjectWriter : public PresentOnly<ObjectWriter> {
 public:
  explicit ObjectWriter(ObjectSink& sink) : sink_(sink) {}

  template <class Field>
  void operator()(const char* name, const Field& field, const char*, const Facts& = {}) {
    sink_.member(name);
    value(field);
  }

  template <class T>
  void value(const T& given) {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      static const std::string name = class_name<T>();
      sink_.begin_object(name);
      T::describe(*this, given);
      sink_.end();
    } else if constexpr (Kind::optional) {
      given ? value(*given) : sink_.null();
    } else if constexpr (Kind::named) {
      sink_.begin_object("");
      for (const auto& [name, each] : given) sink_.member(name), value(each);
      sink_.end();
    } else if constexpr (Kind::list) {
      list(given);
    } else if constexpr (std::is_same_v<T, AnyJson>) {
      sink_.json(given.text);
    } else if constexpr (NamedEnumeration<T>) {
      sink_.text(name_of(given));
    } else if constexpr (std::is_same_v<T, bool>) {
      sink_.boolean(given);
    } else if constexpr (std::is_floating_point_v<T>) {
      sink_.number(given);
    } else if constexpr (std::is_unsigned_v<T>) {
      sink_.whole(std::uint64_t{given});
    } else if constexpr (std::is_integral_v<T>) {
      sink_.whole(std::int64_t{given});
    } else {
      sink_.text(given);
    }
  }

 private:
  template <class List>
  void list(const List& given) {
    using Inner = typename FieldKind<List>::Inner;
    if constexpr (std::is_floating_point_v<Inner>) {
      if constexpr (std::is_same_v<Inner, double>) {
        sink_.numbers(given);
      } else {
        sink_.numbers(std::vector<double>(given.begin(), given.end()));
      }
    } else if constexpr (std::is_integral_v<Inner> && !std::is_same_v<Inner, bool>) {
      sink_.wholes(
          std::vector<std::int64_t>(given.begin(), given.end()));  // seeds beyond 2⁶³ come back negative
    } else {
      sink_.begin_list();
      for (const Inner& each : given) value(each);
      sink_.end();
    }
  }
  ObjectSink& sink_;
};

struct FieldNote {
  std::string name, type, sentence;  // type: as a stub says it
  bool sometimes = false;            // None where the result does not have it
};
struct ClassNote {
  std::string sentence;
  std::vector<FieldNote> fields;
};
using ClassNotes = std::map<std::string, ClassNote>;

// A visitor of describe.h that notes the classes of a result and of all it holds.
class ClassNoter {
 public:
  ClassNoter(ClassNotes& classes, ClassNote& note) : classes_(classes), note_(note) {}

  template <class Field>
  void operator()(const char* name, const Field&, const char* sentence, const Facts& = {}) {
    add<Field>(name, sentence, false);
  }
  template <class Field>
  void when(bool, const char* name, const Field&, const char* sentence, const Facts& = {}) {
    add<Field>(name, sentence, true);
  }
  template <class Field>
  void of_kind(bool, bool, const char* name, const Field&, const char* sentence, const Facts& = {}) {
    add<Field>(name, sentence, true);
  }

  template <class T>
  static std::string type_of(ClassNotes& classes) {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      note_class<T>(classes);
      return class_name<T>();
    } else if constexpr (Kind::optional) {
      return type_of<typename Kind::Inner>(classes) + " | None";
    } else if constexpr (Kind::named) {
      return "dict[str, " + type_of<typename Kind::Inner>(classes) + "]";
    } else if constexpr (Kind::list) {
      using Inner = typename Kind::Inner;
      if constexpr (std::is_floating_point_v<Inner>)
        return "FloatArray";
      else if constexpr (std::is_integral_v<Inner> && !std::is_same_v<Inner, bool>)
        return "IntArray";
      else
        return "list[" + type_of<Inner>(classes) + "]";
    } else if constexpr (std::is_same_v<T, AnyJson>) {
      return "Any";
    } else if constexpr (NamedEnumeration<T>) {
      std::string names;
      for (const T value : values_of(T{}))
        names += (names.empty() ? "\"" : ", \"") + std::string(name_of(value)) + "\"";
      return "Literal[" + names + "]";
    } else if constexpr (std::is_same_v<T, bool>) {
      return "bool";
    } else if constexpr (std::is_integral_v<T>) {
      return "int";
    } else if constexpr (std::is_floating_point_v<T>) {
      return "float";
    } else {
      return "str";
    }
  }
  template <class T>
  static void note_class(ClassNotes& classes) {
    const auto [place, fresh] = classes.try_emplace(class_name<T>());
    if (!fresh) return;
    ClassNote note;
    ClassNoter visitor(classes, note);
    const T example{};
    T::describe(visitor, example);
    classes[class_name<T>()] = std::move(note);
  }

 private:
  template <class Field>
  void add(const char* name, const char* sentence, bool sometimes) {
    std::string type = type_of<Field>(classes_);
    if (sometimes && !type.ends_with(" | None")) type += " | None";
    note_.fields.push_back({name, std::move(type), sentence, sometimes});
  }
  ClassNotes& classes_;
  ClassNote& note_;
};

}  // namespace normscope::python
