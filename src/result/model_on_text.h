#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace normscope {

// What a page says of the model and the text it is about.
struct ModelOnText {
  std::string model, family, text;  // names, for people
  std::size_t layers = 0, heads = 0, width = 0, head_width = 0;
  std::size_t windows = 0, tokens = 0;  // tokens of all windows, special ones included
  std::vector<std::string> notes;
};

}  // namespace normscope
