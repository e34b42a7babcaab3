#pragma once
// Archives made by hand, block by block.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace normscope {

struct TarEntry {
  std::string name, content;
  char type = '0';
  std::string size = {};    // as written in the header; empty: that of the content
  std::string prefix = {};  // of the name
};

inline std::string tar_entry(const TarEntry& entry) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  const auto octal = [](std::size_t number) {
    char text[16];
    std::snprintf(text, sizeof text, "%011zo", number);
    return std::string(text);
  };
  put(0, entry.name.substr(0, 100));
  put(124, entry.size.empty() ? octal(entry.content.size()) : entry.size);
  header[156] = entry.type;
  put(257, std::string("ustar\0", 6) + "00");
  put(345, entry.prefix);
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  put(148, std::string(checksum, 7) + " ");
  return header + entry.content + std::string((512 - entry.content.size() % 512) % 512, '\0');
}

inline const std::string kTarEnd(1024, '\0');

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace normscope
