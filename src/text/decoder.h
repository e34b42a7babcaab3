#pragma once
#include <memory>
#include <string>
#include <vector>

#include "text/node.h"

namespace normscope::text {

// Makes text of tokens: what it returns is joined without spaces.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> apply(std::vector<std::string> tokens) const = 0;
};

std::unique_ptr<const Decoder> make_decoder(const Node& node);

}  // namespace normscope::text
