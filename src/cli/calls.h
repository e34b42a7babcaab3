#pragma once
// What the command line has besides the options of a study: where files go, and what every door has (run/calls.h).
#include <string>
#include <vector>

#include "run/calls.h"
#include "study/heatmap.h"
#include "study/mask.h"

namespace normscope::cli {

// What every command has that keeps finished pieces of its work.
struct ResumeOption {
  static void describe(auto& visit, auto& resume) {
    visit(
        "resume", resume,
        "Go on with the unfinished run in this directory, which --out named; its other options are those it was "
        "begun with",
        OptionFacts{.type = "DIR"});
  }
};

template <class Options>
struct KeptCall {
  Options study = {};
  std::string resume = {};

  static void describe(auto& visit, auto& self) {
    Options::describe(visit, self.study);
    ResumeOption::describe(visit, self.resume);
  }
};

struct HeatmapCall {
  HeatmapStudyOptions study = {};
  std::string csv = {}, resume = {};

  static void describe(auto& visit, auto& self) {
    HeatmapStudyOptions::describe(visit, self.study);
    visit("csv", self.csv, "Write the cells as CSV; - is standard output, instead of the text",
          OptionFacts{.type = "FILE"});
    ResumeOption::describe(visit, self.resume);
  }
};

struct MaskCall {
  MaskOptions study = {};
  std::string edges = {};

  static void describe(auto& visit, auto& self) {
    MaskOptions::describe(visit, self.study);
    visit("edges", self.edges,
          "Write the mask as an edge list, `i j`: token i attends to token j; - is standard output, instead "
          "of the text",
          OptionFacts{.type = "FILE"});
  }
};

using normscope::PaperCall;
using normscope::TrainingCall;

// What of a collapse the command line has besides.
struct CollapseCall : normscope::CollapseCall {
  std::string resume = {};

  static void describe(auto& visit, auto& self) {
    normscope::CollapseCall::describe(visit, self);
    ResumeOption::describe(visit, self.resume);
  }
};

struct SubmitCall {
  std::vector<std::string> command = {};
  std::size_t nodes = 1, tasks = 1, threads = 8;
  std::string limit = "24:00:00", time = {}, memory = {}, launcher = "srun --mpi=pmix", script = "-";
  double dry_run = 20;

  static void describe(auto& visit, auto& self) {
    visit.input(
        "COMMAND", self.command,
        "A command with its options, after --: keys, scan, vocab, heatmap, collapse, equilibria, train or "
        "paper, with --out",
        OptionFacts{.type = "COMMAND…"});
    visit("nodes", self.nodes, "Machines", OptionFacts{.low = 1, .high = 1e5});
    visit("tasks", self.tasks, "Processes on each machine", OptionFacts{.low = 1, .high = 1e4});
    visit("threads", self.threads, "Threads of each process", OptionFacts{.low = 1, .high = 1024});
    visit("limit", self.limit, "Longest time that the cluster allows a job, hours:minutes:seconds",
          OptionFacts{.type = "TIME"});
    visit("time", self.time, "Time of the whole run; what a dry run says is then not asked",
          OptionFacts{.type = "TIME", .otherwise = "estimated"});
    visit("memory", self.memory, "Memory of each process, as Slurm writes it: 4G",
          OptionFacts{.type = "SIZE", .otherwise = "twice what a dry run takes"});
    visit("dry-run", self.dry_run, "Seconds of the dry run",
          OptionFacts{.type = "S", .low = 1, .high = 3600});
    visit("launcher", self.launcher, "What starts the processes in the script", OptionFacts{.type = "WORDS"});
    visit("script", self.script, "File of the script; - is standard output", OptionFacts{.type = "FILE"});
  }
};

}  // namespace normscope::cli
