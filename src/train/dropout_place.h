#pragma once
#include <cstddef>
#include <cstdint>

namespace normscope {

// Columns of one text come in this multiple, and this many queries are attended to at a time.
constexpr std::size_t kTextColumns = 32;

// Where in a training dropout takes place.
struct DropoutPlace {
  std::uint64_t seed = 0;
  std::uint32_t step = 0, place = 0;  // place: of a text, a layer and a part of it
};

}  // namespace normscope
