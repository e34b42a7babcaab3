#pragma once
// The inner part of the generic path: whole sequences, one after another.
#include <cstdint>
#include <span>
#include <vector>

#include "normscope/train.h"

namespace normscope {

template <class T>
struct GenericJob {
  const EncoderSpec* spec = nullptr;
  const SequenceSet* set = nullptr;
  std::span<const T> parameters;
  std::span<const T> mask;               // padded keys × padded queries, added to the scores; empty: full
  std::span<const std::uint32_t> batch;  // the sequences of this job
  double weight = 0;                     // of one position
};

struct GenericMeasure {
  double loss = 0, entropy = 0, distance = 0;  // weighted sums over positions
  double positions = 0, sequences = 0;         // right ones, counted
};

// Adds to `gradient` (one number per parameter) and returns the weighted loss.
double generic_gradient(const GenericJob<float>& job, std::span<double> gradient);
double generic_gradient(const GenericJob<double>& job, std::span<double> gradient);
GenericMeasure generic_measure(const GenericJob<float>& job);
GenericMeasure generic_measure(const GenericJob<double>& job);
// Logits of the job's sequences, classes × padded length each, one after another.
void generic_logits(const GenericJob<float>& job, std::span<float> logits);
void generic_logits(const GenericJob<double>& job, std::span<double> logits);

}  // namespace normscope
