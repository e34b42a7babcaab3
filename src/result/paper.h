#pragma once
// What `paper` answers, and what it keeps of a part that has ended.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/provenance.h"
#include "result/describe.h"

namespace normscope {

// How the language model of Fig. 4 and Tables 1 to 3 is trained and looked at.
struct LanguagePlan {
  std::string corpus, tokenizer;  // by name; a corpus may also be a file
  std::size_t seeds = 4;          // the first of the plan's
  std::size_t batch = 2, context = 1024;
  // 60 times the published rate over 800 in place of 50 000 steps: its sum over the steps, which is about
  // how far Adam can carry a parameter, is 1.2 in place of 1.25.
  std::uint64_t steps = 800, evaluate_every = 40;
  double learning_rate = 3e-3;
  std::uint64_t most_tokens = 0;
  std::size_t held_out = 8;
  std::size_t windows = 8;
  std::size_t trend_windows = 4;
  std::size_t snapshots = 11;

  static void describe(auto& visit, auto& self) {
    visit("corpus", self.corpus, "what it is trained on, by name or file", {.pattern = "."});
    visit("tokenizer", self.tokenizer, "by name");
    visit("seeds", self.seeds, "how many of the plan's", {.low = 1});
    visit("batch", self.batch, "texts of a step", {.low = 1});
    visit("context", self.context, "tokens of a text", {.low = 1});
    visit("steps", self.steps, "of training", {.low = 1});
    visit("evaluate_every", self.evaluate_every, "steps", {.low = 1});
    visit("learning_rate", self.learning_rate, "of Adam at the start", {.low = 0});
    visit("most_tokens", self.most_tokens, "of the corpus; 0: all");
    visit("held_out", self.held_out, "windows to measure losses on", {.low = 1});
    visit("windows", self.windows, "to decide keys of, after training", {.low = 1});
    visit("trend_windows", self.trend_windows, "and on the way", {.low = 1});
    visit("snapshots", self.snapshots, "at so many evaluations, the first and the last among them",
          {.low = 1});
  }
};

// The same of the sentiment model of Table 4.
struct SentimentPlan {
  std::string reviews, tokenizer;
  std::size_t seeds = 3;
  // Of the published 128 tokens and 3072 hidden units: so wide, nothing is learned within minutes at any
  // rate.
  std::size_t batch = 32, most_tokens = 64, feed_forward = 32;
  std::size_t training_texts = 0, test_texts = 1000;
  std::uint64_t steps = 1200, evaluate_every = 150;
  double learning_rate = 5e-3;

  static void describe(auto& visit, auto& self) {
    visit("reviews", self.reviews, "what it is trained on, by name or file", {.pattern = "."});
    visit("tokenizer", self.tokenizer, "by name");
    visit("seeds", self.seeds, "how many of the plan's", {.low = 1});
    visit("batch", self.batch, "texts of a step", {.low = 1});
    visit("most_tokens", self.most_tokens, "of a text", {.low = 1});
    visit("feed_forward", self.feed_forward, "hidden units", {.low = 1});
    visit("training_texts", self.training_texts, "evenly spaced; 0: all");
    visit("test_texts", self.test_texts, "evenly spaced; 0: all");
    visit("steps", self.steps, "of training", {.low = 1});
    visit("evaluate_every", self.evaluate_every, "steps", {.low = 1});
    visit("learning_rate", self.learning_rate, "of Adam at the start", {.low = 0});
  }
};

// Where the sentences of Tables 3 and 4 come from, and how many are looked at.
struct SentencePlan {
  std::string reviews;  // unless the plan has a text
  std::size_t count = 200;

  static void describe(auto& visit, auto& self) {
    visit("reviews", self.reviews, "where the sentences come from, by name or file", {.pattern = "."});
    visit("count", self.count, "sentences", {.low = 1});
  }
};

// As config.json holds it.
struct PaperPlan {
  std::vector<std::string> parts;
  std::vector<std::uint64_t> seeds;
  std::uint64_t steps = 0, steps_3d = 0;
  std::size_t draws = 100, samples = 8, deep_samples = 1;
  std::uint64_t seed = 0;  // of the heat maps and the collapse runs
  std::vector<std::string> models;
  std::string text;
  std::optional<LanguagePlan> language;
  std::optional<SentimentPlan> sentiment;
  std::optional<SentencePlan> sentences;

  bool has(std::string_view part) const { return std::find(parts.begin(), parts.end(), part) != parts.end(); }

  static void describe(auto& visit, auto& self) {
    visit("parts", self.parts, "what is rerun, in this order", {.least = 1});
    visit("seeds", self.seeds, "of the trainings", {.least = 1});
    visit("steps", self.steps, "of the majority runs in 8 dimensions", {.low = 1});
    visit("steps_3d", self.steps_3d, "at most, of those in 3", {.low = 1});
    visit("draws", self.draws, "of the heat maps", {.low = 1});
    visit("samples", self.samples, "of the collapse runs with 12 layers", {.low = 1});
    visit("deep_samples", self.deep_samples, "of those with 128", {.low = 1});
    visit("models", self.models, "pretrained, by the names they are opened by");
    visit("text", self.text, "file that they read, and sentences come from; empty: built in");
    visit.when(self.language.has_value(), "language", self.language, "how the language model is trained");
    visit.when(self.sentiment.has_value(), "sentiment", self.sentiment, "how the sentiment model is trained");
    visit.when(self.sentences.has_value(), "sentences", self.sentences, "which sentences are looked at");
  }
};

struct ClaimResult {
  std::string where, claim, published, measured, verdict, why;

  static void describe(auto& visit, auto& self) {
    visit("where", self.where, "figure, table or section", {.pattern = "."});
    visit("claim", self.claim, "in the paper's words, shortened", {.pattern = "."});
    visit("published", self.published, "value, with its unit", {.pattern = "."});
    visit("measured", self.measured, "mean and interval, over how many seeds", {.pattern = "."});
    visit("verdict", self.verdict, "holds, holds only if …, does not hold, open, or the answer",
          {.pattern = "."});
    visit("why", self.why, "the evidence, in a sentence or two");
  }
};

struct PaperResult {
  Provenance made;
  PaperPlan plan;
  std::vector<ClaimResult> claims;

  static void describe(auto& visit, auto& self) {
    std::string command = "paper";
    visit("command", command, "paper", {.always = "paper"});
    Provenance::describe(visit, self.made);
    PaperPlan::describe(visit, self.plan);
    visit("claims", self.claims, "each with its verdict", {.least = 1});
  }
};

}  // namespace normscope
