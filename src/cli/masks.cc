#include "cli/masks.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "cli/common.h"
#include "io/mask_file.h"
#include "normscope/error.h"

namespace normscope::cli {
namespace {

bool is_family(std::string_view word) {
  const auto family = [](std::string_view name) { return name.substr(0, name.find(':')); };
  while (word.starts_with(' ')) word.remove_prefix(1);
  while (word.ends_with(' ')) word.remove_suffix(1);
  const auto names = mask_names();
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return family(name) == family(word); });
}

bool is_made_of_families(const std::string& spec) {
  for (const std::string_view term : split(spec, '+')) {
    for (const std::string_view factor : split(term, '&')) {
      if (!is_family(factor)) return false;
    }
  }
  return true;
}

}  // namespace

bool names_mask_file(const std::string& spec) {
  if (spec == "-") return true;
  if (spec.empty() || is_made_of_families(spec)) return false;
  std::error_code ignored;
  if (std::filesystem::exists(spec, ignored)) return true;
  const auto has = [&](char c) { return spec.find(c) != std::string::npos; };
  return has('/') || (has('.') && !has(':'));
}

Mask resolve_mask(const std::string& spec, std::optional<std::size_t> n, std::uint64_t seed,
                  const std::optional<std::string>& tensor) {
  if (!names_mask_file(spec)) {
    if (!n) throw InputError(fmt::format("Mask '{}' needs a number of tokens; give --n.", spec));
    return parse_mask(spec, *n, seed);
  }
  Mask mask = io::read_mask_file(spec, tensor);
  if (n && *n != mask.n()) {
    throw InputError(
        fmt::format("The mask in '{}' has {} tokens, but {} were asked for; ask for {}, or take "
                    "another file.",
                    spec, mask.n(), *n, mask.n()));
  }
  return mask;
}

std::string mask_list() {
  std::string names;
  for (const std::string_view name : mask_names())
    names += fmt::format("{}{}", names.empty() ? "" : " ", name);
  return names;
}

}  // namespace normscope::cli
