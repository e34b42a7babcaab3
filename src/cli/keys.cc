// normscope keys: which keys of a file attention can select.
#include "study/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/kept.h"
#include "cli/options.h"
#include "cli/verdict_table.h"
#include "core/number_text.h"
#include "report/keys_page.h"
#include "result/json_writer.h"
#include "run/finished.h"

namespace normscope::cli {
namespace {

std::string indices_with_smallest(const std::vector<KeyResult>& keys, std::size_t most) {
  std::vector<std::size_t> order;
  for (const KeyResult& each : keys)
    if (each.key.verdict == Verdict::selectable && std::isfinite(each.key.margin))
      order.push_back(each.index);
  const std::size_t shown = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double first = keys[a].key.margin, second = keys[b].key.margin;
                      return first != second ? first < second : a < b;
                    });
  std::string text;
  for (std::size_t k = 0; k < shown; ++k)
    text += fmt::format("{}{:.4g} (key {})", k > 0 ? ", " : "", keys[order[k]].key.margin, order[k]);
  if (!text.empty()) return text;
  const bool any = std::any_of(keys.begin(), keys.end(),
                               [](const KeyResult& each) { return each.key.verdict == Verdict::selectable; });
  return any ? "none is finite: there is no other key" : "none: no key was found selectable";
}

std::string some_indices(const std::vector<KeyResult>& keys, Verdict verdict) {
  constexpr std::size_t kMost = 12;
  std::string text;
  std::size_t shown = 0, all = 0;
  for (const KeyResult& each : keys)
    if (each.key.verdict == verdict && ++all <= kMost)
      text += fmt::format("{}{}", shown++ > 0 ? ", " : "", each.index);
  if (all > kMost) text += fmt::format(", … ({} in all)", all);
  return text;
}

// Fewer than d + 1 keys never fill the space; what is left out beyond that was judged to be rounding, and is
// said so.
std::string rank_lines(const KeySet& set, bool full) {
  const std::size_t most = std::min(set.d, set.n - 1);
  std::string text = fmt::format("{} of {}", set.rank, set.d);
  if (set.rank >= most) {
    text += fmt::format(" (directions with spread below {:.3g} are rounding{})", set.rank_tolerance,
                        full ? "; --rank full keeps them" : "");
  } else {
    const bool one = most - set.rank == 1;
    text += fmt::format(": {} left out as rounding (spread below {:.3g}); --rank full keeps {}",
                        counted(most - set.rank, "direction"), set.rank_tolerance, one ? "it" : "them");
  }
  text = labelled("rank", text);
  if (!full && set.matrix_rank < set.rank)
    text += labelled(
        "",
        fmt::format("NumPy's matrix_rank would say {}: it holds every direction against the strongest; here "
                    "each coordinate is held against its own rounding, and {} more {} out of that",
                    set.matrix_rank, set.rank - set.matrix_rank,
                    set.rank - set.matrix_rank == 1 ? "stands" : "stand"));
  return text;
}

// A line per key that is not selectable, and one for the whole set.
std::string advice_text(const KeySetResult& result) {
  constexpr std::size_t most = 12;
  const ReportTable advice = advice_table(result, most);
  if (advice.rows.size() < 2) return labelled("what would help", advice.note);
  std::string text = labelled("what would help", advice.note) + table(advice.rows);
  if (result.for_all) text += labelled("offsets for all", offsets_words(*result.for_all));
  return text;
}

std::string set_text(const KeySetResult& result, const KeysSettings& settings) {
  const KeySet& set = result.set;
  const std::vector<KeyResult>& keys = *result.keys;
  std::string text = verdict_table(set.counts, set.robust_counts, "keys", 1);
  text += labelled("smallest margins", indices_with_smallest(keys, 3) +
                                           (settings.margin == Margins::bound ? " (lower bounds)" : ""));
  if (set.counts.unselectable > 0)
    text += labelled("unselectable", some_indices(keys, Verdict::unselectable));
  if (set.counts.tied > 0) text += labelled("tied", some_indices(keys, Verdict::tied));
  if (set.counts.undecided > 0)
    text += labelled("undecided", some_indices(keys, Verdict::undecided) +
                                      ": rational arithmetic would need more than --effort allows");
  const auto bounded = std::count_if(keys.begin(), keys.end(), [](const KeyResult& each) {
    return each.key.verdict == Verdict::selectable && each.key.margin_at_most;
  });
  if (bounded > 0)
    text += labelled("margins", fmt::format("of {} {}: the exact one{} beyond rational arithmetic's effort",
                                            counted(static_cast<std::size_t>(bounded), "key"),
                                            bounded == 1 ? "is a lower bound" : "are lower bounds",
                                            bounded == 1 ? " is" : "s are"));
  if (settings.query_norm) {
    double least = 1, most = 0;
    for (const KeyResult& each : keys)
      least = std::min(least, *each.key.max_weight), most = std::max(most, *each.key.max_weight);
    text += labelled("largest weight",
                     fmt::format("from {:.4g} to {:.4g} over the keys, for queries of norm ≤ {:g}", least,
                                 most, *settings.query_norm));
  }
  if (settings.prefix) {
    const auto lost = std::count_if(keys.begin(), keys.end(), [&](const KeyResult& each) {
      const std::size_t last = each.key.last_prefix.value_or(0);
      return last > 0 && last < set.n;
    });
    text += labelled("prefixes", fmt::format("{} of {} {} being selectable before the last key", lost,
                                             counted(set.n, "key"), lost == 1 ? "stops" : "stop"));
  }
  if (settings.advice) text += advice_text(result);
  text += rank_lines(set, settings.rank == RankPolicy::full);
  const auto verified =
      std::count_if(keys.begin(), keys.end(), [](const KeyResult& each) { return each.key.verified; });
  return text +
         labelled("certificates",
                  fmt::format(
                      "{} decided by error bounds, {} by rational arithmetic{}",
                      set.n - set.exact_path - set.counts.undecided, set.exact_path,
                      settings.exact ? fmt::format("; {} verified in rational arithmetic", verified) : ""));
}

