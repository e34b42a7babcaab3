#include "io/text_bytes.h"

#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <vector>

#include "io/file_errors.h"
#include "io/libarchive_source.h"
#include "normscope/error.h"

namespace normscope::io {
namespace {

using namespace std::string_view_literals;

struct Kind {
  std::string_view beginning, name;
};
constexpr std::array kCompressed = {Kind{"\x1f\x8b"sv, ".gz"},
                                    Kind{"\xfd"
                                         "7zXZ\0"sv,
                                         ".xz"},
                                    Kind{"\x28\xb5\x2f\xfd"sv, ".zst"}};
constexpr std::array kNoText = {
    Kind{"PK\x03\x04"sv, "a .zip archive (or .npz, .docx, .xlsx, which are such)"},
    Kind{"BZh"sv, "a .bz2 file"},
    Kind{"7z\xbc\xaf\x27\x1c"sv, "a .7z archive"},
    Kind{"Rar!\x1a\x07"sv, "a .rar archive"},
    Kind{"%PDF-"sv, "a PDF"},
    Kind{"\x93NUMPY"sv, "an .npy array"},
    Kind{"PAR1"sv, "a Parquet table"},
    Kind{"ARROW1\0"sv, "an Arrow table"},
    Kind{"SQLite format 3\0"sv, "an SQLite database"},
    Kind{"\x89PNG\r\n"sv, "a PNG picture"},
    Kind{"GIF8"sv, "a GIF picture"},
    Kind{"\xff\xd8\xff"sv, "a JPEG picture"},
    Kind{"\x7f"
         "ELF"sv,
         "a program"},
    Kind{"GGUF"sv, "a .gguf model"},
};

std::string beginning_of(const Bytes& bytes) {
  std::string beginning(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), 300)), '\0');
  bytes.read(0, std::as_writable_bytes(std::span(beginning)));
  return beginning;
}

template <std::size_t n>
const Kind* kind_of(std::string_view beginning, const std::array<Kind, n>& kinds) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const Kind& kind) { return beginning.starts_with(kind.beginning); });
  return found == kinds.end() ? nullptr : &*found;
}

std::vector<std::byte> unpacked(const Bytes& bytes, const std::string& label, std::string_view kind,
                                std::uint64_t max_bytes) {
  const ArchiveReader reader = archive_reader();
  ArchiveSource source(bytes);
  const auto damaged = [&] {
    reject(label, fmt::format("is a damaged or truncated {} file", kind), "copy or fetch it again");
  };
  const auto check = [&](la_int64_t status) {
    source.rethrow();
    if (status < 0) damaged();
  };
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_filter_xz(reader.get());
  archive_read_support_filter_zstd(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_read_support_format_empty(reader.get());
  check(source.open(reader.get()));
  // A header that is cut off is none to libarchive, which would give its bytes as they are.
  if (archive_filter_code(reader.get(), 0) == ARCHIVE_FILTER_NONE) damaged();
  std::vector<std::byte> result, piece(1 << 18);
  archive_entry* entry = nullptr;
  const int status = archive_read_next_header(reader.get(), &entry);
  if (status == ARCHIVE_EOF) return result;  // of nothing
  check(status);
  for (;;) {
    const la_ssize_t got = archive_read_data(reader.get(), piece.data(), piece.size());
    check(got);
    if (got == 0) break;
    if (static_cast<std::uint64_t>(got) > max_bytes - result.size())
      reject(label, fmt::format("unpacks to more than {} bytes, the most that is read", max_bytes),
             "unpack it and give a part of it");
    result.insert(result.end(), piece.begin(), piece.begin() + got);
  }
  return result;
}

}  // namespace

TextBytes open_text(const std::string& path, std::uint64_t max_bytes) {
  const std::string label = label_of(path);
  TextBytes opened{open_bytes(path, max_bytes)};
  std::string beginning = beginning_of(*opened.bytes);
  if (const Kind* kind = kind_of(beginning, kCompressed)) {
    try {
      opened = {bytes_in_memory(unpacked(*opened.bytes, label, kind->name, max_bytes), label), true};
    } catch (const std::bad_alloc&) {
      throw Error(fmt::format("{} does not fit in memory; unpack it", label));
    }
    beginning = beginning_of(*opened.bytes);
  }
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF"))
    reject(label, "is UTF-16, but text must be UTF-8", "convert it: iconv -f UTF-16 -t UTF-8");
  // A tar tells what it is after the first name.
  const bool tar = beginning.size() > 262 && std::string_view(beginning).substr(257, 5) == "ustar";
  if (const Kind* kind = kind_of(beginning, kNoText); kind != nullptr || tar)
    reject(
        label,
        fmt::format("{} {}, not text", opened.unpacked ? "holds" : "is", tar ? "a .tar archive" : kind->name),
        "name a text file, UTF-8; .gz, .xz and .zst are unpacked");
  return opened;
}

std::string without_compression(const std::string& path) {
  for (const Kind& kind : kCompressed)
    if (path.size() > kind.name.size() && path.ends_with(kind.name))
      return path.substr(0, path.size() - kind.name.size());
  return path;
}

}  // namespace normscope::io
