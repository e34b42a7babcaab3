#pragma once
// What `normscope report` is asked for.
#include <filesystem>
#include <string>
#include <vector>

#include "result/options.h"

namespace normscope {

struct ReportOptions {
  std::vector<std::string> runs = {};
  std::string out = "report.html";

  static void describe(auto& visit, auto& self) {
    visit.input("RUN", self.runs, "Directories that --out named");
    visit("out", self.out, "The page; of files that are there, only a report is replaced",
          OptionFacts{.type = "FILE"});
  }
};

// The directories named, each once; after a run of `paper` the trainings inside it. Throws InputError if there are too
// many, or if the page would take the place of a file of one, or of any other file that is no report of ours.
std::vector<std::filesystem::path> runs_of(const ReportOptions& options);
// Where the page goes; links in it are relative to that.
std::filesystem::path folder_of(const ReportOptions& options);

}  // namespace normscope
