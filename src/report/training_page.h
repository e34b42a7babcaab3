#pragma once
// Trainings as curves with bands over seeds.
#include <span>
#include <string>
#include <vector>

#include "report/curves.h"
#include "report/run_files.h"

namespace normscope {

// What was trained on, in words.
struct TrainingAbout {
  std::string title;
  std::vector<std::string> paragraphs;
};
TrainingAbout about_majority();
TrainingAbout about_language();
TrainingAbout about_sentiment();

// What the paper published, beside the curves; the panels in the order of TrainingSeries::measures.
using TrainingMarks = std::array<std::vector<CurveFigure::Mark>, TrainingSeries::measures.size()>;

// A panel for each measure that the series have. One curve per norm: the mean over its seeds, with its 95 %
// interval where there are three or more; of two seeds both curves. Marks beyond the last step are left out.
CurveFigure training_curves(std::span<const TrainingSeries> series, const TrainingMarks& marks);
// Thinned to what pixels can show, which the caption then says.
Figure training_figure(std::span<const TrainingSeries> series, const TrainingMarks& marks,
                       const std::string& settings);
// What a table of means shows, given the number of runs of every norm: an interval, or both values of two.
std::string over_seeds(std::span<const std::size_t> runs);
// A header, and the last values of each norm.
ReportTable training_table(std::span<const TrainingSeries> series);
// unfinished: of how many steps the training has come to those of the series.
std::string training_verdict(std::span<const TrainingSeries> series,
                             std::optional<std::uint64_t> unfinished = {});
// settings: as config.json has them.
Page training_page(const TrainingAbout& about, std::span<const TrainingSeries> series,
                   const TrainingMarks& marks, const nlohmann::ordered_json& settings,
                   const Provenance& provenance, std::string data);
// "classes 20, length 50, …"
std::string settings_list(const nlohmann::ordered_json& settings);

}  // namespace normscope
