#include "serve/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "serve/request.h"

namespace normscope::serve {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr std::size_t kDeepestJson = 64;

struct Kind {
  std::string_view ending, type;
};
// Whole names first: a page or JSON of another name is not part of a run.
constexpr Kind kRunFiles[] = {{"config.json", "application/json"},
                              {"results.json", "application/json"},
                              {"report.html", "text/html; charset=utf-8"},
                              {"metrics.jsonl", "application/x-ndjson"}};
constexpr Kind kRunEndings[] = {{".csv", "text/csv; charset=utf-8"},
                                {".svg", "image/svg+xml"},
                                {".npy", "application/octet-stream"},
                                {".safetensors", "application/octet-stream"}};
constexpr Kind kPageEndings[] = {{".html", "text/html; charset=utf-8"},
                                 {".js", "text/javascript; charset=utf-8"},
                                 {".mjs", "text/javascript; charset=utf-8"},
                                 {".css", "text/css; charset=utf-8"},
                                 {".wasm", "application/wasm"},
                                 {".json", "application/json"},
                                 {".svg", "image/svg+xml"},
                                 {".png", "image/png"},
                                 {".ico", "image/x-icon"},
                                 {".woff2", "font/woff2"},
                                 {".txt", "text/plain; charset=utf-8"},
                                 {".csv", "text/csv; charset=utf-8"},
                                 {".map", "application/json"},
                                 {".npy", "application/octet-stream"},
                                 {".npz", "application/octet-stream"},
                                 {".safetensors", "application/octet-stream"}};

std::string_view type_by_ending(std::string_view name, std::span<const Kind> kinds) {
  for (const Kind& kind : kinds) {
    if (name.ends_with(kind.ending) && name.size() > kind.ending.size()) return kind.type;
  }
  return "";
}

bool too_deep(std::string_view json) {
  std::size_t depth = 0;
  bool text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (text) {
      if (c == '\\') ++i;
      text = c != '"';
    } else if (c == '"') {
      text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

std::string File::read(std::uint64_t from, std::size_t most) const {
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(most, size > from ? size - from : 0)),
                    '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more =
        ::pread(descriptor.number(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(from + got));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    got += static_cast<std::size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

std::optional<Folder> Folder::open(const std::filesystem::path& root, std::span<const std::string> names) {
  Descriptor start(::open(root.c_str(), kFolder));
  if (start.number() < 0) return std::nullopt;
  std::optional<Folder> folder = Folder(std::move(start));
  for (const std::string& name : names) {
    if (folder) folder = folder->folder(name);
  }
  return folder;
}

std::optional<Folder> Folder::folder(const std::string& name) const {
  if (!plain_name(name)) return std::nullopt;
  Descriptor inner(::openat(descriptor_.number(), name.c_str(), kFolder | O_NOFOLLOW));
  if (inner.number() < 0) return std::nullopt;
  return Folder(std::move(inner));
}

std::optional<File> Folder::file(const std::string& name) const {
  if (!plain_name(name)) return std::nullopt;
  // A pipe of that name must not hold us up.
  Descriptor opened(::openat(descriptor_.number(), name.c_str(),
                             O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (opened.number() < 0 || ::fstat(opened.number(), &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  return File{std::move(opened), static_cast<std::uint64_t>(status.st_size), status.st_mtime};
}

std::vector<std::string> Folder::names(std::size_t most) const {
  std::vector<std::string> found;
  const int again =
      ::openat(descriptor_.number(), ".", kFolder);  // a reader of a directory owns its descriptor
  if (again < 0) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> reader(::fdopendir(again), ::closedir);
  if (!reader) {
    ::close(again);
    return found;
  }
  while (const dirent* entry = ::readdir(reader.get())) {
    if (found.size() == most) break;
    if (plain_name(entry->d_name)) found.emplace_back(entry->d_name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<nlohmann::ordered_json> parse_json(std::string_view text) {
  if (too_deep(text)) return std::nullopt;
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::optional<nlohmann::ordered_json> read_json(const Folder& folder, const std::string& name,
                                                std::size_t most) {
  const auto file = folder.file(name);
  if (!file || file->size > most) return std::nullopt;
  return parse_json(file->read(0, most));
}

std::string_view run_file_type(std::string_view name) {
  for (const Kind& kind : kRunFiles) {
    if (name == kind.ending) return kind.type;
  }
  return type_by_ending(name, kRunEndings);
}

std::string_view page_file_type(std::string_view name) {
  return type_by_ending(name, kPageEndings);
}

}  // namespace normscope::serve
