#include "fetch/sha512.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace normscope::fetch {
namespace {

// Fractions of the cube roots of the first 80 primes.
constexpr std::array<std::uint64_t, 80> kRounds = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc, 0x3956c25bf348b538,
    0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118, 0xd807aa98a3030242, 0x12835b0145706fbe,
    0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2, 0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235,
    0xc19bf174cf692694, 0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5, 0x983e5152ee66dfab,
    0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4, 0xc6e00bf33da88fc2, 0xd5a79147930aa725,
    0x06ca6351e003826f, 0x142929670a0e6e70, 0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed,
    0x53380d139d95b3df, 0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30, 0xd192e819d6ef5218,
    0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8, 0x19a4c116b8d2d0c8, 0x1e376c085141ab53,
    0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8, 0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373,
    0x682e6ff3d6b2b8a3, 0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b, 0xca273eceea26619c,
    0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178, 0x06f067aa72176fba, 0x0a637dc5a2c898a6,
    0x113f9804bef90dae, 0x1b710b35131c471b, 0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc,
    0x431d67c49c100d4c, 0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

std::uint64_t big_endian(const std::byte* bytes) {
  std::uint64_t word = 0;
  for (int i = 0; i < 8; ++i) word = word << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return word;
}

}  // namespace

// Section 6.4.2; names are the standard's.
void Sha512::compress(const std::byte* block) {
  std::array<std::uint64_t, 80> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 8 * t);
  for (std::size_t t = 16; t < 80; ++t) {
    const std::uint64_t s0 = std::rotr(w[t - 15], 1) ^ std::rotr(w[t - 15], 8) ^ w[t - 15] >> 7;
    const std::uint64_t s1 = std::rotr(w[t - 2], 19) ^ std::rotr(w[t - 2], 61) ^ w[t - 2] >> 6;
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 80; ++t) {
    const std::uint64_t t1 = h + (std::rotr(e, 14) ^ std::rotr(e, 18) ^ std::rotr(e, 41)) +
                             ((e & f) ^ (~e & g)) + kRounds[t] + w[t];
    const std::uint64_t t2 =
        (std::rotr(a, 28) ^ std::rotr(a, 34) ^ std::rotr(a, 39)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint64_t, 8> change = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += change[i];
}

void Sha512::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t filled = bytes_ % block_.size();
    const std::size_t now = std::min(bytes.size(), block_.size() - filled);
    std::copy_n(bytes.begin(), now, block_.begin() + static_cast<std::ptrdiff_t>(filled));
    bytes_ += now;
    bytes = bytes.subspan(now);
    if (bytes_ % block_.size() == 0) compress(block_.data());
  }
}

// The message is followed by a bit 1, zeros, and its length in bits, which ends a block.
Digest Sha512::digest() const {
  Sha512 padded = *this;
  const std::size_t filled = bytes_ % block_.size();
  std::array<std::byte, 256> padding{};
  padding[0] = std::byte{0x80};
  const std::size_t length = (filled < 112 ? 128 : 256) - filled;
  for (std::size_t i = 0; i < 8; ++i)
    padding[length - 1 - i] = static_cast<std::byte>(bytes_ << 3 >> (8 * i));
  padding[length - 9] = static_cast<std::byte>(bytes_ >> 61);
  padded.add(std::span(padding).first(length));
  Digest result;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<std::uint8_t>(padded.state_[i / 8] >> (56 - 8 * (i % 8)));
  return result;
}

std::string integrity_of(const Digest& digest) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text = "sha512-";
  for (std::size_t i = 0; i < digest.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) three = three << 8 | (i + k < digest.size() ? digest[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= digest.size() ? kDigits[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace normscope::fetch
