#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/format.h"

// Opens the bytes as one format, whatever they begin with, and reads every tensor.
template <class Open>
int read_everything(Open open, const std::uint8_t* data, std::size_t size) {
  const normscope::ReadLimits limits{.max_bytes = std::uint64_t{1} << 24};
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  try {
    const auto format = open(normscope::io::bytes_in_memory({begin, begin + size}, "'input'"), "'input'");
    for (std::size_t i = 0; i < format->tensors.size(); ++i) {
      try {
        const std::vector<double> values = format->values(i, limits);
        if (values.size() != normscope::io::element_count(format->tensors[i].shape)) __builtin_trap();
      } catch (const normscope::InputError&) {
      }
    }
  } catch (const normscope::InputError&) {
  }
  return 0;
}
