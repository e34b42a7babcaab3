// .npz: a zip archive of .npy members, stored or deflated.
#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "io/file_errors.h"
#include "io/format.h"
#include "io/npy.h"

namespace normscope::io {
namespace {

// The best that deflate can do: 258 bytes from 2 bits. An entry that claims more lies about its size.
constexpr std::uint64_t kDeflateRatio = 1032;
constexpr std::string_view kSuffix = ".npy";

// libzip reads through this instead of opening the path itself, so that bytes in memory and files go one way.
struct ZipInput {
  explicit ZipInput(const Bytes& bytes_in) : bytes(bytes_in) { zip_error_init(&error); }
  ZipInput(const ZipInput&) = delete;
  ZipInput& operator=(const ZipInput&) = delete;
  ~ZipInput() { zip_error_fini(&error); }

  zip_int64_t read(void* into, zip_uint64_t length) {
    const std::uint64_t left = position < bytes.size() ? bytes.size() - position : 0;
    const std::uint64_t now = std::min<std::uint64_t>(length, left);
    try {
      bytes.read(position, {static_cast<std::byte*>(into), now});
    } catch (const std::exception&) {  // must not pass through C code
      zip_error_set(&error, ZIP_ER_READ, 0);
      return -1;
    }
    position += now;
    return static_cast<zip_int64_t>(now);
  }
  zip_int64_t seek(void* arguments, zip_uint64_t length) {
    const zip_int64_t target =
        zip_source_seek_compute_offset(position, bytes.size(), arguments, length, &error);
    if (target < 0) return -1;
    position = static_cast<std::uint64_t>(target);
    return 0;
  }
  zip_int64_t status(void* into, zip_uint64_t length) const {
    if (length < sizeof(zip_stat_t)) return -1;
    auto* status = static_cast<zip_stat_t*>(into);
    zip_stat_init(status);
    status->size = bytes.size();
    status->valid = ZIP_STAT_SIZE;
    return sizeof(zip_stat_t);
  }

  const Bytes& bytes;
  std::uint64_t position = 0;
  zip_error_t error;
};

zip_int64_t zip_input(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& input = *static_cast<ZipInput*>(state);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                            ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    case ZIP_SOURCE_OPEN:
      input.position = 0;
      return 0;
    case ZIP_SOURCE_READ:
      return input.read(data, length);
    case ZIP_SOURCE_SEEK:
      return input.seek(data, length);
    case ZIP_SOURCE_TELL:
      return static_cast<zip_int64_t>(input.position);
    case ZIP_SOURCE_STAT:
      return input.status(data, length);
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&input.error, data, length);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
      return 0;
    default:
      zip_error_set(&input.error, ZIP_ER_OPNOTSUPP, 0);
      return -1;
  }
}

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Member = std::unique_ptr<zip_file_t, CloseMember>;

std::string text_of(zip_error_t* error) {
  std::string text = zip_error_strerror(error);
  zip_error_fini(error);
  return text;
}

[[noreturn]] void reject_archive(const std::string& where, const std::string& reason) {
  reject(where, fmt::format("is a damaged or truncated zip archive ({})", reason), "copy or save it again");
}

std::unique_ptr<zip_t, CloseArchive> open_archive(ZipInput& input, const std::string& label) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_function_create(zip_input, &input, &error);
  if (source == nullptr) reject_archive(label, text_of(&error));
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive == nullptr) {
    zip_source_free(source);
    reject_archive(label, text_of(&error));
  }
  zip_error_fini(&error);
  return std::unique_ptr<zip_t, CloseArchive>(archive);
}

// Everything that can be known without decompressing: a lie found here costs no memory.
void check_entry(const zip_stat_t& entry, std::uint64_t archive_size, const std::string& where) {
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((entry.valid & kNeeded) != kNeeded) reject_archive(where, "its size or method is missing");
  if (entry.encryption_method != ZIP_EM_NONE) reject(where, "is encrypted", "save it without a password");
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    reject(
        where,
        fmt::format("uses zip compression method {}, but stored or deflated is expected", entry.comp_method),
        "save it with numpy.savez or numpy.savez_compressed");
  if (entry.comp_size > archive_size) reject_truncated(where, entry.comp_size, archive_size);
  const bool stored = entry.comp_method == ZIP_CM_STORE;
  if (stored ? entry.size != entry.comp_size : entry.size / kDeflateRatio > entry.comp_size)
    reject(where,
           fmt::format("declares {} bytes, which its {} bytes in the archive cannot hold", entry.size,
                       entry.comp_size),
           "save it again");
}

