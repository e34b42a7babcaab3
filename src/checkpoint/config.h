#pragma once
// config.json of a model: what is asked of it is there and of the right kind, or an InputError names the key.
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace normscope::checkpoint {

class Config {
 public:
  // `label` names the file in messages.
  Config(std::string_view text, std::string label);

  const std::string& label() const { return label_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }  // null counts as absent

  bool mentions(std::string_view key) const { return value_.contains(key); }

  // Whole numbers from 1 to `most`.
  std::size_t count(std::string_view key, std::size_t most) const;
  std::size_t count_or(std::string_view key, std::size_t otherwise, std::size_t most) const;
  double number_or(std::string_view key, double otherwise, double least, double most) const;
  double number(std::string_view key, double least, double most) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string word_or(std::string_view key, std::string_view otherwise) const;
  // The values of a list of words; nothing if it is absent.
  std::optional<std::vector<std::string>> words(std::string_view key) const;
  // The object under a key, whose own keys are named "key.inner" in messages; nothing if it is absent.
  std::optional<Config> object(std::string_view key) const;

  // Throws unless the key is absent or has the value, written as JSON.
  void require(std::string_view key, std::string_view json) const;
  [[noreturn]] void reject_key(std::string_view key, std::string_view expected) const;

 private:
  Config(nlohmann::json value, std::string label, std::string path);
  const nlohmann::json* find(std::string_view key) const;

  nlohmann::json value_;
  std::string label_;
  std::string path_;  // of an object in the file: "rope_scaling."
};

}  // namespace normscope::checkpoint
