#include "report/keys_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/number_text.h"
#include "normscope/error.h"
#include "report/key_plane.h"
#include "report/scatter.h"
#include "result/columns.h"
#include "result/setting_words.h"

namespace normscope {
namespace {

constexpr std::size_t kMostCurves = 8, kBins = 40, kMostRows = 50;

std::string share_of(std::size_t part, std::size_t whole) {
  return whole == 0 ? "0" : fmt::format("{} ({})", part, percent_of(part, whole, 1));
}

struct SetRow {
  std::string name;
  const KeysRun::Set& set;
  bool tokens = false;  // of a vocabulary, of which not all margins are known

  static void describe(auto& visit, auto& self) {
    const KeysRun::Set& set = self.set;
    const auto least = std::min_element(set.margins.begin(), set.margins.end());
    visit(self.tokens ? "source" : "set", self.name, "which");
    visit(self.tokens ? "tokens" : "keys", set.n, "how many");
    visit("dimensions", set.d, "of each");
    visit("rank", set.rank, "dimension of their affine hull");
    visit("selectable", share_of(set.counts.selectable, set.n), "some query gives them the highest score");
    visit("robustly selectable", set.robust.selectable, "whatever rounding did");
    visit("tied", share_of(set.counts.tied, set.n), "on top, but never alone");
    visit("robustly tied", set.robust.tied, "whatever rounding did");
    visit("unselectable", share_of(set.counts.unselectable, set.n), "never on top");
    visit("robustly unselectable", set.robust.unselectable, "whatever rounding did");
    visit.when(!self.tokens, "smallest margin", least == set.margins.end() ? "–" : significant(*least, 4),
               "of the selectable");
  }
};

struct Bins {
  double low = 0, high = 0;  // powers of ten
};

// Of what is positive: the logarithms' range, a little wider.
Bins bins_of(const std::vector<std::vector<double>>& groups) {
  double low = INFINITY, high = -INFINITY;
  for (const auto& values : groups) {
    for (const double value : values) {
      if (!(value > 0) || !std::isfinite(value)) continue;
      low = std::min(low, std::log10(value));
      high = std::max(high, std::log10(value));
    }
  }
  if (low > high) return {};
  const double more = std::max(0.05, 0.02 * (high - low));
  return {low - more, high + more};
}

// The outline of a histogram over equal steps of the logarithm.
CurveFigure::Curve outline(const std::string& name, const std::vector<double>& values, const Bins& bins) {
  std::vector<std::size_t> counts(kBins);
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) continue;
    const double place = (std::log10(value) - bins.low) / (bins.high - bins.low) * kBins;
    ++counts[std::min<std::size_t>(kBins - 1, static_cast<std::size_t>(std::max(0.0, place)))];
  }
  CurveFigure::Curve curve;
  curve.name = name;
  for (std::size_t b = 0; b < kBins; ++b) {
    for (const std::size_t end : {b, b + 1}) {
      // A hair inside, so that the two ends of a bin are not at the same place as those of its neighbours.
      const double share =
          (static_cast<double>(end) + (end == b ? 0.01 : -0.01)) / static_cast<double>(kBins);
      curve.x.push_back(std::pow(10, bins.low + share * (bins.high - bins.low)));
      curve.y.push_back(static_cast<double>(counts[b]));
    }
  }
  return curve;
}

CurveFigure::Panel histogram(const std::string& title, const std::string& label,
                             const std::vector<std::string>& names,
                             const std::vector<std::vector<double>>& groups) {
  CurveFigure::Panel panel;
  panel.title = title;
  panel.x_label = label;
  panel.y_label = "keys";
  panel.log_x = true;
  panel.whole_y = true;
  panel.y_low = 0;
  const Bins bins = bins_of(groups);
  if (bins.low == bins.high) return panel;
  for (std::size_t g = 0; g < groups.size(); ++g) panel.curves.push_back(outline(names[g], groups[g], bins));
  return panel;
}

void count(const KeyVerdict& key, KeysRun::Set& summary) {
  if (key.verdict == Verdict::selectable) summary.margins.push_back(key.margin);
  if (key.verdict == Verdict::unselectable) summary.depths.push_back(key.depth);
}

}  // namespace

KeysRun::Set summary_of(const KeySet& set) {
  KeysRun::Set summary{set.n, set.d, set.rank, set.counts, set.robust_counts, {}, {}, {}};
  for (const KeyVerdict& key : set.keys) count(key, summary);
  return summary;
}
KeysRun::Set summary_of(const KeySetResult& result) {
  KeysRun::Set summary = summary_of(result.set);
  if (result.head) summary.name = set_label(result, 0);
  if (result.keys)
    for (const KeyResult& each : *result.keys) count(each.key, summary);
  return summary;
}

