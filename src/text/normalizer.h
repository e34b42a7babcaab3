#pragma once
#include <memory>

#include "text/aligned_text.h"
#include "text/node.h"

namespace normscope::text {

// Rewrites text before it is cut into words: lower case, normal forms, spaces as ▁.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(AlignedText& text) const = 0;
};

std::unique_ptr<const Normalizer> make_normalizer(const Node& node);

}  // namespace normscope::text
