#include "corpus/json_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "corpus/plain_text.h"
#include "io/file_errors.h"

namespace normscope::corpus {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18, kMostObjects = std::size_t{1} << 24;
constexpr int kDeepest = 16;

bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Reads the array byte by byte: outside of strings only braces and brackets matter.
class Scanner {
 public:
  explicit Scanner(const std::string& label) : label_(label) {}

  void take(char c, std::uint64_t at) {
    if (in_string_) return take_in_string(c, at);
    if (depth_ > 0) return take_in_object(c, at);
    if (is_json_space(c)) return;
    switch (expected_) {
      case Expected::array:
        if (c != '[') fail(at, "an array '['");
        expected_ = Expected::object_or_end;
        return;
      case Expected::object_or_end:
        if (c == ']') return void(expected_ = Expected::nothing);
        [[fallthrough]];
      case Expected::object:
        if (c != '{') fail(at, "an object '{'");
        if (objects_.size() == kMostObjects)
          io::reject(label_, fmt::format("has more than {} objects", kMostObjects), "split it");
        begin_ = at;
        depth_ = 1;
        return;
      case Expected::comma_or_end:
        if (c != ',' && c != ']') fail(at, "',' or ']'");
        expected_ = c == ',' ? Expected::object : Expected::nothing;
        return;
      case Expected::nothing:
        fail(at, "nothing more");
    }
  }

  std::vector<JsonRange> end(std::uint64_t size) {
    if (in_string_ || depth_ > 0)
      io::reject(label_, fmt::format("ends within the object that begins at offset {}", begin_),
                 "copy or save it again");
    if (expected_ == Expected::array) fail(size, "an array '['");
    if (expected_ != Expected::nothing) fail(size, "an object or ']'");
    return std::move(objects_);
  }

 private:
  enum class Expected { array, object_or_end, object, comma_or_end, nothing };

  void take_in_string(char c, std::uint64_t at) {
    check_size(at);
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
  }

  void take_in_object(char c, std::uint64_t at) {
    check_size(at);
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      if (++depth_ > kDeepest)
        io::reject(label_, fmt::format("is nested deeper than {} levels at offset {}", kDeepest, at),
                   "give an array of objects with a text and a label each");
    } else if (c == '}' || c == ']') {
      if (--depth_ > 0) return;
      objects_.push_back({begin_, static_cast<std::uint32_t>(at + 1 - begin_)});
      expected_ = Expected::comma_or_end;
    }
  }

  void check_size(std::uint64_t at) const {
    if (at - begin_ >= kLongestRecord)
      io::reject(label_,
                 fmt::format("has an object of more than {} bytes at offset {}", kLongestRecord, begin_),
                 "check that its quotes and braces are closed");
  }

  [[noreturn]] void fail(std::uint64_t at, const char* expected) const {
    io::reject(label_,
               fmt::format("is not a JSON array of objects: {} is expected at offset {}", expected, at),
               "write [{\"text\": …, \"label\": …}, …], or an object per line in a file that ends in .jsonl");
  }

  const std::string& label_;
  std::vector<JsonRange> objects_;
  Expected expected_ = Expected::array;
  std::uint64_t begin_ = 0;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

}  // namespace

std::vector<JsonRange> json_objects(const io::Bytes& file, const std::string& label) {
  Scanner scanner(label);
  std::string chunk;
  for (std::uint64_t at = 0; at < file.size(); at += chunk.size()) {
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, file.size() - at)));
    file.read(at, std::as_writable_bytes(std::span(chunk)));
    const std::size_t mark = at == 0 && chunk.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (std::size_t i = mark; i < chunk.size(); ++i) scanner.take(chunk[i], at + i);
  }
  return scanner.end(file.size());
}

nlohmann::json parse_object(std::string_view text, const std::string& where, std::uint64_t offset) {
  check_utf8(text, where, offset);
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDeepest)
      io::reject(where, fmt::format("is nested deeper than {} levels", kDeepest),
                 "give objects with a text and a label each");
    return true;
  };
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(text, shallow);
  } catch (const nlohmann::json::parse_error& error) {
    io::reject(where,
               fmt::format("is not JSON: the mistake is at offset {}",
                           offset + std::max<std::size_t>(error.byte, 1) - 1),
               "correct or save it again");
  } catch (const nlohmann::json::exception&) {
    io::reject(where, "holds a number that is too large", "correct it");
  }
  if (!object.is_object()) io::reject(where, "is not a JSON object", "write {\"text\": …, \"label\": …}");
  return object;
}

}  // namespace normscope::corpus
