#pragma once
// SHA-512, OpenSSL's.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace normscope::fetch {

using Digest = std::array<std::uint8_t, 64>;

class Sha512 {
 public:
  Sha512();
  ~Sha512();
  Sha512(const Sha512&) = delete;
  Sha512& operator=(const Sha512&) = delete;
  void add(std::span<const std::byte> bytes);
  Digest digest() const;  // of all that was added

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// As package registries write it: "sha512-" and base64.
std::string integrity_of(const Digest& digest);

}  // namespace normscope::fetch
