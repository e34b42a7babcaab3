#pragma once
// Byte strings with numbers, to find those that a text begins with.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace normscope::text {

class Trie {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  // An entry that is there already gets the new value.
  void insert(std::string_view entry, std::uint32_t value) {
    std::uint32_t node = 0;
    for (const char c : entry) {
      const auto next = static_cast<std::uint32_t>(values_.size());
      const auto [found, created] = edges_.try_emplace(edge(node, c), next);
      if (created) values_.push_back(none);
      node = found->second;
    }
    values_[node] = value;
  }

  // Calls visit(length, value) for all entries that the text begins with, the shortest first.
  template <class Visit>
  void prefixes(std::string_view text, const Visit& visit) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto found = edges_.find(edge(node, text[i]));
      if (found == edges_.end()) return;
      node = found->second;
      if (values_[node] != none) visit(i + 1, values_[node]);
    }
  }

 private:
  static std::uint64_t edge(std::uint32_t node, char c) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(c);
  }

  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::vector<std::uint32_t> values_{none};  // of each node; the root is the first
};

}  // namespace normscope::text
