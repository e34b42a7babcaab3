#pragma once
// Options as a person writes them: lists, ranges, places of tensors; numbers are in result/options.h. All throw
// InputError that names `what` (e.g. "--draws") and says what it takes.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result/options.h"

namespace normscope {

// A number that has been read, where the limits were not known before.
std::uint64_t require_count(std::uint64_t value, std::string_view what, std::uint64_t low,
                            std::uint64_t high);
// "7", "3,5,8", "3:60" or "3:60:5" (both ends included, as far as the step reaches): ascending, without
// duplicates, each from low to high, at most `limit` of them.
std::vector<std::size_t> parse_range(std::string_view text, std::string_view what, std::size_t low,
                                     std::size_t high, std::size_t limit);
// "FILE", or "FILE:NAME" for one tensor of an .npz or .safetensors file.
struct TensorPlace {
  std::string path;
  std::optional<std::string> tensor;
};
TensorPlace tensor_place(const std::string& text);
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace normscope
