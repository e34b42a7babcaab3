#pragma once
// Which tokens of a text can the layers and heads of a trained model select?
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "result/model_on_text.h"
#include "result/options.h"
#include "result/scan_summary.h"
#include "study/context.h"
#include "study/model_text.h"

namespace normscope {

struct ScanOptions {
  TextOptions text;
  std::string layers, heads;
  std::vector<std::string> spaces = {"before", "model", "head", "reachable"};
  std::string mask;
  Margins margin = Margins::bound;
  std::optional<KeySpace> highlight;
  std::string trace;
  bool no_weights = false;

  static void describe(auto& visit, auto& self) {
    TextOptions::describe(visit, self.text);
    visit("layers", self.layers, "Layers, such as 0,1 or 0:3",
          OptionFacts{.type = "LIST", .otherwise = "all"});
    visit("heads", self.heads, "Heads", OptionFacts{.type = "LIST", .otherwise = "all"});
    visit("space", self.spaces, "Key spaces: before and model (before and after the norm), head, reachable");
    visit("mask", self.mask,
          "full: every query sees all tokens of a window; causal: those up to itself, within the model's "
          "sliding window",
          OptionFacts{.type = "NAME", .otherwise = "the model's"});
    visit("margin", self.margin, "bound (fast, lower bounds) or exact");
    visit("highlight", self.highlight, "Whose unselectable tokens are marked in the text",
          OptionFacts{.type = "SPACE"});
    visit("trace", self.trace,
          "Write activations to DIR, a file per layer: attn.norm.in, attn.norm.out, attn.query, attn.key, "
          "attn.value, attn.out, out, or all",
          OptionFacts{.type = "POINTS"});
    visit("no-weights", self.no_weights,
          "Without the largest weights reachable queries can give, which take time");
  }
};

// The model and the text, read, and what is to be done with them.
struct ScanPlan {
  Checkpoint checkpoint;
  ModelText text;
  ModelOnText about;
  bool as_model = true;  // a place sees what the model's queries do
  ScanSettings settings;
  std::vector<TracePoint> trace;
  std::filesystem::path trace_directory;
  ScanResult::Settings told;  // the settings as results and config.json say them
};

// trace_directory: where the files of --trace go, if they are asked for; it must be there when the plan runs.
// Throws InputError on what cannot be, and as open_checkpoint and read_model_text do.
ScanPlan plan_scan(const ScanOptions& options, std::filesystem::path trace_directory = {});

// Names of the files of --trace.
std::vector<std::string> trace_files(const ScanPlan& plan);

struct ScanStudy {
  ScanSummary summary;
  ScanResult result;
};
ScanStudy run_scan(const ScanPlan& plan, const Context& context);

// All of it.
ScanStudy study_scan(const ScanOptions& options, const Context& context,
                     std::filesystem::path trace_directory = {});

// Passes of a model that somebody else has run, such as a live one of PyTorch, and what is known of it.
struct LiveTrace {
  std::string model, family, text;  // names, for people; text: what was read
  std::size_t width = 0;            // of a token
  LiveMask mask;
  std::vector<LiveWindow> windows;
  std::vector<std::vector<std::string>> tokens;  // of each window, as the text has them
};
struct LiveStudy {
  ScanPlan plan;  // without a checkpoint and a text: for pages
  ScanStudy study;
};
// The options of scan that need no weights: layers, heads, space, mask, margin. Throws InputError on the others, and as
// scan_live does.
LiveStudy study_live(const LiveTrace& trace, const ScanOptions& options, const Context& context);

}  // namespace normscope
