#pragma once
// What gzip, xz and zstd would write.
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <string>

namespace normscope {

inline std::string compressed(const std::string& bytes, int filter) {
  std::string out(bytes.size() + (1 << 16), '\0');
  std::size_t used = 0;
  archive* writer = archive_write_new();
  EXPECT_EQ(archive_write_add_filter(writer, filter), ARCHIVE_OK);
  archive_write_set_format_raw(writer);
  archive_write_set_bytes_in_last_block(writer, 1);
  EXPECT_EQ(archive_write_open_memory(writer, out.data(), out.size(), &used), ARCHIVE_OK);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  EXPECT_EQ(archive_write_header(writer, entry), ARCHIVE_OK);
  EXPECT_EQ(archive_write_data(writer, bytes.data(), bytes.size()), static_cast<la_ssize_t>(bytes.size()));
  archive_entry_free(entry);
  EXPECT_EQ(archive_write_free(writer), ARCHIVE_OK);
  out.resize(used);
  return out;
}

}  // namespace normscope
