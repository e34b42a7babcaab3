#pragma once
// metrics.jsonl of a training, finished or running: its whole lines, and the curves they hold.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/curves.h"
#include "serve/files.h"

namespace normscope::serve {

// Whole lines from a byte on, at most `most` bytes of them; a last line that is not ended yet is left out.
// None if `from` is not where a line begins (the log was cut, or the caller made it up), or if one line alone
// is longer than `most`.
std::optional<std::string> lines_from(const File& log, std::uint64_t from, std::size_t most);

// One line per evaluation: an object with the step, the seed, texts that name the curve (the norm) and
// numbers, each of which is a measure. Other lines are left out.
struct Metrics {
  struct Point {
    double step;
    std::vector<double> values;  // by measure; NaN: not told
  };
  struct Series {
    std::string name, seed;
    std::vector<Point> points;
  };
  std::vector<std::string> measures;  // in the order of their first use, at most 12
  std::vector<Series> series;         // in the order of their first use, at most 1000
  std::size_t lines = 0;
  double last_step = 0;
};
Metrics read_metrics(std::string_view lines);

struct CurveChoice {
  std::string name;  // empty: all
  std::string seed;  // "mean" over seeds, "each" on its own, or one of them
};
// A panel per measure, a colour per name.
CurveFigure metrics_figure(const Metrics& metrics, const CurveChoice& choice);

}  // namespace normscope::serve
