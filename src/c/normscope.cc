#include "normscope.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "normscope/error.h"
#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/version.h"

namespace {

// What C is given, and what holds its memory.
struct Held {
  normscope_keys view{};
  std::vector<unsigned char> verdict, robust;
  std::vector<double> margin, depth, witness;
};

std::string& last_error() {
  thread_local std::string error;
  return error;
}

void require(bool good, const char* sentence) {
  if (!good) throw normscope::InputError(sentence);
}

std::unique_ptr<Held> decide(const double* keys, size_t n, size_t d, const double* offsets,
                             const normscope_options& given) {
  require(keys != nullptr, "keys is NULL: give n x d numbers.");
  require(n > 0 && d > 0, "there is no key: n and d must be at least 1.");
  require(n <= std::numeric_limits<size_t>::max() / sizeof(double) / d,
          "n x d numbers do not fit into memory.");
  require(given.unit_roundoff >= 0 && given.unit_roundoff < 1, "unit_roundoff must be from 0 to below 1.");
  require(given.threads >= 0 && given.threads <= 1024, "threads must be from 0 to 1024.");
  normscope::KeyOptions options;
  options.unit_roundoff = options.offset_roundoff = given.unit_roundoff;
  if (given.full_rank != 0) options.rank = normscope::RankPolicy::full;
  if (given.lower_bounds != 0) options.margins = normscope::Margins::bound;
  options.exact = given.exact != 0;
  const normscope::Executor executor(given.threads);
  const normscope::KeySet set = normscope::decide_keys(
      {keys, n, d}, offsets == nullptr ? std::span<const double>() : std::span<const double>(offsets, n),
      options, executor);
  auto held = std::make_unique<Held>();
  held->witness.assign(n * d, std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < n; ++i) {
    const normscope::KeyVerdict& key = set.keys[i];
    held->verdict.push_back(static_cast<unsigned char>(key.verdict));
    held->robust.push_back(key.robust ? 1 : 0);
    held->margin.push_back(key.margin);
    held->depth.push_back(key.depth);
    if (key.witness.size() == d)
      std::copy(key.witness.begin(), key.witness.end(),
                held->witness.begin() + static_cast<std::ptrdiff_t>(i * d));
  }
  held->view = {n,
                d,
                set.rank,
                held->verdict.data(),
                held->robust.data(),
                held->margin.data(),
                held->depth.data(),
                held->witness.data()};
  return held;
}

}  // namespace

normscope_options normscope_default_options(void) {
  return {0x1p-53, 0, 0, 0, 0};
}

normscope_keys* normscope_decide_keys(const double* keys, size_t n, size_t d, const double* offsets,
                                      const normscope_options* options) {
  try {
    last_error().clear();
    // view is the first member, so that normscope_free finds what holds it.
    return &decide(keys, n, d, offsets, options == nullptr ? normscope_default_options() : *options)
                .release()
                ->view;
  } catch (const std::exception& error) {
    last_error() = error.what();
  } catch (...) {
    last_error() = "Something unknown went wrong.";
  }
  return nullptr;
}

void normscope_free(normscope_keys* keys) {
  delete reinterpret_cast<Held*>(keys);  // NOLINT(cppcoreguidelines-owning-memory): handed out above
}

const char* normscope_version(void) {
  static const std::string version = normscope::version();
  return version.c_str();
}

const char* normscope_last_error(void) {
  return last_error().c_str();
}