std::string keys_verdict(const KeysRun& run) {
  KeyCounts all;
  std::size_t keys = 0;
  for (const KeysRun::Set& set : run.sets) all += set.counts, keys += set.n;
  if (keys == 0) return "";
  return fmt::format(
      "Of {}{}, {} {} selectable, {} tied and {} unselectable{}.", counted(keys, "key"),
      run.sets.size() > 1 ? fmt::format(" in {} sets", run.sets.size()) : "", share_of(all.selectable, keys),
      all.selectable == 1 ? "is" : "are", share_of(all.tied, keys), share_of(all.unselectable, keys),
      all.undecided > 0 ? fmt::format("; {} undecided, beyond the effort allowed to rational arithmetic",
                                      share_of(all.undecided, keys))
                        : "");
}

ReportTable keys_table(const KeysRun& run, std::size_t most) {
  std::vector<SetRow> rows;
  for (std::size_t s = 0; s < std::min(most, run.sets.size()); ++s)
    rows.push_back({run.sets[s].name.empty() ? std::to_string(s) : run.sets[s].name, run.sets[s]});
  ReportTable table{"Verdicts", table_of(rows)};
  if (run.sets.size() > most)
    table.title += fmt::format(" of the first {} of {} sets", most, run.sets.size());
  return table;
}

namespace {

struct AdviceRow {
  const KeyResult& key;

  static void describe(auto& visit, auto& self) {
    const KeyAdvice& advice = *self.key.advice;
    const auto above = [](const std::optional<KeyThreshold>& threshold) {
      return threshold ? significant(threshold->least, 6) : std::string("–");
    };
    std::string norms;
    for (const NormAdvice& norm : advice.norms) norms += (norms.empty() ? "" : " ") + norm.norm;
    visit("key", self.key.index, "row of its set");
    visit("verdict", self.key.key.verdict, "as it is");
    visit("a factor above", above(advice.scale), "on the key alone");
    visit("an offset above", above(advice.offset), "of its score alone");
    visit("a norm", norms.empty() ? "–" : norms, "applied to all keys");
  }
};

}  // namespace

ReportTable advice_table(const KeySetResult& set, std::size_t most) {
  std::vector<AdviceRow> rows;
  std::size_t all = 0;
  if (set.keys)
    for (const KeyResult& key : *set.keys)
      if (key.advice && ++all <= most) rows.push_back({key});
  const char* title = "What would help";
  if (rows.empty())
    return {title,
            {},
            set.set.counts.undecided > 0
                ? "no key was found that needs it; undecided ones were not asked about"
                : fmt::format("nothing is needed: all {} are selectable", counted(set.set.n, "key"))};
  std::string why;  // what is missing in a row
  for (const AdviceRow& row : rows)
    if (const std::string& each = row.key.advice->without; why.find(each) == std::string::npos)
      why += (why.empty() ? ". " : " ") + each;
  return {title, table_of(rows),
          fmt::format("makes the key selectable{}; --json has the queries that do{}",
                      all > most ? fmt::format(" (the first {} of {})", most, all) : "", why)};
}

std::vector<ReportTable> advice_tables(const KeysResult& result) {
  constexpr std::size_t most_sets = 16;
  std::vector<ReportTable> tables;
  std::size_t left_out = 0;
  for (std::size_t s = 0; s < result.sets.size(); ++s) {
    const KeySetResult& set = result.sets[s];
    ReportTable table = advice_table(set, kMostRows);
    if (table.rows.empty() || (tables.size() == most_sets && ++left_out > 0)) continue;
    if (result.sets.size() > 1) table.title += ", " + set_label(set, s);
    table.note = fmt::format("Each of these {}.", table.note);
    table.note += table.note.ends_with('.') ? "" : ".";
    if (set.for_all) table.note += fmt::format(" Offsets for all: {}.", offsets_words(*set.for_all));
    tables.push_back(std::move(table));
  }
  if (left_out > 0)
    tables.back().note +=
        fmt::format(" {} more {} in results.json.", left_out, left_out == 1 ? "set is" : "sets are");
  return tables;
}

std::string offsets_words(const OffsetsForAll& offsets, const char* one) {
  const double neediest =
      offsets.least.empty() ? 0 : *std::max_element(offsets.least.begin(), offsets.least.end());
  return fmt::format(
      "at least {:.4g} for the neediest {}; so much and up to {:.3g} more: {} selectable, {} tied, {} "
      "unselectable{}",
      neediest, one, offsets.bend, offsets.counts.selectable, offsets.counts.tied,
      offsets.counts.unselectable,
      offsets.counts.unselectable > 0 ? ", so close to others that offsets in doubles cannot tell them apart"
                                      : "");
}

ReportTable tokens_table(const std::string& source, const KeysRun& run) {
  return {"Tokens by verdict", table_of(std::vector<SetRow>{{source, run.sets.front(), true}})};
}

