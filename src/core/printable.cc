#include "core/printable.h"

#include <fmt/format.h>

#include "core/utf8.h"

namespace normscope {

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const Utf8Sequence sequence = first_sequence(text);
    const std::string_view bytes = text.substr(0, sequence.size);
    const auto first = static_cast<unsigned char>(bytes.front());
    const bool control = first < 0x20 || first == 0x7F ||
                         (first == 0xC2 && bytes.size() == 2 && static_cast<unsigned char>(bytes[1]) < 0xA0);
    if (sequence.valid && !control) {
      safe += bytes;
    } else {
      for (const char byte : bytes) safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(sequence.size);
  }
  return safe;
}

}  // namespace normscope
