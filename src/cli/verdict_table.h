#pragma once
#include <cstddef>
#include <string>

#include "normscope/keys.h"

namespace normscope::cli {

// Keys, or tokens, by verdict: how many, their share, and how many of the verdicts are robust. what: the heading above
// their numbers; digits: of a share.
std::string verdict_table(const KeyCounts& all, const KeyCounts& robust, const char* what, int digits);

}  // namespace normscope::cli
