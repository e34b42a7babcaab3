#pragma once
// Tokenizers that may be given a text in parts. GPT-2's and BERT's pieces never reach from a visible
// character over a space into what follows, so a text may be cut before the space without any id changing:
// what is known of a word holds wherever it is met.
#include <cstddef>
#include <string_view>

#include "text/node.h"

namespace normscope::text {

// Of a tokenizer.json, whose parts have been checked. Only what is known to be so is; any pattern of a file
// may look further.
bool never_looks_across_spaces(const Node& tokenizer);

// Where to cut off the first part: before the first space, tab or line break behind a visible character of
// ASCII, or before .,;:!? behind one of its letters; the whole text if there is none. Other characters do not
// count: some are white space themselves.
std::size_t local_cut(std::string_view text);

}  // namespace normscope::text
