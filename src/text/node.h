#pragma once
// A value of a JSON file from a stranger: what is asked of it is there and of the right kind, or an
// InputError says where it is not.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::text {

// Rejects what is not JSON, is nested deeper than any tokenizer needs, or has an object with the same name
// twice.
nlohmann::json parse_json(std::string_view text, std::string_view label);

class Node {
 public:
  Node(const nlohmann::json& value, std::string where, int depth = 0);

  const nlohmann::json& value() const { return *value_; }
  const std::string& where() const { return where_; }

  Node at(std::string_view name) const;
  std::optional<Node> find(std::string_view name) const;  // nothing if absent or null
  std::vector<Node> items() const;
  const std::string& string() const;
  bool boolean() const;
  std::uint64_t integer(std::uint64_t most) const;
  char32_t character() const;

  bool boolean(std::string_view name, bool otherwise) const;
  std::string string(std::string_view name, std::string_view otherwise) const;

  [[noreturn]] void fail(std::string_view sentence) const;

 private:
  const nlohmann::json* value_;
  std::string where_;
  int depth_;
};

}  // namespace normscope::text
