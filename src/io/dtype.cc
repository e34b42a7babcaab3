#include "io/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>

#include "io/file_errors.h"

namespace normscope {

namespace {

struct Facts {
  DType dtype;
  const char* name;
  std::size_t size;                // bytes
  double unit_roundoff = 0x1p-53;  // integers are taken for double
  double smallest_rounding = 0;    // half the smallest subnormal number; of double it would be 0 in double
};
constexpr Facts kFacts[] = {
    {DType::float16, "float16", 2, 0x1p-11, 0x1p-25},
    {DType::bfloat16, "bfloat16", 2, 0x1p-8, 0x1p-134},
    {DType::float32, "float32", 4, 0x1p-24, 0x1p-150},
    {DType::float64, "float64", 8},
    {DType::int8, "int8", 1},
    {DType::int16, "int16", 2},
    {DType::int32, "int32", 4},
    {DType::int64, "int64", 8},
    {DType::uint8, "uint8", 1},
    {DType::uint16, "uint16", 2},
    {DType::uint32, "uint32", 4},
    {DType::uint64, "uint64", 8},
    {DType::boolean, "bool", 1},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kFacts); ++i) {
    if (static_cast<std::size_t>(kFacts[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_order(), "a dtype is the index of its facts");

const Facts& facts_of(DType dtype) {
  return kFacts[static_cast<std::size_t>(dtype)];
}

}  // namespace

const char* name_of(DType dtype) {
  return facts_of(dtype).name;
}
std::span<const DType> values_of(DType) {
  static const std::vector<DType> all = [] {
    std::vector<DType> values;
    for (const Facts& facts : kFacts) values.push_back(facts.dtype);
    return values;
  }();
  return all;
}
std::size_t size_of(DType dtype) {
  return facts_of(dtype).size;
}
double unit_roundoff(DType dtype) {
  return facts_of(dtype).unit_roundoff;
}
double smallest_rounding(DType dtype) {
  return facts_of(dtype).smallest_rounding;
}

namespace io {
namespace {

template <class Bits>
Bits load(const std::byte* from, bool big_endian) {
  std::array<std::byte, sizeof(Bits)> raw;
  std::memcpy(raw.data(), from, sizeof(Bits));
  if (big_endian != (std::endian::native == std::endian::big)) std::reverse(raw.begin(), raw.end());
  return std::bit_cast<Bits>(raw);
}

template <class Bits>
void store(Bits bits, std::byte* to) {
  auto raw = std::bit_cast<std::array<std::byte, sizeof(Bits)>>(bits);
  if constexpr (std::endian::native == std::endian::big) std::reverse(raw.begin(), raw.end());
  std::memcpy(to, raw.data(), sizeof(Bits));
}

// IEEE binary16: sign, 5 exponent bits with bias 15, 10 fraction bits.
double from_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude;
  if (exponent == 0x1f)
    magnitude =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, -24);
  else
    magnitude = std::ldexp(fraction | 0x400, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// The same to float without branches, so that loops over weights become vectors: the bits of the magnitude,
// moved to the fraction of a float, are the number over 2^112, subnormal ones too.
float float_from_float16(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffu;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const std::uint32_t beyond = magnitude >= 0x7c00u ? 0x7f800000u : 0u;  // infinity and NaN
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | beyond | sign);
}

float float_from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

double from_bfloat16(std::uint16_t bits) {
  return static_cast<double>(float_from_bfloat16(bits));
}

// A 64-bit integer is exact in double when its significant bits, without trailing zeros, are at most 53.
template <class Integer>
bool exact_in_double([[maybe_unused]] Integer value) {
  if constexpr (sizeof(Integer) < sizeof(std::uint64_t)) {
    return true;
  } else {
    const auto bits = static_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = std::is_signed_v<Integer> && value < 0 ? 0 - bits : bits;
    return magnitude == 0 || std::bit_width(magnitude) - std::countr_zero(magnitude) <= 53;
  }
}

template <class Bits, class To, class Convert>
void decode_each(std::span<const std::byte> bytes, bool big_endian, std::span<To> values, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = convert(load<Bits>(bytes.data() + i * sizeof(Bits), big_endian), i);
}

template <class Integer>
void decode_integers(std::span<const std::byte> bytes, bool big_endian, std::span<double> values,
                     std::size_t first, const std::string& where) {
  using Bits = std::make_unsigned_t<Integer>;
  decode_each<Bits>(bytes, big_endian, values, [&](Bits bits, std::size_t i) {
    const auto integer = static_cast<Integer>(bits);
    if (!exact_in_double(integer))
      reject(where,
             fmt::format("holds the integer {} (element {}), which no double equals", integer, first + i),
             "save it as float64, or with integers up to 2^53");
    return static_cast<double>(integer);
  });
}

void decode_booleans(std::span<const std::byte> bytes, std::span<double> values, std::size_t first,
                     const std::string& where) {
  decode_each<std::uint8_t>(bytes, false, values, [&](std::uint8_t bits, std::size_t i) {
    if (bits > 1)
      reject(where,
             fmt::format("holds the byte {} (element {}) where a bool must be 0 or 1", bits, first + i),
             "save it again");
    return static_cast<double>(bits);
  });
}

[[noreturn]] void reject_value(double value, DType dtype, std::size_t index, const std::string& where) {
  reject(where, fmt::format("cannot hold {} (element {}) as {}", value, index, name_of(dtype)),
         "write it with a wider dtype");
}

// Sign, exponent and `precision` significant bits (the leading one implied) of a 16-bit float whose smallest
// normal number is 2^least. Rounding goes straight from double, so there is no double rounding; a carry out
// of the fraction moves into the exponent by itself, and out of the largest number into infinity.
std::uint16_t round_to_16_bits(double value, int precision, int least) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const std::uint32_t infinity = (0x7fffu >> (precision - 1)) << (precision - 1);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1u << (precision - 2));
  const double magnitude = std::abs(value);
  if (magnitude >= std::ldexp(1.0, 2 - least)) return static_cast<std::uint16_t>(sign | infinity);
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  const auto significand =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, precision - 1 - exponent)));
  const std::uint32_t exponent_bits = static_cast<std::uint32_t>(exponent - least) << (precision - 1);
  return static_cast<std::uint16_t>(sign | (exponent_bits + significand));
}

