#include "ablate/probe.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "normscope/random.h"

namespace normscope {
namespace {

constexpr std::size_t kLogitRows = 16;
constexpr std::size_t kLeastLength = 4;
constexpr std::size_t kHiddenEvery = 4;  // of a second copy, in models that fill in masked tokens

// Streams of random numbers: one per prompt and kind.
enum class Stream : std::uint64_t { copy = 1, lookup = 2 };
Random random_of(const AblateSettings& settings, Stream stream, std::size_t prompt) {
  return Random(settings.seed, static_cast<std::uint64_t>(stream) << 40 | prompt);
}

std::vector<std::uint32_t> without_special(std::vector<std::uint32_t> ids, const AblateSettings& settings,
                                           std::size_t vocabulary) {
  std::unordered_set<std::uint32_t> never(settings.special.begin(), settings.special.end());
  if (settings.mask_token) never.insert(*settings.mask_token);
  std::erase_if(ids, [&](std::uint32_t id) { return id >= vocabulary || never.contains(id); });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// The first `count` of a random order.
std::vector<std::uint32_t> draw(std::vector<std::uint32_t> from, std::size_t count, Random& random) {
  for (std::size_t i = 0; i < count; ++i) std::swap(from[i], from[i + random.below(from.size() - i)]);
  from.resize(count);
  return from;
}

class Writer {
 public:
  Writer(const ModelSpec& spec, const AblateSettings& settings) : spec_(spec), settings_(settings) {
    prompt_.ids = settings.before;
  }

  std::size_t add(std::uint32_t id) {
    prompt_.ids.push_back(id);
    return prompt_.ids.size() - 1;
  }
  // The token, as a question where the model can answer one: from the row before it, or in its place.
  void ask(std::uint32_t id) {
    if (spec_.head == ModelSpec::Head::none || (!spec_.causal && !settings_.mask_token)) {
      add(id);
    } else if (spec_.causal) {
      prompt_.questions.push_back({add(id) - 1, id});
    } else {
      prompt_.questions.push_back({add(*settings_.mask_token), id});
    }
  }
  Prompt finish() && {
    prompt_.ids.insert(prompt_.ids.end(), settings_.after.begin(), settings_.after.end());
    return std::move(prompt_);
  }
  Prompt& prompt() { return prompt_; }

 private:
  const ModelSpec& spec_;
  const AblateSettings& settings_;
  Prompt prompt_;
};

Prompt copy_prompt(const ModelSpec& spec, const AblateSettings& settings,
                   const std::vector<std::uint32_t>& pool, std::size_t longest, Random random) {
  // Of several lengths, so that a head that looks back by a fixed distance does not pass for one that finds.
  const std::size_t length = longest - random.below(longest / 4 + 1);
  const std::vector<std::uint32_t> tokens = draw(pool, length, random);
  Writer writer(spec, settings);
  Prompt& prompt = writer.prompt();
  const std::size_t start = prompt.ids.size();
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t row = writer.add(tokens[i]);
    if (spec.causal && i > 0) prompt.first.push_back({row - 1, tokens[i]});
  }
  for (std::size_t i = 0; i < length; ++i) {
    const bool asked = spec.causal ? i > 0 : i % kHiddenEvery == kHiddenEvery - 1;
    if (asked) {
      writer.ask(tokens[i]);
    } else {
      writer.add(tokens[i]);
    }
  }
  prompt.offers = tokens;
  Prompt done = std::move(writer).finish();
  done.finds.resize(done.ids.size());
  for (std::size_t i = 0; i + (spec.causal ? 1 : 0) < length; ++i) {
    const std::size_t second = start + length + i;
    if (done.ids[second] == tokens[i]) done.finds[second] = start + i + (spec.causal ? 1 : 0);
  }
  return done;
}

Prompt lookup_prompt(const ModelSpec& spec, const AblateSettings& settings,
                     const std::vector<std::uint32_t>& pool, std::size_t longest, Random random) {
  const std::size_t pairs = longest / 2;
  const std::vector<std::uint32_t> tokens = draw(pool, 2 * pairs, random);
  std::vector<std::uint32_t> order(pairs);
  for (std::size_t i = 0; i < pairs; ++i) order[i] = static_cast<std::uint32_t>(i);
  order = draw(std::move(order), pairs, random);
  Writer writer(spec, settings);
  for (const std::uint32_t id : tokens) writer.add(id);
  for (const std::uint32_t pair : order) {
    writer.add(tokens[2 * pair]);
    writer.ask(tokens[2 * pair + 1]);
  }
  for (std::size_t pair = 0; pair < pairs; ++pair) writer.prompt().offers.push_back(tokens[2 * pair + 1]);
  return std::move(writer).finish();
}

}  // namespace

Probe make_probe(const ModelSpec& spec, const AblateSettings& settings) {
  Probe probe;
  if (settings.prompts == 0) return probe;
  std::vector<std::uint32_t> pool = without_special(settings.probe_tokens, settings, spec.vocabulary);
  probe.from_vocabulary = pool.size() < std::max(settings.probe_length, kLeastLength);
  if (probe.from_vocabulary) {
    pool.resize(spec.vocabulary);
    for (std::size_t id = 0; id < pool.size(); ++id) pool[id] = static_cast<std::uint32_t>(id);
    pool = without_special(std::move(pool), settings, spec.vocabulary);
  }
  std::size_t length = std::min(settings.probe_length, pool.size());
  if (spec.positions > 0) {
    const std::size_t special = settings.before.size() + settings.after.size();
    length = std::min(length, spec.positions > special ? (spec.positions - special) / 2 : 0);
  }
  if (length < kLeastLength) return probe;
  probe.length = length;
  for (std::size_t k = 0; k < settings.prompts; ++k) {
    probe.copy.push_back(copy_prompt(spec, settings, pool, length, random_of(settings, Stream::copy, k)));
    probe.lookup.push_back(
        lookup_prompt(spec, settings, pool, length, random_of(settings, Stream::lookup, k)));
  }
  return probe;
}

Answers answer(const ModelSpec& spec, const HeadWeights& head, MatrixView<const float> tokens,
               std::span<const ProbeQuestion> questions, std::span<const std::uint32_t> offers) {
  Answers sum;
  for (std::size_t first = 0; first < questions.size(); first += kLogitRows) {
    const auto some = questions.subspan(first, std::min(kLogitRows, questions.size() - first));
    Matrix<float> rows(some.size(), tokens.cols);
    for (std::size_t i = 0; i < some.size(); ++i)
      std::copy_n(tokens[some[i].row].begin(), tokens.cols, rows[i].begin());
    const Matrix<float> scores = logits(spec, head, rows.view());
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto row = scores[i];
      const float right = row[some[i].target];
      const auto top = std::max_element(row.begin(), row.end());
      double exponentials = 0;
      for (const float score : row)
        exponentials += std::exp(static_cast<double>(score) - static_cast<double>(*top));
      sum.loss += static_cast<double>(*top) + std::log(exponentials) - static_cast<double>(right);
      sum.accuracy += static_cast<std::size_t>(top - row.begin()) == some[i].target ? 1 : 0;
      sum.choice += std::all_of(offers.begin(), offers.end(),
                                [&](std::uint32_t id) { return id == some[i].target || row[id] < right; })
                        ? 1
                        : 0;
    }
  }
  const auto count = static_cast<double>(questions.size());
  return {sum.loss / count, sum.accuracy / count, sum.choice / count};
}

double chance_of_finding(const ModelSpec& spec, const Prompt& prompt) {
  const Mask mask = model_mask(spec, prompt.ids.size());
  double sum = 0, count = 0;
  for (std::size_t row = 0; row < prompt.finds.size(); ++row) {
    if (!prompt.finds[row]) continue;
    std::size_t seen = 0;
    for (const Mask::Run run : mask.row(row)) seen += run.last - run.first;
    if (seen > 1) sum += 1 / static_cast<double>(seen - 1);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace normscope
