#include "result/scan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/number_text.h"
#include "normscope/error.h"

namespace normscope {
namespace {

using Head = ScanSummary::Head;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Of what is known.
class Mean {
 public:
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? kNone : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return kNone;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double share(const std::optional<ScanSetResult>& set, std::size_t ScanSetResult::*count) {
  if (!set) return kNone;
  const std::size_t tokens = set->selectable + set->tied + set->unselectable + set->undecided;
  return static_cast<double>((*set).*count) / static_cast<double>(tokens);
}

std::vector<double> weights_of(const ScanHeadResult& head) {
  return head.reachable ? head.reachable->largest_weights : std::vector<double>();
}

double least(const std::vector<double>& values) {
  return values.empty() ? kNone : *std::min_element(values.begin(), values.end());
}

double never_won(const ScanHeadResult& head) {
  const auto never = std::count(head.wins.begin(), head.wins.end(), std::size_t{0});
  return static_cast<double>(never) / static_cast<double>(head.wins.size());
}

void require_alike(const std::vector<ScanWindowResult>& windows) {
  const auto alike = [](const ScanLayerResult& a, const ScanLayerResult& b) {
    return a.heads.size() == b.heads.size();
  };
  for (const ScanWindowResult& window : windows)
    if (!std::equal(window.layers.begin(), window.layers.end(), windows.front().layers.begin(),
                    windows.front().layers.end(), alike))
      throw InputError("The windows of a scan do not have the same layers and heads.");
  if (windows.empty()) throw InputError("A scan has no window.");
}

// In which layer most are tied.
std::string tied_sentence(const ScanSummary& summary, KeySpace space) {
  double most = 0;
  std::size_t at = 0;
  for (const ScanSummary::Layer& layer : summary.layers) {
    const double share = space == KeySpace::before  ? layer.before_tied
                         : space == KeySpace::model ? layer.model_tied
                         : space == KeySpace::head  ? layer.highest(&Head::tied)
                                                    : layer.highest(&Head::reachable_tied);
    if (!(share > most)) continue;
    most = share;
    at = layer.layer;
  }
  if (most == 0) return "";
  const bool heads = space == KeySpace::head || space == KeySpace::reachable;
  return fmt::format(" Tied, never on top alone: {} % {}layer {}.", scan_percent(most),
                     heads ? "at most in a head, in " : "at most, in ", at);
}

// How many of the verdicts rounding could have caused.
std::string robust_sentence(const ScanResult& result, KeySpace space) {
  if (space == KeySpace::reachable) return "";
  std::size_t unselectable = 0, robust = 0;
  for (const ScanWindowResult& window : *result.windows) {
    for (const ScanSetPlace& place : sets_of(window, space)) {
      if (!place.set->robust_unselectable) return "";
      unselectable += place.set->unselectable;
      robust += *place.set->robust_unselectable;
    }
  }
  if (robust == unselectable) return "";
  if (unselectable == 1) return " This verdict may be due to what float32 rounded away.";
  return fmt::format(" Of these {} verdicts {} {} whatever float32 rounded away.", unselectable, robust,
                     robust == 1 ? "stands" : "stand");
}

// Which head can give some token least: selectable is not yet attended to.
std::string weight_sentence(const ScanResult& result, const ScanSummary& summary) {
  const Head* least = nullptr;
  std::size_t layer = 0;
  for (const ScanSummary::Layer& each : summary.layers) {
    for (const Head& head : each.heads) {
      if (!std::isfinite(head.least_largest_weight)) continue;
      if (least != nullptr && head.least_largest_weight >= least->least_largest_weight) continue;
      least = &head;
      layer = each.layer;
    }
  }
  if (least == nullptr) return "";
  return fmt::format(
      " In layer {} head {} the best query the layer can form {} gives some token {} of the attention and the "
      "median token {}.",
      layer, least->head, weight_places_words(result), short_percent(least->least_largest_weight),
      short_percent(least->median_largest_weight));
}

}  // namespace

std::string scan_percent(double share) {
  if (!std::isfinite(share)) return "";
  std::string text = percent(share, 1);
  text.resize(text.find(" %"));
  return text;
}

double ScanSummary::Layer::mean(double Head::*member) const {
  Mean mean;
  for (const Head& head : heads) mean.add(head.*member);
  return mean.value();
}

double ScanSummary::Layer::highest(double Head::*member) const {
  double highest = kNone;
  for (const Head& head : heads) {
    if (std::isfinite(head.*member) && !(head.*member <= highest)) highest = head.*member;
  }
  return highest;
}

ScanSummary summarize(const std::vector<ScanWindowResult>& windows) {
  require_alike(windows);
  ScanSummary summary;
  for (std::size_t l = 0; l < windows.front().layers.size(); ++l) {
    const auto of = [&](const auto& function) {
      Mean mean;
      for (const ScanWindowResult& window : windows) mean.add(function(window.layers[l]));
      return mean.value();
    };
    using Layer = ScanLayerResult;
    constexpr auto unselectable = &ScanSetResult::unselectable, tied = &ScanSetResult::tied;
    ScanSummary::Layer& layer = summary.layers.emplace_back();
    layer.layer = windows.front().layers[l].layer;
    layer.before = of([](const Layer& x) { return share(x.before, unselectable); });
    layer.before_tied = of([](const Layer& x) { return share(x.before, tied); });
    layer.model = of([](const Layer& x) { return share(x.model, unselectable); });
    layer.model_tied = of([](const Layer& x) { return share(x.model, tied); });
    for (double NormShare::*member :
         {&NormShare::along_ones, &NormShare::norm_mean, &NormShare::norm_spread}) {
      layer.norm_in.*member = of([&](const Layer& x) { return x.norm_in.*member; });
      layer.norm_out.*member = of([&](const Layer& x) { return x.norm_out.*member; });
    }
    for (std::size_t h = 0; h < windows.front().layers[l].heads.size(); ++h) {
      const auto of_head = [&](const auto& function) {
        return of([&](const Layer& x) { return function(x.heads[h]); });
      };
      using One = ScanHeadResult;
      Head& head = layer.heads.emplace_back();
      head.head = windows.front().layers[l].heads[h].head;
      head.unselectable = of_head([](const One& x) { return share(x.keys, unselectable); });
      head.tied = of_head([](const One& x) { return share(x.keys, tied); });
      head.reachable_unselectable = of_head([](const One& x) { return share(x.reachable, unselectable); });
      head.reachable_tied = of_head([](const One& x) { return share(x.reachable, tied); });
      head.median_largest_weight = of_head([](const One& x) { return median(weights_of(x)); });
      head.least_largest_weight = of_head([](const One& x) { return least(weights_of(x)); });
      head.entropy = of_head([](const One& x) { return x.entropy; });
      head.largest_weight = of_head([](const One& x) { return x.largest_weight; });
      head.never_won = of_head(never_won);
    }
  }
  return summary;
}

const char* set_name(KeySpace space) {
  return space == KeySpace::before || space == KeySpace::model ? "layer" : "layer and head";
}

namespace {

// "6 layers"; "36 heads": of which a space has one set each.
std::string sets_words(std::size_t sets, KeySpace space) {
  return counted(sets, space == KeySpace::before || space == KeySpace::model ? "layer" : "head");
}

}  // namespace

std::vector<ScanSetPlace> sets_of(const ScanWindowResult& window, KeySpace space) {
  std::vector<ScanSetPlace> sets;
  const auto add = [&](const std::optional<ScanSetResult>& set, std::size_t layer, std::size_t head) {
    if (set) sets.push_back({&*set, layer, head});
  };
  for (const ScanLayerResult& layer : window.layers) {
    if (space == KeySpace::before) add(layer.before, layer.layer, 0);
    if (space == KeySpace::model) add(layer.model, layer.layer, 0);
    for (const ScanHeadResult& head : layer.heads) {
      if (space == KeySpace::head) add(head.keys, layer.layer, head.head);
      if (space == KeySpace::reachable) add(head.reachable, layer.layer, head.head);
    }
  }
  return sets;
}

std::size_t sets_with(const std::vector<ScanSetPlace>& sets, std::size_t token, char verdict) {
  return static_cast<std::size_t>(std::count_if(sets.begin(), sets.end(), [&](const ScanSetPlace& each) {
    return each.set->verdicts[token] == verdict;
  }));
}

ScanSpaceResult unselectable_tokens(const std::vector<ScanWindowResult>& windows, KeySpace space) {
  ScanSpaceResult result;
  for (const ScanWindowResult& window : windows) {
    const auto sets = sets_of(window, space);
    result.sets = sets.size();
    if (sets.empty()) continue;
    for (std::size_t i = 0; i < window.ids.size(); ++i) {
      const std::size_t count = sets_with(sets, i, 'u');
      ++result.tokens;
      result.unselectable_in_some += count > 0;
      result.unselectable_in_all += count == result.sets;
      result.tied_in_some += sets_with(sets, i, 't') > 0;
      result.undecided_in_some += sets_with(sets, i, '?') > 0;
    }
  }
  return result;
}

std::size_t sliding_window(const ScanResult& result) {
  constexpr std::string_view prefix = "onesided:";
  const std::string& mask = result.settings.mask;
  std::size_t before = 0;
  if (!mask.starts_with(prefix)) return 0;
  std::from_chars(mask.data() + prefix.size(), mask.data() + mask.size(), before);
  return before + 1;
}

std::string weight_places_words(const ScanResult& result) {
  const std::size_t window = sliding_window(result);
  if (window == 0) return "at the last place";
  return fmt::format("at the last place of each stretch of {}", counted(window, "token"));
}

std::string scan_verdict(const ScanResult& result, const ScanSummary& summary) {
  std::string text;
  for (const KeySpace space : result.settings.spaces) {
    const ScanSpaceResult found = unselectable_tokens(*result.windows, space);
    if (found.tokens == 0) continue;
    const char* where = space == KeySpace::before  ? "Before the norm"
                        : space == KeySpace::model ? "After the norm"
                        : space == KeySpace::head  ? "By any query of a head"
                                                   : "By the queries a layer can form";
    text += text.empty() ? "" : " ";
    // "No token" is said of what was decided only.
    if (found.unselectable_in_some == 0 && found.undecided_in_some > 0) {
      text += fmt::format("{}, none of {} was found unselectable in any of {} looked at.", where,
                          counted(found.tokens, "token"), sets_words(found.sets, space));
    } else if (found.unselectable_in_some == 0) {
      text += fmt::format("{}, none of {} is unselectable in any of {} looked at.", where,
                          counted(found.tokens, "token"), sets_words(found.sets, space));
    } else {
      const double share =
          static_cast<double>(found.unselectable_in_some) / static_cast<double>(found.tokens);
      text += fmt::format("{}, {} of {} ({} %) {} unselectable in at least one {}, {} in all {}.", where,
                          found.unselectable_in_some, counted(found.tokens, "token"), scan_percent(share),
                          found.unselectable_in_some == 1 ? "is" : "are", set_name(space),
                          found.unselectable_in_all, found.sets);
    }
    if (found.undecided_in_some > 0)
      text += fmt::format(" {} of {} {} undecided in at least one {}: rounding hides the margin there.",
                          found.undecided_in_some, counted(found.tokens, "token"),
                          found.undecided_in_some == 1 ? "is" : "are", set_name(space));
    text += tied_sentence(summary, space) + robust_sentence(result, space);
  }
  return text + weight_sentence(result, summary);
}

}  // namespace normscope
