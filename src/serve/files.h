#pragma once
// Files below a directory that strangers may have filled, opened for reading only. A path is walked name by
// name from the directory on, and no link is followed on the way, not even one that stays inside: there is no
// moment between a check and its use in which something could be exchanged, it is plain POSIX, and no sandbox
// forbids it as some do openat2(RESOLVE_BENEATH). The directory itself is the user's word and may be a link.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::serve {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  int number() const { return number_; }

 private:
  int number_;
};

// A regular file.
struct File {
  Descriptor descriptor;
  std::uint64_t size = 0;
  std::int64_t changed = 0;  // seconds since 1970
  // Fewer bytes only at the end of the file, or where it cannot be read.
  std::string read(std::uint64_t from, std::size_t most) const;
};

class Folder {
 public:
  static std::optional<Folder> open(const std::filesystem::path& root, std::span<const std::string> names);
  std::optional<Folder> folder(const std::string& name) const;
  std::optional<File> file(const std::string& name) const;
  // Plain names (serve/request.h) of what is in it, sorted, at most so many.
  std::vector<std::string> names(std::size_t most) const;

 private:
  explicit Folder(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

// None if it is missing, larger than `most`, not JSON, or nested deeper than 64, which would overflow the
// stack of those who walk it.
std::optional<nlohmann::ordered_json> read_json(const Folder& folder, const std::string& name,
                                                std::size_t most);
std::optional<nlohmann::ordered_json> parse_json(std::string_view text);

// The type of a file a run may have, and of a file of the page; empty: it is not given out.
std::string_view run_file_type(std::string_view name);
std::string_view page_file_type(std::string_view name);

}  // namespace normscope::serve
