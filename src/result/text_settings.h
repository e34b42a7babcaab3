#pragma once
// What was read by a trained model, as the settings of its studies say.
#include <cstddef>
#include <string>

#include "result/describe.h"

namespace normscope {

struct TextSettings {
  std::string model, text;
  std::size_t window = 0, stride = 0, windows = 0;

  static void describe(auto& visit, auto& self) {
    visit("model", self.model, "as given");
    visit("text", self.text, "the file of the text or of its token ids, as given");
    visit("window", self.window, "tokens read at once, at most");
    visit("stride", self.stride, "tokens from the beginning of a window to that of the next");
    visit("windows", self.windows, "read");
  }
};

}  // namespace normscope
