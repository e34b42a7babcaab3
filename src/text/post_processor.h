#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/node.h"

namespace normscope::text {

struct EncodedToken {
  std::uint32_t id = 0;
  // Characters of the original; the reference library counts white space to be trimmed in them.
  std::size_t begin = 0, end = 0;
  std::string_view text;
  bool special = false;  // put there by the post-processor, or a special token that was written in the text
};

// A part of the result: a text, or what was put around it.
using Encoded = std::vector<EncodedToken>;

// Adds the tokens a model expects around a text, and trims offsets.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  virtual void apply(std::vector<Encoded>& parts, bool add_special_tokens) const = 0;
  // Whether it adds tokens; one that does is enough.
  virtual bool adds_tokens() const { return false; }
};

std::unique_ptr<const PostProcessor> make_post_processor(const Node& node);

}  // namespace normscope::text
