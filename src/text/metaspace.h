#pragma once
// SentencePiece writes spaces as ▁; as a pre-tokenizer and as a decoder it has the same settings.
#include "text/node.h"

namespace normscope::text {

struct Metaspace {
  enum class Prepend { always, first, never };

  char32_t replacement;
  Prepend prepend = Prepend::always;
  bool split;

  explicit Metaspace(const Node& node)
      : replacement(node.at("replacement").character()), split(node.boolean("split", true)) {
    const std::string scheme = node.string("prepend_scheme", "always");
    prepend = scheme == "first" ? Prepend::first : scheme == "never" ? Prepend::never : Prepend::always;
    if (prepend == Prepend::always && scheme != "always")
      node.fail("prepend_scheme is \"always\", \"first\" or \"never\"");
    // Older files have this instead.
    if (!node.boolean("add_prefix_space", true)) prepend = Prepend::never;
  }
};

}  // namespace normscope::text
