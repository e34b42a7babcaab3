#include "fetch/tar_gz.h"

#include <archive_entry.h>
#include <fmt/format.h>

#include <string_view>

#include "io/file_errors.h"
#include "io/libarchive_source.h"

namespace normscope::fetch {
namespace {

constexpr std::size_t kLongestName = 1024;
constexpr const char* kFetchAgain = "it is not what it should be; fetch it again";

bool is_safe_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

class Reader {
 public:
  Reader(const io::Bytes& archive, const std::string& label, const TarLimits& limits)
      : label_(label), limits_(limits), source_(archive), reader_(io::archive_reader()) {
    archive_read_support_filter_gzip(reader_.get());
    archive_read_support_format_tar(reader_.get());
    check(source_.open(reader_.get()));
    // What is not compressed would pass as a plain tar.
    if (archive_filter_code(reader_.get(), 0) != ARCHIVE_FILTER_GZIP) reject_damaged("it is not compressed");
  }

  void read(const TarVisitor& visit) {
    for (std::size_t entries = 0;; ++entries) {
      archive_entry* entry = nullptr;
      const int status = archive_read_next_header(reader_.get(), &entry);
      if (status == ARCHIVE_EOF) return;
      check(status);
      if (entries == limits_.entries)
        io::reject(label_, fmt::format("holds more than {} entries", limits_.entries), "fetch it again");
      read_entry(*entry, visit);
    }
  }

 private:
  // A warning of libarchive's is an error here: what is odd about a package of ours is wrong with it.
  void check(la_int64_t status) {
    source_.rethrow();
    if (status < 0) {
      const char* why = archive_error_string(reader_.get());
      reject_damaged(why == nullptr ? "it cannot be read" : io::quoted_name(why));
    }
    const la_int64_t unpacked = archive_filter_bytes(reader_.get(), 0);
    if (unpacked > 0 && static_cast<std::uint64_t>(unpacked) > limits_.total)
      io::reject(label_, "unpacks to more bytes than any package of ours", kFetchAgain);
  }

  [[noreturn]] void reject_damaged(std::string_view why) const {
    io::reject(label_, fmt::format("is a damaged or truncated .tar.gz ({})", why), "fetch it again");
  }

  static std::string name_of(archive_entry& entry) {
    const char* name = archive_entry_pathname_utf8(&entry);
    if (name == nullptr) name = archive_entry_pathname(&entry);
    return name == nullptr ? "" : name;
  }

  void read_entry(archive_entry& entry, const TarVisitor& visit) {
    std::string name = name_of(entry);
    const bool directory = archive_entry_filetype(&entry) == AE_IFDIR;
    if ((!directory && archive_entry_filetype(&entry) != AE_IFREG) ||
        archive_entry_hardlink(&entry) != nullptr || archive_entry_symlink(&entry) != nullptr ||
        archive_entry_sparse_count(&entry) > 0)
      io::reject(label_,
                 fmt::format("holds {}, which is neither a file nor a directory", io::quoted_name(name)),
                 kFetchAgain);
    if (directory && name.ends_with('/')) name.pop_back();
    if (!is_safe_name(name))
      io::reject(label_,
                 fmt::format("holds a file of the name {}, which leads elsewhere", io::quoted_name(name)),
                 kFetchAgain);
    const la_int64_t declared = archive_entry_size(&entry);
    const auto size = static_cast<std::uint64_t>(declared);
    if (declared < 0 || size > limits_.file || (directory && size > 0))
      io::reject(label_, fmt::format("claims {} bytes for {}", declared, io::quoted_name(name)), kFetchAgain);
    if (directory) return;
    visit(name, {size, [this](std::span<std::byte> into) { fill(into); }});
  }

  void fill(std::span<std::byte> into) {
    while (!into.empty()) {
      const la_ssize_t got = archive_read_data(reader_.get(), into.data(), into.size());
      check(got);
      if (got == 0) reject_damaged("a file in it is too short");
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }

  const std::string& label_;
  const TarLimits& limits_;
  io::ArchiveSource source_;
  io::ArchiveReader reader_;
};

}  // namespace

void read_tar_gz(const io::Bytes& archive, const std::string& label, const TarLimits& limits,
                 const TarVisitor& visit) {
  Reader(archive, label, limits).read(visit);
}

}  // namespace normscope::fetch
