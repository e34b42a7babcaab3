#include "report/training_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/number_text.h"
#include "normscope/statistics.h"
#include "result/columns.h"

namespace normscope {
namespace {

constexpr std::size_t kMostPoints = 1200;  // per curve: twice the pixels of a panel

struct Quantity {
  const char *title, *unit;
  bool log;
  double least, most;  // no interval goes beyond
};
constexpr Quantity kQuantities[] = {{"Training loss", "cross-entropy, nats", true, 0, 1e300},
                                    {"Test accuracy per position", "share right", false, 0, 1},
                                    {"Angle of the queries to 1", "degrees", false, 0, 90},
                                    {"Attention: distance from uniform", "total variation", false, 0, 1},
                                    {"Held-out loss", "cross-entropy, nats", true, 0, 1e300}};
using Measure = TrainingSeries::Measure;
// Both losses side by side.
constexpr Measure kOrder[] = {Measure::train_loss, Measure::held_out_loss, Measure::accuracy, Measure::angle,
                              Measure::attention_distance};

// The training loss is there from the first evaluation on.
bool is_measured(std::span<const TrainingSeries> series, Measure measure) {
  return measure == Measure::train_loss ||
         std::any_of(series.begin(), series.end(), [&](const TrainingSeries& each) {
           return std::any_of(each.rows.begin(), each.rows.end(),
                              [&](const auto& row) { return std::isfinite(row.values[measure]); });
         });
}

// Majority is named at every position of a sequence; a text has one class.
const char* accuracy_title(std::span<const TrainingSeries> series) {
  return is_measured(series, Measure::angle) ? kQuantities[Measure::accuracy].title : "Test accuracy";
}

std::vector<std::string> norms_of(std::span<const TrainingSeries> series) {
  std::vector<std::string> norms;
  for (const TrainingSeries& each : series) {
    if (std::find(norms.begin(), norms.end(), each.norm) == norms.end()) norms.push_back(each.norm);
  }
  return norms;
}

// What was measured of one norm: a curve per seed.
std::vector<CurveFigure::Curve> runs_of(std::span<const TrainingSeries> series, const std::string& norm,
                                        Measure measure) {
  std::vector<CurveFigure::Curve> runs;
  for (const TrainingSeries& each : series) {
    if (each.norm != norm) continue;
    CurveFigure::Curve run{norm, {}, {}, {}, {}, fmt::format("seed {}", each.seed)};
    for (const auto& row : each.rows) {
      if (!std::isfinite(row.values[measure])) continue;
      run.x.push_back(row.step);
      run.y.push_back(row.values[measure]);
    }
    if (!run.x.empty()) runs.push_back(std::move(run));
  }
  return runs;
}

// The interval of two values is so wide that it says less than they do, and would fill the panel.
CurveFigure::Curve mean_of(std::span<const CurveFigure::Curve> runs, const std::string& norm,
                           const Quantity& quantity) {
  std::map<double, std::vector<double>> by_step;
  for (const CurveFigure::Curve& run : runs) {
    for (std::size_t i = 0; i < run.x.size(); ++i) by_step[run.x[i]].push_back(run.y[i]);
  }
  CurveFigure::Curve curve;
  curve.name = norm;
  bool band = false;
  std::size_t seeds = by_step.empty() ? 0 : by_step.begin()->second.size();
  for (const auto& [step, values] : by_step) {
    const Interval interval = mean_interval(values);
    if (values.size() != seeds) {  // a mean over other seeds does not go on from the one before
      for (std::vector<double>* gap : {&curve.y, &curve.low, &curve.high}) gap->push_back(std::nan(""));
      curve.x.push_back((curve.x.back() + step) / 2);
      seeds = values.size();
    }
    curve.x.push_back(step);
    curve.y.push_back(interval.mean);
    const bool shown = interval.count > 2;
    curve.low.push_back(shown ? std::max(interval.low, quantity.least) : std::nan(""));
    curve.high.push_back(shown ? std::min(interval.high, quantity.most) : std::nan(""));
    band = band || shown;
  }
  if (!band) curve.low.clear(), curve.high.clear();
  return curve;
}

// Of two seeds both curves, of more their mean.
std::vector<CurveFigure::Curve> curves_of(std::span<const TrainingSeries> series, const std::string& norm,
                                          Measure measure) {
  std::vector<CurveFigure::Curve> runs = runs_of(series, norm, measure);
  if (runs.size() == 2) return runs;
  return {mean_of(runs, norm, kQuantities[measure])};
}

std::string last_value(std::span<const TrainingSeries> series, const std::string& norm, Measure measure,
                       int digits, double factor = 1) {
  std::vector<double> values;
  for (const TrainingSeries& each : series) {
    if (each.norm == norm && !each.rows.empty() && std::isfinite(each.rows.back().values[measure]))
      values.push_back(each.rows.back().values[measure]);
  }
  return with_interval(mean_interval(values), digits, factor, {.none = "–"});
}

std::string over_seeds_in_words(const CurveFigure& figure) {
  bool means = false, both = false;
  for (const CurveFigure::Panel& panel : figure.panels) {
    for (const CurveFigure::Curve& curve : panel.curves) (curve.run.empty() ? means : both) = true;
  }
  std::string text =
      means ? "Means over seeds; bands are their 95 % intervals. A gap is where some seeds end." : "";
  if (both) text += fmt::format("{}Of two seeds both curves are drawn.", means ? " " : "");
  return text;
}

struct NormRow {
  std::string norm;
  std::size_t runs = 0;
  double step = 0;
  Named<std::string> measures = {};

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "before attention");
    visit("runs", self.runs, "of this norm");
    visit("last step", fmt::format("{:.0f}", self.step), "of the longest");
    visit("measures", self.measures, "there, over the runs");
  }
};

