#pragma once
// Whether two sets of tokens are the same: FNV-1a of 64 bits. It tells accidents, not forgeries.
#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

namespace normscope::corpus {

class ContentHash {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      state_ = (state_ ^ (value & 0xff)) * 0x100000001b3;
      value >>= 8;
    }
  }
  void add(std::span<const std::uint32_t> values) {
    add(values.size());
    for (const std::uint32_t value : values) add(value);
  }
  std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace normscope::corpus
