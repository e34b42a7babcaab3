#pragma once
// Tensor files made by hand, byte by byte.
#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "normscope/tensor_file.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {

using Shape = std::vector<std::size_t>;
using Values = std::vector<double>;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

template <class T>
std::string raw(std::initializer_list<T> values, std::endian order = std::endian::little) {
  std::string out;
  for (const T value : values) {
    auto one = std::bit_cast<std::array<char, sizeof(T)>>(value);
    if (order != std::endian::native) std::reverse(one.begin(), one.end());
    out.append(one.begin(), one.end());
  }
  return out;
}

// A .npy file by hand: the dict as given, no padding (readers must not rely on it).
inline std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  const int length_bytes = version == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) out += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  return out + dict + data;
}

inline std::string npy_of(const std::string& descr, const std::string& shape, const std::string& data,
                          bool fortran = false, int version = 1) {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                 ", 'shape': " + shape + ", }\n",
             data, version);
}

inline const std::string kSmall = npy_of("<f4", "(2,)", raw({1.0f, 2.0f}));

inline std::string safetensors(const std::string& header, const std::string& data) {
  return raw<std::uint64_t>({header.size()}) + header + data;
}

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct ZipEntry {
  std::string name, content;
  bool deflated = false;
  bool encrypted = false;
};

// Archives come from libzip itself; what it would not write is patched into the bytes afterwards.
inline std::string zip_of(const std::vector<ZipEntry>& entries) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.zip");
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE, nullptr);
  for (const ZipEntry& entry : entries) {
    zip_source_t* source = zip_source_buffer(archive, entry.content.data(), entry.content.size(), 0);
    const auto index = static_cast<zip_uint64_t>(zip_file_add(archive, entry.name.c_str(), source, 0));
    EXPECT_EQ(zip_set_file_compression(archive, index, entry.deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0), 0);
    if (entry.encrypted) {
      EXPECT_EQ(zip_file_set_encryption(archive, index, ZIP_EM_AES_128, "secret"), 0);
    }
  }
  EXPECT_EQ(zip_close(archive), 0);
  return content_of(path);
}

// The header of a .safetensors file with the one tensor "t".
inline std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

inline Tensor read_bytes(const std::string& file, const std::optional<std::string>& name = std::nullopt,
                         const ReadLimits& limits = {}) {
  return TensorFile::from_bytes(bytes_of(file), "input", limits).read(name);
}

inline void expect_rejected(const std::string& file, const std::string& fact) {
  const std::string message = message_of([&] { read_bytes(file); });
  EXPECT_NE(message.find(fact), std::string::npos) << message;
  EXPECT_NE(message.find("'input'"), std::string::npos) << message;
  EXPECT_NE(message.find("; "), std::string::npos) << "no advice: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace normscope
