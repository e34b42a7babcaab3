// normscope keys: which keys of a file attention can select.
#include "study/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "cli/verdict_table.h"
#include "report/keys_page.h"
#include "result/json_writer.h"

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
  return text.empty() ? "none" : text;
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
std::string rank_line(const KeySet& set, bool full) {
  const std::size_t most = std::min(set.d, set.n - 1);
  std::string text = fmt::format("rank              {} of {}", set.rank, set.d);
  if (set.rank >= most) {
    text += fmt::format(" (directions with spread below {:.3g} are rounding{})\n", set.rank_tolerance,
                        full ? "; --rank full keeps them" : "");
  } else {
    const bool one = most - set.rank == 1;
    text += fmt::format(": {} left out as rounding (spread below {:.3g}); --rank full keeps {}\n",
                        one ? "1 direction" : fmt::format("{} directions", most - set.rank),
                        set.rank_tolerance, one ? "it" : "them");
  }
  if (!full && set.matrix_rank < set.rank)
    text += fmt::format(
        "                  NumPy's matrix_rank would say {}: it holds every direction against the strongest; "
        "here "
        "each\n                  coordinate is held against its own rounding, and {} more {} out of that\n",
        set.matrix_rank, set.rank - set.matrix_rank, set.rank - set.matrix_rank == 1 ? "stands" : "stand");
  return text;
}

// A line per key that is not selectable, and one for the whole set.
std::string advice_text(const KeySetResult& result) {
  constexpr std::size_t kMost = 12;
  std::vector<std::vector<std::string>> rows = {
      {"key", "verdict", "a factor above", "an offset above", "a norm"}};
  std::size_t all = 0;
  const auto above = [](const std::optional<KeyThreshold>& threshold) {
    return threshold ? fmt::format("{:.6g}", threshold->least) : std::string("–");
  };
  for (const KeyResult& each : *result.keys) {
    if (!each.advice || ++all > kMost) continue;
    std::vector<std::string> norms;
    for (const NormAdvice& norm : each.advice->norms) norms.push_back(norm.norm);
    rows.push_back({std::to_string(each.index), name_of(each.key.verdict), above(each.advice->scale),
                    above(each.advice->offset),
                    norms.empty() ? "–" : fmt::format("{}", fmt::join(norms, " "))});
  }
  if (all == 0) return "what would help   nothing is needed: every key is selectable\n";
  std::string text =
      "what would help   makes the key selectable; --json has the queries that do\n" + table(rows);
  if (all > kMost) text += fmt::format("… ({} in all)\n", all);
  if (result.for_all) {
    const OffsetsForAll& offsets = *result.for_all;
    text += fmt::format(
        "offsets for all   at least {:.4g} for the neediest key; so much and up to {:.3g} more: {} selectable, {} "
        "tied, {} unselectable\n",
        *std::max_element(offsets.least.begin(), offsets.least.end()), offsets.bend,
        offsets.counts.selectable, offsets.counts.tied, offsets.counts.unselectable);
  }
  return text;
}

std::string set_text(const KeySetResult& result, const KeysSettings& settings) {
  const KeySet& set = result.set;
  const std::vector<KeyResult>& keys = *result.keys;
  std::string text = verdict_table(set.counts, set.robust_counts, "keys", 1);
  text += fmt::format("smallest margins  {}{}\n", indices_with_smallest(keys, 3),
                      settings.margin == Margins::bound ? " (lower bounds)" : "");
  if (set.counts.unselectable > 0)
    text += fmt::format("unselectable      {}\n", some_indices(keys, Verdict::unselectable));
  if (set.counts.tied > 0) text += fmt::format("tied              {}\n", some_indices(keys, Verdict::tied));
  if (set.counts.undecided > 0)
    text += fmt::format("undecided         {}: rational arithmetic would need more than --effort allows\n",
                        some_indices(keys, Verdict::undecided));
  const auto bounded = std::count_if(keys.begin(), keys.end(), [](const KeyResult& each) {
    return each.key.verdict == Verdict::selectable && each.key.margin_at_most;
  });
  if (bounded > 0)
    text += fmt::format(
        "margins           of {} keys are lower bounds: the exact ones are beyond rational arithmetic's "
        "effort\n",
        bounded);
  if (settings.query_norm) {
    double least = 1, most = 0;
    for (const KeyResult& each : keys)
      least = std::min(least, *each.key.max_weight), most = std::max(most, *each.key.max_weight);
    text += fmt::format("largest weight    from {:.4g} to {:.4g} over the keys, for queries of norm ≤ {:g}\n",
                        least, most, *settings.query_norm);
  }
  if (settings.prefix) {
    const auto lost = std::count_if(keys.begin(), keys.end(), [&](const KeyResult& each) {
      const std::size_t last = each.key.last_prefix.value_or(0);
      return last > 0 && last < set.n;
    });
    text += fmt::format("prefixes          {} of {} keys stop being selectable before the last key\n", lost,
                        set.n);
  }
  if (settings.advice) text += advice_text(result);
  text += rank_line(set, settings.rank == RankPolicy::full);
  const auto verified =
      std::count_if(keys.begin(), keys.end(), [](const KeyResult& each) { return each.key.verified; });
  return text +
         fmt::format("certificates      {} decided by error bounds, {} by rational arithmetic{}\n",
                     set.n - set.exact_path - set.counts.undecided, set.exact_path,
                     settings.exact ? fmt::format("; {} verified in rational arithmetic", verified) : "");
}