std::vector<Figure> keys_figures(const KeysRun& run, const std::string& settings) {
  const bool apart = run.sets.size() <= kMostCurves;
  std::vector<std::string> names;
  std::vector<std::vector<double>> margins, depths;
  for (std::size_t s = 0; s < run.sets.size(); ++s) {
    if (apart || s == 0) {
      const std::string& name = run.sets[s].name;
      names.push_back(run.sets.size() == 1 ? "keys"
                      : !apart             ? "all sets"
                      : name.empty()       ? fmt::format("set {}", s)
                                           : name);
      margins.emplace_back();
      depths.emplace_back();
    }
    margins.back().insert(margins.back().end(), run.sets[s].margins.begin(), run.sets[s].margins.end());
    depths.back().insert(depths.back().end(), run.sets[s].depths.begin(), run.sets[s].depths.end());
  }
  const auto any = [](const auto& groups) {
    return std::any_of(groups.begin(), groups.end(), [](const auto& values) {
      return std::any_of(values.begin(), values.end(),
                         [](double value) { return value > 0 && std::isfinite(value); });
    });
  };
  CurveFigure curves;
  if (any(margins))
    curves.panels.push_back(histogram("Margins of selectable keys",
                                      run.lower_bounds ? "margin (lower bound)" : "margin", names, margins));
  if (any(depths))
    curves.panels.push_back(histogram("Depths of unselectable keys", "depth (lower bound)", names, depths));
  if (curves.panels.empty()) return {};
  Figure figure{
      "margins", "How near the keys are to another verdict",
      "Keys by margin (how far the best query of norm 1 lifts a selectable key above all others) and by "
      "depth "
      "(how far inside the hull of the others an unselectable key lies), in equal steps of the logarithm."};
  figure.svg = curves_svg(curves);
  figure.csv = curves_csv(curves);
  figure.settings = settings;
  return {figure};
}

namespace {

struct PlaceRow {
  std::size_t key = 0;
  double x = 0, y = 0, z = 0;
  Verdict verdict = Verdict::selectable;

  static void describe(auto& visit, auto& self) {
    visit("key", self.key, "row of its set");
    visit("x", self.x, "place");
    visit("y", self.y, "place");
    visit("z", self.z, "place");
    visit("verdict", self.verdict, "what queries can do with it");
  }
};

}  // namespace

Figure keys_picture(MatrixView<const double> keys, std::span<const Verdict> verdicts, bool projected,
                    const std::string& title, const std::string& settings) {
  Figure figure{"keys", "The keys", "", "", "", settings};
  Csv<PlaceRow> csv(keys.cols == 2 ? std::vector<std::string_view>{"z"} : std::vector<std::string_view>{});
  for (std::size_t i = 0; i < keys.rows; ++i)
    csv.add({i, keys(i, 0), keys(i, 1), keys.cols == 3 ? keys(i, 2) : 0, verdicts[i]});
  figure.csv = std::move(csv).text();
  if (keys.cols == 2) {
    figure.caption =
        "The keys and their hull: its corners can be selected, what lies inside cannot. A dashed circle: all keys "
        "have this length.";
    figure.svg = key_plane_svg({keys, verdicts, title, settings});
    return figure;
  }
  figure.caption = "The keys in space; drag to turn them.";
  ScatterFigure::Panel panel{title, {}, projected};
  for (const Verdict verdict : values_of(Verdict())) {
    ScatterFigure::Group group{name_of(verdict), {}};
    for (std::size_t i = 0; i < keys.rows; ++i)
      if (verdicts[i] == verdict)
        group.points.push_back({keys(i, 0), keys(i, 1), keys(i, 2),
                                fmt::format("key {}: ({:.4g}, {:.4g}, {:.4g}), {}", i, keys(i, 0), keys(i, 1),
                                            keys(i, 2), name_of(verdict))});
    if (!group.points.empty()) panel.groups.push_back(std::move(group));
  }
  figure.svg = scatter_svg({{std::move(panel)}, settings});
  return figure;
}

Page keys_page(const KeysRun& run, const Provenance& provenance, std::string data) {
  Page page;
  page.title = "Which keys attention can select";
  page.verdict = keys_verdict(run);
  page.paragraphs = {fmt::format("{}{}.", run.source, run.norm == "none" ? "" : ", after " + run.norm),
                     "A key is selectable if some query gives it the strictly highest score, tied if some "
                     "query puts it on top but never alone, unselectable if every query that tells the keys "
                     "apart scores another key strictly higher. Robust verdicts are those that no rounding "
                     "of the numbers can have caused. Witnesses and covers are in results.json."};
  const std::string made =
      settings_text(provenance, run.source + (run.norm == "none" ? "" : ", norm " + run.norm));
  page.claims = keys_table(run, kMostRows);
  page.figures = keys_figures(run, made);
  page.tables = run.advice;
  page.footer = made;
  page.data = std::move(data);
  return page;
}

RunView keys_view(const KeysResult& result, const Provenance& made) {
  KeysRun run{result.settings.file, result.settings.norm, result.settings.margin == Margins::bound, {}};
  for (const KeySetResult& set : result.sets) run.sets.push_back(summary_of(set));
  if (run.sets.empty()) throw InputError("there is no set of keys");
  RunView view;
  view.section.verdict = keys_verdict(run);
  view.section.figures = keys_figures(run, settings_text(made, setting_words(result.settings)));
  view.section.tables = {keys_table(run, RunView::most_rows)};
  if (result.settings.advice)
    for (ReportTable& table : advice_tables(result)) view.section.tables.push_back(std::move(table));
  return view;
}

}  // namespace normscope
