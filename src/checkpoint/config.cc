#include "checkpoint/config.h"

#include <fmt/format.h>

#include <vector>

#include "io/file_errors.h"
#include "text/node.h"

namespace normscope::checkpoint {

using nlohmann::json;

Config::Config(std::string_view text, std::string label) : Config(text::parse_json(text, label), label, "") {}

Config::Config(json value, std::string label, std::string path)
    : value_(std::move(value)), label_(std::move(label)), path_(std::move(path)) {
  if (!value_.is_object())
    io::reject(label_,
               path_.empty() ? "is not an object" : fmt::format("has {} that is not an object", path_),
               "download the model again");
}

const json* Config::find(std::string_view key) const {
  const auto found = value_.find(key);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

void Config::reject_key(std::string_view key, std::string_view expected) const {
  const json* value = find(key);
  if (value == nullptr)
    io::reject(label_, fmt::format("does not say {}{}", path_, key), fmt::format("{} is expected", expected));
  // Large values are not written out: only their beginning is shown, and that of a list or object not at all.
  std::string shown = value->is_structured() ? value->type_name()
                                             : value->dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > 60) shown = fmt::format("a {} of {} characters", value->type_name(), shown.size());
  io::reject(label_, fmt::format("has {}{} = {}", path_, key, shown),
             fmt::format("{} is expected", expected));
}

std::size_t Config::count(std::string_view key, std::size_t most) const {
  const json* value = find(key);
  if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() < 1 ||
      value->get<std::uint64_t>() > most)
    reject_key(key, fmt::format("a whole number from 1 to {}", most));
  return value->get<std::size_t>();
}

std::size_t Config::count_or(std::string_view key, std::size_t otherwise, std::size_t most) const {
  return has(key) ? count(key, most) : otherwise;
}

double Config::number(std::string_view key, double least, double most) const {
  const json* value = find(key);
  if (value == nullptr || !value->is_number() || !(value->get<double>() >= least) ||
      !(value->get<double>() <= most))
    reject_key(key, fmt::format("a number from {} to {}", least, most));
  return value->get<double>();
}

double Config::number_or(std::string_view key, double otherwise, double least, double most) const {
  return has(key) ? number(key, least, most) : otherwise;
}

bool Config::flag_or(std::string_view key, bool otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) reject_key(key, "true or false");
  return value->get<bool>();
}

std::string Config::word_or(std::string_view key, std::string_view otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) reject_key(key, "a word");
  return value->get<std::string>();
}

std::optional<std::vector<std::string>> Config::words(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> words;
  if (!value->is_array()) reject_key(key, "a list of words");
  for (const json& word : *value) {
    if (!word.is_string()) reject_key(key, "a list of words");
    words.push_back(word.get<std::string>());
  }
  return words;
}

std::optional<Config> Config::object(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) reject_key(key, "an object");
  return Config(*value, label_, fmt::format("{}{}.", path_, key));
}

void Config::require(std::string_view key, std::string_view expected) const {
  const json* value = find(key);
  if (value != nullptr && *value != json::parse(expected))
    reject_key(key, fmt::format("{}, the only value supported here,", expected));
}

}  // namespace normscope::checkpoint