// "keys.npy, float32, 8 × 4, 2 sets, after layernorm, offsets of bias.npy"
std::string about(const GivenKeys& given, const KeysSettings& settings) {
  std::string text = fmt::format("{}, {}, {} × {}", given.source, name_of(given.dtype), given.n, given.d);
  if (given.heads > 0) {
    const std::size_t batches = given.sets / given.heads;
    text +=
        fmt::format(", {}{}", batches > 1 ? fmt::format("{} × ", batches) : "", counted(given.heads, "head"));
  } else if (given.sets > 1) {
    text += fmt::format(", {} sets", given.sets);
  }
  if (settings.norm != "none") text += ", after " + settings.norm;
  if (!settings.bias.empty()) text += ", score offsets of " + printable(settings.bias);
  return text;
}

std::string screen(const GivenKeys& given, const KeysResult& result) {
  constexpr std::size_t kMostSets = 16;
  const auto& sets = result.sets;
  std::string text = wrapped(about(given, result.settings)) + "\n";
  if (result.undefined_rows > 0)
    text += wrapped(fmt::format("{} with nothing to scale (zero rows, or σ = 0) became 0",
                                counted(result.undefined_rows, "row"))) +
            "\n";
  for (std::size_t s = 0; s < std::min(kMostSets, sets.size()); ++s) {
    if (sets.size() > 1) text += fmt::format("\n{}\n", set_label(sets[s], s));
    text += set_text(sets[s], result.settings);
  }
  if (sets.size() > kMostSets) {
    KeyCounts all;
    for (const KeySetResult& set : sets) all += set.set.counts;
    text += fmt::format("\n… and {} more sets. All sets: {} selectable, {} tied, {} unselectable{}\n",
                        sets.size() - kMostSets, all.selectable, all.tied, all.unselectable,
                        all.undecided > 0 ? fmt::format(", {} undecided", all.undecided) : "");
  }
  return text + fmt::format("{:.3g} s\n", result.seconds);
}

void run(KeptCall<KeysOptions> call, const Common& given, const CLI::App& command) {
  KeptRun kept("keys", given, command, call.resume);
  kept.resume(call.study);
  const Common& common = kept.common();
  const KeysOptions& options = call.study;
  const RunDirectory* directory = kept.begin(options, {options.file, options.bias});
  const Executor executor = executor_of(common);
  KeysStudy study = study_keys(options, {executor, common.seed});
  if (!speaks(common)) return;
  const std::string text = common.json ? "" : screen(study.given, study.result);
  KeysResult shown = options.summary ? without_keys(study.result) : KeysResult();
  const KeysResult& result = options.summary ? shown : study.result;
  if (kept.write_files(study, result))
    note(common, fmt::format("Wrote {}", (directory->path() / "results.json").string()));
  common.json ? write_json(result, -1, print) : print(text);
}

}  // namespace

void add_keys(CLI::App& app, Common& common) {
  auto call = std::make_shared<KeptCall<KeysOptions>>();
  CLI::App* command = add_command(
      app, common, "keys", "Which keys can attention select? Verdict, margin and certificate for each",
      {"keys keys.npy", "keys layer3.safetensors --tensor k_proj --norm layernorm",
       "keys keys.npy --json --exact | jq '.sets[0].counts'",
       "keys head.npz --tensor weight --bias bias.npy --summary", "keys keys.npy --query-norm 10 --prefix",
       "keys runs/scan/trace.layer.3.safetensors --tensor window.0.layer.3.attn.key",
       "keys cache.npy --heads 12 --summary", "keys keys.npy --advice --json"});
  add_options(*command, *call);
  allow_resuming(*command);
  add_to_footer(*command, fmt::format("Norms: {}", fmt::join(norm_names_without_normals(), " ")));
  when_called(*command, [call, &common, command] { run(*call, common, *command); });
}

}  // namespace normscope::cli
