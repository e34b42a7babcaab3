// Masks by name: unions of intersections of families.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/read_number.h"
#include "core/spelling.h"
#include "normscope/error.h"
#include "normscope/mask.h"
#include "normscope/random.h"

namespace normscope {
namespace {

using Run = Mask::Run;
using Runs = std::vector<Run>;

constexpr std::array<std::string_view, 13> kNames = {
    "full",     "causal",   "window:w", "onesided:w", "prefix:k", "dilated:w,s",  "strided:s",
    "global:g", "random:p", "block:b",  "star",       "self",     "global+window"};

std::string_view family_of(std::string_view name) {
  return name.substr(0, name.find(':'));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

[[noreturn]] void throw_unknown(std::string_view name) {
  std::vector<std::string> families;
  std::string offered;
  for (const std::string_view known : kNames) {
    if (known.find('+') == std::string_view::npos) families.emplace_back(family_of(known));
    offered.append(offered.empty() ? "" : ", ").append(known);
  }
  if (name.empty()) {
    throw InputError(fmt::format(
        "A mask, or a part of one beside + or &, has no name; there are {}, unions a+b and intersections a&b.",
        offered));
  }
  const auto meant = nearest_spelling(family_of(name), families);
  throw InputError(fmt::format("Mask '{}' is not known{}; there are {}, unions a+b and intersections a&b.",
                               name, meant ? fmt::format(" (did you mean '{}'?)", *meant) : "", offered));
}

[[noreturn]] void throw_numbers(std::string_view name, std::string_view form, const std::string& expected) {
  throw InputError(fmt::format("Mask '{}' is not of the form {}: {}.", name, form, expected));
}

Run run(std::uint64_t first, std::uint64_t last) {
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)};
}

// One family with its numbers, for n tokens.
class Family {
 public:
  // draw: how many `random` stand before this one in the name.
  Family(std::string_view name, std::size_t n, std::uint64_t seed, std::uint64_t draw)
      : name_(name), n_(n), seed_(seed), draw_(draw) {
    const std::size_t colon = name.find(':');
    if (colon != std::string_view::npos) numbers_ = parts_of(name.substr(colon + 1), ',');
  }

  Mask mask() const {
    const std::string_view family = family_of(name_);
    if (family == "full") return full();
    if (family == "causal") return causal();
    if (family == "window") return window();
    if (family == "onesided") return onesided();
    if (family == "prefix") return prefix();
    if (family == "dilated") return dilated();
    if (family == "strided") return strided();
    if (family == "global") return global();
    if (family == "random") return random();
    if (family == "block") return block();
    if (family == "star") return star();
    if (family == "self") return self();
    throw_unknown(name_);
  }

 private:
  void require_count(std::size_t count, std::string_view form) const {
    if (numbers_.size() == count) return;
    const std::string_view kind = count == 0 ? "no number" : count == 1 ? "one number" : "two numbers";
    throw_numbers(name_, form, fmt::format("it takes {}", kind));
  }
  std::uint64_t whole(std::size_t k, std::string_view form, std::uint64_t low,
                      std::uint64_t high = UINT64_MAX) const {
    const auto value = read_number<std::uint64_t>(numbers_[k]);
    const char letter = form[form.find(':') + 1 + 2 * k];
    if (!value || *value < low || *value > high) {
      const std::string most = high == UINT64_MAX ? "" : fmt::format(" and at most {}, the tokens", high);
      throw_numbers(name_, form, fmt::format("{} is a whole number of at least {}{}", letter, low, most));
    }
    return *value;
  }
  // Said before gigabytes are filled; from_rows counts again, exactly.
  void require_runs(double expected) const {
    if (expected <= 1.01 * static_cast<double>(Mask::most_runs)) return;
    throw InputError(
        fmt::format("Mask '{}' of {} tokens is too large: it has about {:.2g} runs of neighbouring tokens, "
                    "and at most {} are possible; take fewer tokens or other numbers.",
                    name_, n_, expected, Mask::most_runs));
  }
  template <class Fill>
  Mask rows(Fill fill) const {
    return Mask::from_rows(n_, [&](std::size_t i, Runs& runs) { fill(i, runs); });
  }

