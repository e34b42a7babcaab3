#pragma once
// Files of a model's directory that are read whole.
#include <cstdint>
#include <filesystem>
#include <string>

namespace normscope::checkpoint {

inline constexpr std::uint64_t kLongestConfig = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kLongestIndex = std::uint64_t{1} << 26;
inline constexpr std::uint64_t kLongestTokenizer = std::uint64_t{1} << 28;

// Regular files only, links to them included: the cache of Hugging Face consists of links.
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// Throws InputError if there is no such file or it is longer than `most` bytes.
std::string read_small_file(const std::filesystem::path& path, std::uint64_t most);

}  // namespace normscope::checkpoint
