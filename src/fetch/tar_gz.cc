#include "fetch/tar_gz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "io/sentence.h"

namespace normscope::fetch {
namespace {

constexpr std::size_t kBlock = 512, kLongestExtension = 1 << 16, kLongestName = 1024;

// The unpacked bytes, one after the other, at most `total` of them.
class Inflater {
 public:
  Inflater(const io::Bytes& archive, const std::string& label, std::uint64_t total)
      : archive_(archive), label_(label), left_(total), input_(1 << 16) {
    constexpr int kGzip = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  void read(std::span<std::byte> into) {
    while (!into.empty()) {
      const std::size_t got = read_some(into);
      if (got == 0) reject_damaged("it ends too early");
      into = into.subspan(got);
    }
  }

  // Up to the end, where gzip's own checksum is; nothing but zeros may come.
  void read_padding() {
    std::array<std::byte, kBlock> zeros;
    while (const std::size_t got = read_some(zeros)) {
      if (std::any_of(zeros.begin(), zeros.begin() + got, [](std::byte b) { return b != std::byte{0}; }))
        reject_damaged("something follows its end");
    }
  }

  [[noreturn]] void reject_damaged(std::string_view why) const {
    io::reject(label_, fmt::format("is a damaged or truncated .tar.gz ({})", why), "fetch it again");
  }

 private:
  // At least one byte, or 0 at the end. gzip allows one compressed stream after the other.
  std::size_t read_some(std::span<std::byte> into) {
    const std::size_t room = std::min<std::size_t>(into.size(), 1 << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(room);
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0 && !refill()) {
        if (ended_) return 0;
        reject_damaged("it ends too early");
      }
      if (ended_) inflateReset(&stream_);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      ended_ = status == Z_STREAM_END;
      if (status != Z_OK && !ended_) reject_damaged("its compressed data are wrong");
    }
    const std::size_t got = room - stream_.avail_out;
    if (got > left_)
      io::reject(label_, "unpacks to more bytes than any package of ours",
                 "it is not what it should be; fetch it again");
    left_ -= got;
    return got;
  }

  bool refill() {
    const std::uint64_t now = std::min<std::uint64_t>(input_.size(), archive_.size() - position_);
    archive_.read(position_, std::span(input_).first(now));
    position_ += now;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(now);
    return now > 0;
  }

