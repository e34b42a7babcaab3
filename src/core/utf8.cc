#include "core/utf8.h"

namespace normscope {

Utf8Sequence first_sequence(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true};
  const std::size_t size = lead >= 0xC2 && lead < 0xE0   ? 2
                           : lead >= 0xE0 && lead < 0xF0 ? 3
                           : lead >= 0xF0 && lead < 0xF5 ? 4
                                                         : 1;
  if (size == 1) return {1, false};
  const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    const bool fits =
        i < bytes.size() && byte(i) >= (i == 1 ? least : 0x80) && byte(i) <= (i == 1 ? most : 0xBF);
    if (!fits) return {i, false};
  }
  return {size, true};
}

}  // namespace normscope
