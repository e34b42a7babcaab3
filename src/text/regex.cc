#include "text/regex.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <array>
#include <mutex>

#include "normscope/error.h"

namespace normscope::text {
namespace {

// Patterns are short; what is longer is a trap for the compiler of patterns.
constexpr std::size_t longest_pattern = 16384;
// Steps back at one position of the text. White space at the end of a text needs as many as it has
// characters.
constexpr unsigned long fewest_retries = 10'000'000;

const OnigUChar* bytes(const char* text) {
  return reinterpret_cast<const OnigUChar*>(text);
}

std::string message(int code, OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> buffer{};
  const int size = info != nullptr ? onig_error_code_to_str(buffer.data(), code, info)
                                   : onig_error_code_to_str(buffer.data(), code);
  return {reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(std::max(size, 0))};
}

}  // namespace

struct Regex::Compiled {
  regex_t* regex = nullptr;
  std::string where;

  Compiled(std::string_view pattern, std::string_view read_where) : where(read_where) {
    static std::once_flag initialized;
    std::call_once(initialized, [] {
      OnigEncoding encoding = ONIG_ENCODING_UTF8;
      onig_initialize(&encoding, 1);
      onig_set_parse_depth_limit(256);
    });
    if (pattern.size() > longest_pattern)
      throw InputError(fmt::format("{}: a pattern of {} bytes; at most {} are read.", where, pattern.size(),
                                   longest_pattern));
    OnigErrorInfo info{};
    const int code = onig_new(&regex, bytes(pattern.data()), bytes(pattern.data() + pattern.size()),
                              ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
    if (code != ONIG_NORMAL)
      throw InputError(fmt::format("{}: not a regular expression: {}.", where, message(code, &info)));
  }
  ~Compiled() { onig_free(regex); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
};

Regex::Regex(std::string_view pattern, std::string_view where)
    : compiled_(std::make_shared<const Compiled>(pattern, where)) {}

std::vector<Match> Regex::find(std::string_view valid) const {
  std::vector<Match> parts;
  const std::unique_ptr<OnigMatchParam, decltype(&onig_free_match_param)> limits(onig_new_match_param(),
                                                                                 &onig_free_match_param);
  onig_initialize_match_param(limits.get());
  onig_set_retry_limit_in_match_of_match_param(limits.get(), std::max(fewest_retries, 8UL * valid.size()));
  const auto free_region = [](OnigRegion* region) { onig_region_free(region, 1); };
  const std::unique_ptr<OnigRegion, decltype(free_region)> region(onig_region_new(), free_region);

  const OnigUChar* text = bytes(valid.data());
  const OnigUChar* end = text + valid.size();
  std::size_t from = 0, between = 0;
  bool matched = false;  // up to `between`
  while (from <= valid.size()) {
    const int found = onig_search_with_param(compiled_->regex, text, end, text + from, end, region.get(),
                                             ONIG_OPTION_NONE, limits.get());
    if (found == ONIG_MISMATCH) break;
    if (found < 0)
      throw InputError(fmt::format("{}: the pattern does not come to an end on this text: {}.",
                                   compiled_->where, message(found, nullptr)));
    const auto match_begin = static_cast<std::size_t>(region->beg[0]);
    const auto match_end = static_cast<std::size_t>(region->end[0]);
    if (match_begin == match_end && matched && match_end == between) {
      // Empty, and right behind the last match: go on with the next character.
      if (from >= valid.size()) break;
      next_character(valid, from);
      continue;
    }
    if (between < match_begin) parts.push_back({between, match_begin, false});
    parts.push_back({match_begin, match_end, true});
    from = between = match_end;
    matched = true;
  }
  if (between < valid.size()) parts.push_back({between, valid.size(), false});
  return parts;
}

}  // namespace normscope::text
