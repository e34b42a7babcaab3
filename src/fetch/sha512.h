#pragma once
// SHA-512 (FIPS 180-4). Written here because no cryptographic library is among our packages, and a program
// called for it would be one more that can be missing.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace normscope::fetch {

using Digest = std::array<std::uint8_t, 64>;

class Sha512 {
 public:
  void add(std::span<const std::byte> bytes);
  Digest digest() const;  // of all that was added

 private:
  void compress(const std::byte* block);
  std::array<std::uint64_t, 8> state_ = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                         0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                         0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
  std::array<std::byte, 128> block_{};
  std::uint64_t bytes_ = 0;
};

// As package registries write it: "sha512-" and base64.
std::string integrity_of(const Digest& digest);

}  // namespace normscope::fetch
