#include "result/json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace normscope {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

std::string dumped(const nlohmann::json& scalar) {
  return scalar.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void JsonWriter::put(std::string_view scalar) {
  text_ += scalar;
  if (text_.size() > kPiece) flush();
}

void JsonWriter::null() {
  put("null");
}
void JsonWriter::boolean(bool value) {
  put(value ? "true" : "false");
}
void JsonWriter::number(double value) {
  put(dumped(value));
}
void JsonWriter::whole(std::uint64_t value) {
  put(std::to_string(value));
}
void JsonWriter::whole(std::int64_t value) {
  put(std::to_string(value));
}
void JsonWriter::text(std::string_view value) {
  put(dumped(nlohmann::json(value)));
}

void JsonWriter::any(std::string_view json) {
  const std::string lines = nlohmann::ordered_json::parse(json).dump(
      indent_, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (std::size_t begin = 0; begin <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    if (begin > 0) new_line();
    put(std::string_view(lines).substr(begin, end - begin));
    begin = end + 1;
  }
}

void JsonWriter::open(char bracket) {
  text_ += bracket;
  ++depth_;
  empty_ = true;
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (!empty_) new_line();
  text_ += bracket;
  empty_ = false;
}

void JsonWriter::next() {
  if (!empty_) text_ += ',';
  empty_ = false;
  new_line();
}

void JsonWriter::member(std::string_view name) {
  next();
  text_ += dumped(nlohmann::json(name));
  text_ += indent_ < 0 ? ":" : ": ";
}

void JsonWriter::new_line() {
  if (indent_ < 0) return;
  text_ += '\n';
  text_.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(depth_), ' ');
}

void JsonWriter::flush() {
  sink_(text_);
  text_.clear();
}

}  // namespace normscope