struct NpzFormat : TensorFile::Format {
  NpzFormat(std::unique_ptr<Bytes> bytes_in, std::string label_in)
      : bytes(std::move(bytes_in)),
        label(std::move(label_in)),
        input(*bytes),
        archive(open_archive(input, label)) {
    std::vector<std::string> others;
    std::set<std::string> names;
    const auto count =
        static_cast<zip_uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive.get(), 0)));
    for (zip_uint64_t index = 0; index < count; ++index) {
      const zip_stat_t entry = stat_of(index);
      const std::string name = entry.valid & ZIP_STAT_NAME ? entry.name : "";
      if (!name.ends_with(kSuffix)) {
        others.push_back(name);
        continue;
      }
      if (!names.insert(name).second)
        reject(label, fmt::format("holds the member {} twice", quoted_name(name)), "save it again");
      add(index, entry, name.substr(0, name.size() - kSuffix.size()));
    }
    if (names.empty()) reject_without_arrays(others);
  }

  std::vector<double> values(std::size_t index, const ReadLimits& limits) override {
    const std::string where = where_of(tensors[index].name);
    const zip_stat_t entry = stat_of(members[index]);
    const Member member = open_member(members[index], where);
    const ByteStream stream = stream_of_member(member.get(), entry.size, where);
    std::vector<double> result = read_values(read_npy_header(stream, where), stream, where, limits);
    check_end(member.get(), where);
    return result;
  }

 private:
  std::string where_of(const std::string& name) const {
    return fmt::format("{} (member {})", label, quoted_name(name));
  }
  zip_stat_t stat_of(zip_uint64_t index) const {
    zip_stat_t entry;
    if (zip_stat_index(archive.get(), index, 0, &entry) != 0)
      reject_archive(label, zip_error_strerror(zip_get_error(archive.get())));
    return entry;
  }
  Member open_member(zip_uint64_t index, const std::string& where) const {
    Member member(zip_fopen_index(archive.get(), index, 0));
    if (!member) reject_archive(where, zip_error_strerror(zip_get_error(archive.get())));
    return member;
  }
  static ByteStream stream_of_member(zip_file_t* member, std::uint64_t size, const std::string& where) {
    return {size, [member, where, size, at = std::uint64_t{0}](std::span<std::byte> into) mutable {
              while (!into.empty()) {
                const zip_int64_t got = zip_fread(member, into.data(), into.size());
                if (got < 0) reject_archive(where, zip_error_strerror(zip_file_get_error(member)));
                if (got == 0) reject_truncated(where, size, at);
                at += static_cast<std::uint64_t>(got);
                into = into.subspan(static_cast<std::size_t>(got));
              }
            }};
  }
  // The checksum is compared when the end is reached.
  static void check_end(zip_file_t* member, const std::string& where) {
    std::byte beyond;
    const zip_int64_t got = zip_fread(member, &beyond, 1);
    if (got < 0) reject_archive(where, zip_error_strerror(zip_file_get_error(member)));
    if (got > 0) reject_archive(where, "it holds more bytes than it declares");
  }
  void add(zip_uint64_t index, const zip_stat_t& entry, const std::string& name) {
    const std::string where = where_of(name);
    check_entry(entry, bytes->size(), where);
    const Member member = open_member(index, where);
    try {
      const Layout layout = read_npy_header(stream_of_member(member.get(), entry.size, where), where);
      tensors.push_back({name, layout.dtype, layout.shape});
      members.push_back(index);
    } catch (const UnsupportedDType& reason) {
      unreadable.push_back({name, reason.what()});
    }
  }
  [[noreturn]] void reject_without_arrays(const std::vector<std::string>& others) const {
    if (others.empty()) reject(label, "is a zip archive without members", "save it again with numpy.savez");
    const bool pytorch = std::any_of(others.begin(), others.end(),
                                     [](const std::string& name) { return name.ends_with("data.pkl"); });
    if (pytorch)
      reject(label, "is a PyTorch checkpoint, which only Python can load",
             "convert it with safetensors.torch.save_file");
    reject(label, fmt::format("is a zip archive without .npy members (it holds {})", quoted_names(others)),
           "save it with numpy.savez");
  }

  // Declared in the order they depend on each other.
  std::unique_ptr<Bytes> bytes;
  std::string label;
  ZipInput input;
  std::unique_ptr<zip_t, CloseArchive> archive;
  std::vector<zip_uint64_t> members;  // zip index of each of `tensors`
};

}  // namespace

std::unique_ptr<TensorFile::Format> open_npz(std::unique_ptr<Bytes> bytes, const std::string& label) {
  return std::make_unique<NpzFormat>(std::move(bytes), label);
}

}  // namespace normscope::io
