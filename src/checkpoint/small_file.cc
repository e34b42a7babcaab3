#include "checkpoint/small_file.h"

#include <fmt/format.h>

#include <span>
#include <system_error>

#include "io/bytes.h"
#include "io/file_errors.h"

namespace normscope::checkpoint {

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string read_small_file(const std::filesystem::path& path, std::uint64_t most) {
  const std::string label = io::quoted_path(path.string());
  if (!is_file(path)) io::reject(label, "is not a file, or does not exist", "download the model again");
  const auto bytes = io::open_bytes(path.string(), most);
  if (bytes->size() > most)
    io::reject(label, fmt::format("has {} bytes, but at most {} are read", bytes->size(), most),
               "check that it is what its name says");
  std::string text(bytes->size(), '\0');
  bytes->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace normscope::checkpoint
