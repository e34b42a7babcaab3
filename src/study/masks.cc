#include "study/masks.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "io/mask_file.h"
#include "normscope/error.h"
#include "study/parse.h"

namespace normscope {
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

bool is_file(const std::string& name) {
  if (name == "-") return true;
  const std::string path = tensor_place(name).path;
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) || path.find('/') != std::string::npos ||
         (path.find('.') != std::string::npos && path.find(':') == std::string::npos);
}

// Reads files first: they say how many tokens there are, if nobody else has.
Mask read(const std::string& file, std::optional<std::size_t>& n, const std::optional<std::string>& tensor) {
  const TensorPlace place = tensor_place(file);
  Mask mask = io::read_mask_file(place.path, place.tensor ? place.tensor : tensor);
  if (n && *n != mask.n()) {
    throw InputError(
        fmt::format("The mask in '{}' has {} tokens, but {} were asked for; ask for {}, or take "
                    "another file.",
                    file, mask.n(), *n, mask.n()));
  }
  n = mask.n();
  return mask;
}

// A file, or files and families united and intersected.
Mask resolve(const std::string& spec, std::optional<std::size_t>& n, std::uint64_t seed,
             const std::optional<std::string>& tensor) {
  const auto terms = split(spec, '+');
  const bool combined = terms.size() > 1 || spec.find('&') != std::string::npos;
  std::error_code ignored;
  if (!combined || std::filesystem::exists(tensor_place(spec).path, ignored)) return read(spec, n, tensor);
  std::map<std::string_view, Mask> files;
  for (const std::string_view term : terms) {
    for (const std::string_view factor : split(term, '&')) {
      if (!is_family(factor) && is_file(std::string(factor)))
        files.emplace(factor, read(std::string(factor), n, tensor));
    }
  }
  std::optional<Mask> all;
  for (const std::string_view term : terms) {
    std::optional<Mask> product;
    for (const std::string_view factor : split(term, '&')) {
      const auto file = files.find(factor);
      const Mask mask = file != files.end() ? file->second : parse_mask(factor, n.value(), seed);
      product = product ? intersect(*product, mask) : mask;
    }
    all = all ? unite(*all, *product) : *product;
  }
  return *all;
}

}  // namespace

bool names_mask_file(const std::string& spec) {
  if (spec.empty() || is_made_of_families(spec)) return false;
  if (is_file(spec)) return true;
  for (const std::string_view term : split(spec, '+')) {
    for (const std::string_view factor : split(term, '&')) {
      if (!is_family(factor) && is_file(std::string(factor))) return true;
    }
  }
  return false;
}

std::vector<Mask> resolve_masks(const std::vector<std::string>& specs, std::optional<std::size_t> n,
                                std::size_t otherwise, std::uint64_t seed,
                                const std::optional<std::string>& tensor) {
  std::vector<Mask> masks(specs.size());
  std::optional<std::size_t> first = n;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (!names_mask_file(specs[k])) continue;
    std::optional<std::size_t> own = n;
    masks[k] = resolve(specs[k], own, seed, tensor);
    if (!first) first = own;
  }
  if (!first) first = otherwise;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (!names_mask_file(specs[k])) masks[k] = parse_mask(specs[k], *first, seed);
  }
  return masks;
}

bool is_list_of_masks(const std::string& spec) {
  const auto words = split(spec, ',');
  return words.size() > 1 && std::all_of(words.begin(), words.end(), [](std::string_view word) {
           return is_made_of_families(std::string(word));
         });
}

std::string mask_list() {
  std::string names;
  for (const std::string_view name : mask_names())
    names += fmt::format("{}{}", names.empty() ? "" : " ", name);
  return names;
}

}  // namespace normscope