std::string screen(const GivenKeys& given, const KeysResult& result) {
  constexpr std::size_t kMostSets = 16;
  const auto& sets = result.sets;
  std::string text =
      fmt::format("{}, {}, {} × {}{}{}\n", given.source, name_of(given.dtype), given.n, given.d,
                  given.sets == 1   ? ""
                  : given.heads > 0 ? fmt::format(", {} × {} heads", given.sets / given.heads, given.heads)
                                    : fmt::format(", {} sets", given.sets),
                  result.settings.norm == "none" ? "" : fmt::format(", after {}", result.settings.norm));
  if (result.undefined_rows > 0)
    text +=
        fmt::format("{} rows with nothing to scale (zero rows, or σ = 0) became 0\n", result.undefined_rows);
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

// Verdicts and certificates of single keys stay in results.json, which may be large.
std::string report(const GivenKeys& given, const KeysResult& result) {
  KeysRun keys;
  keys.source = fmt::format("{}, {}, {} × {}", given.source, name_of(given.dtype), given.n, given.d);
  keys.norm = result.settings.norm;
  keys.lower_bounds = result.settings.margin == Margins::bound;
  for (const KeySetResult& set : result.sets) keys.sets.push_back(summary_of(set));
  KeysResult head = result;
  head.sets.clear();
  return render_html(keys_page(keys, result.made, json_of(head, -1)));
}

void run(const KeysOptions& options, const Common& common) {
  const auto directory = replaceable_directory(common, {options.file, options.bias});
  const Executor executor(common.threads, common.stop);
  KeysStudy study = study_keys(options, {executor, common.seed});
  const std::string page = directory ? report(study.given, study.result) : "";
  const std::string text = common.json ? "" : screen(study.given, study.result);
  if (options.summary)
    for (KeySetResult& set : study.result.sets) set.keys.reset();
  if (directory) {
    directory->write_config("keys", study.result.made, json_of(study.result.settings));
    directory->write("results.json", json_of(study.result, -1));
    directory->write("report.html", page);
    note(common, fmt::format("Wrote {}", (directory->path() / "results.json").string()));
  }
  if (common.json) {
    write_json(study.result, -1, print);
  } else {
    print(text);
  }
}

}  // namespace

void add_keys(CLI::App& app, Common& common) {
  auto options = std::make_shared<KeysOptions>();
  CLI::App* command = add_command(
      app, common, "keys", "Which keys can attention select? Verdict, margin and certificate for each",
      {"keys keys.npy", "keys layer3.safetensors --tensor k_proj --norm layernorm",
       "keys keys.npy --json --exact | jq '.sets[0].counts'",
       "keys head.npz --tensor weight --bias bias.npy --summary", "keys keys.npy --query-norm 10 --prefix",
       "keys runs/scan/trace.layer.3.safetensors --tensor window.0.layer.3.attn.key",
       "keys cache.npy --heads 12 --summary", "keys keys.npy --advice --json"});
  add_options(*command, *options);
  add_to_footer(*command, fmt::format("Norms: {}", fmt::join(norm_names_without_normals(), " ")));
  when_called(*command, [options, &common] { run(*options, common); });
}

}  // namespace normscope::cli