std::string seeds_of(std::span<const TrainingSeries> series) {
  std::set<std::uint64_t> seeds;
  for (const TrainingSeries& each : series) seeds.insert(each.seed);
  constexpr std::size_t most = 20;
  std::string text = seeds.size() == 1 ? "seed " : "seeds ";
  std::size_t shown = 0;
  for (const std::uint64_t seed : seeds) {
    if (++shown > most) break;
    text += fmt::format("{}{}", shown == 1 ? "" : ", ", seed);
  }
  return text + (seeds.size() > most ? " …" : "");
}

}  // namespace

CurveFigure training_curves(std::span<const TrainingSeries> series, const TrainingMarks& marks) {
  CurveFigure figure;
  double last = 0;
  for (const TrainingSeries& each : series) {
    if (!each.rows.empty()) last = std::max(last, each.rows.back().step);
  }
  for (const Measure m : kOrder) {
    if (!is_measured(series, m)) continue;
    CurveFigure::Panel& panel = figure.panels.emplace_back();
    panel.title = m == Measure::accuracy ? accuracy_title(series) : kQuantities[m].title;
    panel.x_label = "training step";
    panel.y_label = kQuantities[m].unit;
    panel.log_y = kQuantities[m].log;
    for (const std::string& norm : norms_of(series)) {
      for (CurveFigure::Curve& curve : curves_of(series, norm, m)) panel.curves.push_back(std::move(curve));
    }
    for (const CurveFigure::Mark& mark : marks[m]) {
      if (mark.x <= last) panel.marks.push_back(mark);
    }
  }
  return figure;
}

Figure training_figure(std::span<const TrainingSeries> series, const TrainingMarks& marks,
                       const std::string& settings) {
  CurveFigure curves = training_curves(series, marks);
  const std::size_t left_out = thin(curves, kMostPoints);
  Figure figure{"training", "Training, by norm", over_seeds_in_words(curves)};
  const bool published = std::any_of(curves.panels.begin(), curves.panels.end(),
                                     [](const auto& panel) { return !panel.marks.empty(); });
  if (published) figure.caption += " Diamonds are the values the paper published.";
  if (left_out > 0)
    figure.caption +=
        fmt::format(" {} points that pixels cannot show were left out; metrics.jsonl has all.", left_out);
  figure.svg = curves_svg(curves);
  figure.csv = curves_csv(curves);
  figure.settings = seeds_of(series) + (settings.empty() ? "" : " · " + settings);
  return figure;
}

std::string over_seeds(std::span<const std::size_t> runs) {
  const bool two = std::find(runs.begin(), runs.end(), 2) != runs.end();
  const bool more = std::any_of(runs.begin(), runs.end(), [](std::size_t count) { return count > 2; });
  if (!two && !more) return "one seed has no interval";
  std::string text = more ? "± is the 95 % interval over seeds" : "";
  if (two) text += fmt::format("{}of two seeds both values are shown", more ? "; " : "");
  return text;
}

