#pragma once
// Do the claims of Brody, Alon, Yahav 2023 and of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024 hold? Parts,
// each a figure or a table (paper/part.h), and the trainings and models they look at.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/record.h"
#include "paper/part.h"
#include "result/options.h"
#include "result/paper.h"
#include "study/context.h"

namespace normscope {

struct PaperOptions {
  std::string only = {};
  std::optional<std::size_t> seeds = {};
  std::optional<std::uint64_t> steps = {}, text_steps = {};
  std::optional<std::size_t> samples = {};
  std::string models = {}, text = {}, corpus = {}, reviews = {};
  bool full = false;

  static void describe(auto& visit, auto& self) {
    visit("only", self.only, "Parts, with commas", OptionFacts{.type = "LIST", .otherwise = "all"});
    visit("seeds", self.seeds, "How many of the paper's ten seeds",
          OptionFacts{.low = 1, .high = 10, .otherwise = "10; all parts at once: 3"});
    visit(
        "steps", self.steps, "Training steps of the majority runs",
        OptionFacts{.low = 1,
                    .high = 1e9,
                    .otherwise = "6000; all parts at once: 4000; with --full 17000; in 3-D until solved, at "
                                 "most 10000"});
    visit("text-steps", self.text_steps, "Training steps of the language and the sentiment model",
          OptionFacts{.low = 1,
                      .high = 1e9,
                      .otherwise = "800 and 1200; all parts at once: in small; with --full 50000"});
    visit("samples", self.samples, "Samples of the collapse runs",
          OptionFacts{.low = 1,
                      .high = 1e5,
                      .otherwise = "8; all parts at once: 2; with --full 200; over 128 layers 1 and 4"});
    visit("models", self.models, "Pretrained models of wu2, wu3, wu4, wu8, wu9, with commas, or none",
          OptionFacts{.type = "LIST",
                      .otherwise = "those of the paper in the Hugging Face cache, and those fetched by "
                                   "`normscope data get`"});
    visit("text", self.text, "What they read, and where the sentences of table3 and table4 come from",
          OptionFacts{.type = "FILE", .otherwise = "a built-in text; reviews"});
    visit("corpus", self.corpus,
          "What the language model is trained on: imdb, gutenberg, grammar, or a text file, such as the "
          "paper's Wikipedia",
          OptionFacts{.type = "NAME", .otherwise = "the first that was fetched"});
    visit("reviews", self.reviews,
          "What the sentiment model is trained on, and sentences come from: imdb, grammar, or a file as of "
          "`train sentiment --data`, such as the paper's SST-2",
          OptionFacts{.type = "NAME", .otherwise = "imdb if it was fetched"});
    visit("full", self.full,
          "The published number of training steps, and 200 samples; the text parts then take days");
  }
};

using Note = std::function<void(std::string_view sentence)>;

// The options as resolved, by what has been fetched; what was left out is noted. What is wrong with a model
// or a text is told here rather than after an hour. Throws InputError on that, and on options that no part
// uses.
PaperPlan plan_paper(const PaperOptions& options, std::uint64_t seed, const Note& note);
// That of a run to go on with. Throws InputError if there is none.
PaperPlan read_paper_plan(const std::filesystem::path& directory);

// What the study needs from outside.
struct PaperContext {
  const Executor& executor;
  Note note;
  // A context for one step of a part, which tells of its progress under a label, in a unit.
  std::function<Context(const std::string& label, const char* unit)> step;
  // A part begins: what all take, what those that have ended took, and what it takes, about, in seconds.
  std::function<void(double total, double before, double part)> begins;
};

struct PaperStudy {
  Findings found;
  PaperResult result;
};
// Trainings and parts that have ended are kept in the directory, and not run again.
PaperStudy study_paper(const PaperPlan& plan, const RunDirectory& directory, const PaperContext& context);
Page paper_page(const PaperStudy& study);

}  // namespace normscope
