#include "text/node.h"

#include <fmt/format.h>

#include <unordered_set>

#include "normscope/error.h"
#include "text/utf8.h"

namespace normscope::text {

using nlohmann::json;

namespace {

constexpr int deepest = 64;  // of JSON
constexpr int deepest_sequence = 16;

std::size_t count_names(const json& value) {
  std::size_t count = value.is_object() ? value.size() : 0;
  if (value.is_structured()) {
    for (const json& item : value) count += count_names(item);
  }
  return count;
}

}  // namespace

json parse_json(std::string_view text, std::string_view label) {
  std::size_t names = 0;
  const auto watch = [&](int depth, json::parse_event_t event, json&) {
    if (event == json::parse_event_t::key) ++names;
    if (depth > deepest) throw InputError(fmt::format("{}: nested deeper than {} levels.", label, deepest));
    return true;
  };
  json value;
  try {
    value = json::parse(text, watch);
  } catch (const json::exception& error) {
    std::string reason = error.what();
    reason.erase(0, std::min(reason.find("] ") + 2, reason.size()));
    if (reason.size() > 200) reason.resize(200);
    throw InputError(fmt::format("{}: not JSON: {}.", label, utf8(characters(lossy_utf8(reason).text))));
  }
  if (count_names(value) != names)
    throw InputError(
        fmt::format("{}: an object has the same name twice (a token of a vocabulary, perhaps).", label));
  return value;
}

Node::Node(const json& value, std::string where, int depth)
    : value_(&value), where_(std::move(where)), depth_(depth) {
  if (depth_ > deepest_sequence) fail("components are nested too deeply");
}

void Node::fail(std::string_view sentence) const {
  throw InputError(fmt::format("{}: {}.", where_, sentence));
}

Node Node::at(std::string_view name) const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", value_->type_name()));
  const auto found = value_->find(name);
  if (found == value_->end()) fail(fmt::format("\"{}\" is missing", name));
  return {*found, fmt::format("{}.{}", where_, name), depth_ + 1};
}

std::optional<Node> Node::find(std::string_view name) const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", value_->type_name()));
  const auto found = value_->find(name);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return Node(*found, fmt::format("{}.{}", where_, name), depth_ + 1);
}

std::vector<Node> Node::items() const {
  if (!value_->is_array()) fail(fmt::format("expected a list, found {}", value_->type_name()));
  std::vector<Node> result;
  result.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    result.emplace_back((*value_)[i], fmt::format("{}[{}]", where_, i), depth_ + 1);
  return result;
}

const std::string& Node::string() const {
  if (!value_->is_string()) fail(fmt::format("expected a string, found {}", value_->type_name()));
  return value_->get_ref<const std::string&>();
}

bool Node::boolean() const {
  if (!value_->is_boolean()) fail(fmt::format("expected true or false, found {}", value_->type_name()));
  return value_->get<bool>();
}

std::uint64_t Node::integer(std::uint64_t most) const {
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > most)
    fail(fmt::format("expected a whole number from 0 to {}", most));
  return value_->get<std::uint64_t>();
}

char32_t Node::character() const {
  const std::u32string all = characters(string());
  if (all.size() != 1) fail("expected one character");
  return all[0];
}

bool Node::boolean(std::string_view name, bool otherwise) const {
  const auto found = find(name);
  return found ? found->boolean() : otherwise;
}

std::string Node::string(std::string_view name, std::string_view otherwise) const {
  const auto found = find(name);
  return found ? found->string() : std::string(otherwise);
}

}  // namespace normscope::text