ReportTable training_table(std::span<const TrainingSeries> series) {
  struct Shown {
    Measure measure;
    const char* name;
    int digits;
    double factor;
  };
  constexpr Shown measures[] = {{Measure::train_loss, "train loss", 3, 1},
                                {Measure::held_out_loss, "held-out loss", 3, 1},
                                {Measure::accuracy, "accuracy %", 1, 100},
                                {Measure::angle, "angle to 1, degrees", 1, 1},
                                {Measure::attention_distance, "attention from uniform", 3, 1}};
  std::vector<NormRow> rows;
  std::vector<std::size_t> counts;
  for (const std::string& norm : norms_of(series)) {
    NormRow& row = rows.emplace_back(NormRow{norm});
    for (const TrainingSeries& each : series) {
      if (each.norm != norm) continue;
      ++row.runs;
      row.step = std::max(row.step, each.last_step());
    }
    counts.push_back(row.runs);
    for (const Shown& each : measures)
      if (is_measured(series, each.measure))
        row.measures.emplace_back(each.name,
                                  last_value(series, norm, each.measure, each.digits, each.factor));
  }
  return {fmt::format("Where the trainings are ({})", over_seeds(counts)), table_of(rows)};
}

std::string training_verdict(std::span<const TrainingSeries> series,
                             std::optional<std::uint64_t> unfinished) {
  const bool accuracy = is_measured(series, Measure::accuracy),
             held_out = is_measured(series, Measure::held_out_loss);
  std::string text;
  for (const std::string& norm : norms_of(series)) {
    const std::string value =
        accuracy ? last_value(series, norm, Measure::accuracy, 1, 100) + " %"
                 : last_value(series, norm, held_out ? Measure::held_out_loss : Measure::train_loss, 3);
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", norm, value);
  }
  const char* what = accuracy ? accuracy_title(series) : held_out ? "Held-out loss" : "Training loss";
  double step = 0;
  for (const TrainingSeries& each : series) step = std::max(step, each.last_step());
  const std::string when =
      unfinished ? fmt::format("so far, at step {:.0f} of {}", step, *unfinished) : "at the last step";
  return text.empty() ? "" : fmt::format("{} {}: {}.", what, when, text);
}

std::string settings_list(const nlohmann::ordered_json& settings) {
  const auto plain = [](const nlohmann::ordered_json& value) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  constexpr std::size_t longest = 80;
  std::string text;
  if (!settings.is_object()) return text;
  for (const auto& [name, value] : settings.items()) {
    if (value.is_null() || value.is_object() || value.empty()) continue;
    std::string shown;
    if (value.is_array()) {
      for (const auto& each : value) shown += (shown.empty() ? "" : " ") + plain(each);
    } else {
      shown = plain(value);
    }
    if (shown.empty()) continue;
    if (shown.size() > longest) shown = shown.substr(0, longest) + "…";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, shown);
  }
  return text;
}

TrainingAbout about_majority() {
  return {
      "Training on the majority task",
      {"The majority task of Brody, Alon and Yahav (2023), §4.1: name the token type that occurs most often "
       "in a sequence, at every position. Attention that weighs all keys alike solves it exactly, and keys "
       "orthogonal to 1 let a query along 1 do so: its angle to 1 then falls, and attention nears "
       "uniform."}};
}

TrainingAbout about_language() {
  return {
      "Training a language model",
      {"A GPT-2 that learns what follows what, as Brody, Alon and Yahav (2023) trained it: the norm is "
       "that before attention. LayerNorm scales its output to one length: on such a sphere no key lies inside "
       "the others' hull, and only eps and rounding take keys off it. A norm that only centres does not. "
       "Losses are in nats per token."}};
}

TrainingAbout about_sentiment() {
  return {"Training a classifier of texts",
          {"A BERT that names the class of a text, as Brody, Alon and Yahav (2023) trained it, without any "
           "norm; another norm stands in every place that BERT has one. Losses are in nats per text."}};
}

Page training_page(const TrainingAbout& about, std::span<const TrainingSeries> series,
                   const TrainingMarks& marks, const nlohmann::ordered_json& settings,
                   const Provenance& provenance, std::string data) {
  Page page;
  page.title = about.title;
  page.verdict = training_verdict(series);
  page.paragraphs = about.paragraphs;
  const std::string made =
      fmt::format("{} · normscope {} ({}, {}, {} thread{})", settings_list(settings), provenance.version,
                  provenance.commit, provenance.isa, provenance.threads, provenance.threads == 1 ? "" : "s");
  page.figures.push_back(training_figure(series, marks, made));
  page.tables.push_back(training_table(series));
  page.footer = made;
  page.data = std::move(data);
  return page;
}

}  // namespace normscope
