#pragma once
// {"String": …} or {"Regex": …} of a tokenizer file.
#include <optional>
#include <string>

#include "text/node.h"
#include "text/regex.h"

namespace normscope::text {

class Pattern {
 public:
  explicit Pattern(const Node& node) {
    if (const auto literal = node.find("String")) {
      literal_ = literal->string();
      // Nothing is found between any two characters.
      if (literal_.empty()) regex_.emplace("", literal->where());
    } else {
      const Node regex = node.at("Regex");
      regex_.emplace(regex.string(), regex.where());
    }
  }

  std::vector<Match> find(std::string_view valid) const {
    return regex_ ? regex_->find(valid) : find_literal(valid, literal_);
  }

 private:
  std::string literal_;
  std::optional<Regex> regex_;
};

}  // namespace normscope::text
