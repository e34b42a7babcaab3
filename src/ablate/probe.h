#pragma once
// The probe of sharp retrieval: prompts whose answer stands in them once before.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "normscope/ablate.h"
#include "normscope/model.h"

namespace normscope {

// The row of final tokens whose logits answer, and the id that is right.
struct ProbeQuestion {
  std::size_t row = 0;
  std::uint32_t target = 0;
};

struct Prompt {
  std::vector<std::uint32_t> ids;
  std::vector<ProbeQuestion> questions;
  std::vector<ProbeQuestion> first;   // the same kind of question where nothing can be retrieved
  std::vector<std::uint32_t> offers;  // ids among which `choice` chooses
  // Of each token of a second copy, the token to be found; none: not asked.
  std::vector<std::optional<std::size_t>> finds;
};

struct Probe {
  std::size_t length = 0;  // m; 0: the model or its vocabulary is too small, and there are no prompts
  bool from_vocabulary = true;
  std::vector<Prompt> copy, lookup;
};

// The k-th prompt depends on the seed and k only.
Probe make_probe(const ModelSpec& spec, const AblateSettings& settings);

struct Answers {
  double loss = 0, accuracy = 0, choice = 0;  // means over the questions
};
// tokens: after the last layer and the final norm, n × d. At least one question.
Answers answer(const ModelSpec& spec, const HeadWeights& head, MatrixView<const float> tokens,
               std::span<const ProbeQuestion> questions, std::span<const std::uint32_t> offers);

// The chance that a token picked at random, not the query itself, is the one to be found; mean over queries.
double chance_of_finding(const ModelSpec& spec, const Prompt& prompt);

}  // namespace normscope