template <class Encode>
void encode_each(std::span<const double> values, std::span<std::byte> bytes, Encode encode_one) {
  using Bits = std::invoke_result_t<Encode, double, std::size_t>;
  for (std::size_t i = 0; i < values.size(); ++i)
    store<Bits>(encode_one(values[i], i), bytes.data() + i * sizeof(Bits));
}

void encode_16_bit_floats(DType dtype, std::span<const double> values, std::span<std::byte> bytes,
                          std::size_t first, const std::string& where) {
  const bool half = dtype == DType::float16;
  const std::uint16_t infinity = half ? 0x7c00 : 0x7f80;
  encode_each(values, bytes, [&](double value, std::size_t i) {
    const std::uint16_t bits = half ? round_to_16_bits(value, 11, -14) : round_to_16_bits(value, 8, -126);
    if (std::isfinite(value) && (bits & 0x7fff) >= infinity) reject_value(value, dtype, first + i, where);
    return bits;
  });
}

void encode_float32(std::span<const double> values, std::span<std::byte> bytes, std::size_t first,
                    const std::string& where) {
  encode_each(values, bytes, [&](double value, std::size_t i) {
    // From halfway between the largest float and 2^128 on, nearest even is infinity.
    if (std::isfinite(value) && std::abs(value) >= 0x1.ffffffp127)
      reject_value(value, DType::float32, first + i, where);
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  });
}

template <class Integer>
void encode_integers(DType dtype, std::span<const double> values, std::span<std::byte> bytes,
                     std::size_t first, const std::string& where,
                     int value_bits = std::numeric_limits<Integer>::digits) {
  // [low, high) in doubles; both are powers of two or zero, hence exact.
  const double high = std::ldexp(1.0, value_bits);
  const double low = std::is_signed_v<Integer> ? -high : 0;
  encode_each(values, bytes, [&](double value, std::size_t i) {
    if (!(value >= low && value < high) || value != std::trunc(value))
      reject_value(value, dtype, first + i, where);
    return static_cast<std::make_unsigned_t<Integer>>(static_cast<Integer>(value));
  });
}

}  // namespace

