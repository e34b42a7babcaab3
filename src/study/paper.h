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
#include "report/carded_page.h"
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
  std::string budget = {}, pieces = {}, squad = {}, test_text = {};

  static void describe(auto& visit, auto& self) {
    visit("only", self.only, "Parts, with commas",
          OptionFacts{.type = "LIST", .otherwise = "all but those that run only if named"});
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
    visit("models", self.models,
          "Pretrained models of wu2, wu3, wu4, wu8, wu9, beyond and page, with commas, or none",
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
    visit(
        "squad", self.squad,
        "Whose keys table1 and table2 decide: contexts in SQuAD's JSON, as in the paper, in windows of 1024 tokens",
        OptionFacts{.type = "FILE", .otherwise = "text held out of the corpus"});
    visit(
        "test-text", self.test_text,
        "Another text that fig4 measures losses on, and whose keys table1 and table2 decide unless --squad gives them",
        OptionFacts{.type = "FILE", .otherwise = "text held out of the corpus"});
    visit("full", self.full,
          "The published number of training steps, and 200 samples; the text parts then take days");
    visit("budget", self.budget,
          "Time, as 90s, 10m or 2h, that is spent on seeds and samples where a claim is open",
          OptionFacts{.type = "TIME",
                      .otherwise = "10m, unless --seeds, --steps, --text-steps, --samples or "
                                   "--full say how much is run"});
    visit("pieces", self.pieces,
          "Run the pieces that the log of an earlier audit has, pieces.jsonl, whatever the clock says",
          OptionFacts{.type = "FILE", .otherwise = "as many as the budget allows"});
  }
};

// Seconds of "90s", "10m", "2h" or "1d". Throws InputError.
double parse_duration(const std::string& text, const char* option);
// Of the log of an earlier audit. Throws InputError if it has none, or pieces that no part of the plan looks at.
std::vector<PieceResult> read_piece_log(const std::string& file, const PaperPlan& plan);

using Note = std::function<void(std::string_view sentence)>;

// The options as resolved, by what has been fetched; what was left out is noted. What is wrong with a model
// or a text is told here rather than after an hour. Throws InputError on that, and on options that no part
// uses.
PaperPlan plan_paper(const PaperOptions& options, std::uint64_t seed, const Note& note);
// That of a run to go on with. Throws InputError if there is none.
PaperPlan read_paper_plan(const std::filesystem::path& directory);
// That of an earlier run with the parts of `more.only` beside its own, as if all had been asked for at once.
// Throws InputError if an option is not that of the run, unless only parts that are added use it.
PaperPlan widened_plan(const PaperPlan& run, const PaperOptions& more, std::optional<std::uint64_t> seed,
                       const Note& note);

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
// Trainings and parts that have ended are kept in the directory, and not run again. Null: another process of the
// job has it.
PaperStudy study_paper(const PaperPlan& plan, const RunDirectory* directory, const PaperContext& context);
// The plan of the first process of a job, in all: what has been fetched may differ between machines.
PaperPlan plan_of_first(const std::function<PaperPlan()>& plan, const Executor& executor);
CardedPage paper_page(const PaperStudy& study);

}  // namespace normscope
