#pragma once
// Masks on the command line: a family by name, or a file.
#include <cstdint>
#include <optional>
#include <string>

#include "normscope/mask.h"

namespace normscope::cli {

// A spec is a family if every part of it has the name of one; otherwise it is a file if there is one of that
// name, if it is "-" (standard input), or if it holds a slash, or a dot and no colon.
bool names_mask_file(const std::string& spec);

// The mask a spec means. n: the tokens; a file has its own, and another number than n is an InputError. seed:
// of random families. tensor: the name of the tensor to take from a file that holds several.
Mask resolve_mask(const std::string& spec, std::optional<std::size_t> n, std::uint64_t seed,
                  const std::optional<std::string>& tensor = std::nullopt);

// The families by name, for help texts.
std::string mask_list();

}  // namespace normscope::cli