void decode(DType dtype, bool big_endian, std::span<const std::byte> bytes, std::span<double> values,
            std::size_t first, const std::string& where) {
  switch (dtype) {
    case DType::float16:
      return decode_each<std::uint16_t>(bytes, big_endian, values,
                                        [](std::uint16_t bits, std::size_t) { return from_float16(bits); });
    case DType::bfloat16:
      return decode_each<std::uint16_t>(bytes, big_endian, values,
                                        [](std::uint16_t bits, std::size_t) { return from_bfloat16(bits); });
    case DType::float32:
      return decode_each<std::uint32_t>(bytes, big_endian, values, [](std::uint32_t bits, std::size_t) {
        return static_cast<double>(std::bit_cast<float>(bits));
      });
    case DType::float64:
      return decode_each<std::uint64_t>(bytes, big_endian, values, [](std::uint64_t bits, std::size_t) {
        return std::bit_cast<double>(bits);
      });
    case DType::int8:
      return decode_integers<std::int8_t>(bytes, big_endian, values, first, where);
    case DType::int16:
      return decode_integers<std::int16_t>(bytes, big_endian, values, first, where);
    case DType::int32:
      return decode_integers<std::int32_t>(bytes, big_endian, values, first, where);
    case DType::int64:
      return decode_integers<std::int64_t>(bytes, big_endian, values, first, where);
    case DType::uint8:
      return decode_integers<std::uint8_t>(bytes, big_endian, values, first, where);
    case DType::uint16:
      return decode_integers<std::uint16_t>(bytes, big_endian, values, first, where);
    case DType::uint32:
      return decode_integers<std::uint32_t>(bytes, big_endian, values, first, where);
    case DType::uint64:
      return decode_integers<std::uint64_t>(bytes, big_endian, values, first, where);
    case DType::boolean:
      return decode_booleans(bytes, values, first, where);
  }
}

void decode(DType dtype, std::span<const std::byte> bytes, std::span<float> values, std::size_t first,
            const std::string& where) {
  switch (dtype) {
    case DType::float16:
      return decode_each<std::uint16_t>(
          bytes, false, values, [](std::uint16_t bits, std::size_t) { return float_from_float16(bits); });
    case DType::bfloat16:
      return decode_each<std::uint16_t>(
          bytes, false, values, [](std::uint16_t bits, std::size_t) { return float_from_bfloat16(bits); });
    case DType::float32:
      return decode_each<std::uint32_t>(
          bytes, false, values, [](std::uint32_t bits, std::size_t) { return std::bit_cast<float>(bits); });
    default: {
      std::vector<double> wide(values.size());
      decode(dtype, false, bytes, std::span(wide), first, where);
      std::transform(wide.begin(), wide.end(), values.begin(),
                     [](double value) { return static_cast<float>(value); });
    }
  }
}

void encode(DType dtype, std::span<const double> values, std::span<std::byte> bytes, std::size_t first,
            const std::string& where) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return encode_16_bit_floats(dtype, values, bytes, first, where);
    case DType::float32:
      return encode_float32(values, bytes, first, where);
    case DType::float64:
      return encode_each(values, bytes,
                         [](double value, std::size_t) { return std::bit_cast<std::uint64_t>(value); });
    case DType::int8:
      return encode_integers<std::int8_t>(dtype, values, bytes, first, where);
    case DType::int16:
      return encode_integers<std::int16_t>(dtype, values, bytes, first, where);
    case DType::int32:
      return encode_integers<std::int32_t>(dtype, values, bytes, first, where);
    case DType::int64:
      return encode_integers<std::int64_t>(dtype, values, bytes, first, where);
    case DType::uint8:
      return encode_integers<std::uint8_t>(dtype, values, bytes, first, where);
    case DType::uint16:
      return encode_integers<std::uint16_t>(dtype, values, bytes, first, where);
    case DType::uint32:
      return encode_integers<std::uint32_t>(dtype, values, bytes, first, where);
    case DType::uint64:
      return encode_integers<std::uint64_t>(dtype, values, bytes, first, where);
    case DType::boolean:
      return encode_integers<std::uint8_t>(dtype, values, bytes, first, where, 1);
  }
}

}  // namespace io
}  // namespace normscope
