#include "paper/text_selectability.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace normscope {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<ScanWindow> scanned(const ModelWeights& weights,
                                std::span<const std::vector<std::uint32_t>> windows, const Executor& executor,
                                const std::function<void(std::size_t, std::size_t)>& progress) {
  ScanSettings settings;
  settings.spaces = {KeySpace::before, KeySpace::model, KeySpace::head};
  settings.ideal_norms = true;
  return scan(weights, windows, settings, executor, progress);
}

ModelTally tally_of(std::span<const ScanWindow> windows) {
  ModelTally tally;
  tally.windows = windows.size();
  for (const ScanWindow& window : windows) {
    tally.layers.resize(window.layers.size());
    for (std::size_t l = 0; l < window.layers.size(); ++l) {
      const ScanLayer& from = window.layers[l];
      LayerTally& to = tally.layers[l];
      to.before.add(from.before);
      to.after.add(from.model);
      to.unrounded.add(from.unrounded);
      to.sphere.add(from.sphere);
      to.heads.resize(from.heads.size());
      for (std::size_t h = 0; h < from.heads.size(); ++h) to.heads[h].add(from.heads[h].keys);
    }
  }
  return tally;
}

std::vector<double> shares_of(const std::vector<KeyTally>& heads) {
  std::vector<double> shares;
  shares.reserve(heads.size());
  for (const KeyTally& head : heads) shares.push_back(head.share());
  return shares;
}

bool ends_sentence(std::string_view text, std::size_t at) {
  if (text[at] != '.' && text[at] != '!' && text[at] != '?') return false;
  return at + 1 == text.size() || text[at + 1] == ' ' || text[at + 1] == '\n';
}

bool is_presentable(std::string_view sentence) {
  constexpr std::size_t least = 30, most = 240, least_spaces = 3;
  return sentence.size() >= least && sentence.size() <= most &&
         sentence.find('\n') == std::string_view::npos &&
         static_cast<std::size_t>(std::count(sentence.begin(), sentence.end(), ' ')) >= least_spaces;
}

}  // namespace

double KeyTally::share() const {
  return keys == 0 ? kNone : static_cast<double>(unselectable) / static_cast<double>(keys);
}
double KeyTally::robust_share() const {
  return keys == 0 ? kNone : static_cast<double>(robust) / static_cast<double>(keys);
}

void KeyTally::add(const ScanSet& set) {
  keys += set.verdicts.size();
  tied += set.count(Verdict::tied);
  unselectable += set.count(Verdict::unselectable);
  robust += set.robust_unselectable.value_or(0);
}

KeyTally& KeyTally::operator+=(const KeyTally& other) {
  keys += other.keys;
  tied += other.tied;
  unselectable += other.unselectable;
  robust += other.robust;
  return *this;
}

double LayerTally::head_mean() const {
  double sum = 0;
  for (const double share : shares_of(heads)) sum += share;
  return heads.empty() ? kNone : sum / static_cast<double>(heads.size());
}
double LayerTally::head_least() const {
  const auto shares = shares_of(heads);
  return shares.empty() ? kNone : *std::min_element(shares.begin(), shares.end());
}
double LayerTally::head_most() const {
  const auto shares = shares_of(heads);
  return shares.empty() ? kNone : *std::max_element(shares.begin(), shares.end());
}

ModelTally tally_keys(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
                      const Executor& executor,
                      const std::function<void(std::size_t, std::size_t)>& progress) {
  return tally_of(scanned(weights, windows, executor, progress));
}

std::size_t MarkedSentence::marked() const {
  return static_cast<std::size_t>(
      std::count_if(layers.begin(), layers.end(), [](const auto& each) { return !each.empty(); }));
}

MarkedText mark_sentences(const ModelWeights& weights, std::span<const Sentence> sentences,
                          const Executor& executor,
                          const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<std::vector<std::uint32_t>> windows;
  for (const Sentence& sentence : sentences) windows.push_back(sentence.ids);
  const std::vector<ScanWindow> found = scanned(weights, windows, executor, progress);
  MarkedText text;
  text.tally = tally_of(found);
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    MarkedSentence marked;
    marked.of_layers = found[s].layers.size();
    for (std::size_t i = 0; i < sentences[s].ids.size(); ++i) {
      if (sentences[s].spelled[i].empty()) continue;
      marked.tokens.push_back(sentences[s].spelled[i]);
      std::vector<std::size_t>& layers = marked.layers.emplace_back();
      for (const ScanLayer& layer : found[s].layers) {
        if (layer.model.verdicts[i] == Verdict::unselectable) layers.push_back(layer.layer);
      }
    }
    text.sentences.push_back(std::move(marked));
  }
  return text;
}

std::vector<std::string> short_sentences(std::string_view text, std::size_t most) {
  std::vector<std::string> sentences;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size() && sentences.size() < most; ++at) {
    if (!ends_sentence(text, at)) continue;
    while (begin < at && (text[begin] == ' ' || text[begin] == '\n')) ++begin;
    const std::string_view sentence = text.substr(begin, at + 1 - begin);
    if (is_presentable(sentence)) sentences.emplace_back(sentence);
    begin = at + 1;
  }
  return sentences;
}

}  // namespace normscope