  const io::Bytes& archive_;
  const std::string& label_;
  std::uint64_t left_, position_ = 0;
  std::vector<std::byte> input_;
  z_stream stream_{};
  bool ended_ = false;  // the present compressed stream
};

using Header = std::array<std::byte, kBlock>;

std::string_view field(const Header& header, std::size_t begin, std::size_t size) {
  const std::string_view whole(reinterpret_cast<const char*>(header.data()) + begin, size);
  return whole.substr(0, whole.find('\0'));
}

// Octal digits between spaces and zeros; other ways to write numbers are for files larger than we take.
std::optional<std::uint64_t> octal(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool checksum_holds(const Header& header) {
  constexpr std::size_t kBegin = 148, kSize = 8;
  std::uint64_t sum = kSize * ' ';
  for (std::size_t i = 0; i < kBlock; ++i)
    if (i < kBegin || i >= kBegin + kSize) sum += std::to_integer<std::uint64_t>(header[i]);
  return octal(field(header, kBegin, kSize)) == sum;
}

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
      : label_(label), limits_(limits), bytes_(archive, label, limits.total) {}

  void read(const TarVisitor& visit) {
    for (std::size_t entry = 0; next_header(); ++entry) {
      if (entry == limits_.entries)
        io::reject(label_, fmt::format("holds more than {} entries", limits_.entries), "fetch it again");
      if (!checksum_holds(header_)) bytes_.reject_damaged("the checksum of an entry is wrong");
      read_entry(std::to_integer<char>(header_[156]), visit);
    }
    bytes_.read_padding();
  }

 private:
  // False at the end of the archive: two blocks of zeros.
  bool next_header() {
    const auto is_zero = [&] {
      return std::all_of(header_.begin(), header_.end(), [](std::byte b) { return b == std::byte{0}; });
    };
    bytes_.read(header_);
    if (!is_zero()) return true;
    bytes_.read(header_);
    if (!is_zero()) bytes_.reject_damaged("something follows its end");
    return false;
  }

  void read_entry(char type, const TarVisitor& visit) {
    const auto declared = octal(field(header_, 124, 12));
    if (!declared) bytes_.reject_damaged("the size of an entry is no number");
    switch (type) {
      case 'x':  // pax: more about the next entry
        return read_extension(*declared);
      case 'g':  // pax: more about all entries, of which none concerns us
        read_short(*declared);
        return;
      case 'L':  // GNU: the name of the next entry
        long_name_ = read_short(*declared);
        long_name_->erase(std::min(long_name_->find('\0'), long_name_->size()));
        return;
      case '0':
      case '\0':
      case '5':
        return read_file(*declared, type == '5', visit);
      default:
        io::reject(label_,
                   fmt::format("holds {}, which is neither a file nor a directory", io::quoted_name(name())),
                   "it is not what it should be; fetch it again");
    }
  }

  std::string name() const {
    if (long_name_) return *long_name_;
    const std::string rest(field(header_, 0, 100));
    const std::string_view prefix =
        field(header_, 257, 6).starts_with("ustar") ? field(header_, 345, 155) : std::string_view();
    return prefix.empty() ? rest : std::string(prefix) + "/" + rest;
  }

  void read_file(std::uint64_t declared, bool directory, const TarVisitor& visit) {
    std::string path = name();
    const std::uint64_t size = long_size_.value_or(declared);
    long_name_.reset();
    long_size_.reset();
    if (directory && path.ends_with('/')) path.pop_back();
    if (!is_safe_name(path))
      io::reject(label_,
                 fmt::format("holds a file of the name {}, which leads elsewhere", io::quoted_name(path)),
                 "it is not what it should be; fetch it again");
    if (size > limits_.file || (directory && size > 0))
      io::reject(label_, fmt::format("claims {} bytes for {}", size, io::quoted_name(path)),
                 "it is not what it should be; fetch it again");
    std::uint64_t left = size;
    const io::ByteStream content{size, [&](std::span<std::byte> into) {
                                   if (into.size() > left) bytes_.reject_damaged("a file in it is too short");
                                   bytes_.read(into);
                                   left -= into.size();
                                 }};
    if (!directory) visit(path, content);
    skip(left + (kBlock - size % kBlock) % kBlock);
  }

  void skip(std::uint64_t count) {
    std::array<std::byte, 1 << 14> passed;
    while (count > 0) {
      const std::size_t now = std::min<std::uint64_t>(count, passed.size());
      bytes_.read(std::span(passed).first(now));
      count -= now;
    }
  }

  std::string read_short(std::uint64_t size) {
    if (size > kLongestExtension) bytes_.reject_damaged("a header in it is too long");
    std::string text(size, '\0');
    bytes_.read(std::as_writable_bytes(std::span(text)));
    skip((kBlock - size % kBlock) % kBlock);
    return text;
  }

  // Records "27 path=…\n", the number being the length of the record.
  void read_extension(std::uint64_t size) {
    const std::string text = read_short(size);
    std::string_view left = text;
    while (!left.empty()) {
      std::size_t length = 0;
      const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), length);
      const std::size_t begin = static_cast<std::size_t>(end - left.data()) + 1;
      if (error != std::errc() || length > left.size() || length <= begin || left[begin - 1] != ' ' ||
          left[length - 1] != '\n')
        bytes_.reject_damaged("an extended header in it is wrong");
      take_record(left.substr(begin, length - begin - 1));
      left.remove_prefix(length);
    }
  }

  void take_record(std::string_view record) {
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) bytes_.reject_damaged("an extended header in it is wrong");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") long_name_ = std::string(value);
    if (key != "size") return;
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || end != value.data() + value.size())
      bytes_.reject_damaged("the size of an entry is no number");
    long_size_ = size;
  }

  const std::string& label_;
  const TarLimits& limits_;
  Inflater bytes_;
  Header header_{};
  std::optional<std::string> long_name_;  // of the next entry
  std::optional<std::uint64_t> long_size_;
};

}  // namespace

void read_tar_gz(const io::Bytes& archive, const std::string& label, const TarLimits& limits,
                 const TarVisitor& visit) {
  Reader(archive, label, limits).read(visit);
}

}  // namespace normscope::fetch
