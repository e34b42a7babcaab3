#include "serve/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "serve/runs.h"

namespace normscope::serve {
namespace {

constexpr std::size_t kMostMeasures = 12, kMostSeries = 1000, kMostPoints = 400;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::size_t measure_index(Metrics& metrics, const std::string& name) {
  const auto found = std::find(metrics.measures.begin(), metrics.measures.end(), name);
  const auto index = static_cast<std::size_t>(found - metrics.measures.begin());
  if (found == metrics.measures.end() && index < kMostMeasures) metrics.measures.push_back(name);
  return index;
}

using SeriesPlaces = std::map<std::pair<std::string, std::string>, std::size_t>;

void add_line(Metrics& metrics, SeriesPlaces& places, const Json& line) {
  const auto step = line.find("step");
  if (step == line.end() || !step->is_number()) return;
  std::string name, seed;
  Metrics::Point point{step->get<double>(), {}};
  for (const auto& [key, value] : line.items()) {
    if (key == "seed") {
      seed = brief(value);
    } else if (value.is_string()) {
      name += (name.empty() ? "" : " · ") + brief(value);
    } else if (key != "step" && (value.is_number() || value.is_null())) {
      const std::size_t index = measure_index(metrics, key);
      if (index >= kMostMeasures) continue;
      point.values.resize(std::max(point.values.size(), index + 1), kNothing);
      if (value.is_number()) point.values[index] = value.get<double>();
    }
  }
  const auto [place, added] = places.try_emplace({name, seed}, metrics.series.size());
  if (added && metrics.series.size() < kMostSeries) metrics.series.push_back({name, seed, {}});
  if (place->second >= metrics.series.size()) return;
  metrics.series[place->second].points.push_back(std::move(point));
  metrics.last_step = std::max(metrics.last_step, step->get<double>());
  ++metrics.lines;
}

double value_of(const Metrics::Point& point, std::size_t measure) {
  return measure < point.values.size() ? point.values[measure] : kNothing;
}

// A curve is called what it is in the legend; a series without a name (no norm) is "run".
std::string shown_name(const std::string& name) {
  return name.empty() ? "run" : name;
}

CurveFigure::Curve single(const Metrics::Series& series, std::size_t measure) {
  CurveFigure::Curve curve{
      shown_name(series.name), {}, {}, {}, {}, series.seed.empty() ? "" : "seed " + series.seed};
  for (const Metrics::Point& point : series.points) {
    curve.x.push_back(point.step);
    curve.y.push_back(value_of(point, measure));
  }
  return curve;
}

// At each step over the seeds that are there already.
CurveFigure::Curve mean(const std::vector<const Metrics::Series*>& seeds, std::size_t measure) {
  struct Column {
    double sum = 0, low = INFINITY, high = -INFINITY;
    std::size_t count = 0;
  };
  std::map<double, Column> columns;
  for (const Metrics::Series* series : seeds) {
    for (const Metrics::Point& point : series->points) {
      Column& column = columns[point.step];
      const double value = value_of(point, measure);
      if (!std::isfinite(value)) continue;
      column.sum += value;
      column.low = std::min(column.low, value);
      column.high = std::max(column.high, value);
      ++column.count;
    }
  }
  CurveFigure::Curve curve{shown_name(seeds.front()->name), {}, {}, {}, {}};
  for (const auto& [step, column] : columns) {
    curve.x.push_back(step);
    curve.y.push_back(column.count == 0 ? kNothing : column.sum / static_cast<double>(column.count));
    if (seeds.size() < 2) continue;
    curve.low.push_back(column.count == 0 ? kNothing : column.low);
    curve.high.push_back(column.count == 0 ? kNothing : column.high);
  }
  return curve;
}

}  // namespace

std::optional<std::string> lines_from(const File& log, std::uint64_t from, std::size_t most) {
  if (from > log.size) return std::nullopt;
  if (from > 0 && log.read(from - 1, 1) != "\n") return std::nullopt;
  std::string text = log.read(from, most);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos && text.size() == most) return std::nullopt;
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

Metrics read_metrics(std::string_view lines) {
  Metrics metrics;
  SeriesPlaces places;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) break;
    if (const auto line = parse_json(lines.substr(0, end)); line && line->is_object())
      add_line(metrics, places, *line);
    lines.remove_prefix(end + 1);
  }
  return metrics;
}

CurveFigure metrics_figure(const Metrics& metrics, const CurveChoice& choice) {
  std::vector<std::vector<const Metrics::Series*>> groups;  // one per name
  std::map<std::string, std::size_t> places;
  std::size_t most_seeds = 0;
  for (const Metrics::Series& series : metrics.series) {
    const bool any_seed = choice.seed == "mean" || choice.seed == "each";
    if (!any_seed && series.seed != choice.seed) continue;
    const auto [place, added] = places.try_emplace(series.name, groups.size());
    if (added) groups.emplace_back();
    groups[place->second].push_back(&series);
    most_seeds = std::max(most_seeds, groups[place->second].size());
  }
  CurveFigure figure;
  for (std::size_t measure = 0; measure < metrics.measures.size(); ++measure) {
    CurveFigure::Panel panel;
    panel.title = spaced(metrics.measures[measure]);
    panel.x_label = "step";
    for (const auto& seeds : groups) {
      // A name that is not chosen stays, empty, so that colours do not change with the choice.
      if (!choice.name.empty() && seeds.front()->name != choice.name) {
        panel.curves.push_back({shown_name(seeds.front()->name), {}, {}, {}, {}});
      } else if (choice.seed == "mean") {
        panel.curves.push_back(mean(seeds, measure));
      } else {
        for (const Metrics::Series* series : seeds) panel.curves.push_back(single(*series, measure));
      }
    }
    figure.panels.push_back(std::move(panel));
  }
  if (choice.seed == "mean" && most_seeds > 1)
    figure.caption =
        fmt::format("Lines are means over {} seeds, bands go from the lowest to the highest.", most_seeds);
  if (choice.seed == "each" && most_seeds > 1)
    figure.caption = fmt::format("One line for each of {} seeds.", most_seeds);
  thin(figure, kMostPoints);
  return figure;
}

}  // namespace normscope::serve
