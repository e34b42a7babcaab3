#pragma once
// One report over several runs: what they are, what differs, their figures drawn anew from what they stored.
#include <functional>
#include <string_view>

#include "report/carded_page.h"
#include "report/run_files.h"
#include "report/run_view.h"
#include "report/training_page.h"

namespace normscope {

// What results.json of a command says; of one that is not known its single values. Throws InputError if the
// results are not what the command writes.
RunView results_view(std::string_view command, const nlohmann::ordered_json& results,
                     const nlohmann::ordered_json& config);

class RunsReport {
 public:
  struct Options {
    std::filesystem::path folder;  // of the report: links to the runs' own reports are relative to it
    // Published values that a training with these settings may be held against.
    std::function<TrainingMarks(const nlohmann::ordered_json& settings)> marks;
    std::size_t runs = 1;                 // how many will be added: they share the room for figures
    std::size_t most_bytes = 15'000'000;  // of all figures
  };
  explicit RunsReport(Options options) : options_(std::move(options)), left_(options_.most_bytes) {}

  // What is not needed any more is dropped, so that the results of one run at a time are held. Throws
  // InputError if the results are not what the command writes.
  void add(RunFiles run);
  CardedPage page(const Provenance& provenance) const;

 private:
  struct Known {
    std::string name, command, version, state, verdict;
    std::string seed;
    nlohmann::ordered_json options;
    TrainingLog log;
    std::vector<RunView::Map> maps;
    ReportTable beside;
  };
  static void add_beside(Page& page, const std::string& command, const std::vector<const Known*>& group);
  void keep_what_fits(PageSection& section);

  Options options_;
  std::size_t left_;
  std::vector<Known> runs_;
  std::vector<PageSection> sections_;
  std::vector<std::vector<Card>> cards_;  // of these
};

}  // namespace normscope
