// Threads and batches give the same bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "normscope/keys.h"
#include "normscope/random.h"
#include "support/key_sets.h"

namespace normscope {
namespace {

class Bytes {
 public:
  std::string text;
  void number(double value) { raw(&value, sizeof value); }
  void count(std::size_t value) { raw(&value, sizeof value); }
  void optional(const std::optional<double>& value) {
    count(value ? 1 : 0);
    number(value.value_or(0));
  }
  void terms(const std::vector<CoverTerm>& list) {
    count(list.size());
    for (const CoverTerm& term : list) count(term.index), number(term.weight);
  }

 private:
  void raw(const void* data, std::size_t size) { text.append(static_cast<const char*>(data), size); }
};

// Every field of a set, bit for bit.
std::string bytes_of(const KeySet& set) {
  Bytes out;
  for (std::size_t value : {set.n, set.d, set.rank, set.exact_path}) out.count(value);
  out.number(set.rank_tolerance);
  for (const KeyCounts& counts : {set.counts, set.robust_counts})
    for (std::size_t value : {counts.selectable, counts.tied, counts.unselectable}) out.count(value);
  out.count(set.keys.size());
  for (const KeyVerdict& key : set.keys) {
    out.count(static_cast<std::size_t>(key.verdict));
    for (bool flag : {key.robust, key.verified, key.exact_path}) out.count(flag ? 1 : 0);
    out.number(key.margin);
    out.number(key.depth);
    out.count(key.witness.size());
    for (double q : key.witness) out.number(q);
    out.count(key.exact_witness.size());
    for (const std::string& q : key.exact_witness) out.text += q + "\n";
    out.terms(key.cover);
    out.terms(key.interior);
    out.count(key.tied_with.size());
    for (std::size_t j : key.tied_with) out.count(j);
    out.optional(key.max_weight);
    out.optional(key.max_weight_bound);
    out.count(key.last_prefix.value_or(static_cast<std::size_t>(-1)));
  }
  return out.text;
}

void expect_same_for_any_threads(const Matrix<double>& keys, std::span<const double> offsets,
                                 const KeyOptions& options) {
  const std::string one = bytes_of(decide(keys, offsets, options, 1));
  for (int threads : {2, 8})
    EXPECT_TRUE(one == bytes_of(decide(keys, offsets, options, threads)))
        << threads << " threads, " << keys.rows() << " × " << keys.cols();
}

TEST(Threads, GiveTheSameBytes) {
  Random random(41);
  for (std::size_t d : {5, 8}) {
    Matrix<double> keys = gaussian(random, 1000, d);
    for (std::size_t i = 0; i < 50; ++i)  // duplicates, of vertices and of interior keys
      std::copy(keys[i].begin(), keys[i].end(), keys[900 + i].begin());
    const std::vector<double> offsets = gaussian_list(random, 1000);
    KeyOptions options;
    expect_same_for_any_threads(keys, {}, options);
    expect_same_for_any_threads(keys, offsets, options);
    options.prefix = true;
    expect_same_for_any_threads(keys, {}, options);
    options.prefix = false;
    options.margins = Margins::bound;
    expect_same_for_any_threads(keys, {}, options);
  }
}

TEST(Threads, GiveTheSameBytesInManyDimensions) {
  Random random(45);
  const Matrix<double> keys = gaussian(random, 700, 32);
  const std::vector<double> offsets = gaussian_list(random, 700);
  KeyOptions options;
  for (const Margins margins : {Margins::bound, Margins::exact}) {
    options.margins = margins;
    expect_same_for_any_threads(keys, {}, options);
    expect_same_for_any_threads(keys, offsets, options);
  }
}

TEST(Threads, GiveTheSameBytesForExactCertificates) {
  Random random(42);
  KeyOptions options;
  options.exact = true;
  for (std::size_t d : {5, 8}) {
    const Matrix<double> keys = gaussian(random, 1000, d);
    expect_same_for_any_threads(keys, {}, options);
  }
  expect_same_for_any_threads(lattice(random, 300, 3, 6), {}, options);
  expect_same_for_any_threads(lattice(random, 200, 3, 6), gaussian_list(random, 200), options);
}

TEST(Threads, GiveTheSameBytesForLargestWeights) {
  Random random(43);
  KeyOptions options;
  options.query_norm = 4;
  options.prefix = true;
  for (std::size_t d : {5, 8}) {
    const Matrix<double> keys = gaussian(random, 250, d);
    expect_same_for_any_threads(keys, {}, options);
    expect_same_for_any_threads(keys, gaussian_list(random, 250), options);
  }
}

TEST(Batches, GiveWhatEachSetGivesAlone) {
  Random random(44);
  std::vector<Matrix<double>> sets;
  std::vector<std::vector<double>> offsets;
  for (int s = 0; s < 25; ++s) {
    const std::size_t n = 1 + random.below(s == 7 ? 400 : 30), d = 1 + random.below(5);
    sets.push_back(s % 3 == 0 ? lattice(random, n, d, 3) : gaussian(random, n, d));
    offsets.push_back(gaussian_list(random, n));
  }
  std::vector<MatrixView<const double>> views;
  std::vector<std::span<const double>> spans;
  for (std::size_t s = 0; s < sets.size(); ++s) views.push_back(sets[s].view()), spans.push_back(offsets[s]);
  KeyOptions options;
  options.prefix = true;
  options.query_norm = 2;
  for (std::size_t count : {std::size_t{3}, sets.size()})  // few: threads share one set; many: a set each
    for (int threads : {1, 2, 8})
      for (bool with_offsets : {false, true}) {
        const std::vector<KeySet> together =
            decide_key_sets(std::span(views).first(count),
                            with_offsets ? std::span<const std::span<const double>>(spans).first(count)
                                         : std::span<const std::span<const double>>(),
                            options, Executor(threads));
        ASSERT_EQ(together.size(), count);
        for (std::size_t s = 0; s < count; ++s)
          EXPECT_TRUE(bytes_of(together[s]) ==
                      bytes_of(decide(sets[s], with_offsets ? spans[s] : std::span<const double>(), options)))
              << "set " << s << ", " << threads << " threads";
      }
  EXPECT_TRUE(decide_key_sets({}, {}, options, Executor(1)).empty());
}

}  // namespace
}  // namespace normscope
