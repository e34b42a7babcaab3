#pragma once
// Results as JSON, written piece by piece: the keys of a large set would not fit twice.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "result/present_only.h"

namespace normscope {

// A visitor of describe.h. JSON has neither NaN nor infinity: they become null. Bytes that are not UTF-8
// become U+FFFD. Looks as nlohmann's dump(indent) does.
class JsonWriter : public PresentOnly<JsonWriter> {
 public:
  using Sink = std::function<void(std::string_view)>;
  // indent: spaces a level; -1: all in one line.
  JsonWriter(Sink sink, int indent) : sink_(std::move(sink)), indent_(indent) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  template <class Field>
  void operator()(const char* name, const Field& field, const char*, const Facts& = {}) {
    member(name);
    value(field);
  }

  template <class T>
  void value(const T& given) {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      open('{');
      T::describe(*this, given);
      close('}');
    } else if constexpr (Kind::optional) {
      given ? value(*given) : null();
    } else if constexpr (Kind::named) {
      open('{');
      for (const auto& [name, each] : given) member(name), value(each);
      close('}');
    } else if constexpr (Kind::list) {
      open('[');
      for (const typename Kind::Inner& each : given) next(), value(each);
      close(']');
    } else if constexpr (std::is_same_v<T, AnyJson>) {
      any(given.text);
    } else if constexpr (NamedEnumeration<T>) {
      text(name_of(given));
    } else if constexpr (std::is_same_v<T, bool>) {
      boolean(given);
    } else if constexpr (std::is_floating_point_v<T>) {
      std::isfinite(given) ? number(given) : null();
    } else if constexpr (std::is_unsigned_v<T>) {
      whole(std::uint64_t{given});
    } else if constexpr (std::is_integral_v<T>) {
      whole(std::int64_t{given});
    } else {
      text(given);
    }
  }
  // What is left in memory goes to the sink.
  void flush();

 private:
  void null();
  void boolean(bool value);
  void number(double value);
  void whole(std::uint64_t value);
  void whole(std::int64_t value);
  void text(std::string_view value);
  void any(std::string_view json);
  void put(std::string_view scalar);
  void open(char bracket);
  void close(char bracket);
  void next();  // before an element
  void member(std::string_view name);
  void new_line();

  Sink sink_;
  int indent_, depth_ = 0;
  bool empty_ = true;  // nothing stands yet in the innermost brackets
  std::string text_;
};

// The whole, with a newline at its end; indent as in JsonWriter.
template <Described T>
void write_json(const T& result, int indent, const JsonWriter::Sink& sink) {
  JsonWriter writer(sink, indent);
  writer.value(result);
  writer.flush();
  sink("\n");
}
template <Described T>
std::string json_of(const T& result, int indent = 2) {
  std::string text;
  write_json(result, indent, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace normscope
