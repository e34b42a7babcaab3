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
  std::span<const T> mask;               // added_mask
  std::span<const std::uint32_t> batch;  // the sequences of this job
  double weight = 0;                     // of one position
};

struct GenericMeasure {
  double loss = 0, entropy = 0, distance = 0;  // weighted sums over positions
  double positions = 0, sequences = 0;         // right ones, counted
};

// What a mask adds to the scores, keys × padded queries: 0, or so little that the weight is exactly 0. Empty:
// the full mask.
template <class T>
std::vector<T> added_mask(const std::string& name, std::size_t length);

// Compiled for the instruction set of this machine.
template <class T>
struct GenericKernels {
  // Adds to `gradient` (one number per parameter) and returns the weighted loss.
  double (*gradient)(const GenericJob<T>& job, std::span<double> gradient);
  GenericMeasure (*measure)(const GenericJob<T>& job);
  // Logits of the job's sequences, classes × padded length each, one after another.
  void (*logits)(const GenericJob<T>& job, std::span<T> logits);
  // Adds to each of the layers + 1 sums the μ/‖X‖ of every sequence.
  void (*spread)(const GenericJob<T>& job, std::span<double> sums);
};
template <class T>
GenericKernels<T> generic_kernels();

}  // namespace normscope