  Mask full() const {
    require_count(0, "full");
    return rows([&](std::size_t, Runs& runs) { runs.push_back(run(0, n_)); });
  }
  Mask causal() const {
    require_count(0, "causal");
    return rows([](std::size_t i, Runs& runs) { runs.push_back(run(0, i + 1)); });
  }
  Mask self() const {
    require_count(0, "self");
    return rows([](std::size_t i, Runs& runs) { runs.push_back(run(i, i + 1)); });
  }
  Mask window() const {
    require_count(1, "window:w");
    const std::uint64_t w = std::min<std::uint64_t>(whole(0, "window:w", 0), n_);
    return rows([w](std::size_t i, Runs& runs) {
      runs.push_back(run(i - std::min<std::uint64_t>(i, w), i + w + 1));
    });
  }
  Mask onesided() const {
    require_count(1, "onesided:w");
    const std::uint64_t w = std::min<std::uint64_t>(whole(0, "onesided:w", 0), n_);
    return rows(
        [w](std::size_t i, Runs& runs) { runs.push_back(run(i - std::min<std::uint64_t>(i, w), i + 1)); });
  }
  Mask prefix() const {
    require_count(1, "prefix:k");
    const std::uint64_t k = whole(0, "prefix:k", 0, n_);
    return rows(
        [k](std::size_t i, Runs& runs) { runs.push_back(run(0, std::max<std::uint64_t>(k, i + 1))); });
  }
  Mask block() const {
    require_count(1, "block:b");
    const std::uint64_t b = std::min<std::uint64_t>(whole(0, "block:b", 1), n_);
    return rows([b](std::size_t i, Runs& runs) { runs.push_back(run(i / b * b, i / b * b + b)); });
  }
  Mask dilated() const {
    require_count(2, "dilated:w,s");
    const std::uint64_t w = std::min<std::uint64_t>(whole(0, "dilated:w,s", 0), n_);
    const std::uint64_t s = std::min<std::uint64_t>(whole(1, "dilated:w,s", 1), n_);
    const auto n = static_cast<double>(n_);
    if (s > 1) require_runs(n * std::min(static_cast<double>(w), n / static_cast<double>(s) / 2));
    return rows([this, w, s](std::size_t i, Runs& runs) {
      const std::uint64_t end = std::min<std::uint64_t>(n_, i + w * s + 1);
      for (std::uint64_t j = i - s * std::min(w, i / s); j < end; j += s) runs.push_back(run(j, j + 1));
    });
  }
  Mask strided() const {
    require_count(1, "strided:s");
    const std::uint64_t s = std::min<std::uint64_t>(whole(0, "strided:s", 1), n_);
    if (s > 1) require_runs(static_cast<double>(n_) * static_cast<double>(n_) / static_cast<double>(2 * s));
    return rows([s](std::size_t i, Runs& runs) {
      if (s == 1) return runs.push_back(run(0, i + 1));
      for (std::uint64_t j = i % s; j < i; j += s) runs.push_back(run(j, j + 1));
      runs.push_back(run(i - std::min<std::uint64_t>(i, s - 1), i + 1));
    });
  }
  Mask star() const {
    require_count(0, "star");
    return global(1);
  }
  Mask global() const {
    require_count(1, "global:g");
    return global(whole(0, "global:g", 1, n_));
  }
  Mask global(std::uint64_t g) const {
    return rows([this, g](std::size_t i, Runs& runs) {
      runs.push_back(run(0, i < g ? n_ : g));
      runs.push_back(run(i, i + 1));
    });
  }

  // Gaps between two edges are geometric, so that the work grows with the edges and not with n².
  Mask random() const {
    require_count(1, "random:p");
    const double p = read_number<double>(numbers_[0]).value_or(-1);
    if (!(p >= 0 && p <= 1)) throw_numbers(name_, "random:p", "p is a probability from 0 to 1");
    if (p == 0) return rows([](std::size_t i, Runs& runs) { runs.push_back(run(i, i + 1)); });
    if (p == 1) return rows([&](std::size_t, Runs& runs) { runs.push_back(run(0, n_)); });
    require_runs(static_cast<double>(n_) * static_cast<double>(n_) * p * (1 - p));
    const double scale = 1 / std::log1p(-p);
    return rows([this, scale](std::size_t i, Runs& runs) {
      // Streams of their own: "mask", the draw, the row.
      Random numbers(seed_, 0x6d61736b00000000u + (draw_ << 24) + i);
      double j = -1;  // as a double, gaps beyond any row need no care
      for (;;) {
        j += 1 + std::floor(std::log1p(-numbers.uniform()) * scale);
        if (!(j < static_cast<double>(n_))) break;
        const auto token = static_cast<std::uint32_t>(j);
        if (!runs.empty() && runs.back().last == token) {
          ++runs.back().last;
        } else {
          runs.push_back({token, token + 1});
        }
      }
      runs.push_back(run(i, i + 1));
    });
  }

  std::string_view name_;
  std::size_t n_;
  std::uint64_t seed_, draw_;
  std::vector<std::string_view> numbers_;
};

// `global+window`, without numbers, stands for both with 1.
void expand_alias(std::vector<std::string_view>& terms) {
  for (std::size_t k = 0; k + 1 < terms.size(); ++k) {
    if (terms[k] != "global" || terms[k + 1] != "window") continue;
    terms[k] = "global:1";
    terms[k + 1] = "window:1";
  }
}

}  // namespace

std::span<const std::string_view> mask_names() {
  return kNames;
}

Mask parse_mask(std::string_view name, std::size_t n, std::uint64_t seed) {
  if (n == 0 || n > Mask::most_tokens) {
    throw InputError(fmt::format("A mask has from 1 to {} tokens, not {}.", Mask::most_tokens, n));
  }
  std::vector<std::string_view> terms = parts_of(name, '+');
  expand_alias(terms);
  Mask all;
  std::uint64_t draws = 0;
  for (const std::string_view term : terms) {
    Mask common;
    for (const std::string_view factor : parts_of(term, '&')) {
      Mask mask = Family(factor, n, seed, draws).mask();
      draws += family_of(factor) == "random";
      common = common.n() == 0 ? std::move(mask) : intersect(common, mask);
    }
    all = all.n() == 0 ? std::move(common) : unite(all, common);
  }
  return all;
}

}  // namespace normscope
