// Sequences of the majority task.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "normscope/error.h"
#include "normscope/majority.h"
#include "normscope/random.h"

namespace normscope {
namespace {

// Streams of the data's seed.
constexpr std::uint64_t kPartitions = 11, kAssignments = 12, kSplit = 13;
constexpr std::size_t kMostSamples = 10'000'000, kMostTokens = 2'000'000'000, kLongest = 10'000;

template <class T>
void shuffle(std::span<T> values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

bool single_parts_only(const MajorityTask& task) {
  return task.classes == 1 || task.length <= 2;
}

// Partitions with ascending parts, the last exceeding the one before by the margin. A part that is not the
// last is tried only if the rest can still end so; what this leaves out has no partition below it that would
// be kept.
class Partitions {
 public:
  Partitions(const MajorityTask& task, std::uint64_t seed) : task_(task), random_(seed, kPartitions) {}

  std::vector<std::uint16_t> next() {
    if (single_parts_only(task_)) return {static_cast<std::uint16_t>(task_.length)};
    for (;;) {
      if (levels_.empty()) levels_.push_back(choices(1, task_.length, task_.classes));
      Level& level = levels_.back();
      if (level.choices.empty()) {
        levels_.pop_back();
        if (!parts_.empty()) parts_.pop_back();
        continue;
      }
      const std::uint16_t part = level.choices.back();
      level.choices.pop_back();
      if (part == level.rest) {
        std::vector<std::uint16_t> whole = parts_;
        whole.push_back(part);
        return whole;
      }
      const std::size_t rest = level.rest - part, slots = level.slots - 1;
      parts_.push_back(part);
      levels_.push_back(choices(part, rest, slots));
    }
  }

 private:
  struct Level {
    std::size_t rest, slots;             // still to be shared out, over this many parts
    std::vector<std::uint16_t> choices;  // not yet tried, from the back
  };

  Level choices(std::size_t least, std::size_t rest, std::size_t slots) {
    Level level{rest, slots, {}};
    for (std::size_t part = least; slots > 1 && 2 * part + task_.margin <= rest && part < rest; ++part) {
      level.choices.push_back(static_cast<std::uint16_t>(part));
    }
    // The last part, unless it would be the only one.
    if (!levels_.empty() && rest >= least + task_.margin)
      level.choices.push_back(static_cast<std::uint16_t>(rest));
    shuffle(std::span(level.choices), random_);
    return level;
  }

  MajorityTask task_;
  Random random_;
  std::vector<std::uint16_t> parts_;
  std::vector<Level> levels_;
};

// How many of each class go to the test set: a fifth of each, whole numbers that add up to a fifth of all.
std::vector<std::size_t> test_shares(const std::vector<std::vector<std::uint32_t>>& by_label,
                                     std::size_t samples) {
  std::vector<std::size_t> shares;
  std::size_t given = 0;
  for (const auto& members : by_label) given += shares.emplace_back(members.size() / 5);
  std::vector<std::size_t> order(by_label.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return by_label[a].size() % 5 > by_label[b].size() % 5;
  });
  for (std::size_t i = 0; given < samples / 5; ++given, ++i) ++shares[order[i]];
  return shares;
}

}  // namespace

void check_task(const MajorityTask& task) {
  const auto fail = [](const std::string& sentence) { throw InputError(sentence); };
  if (task.classes < 1 || task.classes > 65'536) {
    fail(fmt::format("The majority task needs from 1 to 65536 classes, not {}.", task.classes));
  }
  if (task.length < 1 || task.length > kLongest) {
    fail(fmt::format("A sequence has a length from 1 to {}, not {}.", kLongest, task.length));
  }
  if (task.samples < 5 || task.samples > kMostSamples || task.samples * task.length > kMostTokens) {
    fail(fmt::format(
        "{} sequences of length {}: at least 5 are needed for a split of 80/20, and at most {} sequences and "
        "{} tokens are held in memory.",
        task.samples, task.length, kMostSamples, kMostTokens));
  }
  if (task.classes > task.samples) {
    fail(fmt::format(
        "There are {} classes but only {} sequences, so that not every class can be a majority; draw more.",
        task.classes, task.samples));
  }
  if (task.assignments < 1) fail("Each partition needs at least 1 assignment to classes.");
  const std::size_t widest = single_parts_only(task) ? task.length : task.length - 2;
  if (task.margin < 1 || task.margin > widest) {
    fail(
        fmt::format("No sequence of length {} over {} classes{} has a majority that leads by {}; the margin "
                    "can be from 1 to {}.",
                    task.length, task.classes, single_parts_only(task) ? "" : ", at least two of them in it,",
                    task.margin, widest));
  }
}

MajorityData make_majority_data(const MajorityTask& task, std::uint64_t seed) {
  check_task(task);
  Partitions partitions(task, seed);
  Random random(seed, kAssignments);
  std::vector<std::uint16_t> tokens, labels, classes(task.classes), part;
  tokens.reserve(task.samples * task.length);
  std::iota(classes.begin(), classes.end(), std::uint16_t{0});
  for (std::size_t sample = 0; sample < task.samples; ++sample) {
    if (sample % task.assignments == 0) part = partitions.next();
    shuffle(std::span(classes), random);
    for (std::size_t j = 0; j < part.size(); ++j) tokens.insert(tokens.end(), part[j], classes[j]);
    labels.push_back(classes[part.size() - 1]);
  }

  std::vector<std::vector<std::uint32_t>> by_label(task.classes);
  for (std::uint32_t s = 0; s < task.samples; ++s) by_label[labels[s]].push_back(s);
  const auto shares = test_shares(by_label, task.samples);
  Random split(seed, kSplit);
  std::vector<bool> is_test(task.samples, false);
  for (std::size_t label = 0; label < task.classes; ++label) {
    shuffle(std::span(by_label[label]), split);
    for (std::size_t i = 0; i < shares[label]; ++i) is_test[by_label[label][i]] = true;
  }
  const auto take = [&](bool test) {
    std::vector<std::uint16_t> taken_tokens, taken_labels;
    for (std::size_t s = 0; s < task.samples; ++s) {
      if (is_test[s] != test) continue;
      const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(s * task.length);
      taken_tokens.insert(taken_tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(task.length));
      taken_labels.push_back(labels[s]);
    }
    return make_sequences(task.classes, task.length, std::move(taken_tokens), std::move(taken_labels));
  };
  return {take(false), take(true)};
}

std::span<const std::uint64_t> paper_seeds() {
  static constexpr std::uint64_t seeds[] = {11, 123, 42, 9, 456, 4, 5, 6, 7, 8};
  return seeds;
}

}  // namespace normscope
