#pragma once
// Memory that processes on one machine hold once. It has no name in any folder, so that nothing is left of it however
// they end.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "normscope/pieces.h"

namespace normscope::cluster {

// Tells processes apart that can reach each other's memory: of one machine, and seeing the same process numbers.
std::string this_machine();

// Where others find it, as long as its maker has it open.
struct MemoryPlace {
  std::uint64_t pid = 0;
  int descriptor = -1;  // -1: memory cannot be shared here
  std::uint64_t size = 0;
};

// A copy of bytes, to be read only.
class OfferedMemory {
 public:
  explicit OfferedMemory(std::string_view bytes);
  ~OfferedMemory();
  OfferedMemory(const OfferedMemory&) = delete;
  OfferedMemory& operator=(const OfferedMemory&) = delete;

  const MemoryPlace& place() const { return place_; }
  // This process's own view, which stays when the offer ends; none: memory cannot be shared.
  std::optional<HeldBytes> bytes() const;

 private:
  MemoryPlace place_;
};

// None if it cannot be opened.
std::optional<HeldBytes> open_memory(const MemoryPlace& place);

}  // namespace normscope::cluster
