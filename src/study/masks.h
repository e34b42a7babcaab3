#pragma once
// Masks that options name: a family by name, or a file.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "normscope/mask.h"

namespace normscope {

// A spec is a family if every part of it has the name of one; otherwise it is a file if there is one of that
// name, if it is "-" (standard input), or if it holds a slash, or a dot and no colon.
bool names_mask_file(const std::string& spec);

// The masks that specs mean. n: the tokens; a file has its own, and another number than n is an InputError.
// Without n, families have as many as the first file, and without a file `otherwise`. Files, also
// FILE:TENSOR, may be united and intersected with + and & like families. seed: of random families. tensor:
// the name of the tensor to take from files that hold several.
std::vector<Mask> resolve_masks(const std::vector<std::string>& specs, std::optional<std::size_t> n,
                                std::size_t otherwise, std::uint64_t seed,
                                const std::optional<std::string>& tensor = std::nullopt);
// "full,causal": families separated by commas.
bool is_list_of_masks(const std::string& spec);

// The families by name, for help texts.
std::string mask_list();

}  // namespace normscope
