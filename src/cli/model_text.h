#pragma once
// A text for a model, with its numbers as they were typed: for the command that has not yet become a study.
#include <string>

#include "cli/common.h"
#include "study/model_text.h"

namespace normscope::cli {

struct TextCall {
  std::string model, text, ids, window, stride, samples;
};

inline ModelText read_model_text(const Checkpoint& checkpoint, const TextCall& call) {
  TextOptions options{call.model, call.text, call.ids, {}, {}, 1};
  if (!call.window.empty()) options.window = parse_count(call.window, "--window", 1, Mask::most_tokens);
  if (!call.stride.empty()) options.stride = parse_count(call.stride, "--stride", 1, Mask::most_tokens);
  if (!call.samples.empty()) options.samples = parse_count(call.samples, "--samples", 1, 1'000'000);
  return normscope::read_model_text(checkpoint, options);
}

}  // namespace normscope::cli
