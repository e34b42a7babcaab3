#pragma once
// What `paper` answers, and what it keeps of a part that has ended.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/provenance.h"
#include "result/describe.h"

namespace normscope {

// How the language model of Fig. 4 and Tables 1 to 3 is trained and looked at.
struct LanguagePlan {
  std::string corpus, tokenizer;  // by name; a corpus may also be a file
  std::string squad = {};         // file with the texts whose keys are decided; empty: held out of the corpus
  std::string test_text = {};     // file that is measured on in place of what is held out; empty: none
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
    visit.when(!self.squad.empty(), "squad", self.squad, "file with the contexts whose keys are decided",
               {.pattern = "."});
    visit.when(!self.test_text.empty(), "test_text", self.test_text,
               "file whose losses are measured and keys decided, in place of what is held out",
               {.pattern = "."});
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

// Some more of something that claims look at.
struct PieceResult {
  std::string effort;
  std::size_t level = 1;
  std::string amount;
  std::vector<std::string> parts;

  bool operator==(const PieceResult&) const = default;
  static void describe(auto& visit, auto& self) {
    visit("effort", self.effort, "what is run more of", {.pattern = "."});
    visit("level", self.level, "how much, from 1", {.low = 1});
    visit("amount", self.amount, "the same in words");
    visit("parts", self.parts, "that look at it");
  }
};

// The options of an audit as they were given, apart from its parts: those of parts that are added follow from them.
struct PaperAsked {
  std::optional<std::size_t> seeds = {}, samples = {};
  std::optional<std::uint64_t> steps = {}, text_steps = {};
  std::string models = {}, text = {}, corpus = {}, reviews = {}, budget = {}, squad = {}, test_text = {};
  bool full = false;

  static void describe(auto& visit, auto& self) {
    visit("budget", self.budget, "of time; empty: the usual, or a fixed recipe");
    visit("squad", self.squad, "whose keys are decided; empty: text held out of the corpus");
    visit.when(!self.test_text.empty(), "test_text", self.test_text, "that is measured on", {.pattern = "."});
    visit.when(self.seeds.has_value(), "seeds", self.seeds, "how many of the paper's ten");
    visit.when(self.steps.has_value(), "steps", self.steps, "of the majority runs");
    visit.when(self.text_steps.has_value(), "text_steps", self.text_steps, "of the models of text");
    visit.when(self.samples.has_value(), "samples", self.samples, "of the collapse runs");
    visit("models", self.models, "pretrained; empty: those at hand");
    visit("text", self.text, "that they read; empty: built in");
    visit("corpus", self.corpus, "of the language model; empty: the first that was fetched");
    visit("reviews", self.reviews, "of the sentiment model and of sentences; empty: those fetched");
    visit("full", self.full, "whether at the published scale");
  }
};

// As config.json holds it.
struct PaperPlan {
  std::vector<std::string> parts;
  std::vector<std::uint64_t> seeds;
  std::uint64_t steps = 0, steps_3d = 0;
  std::size_t draws = 100, samples = 8, deep_samples = 1;
  std::uint64_t seed = 0;            // of the heat maps and the collapse runs
  std::optional<double> budget;      // seconds
  std::vector<PieceResult> repeats;  // pieces to run, and no others
  std::vector<std::string> models;
  std::string text;
  std::optional<LanguagePlan> language;
  std::optional<SentimentPlan> sentiment;
  std::optional<SentencePlan> sentences;
  std::optional<PaperAsked> asked;  // none: begun by a program that did not keep them

  bool has(std::string_view part) const { return std::find(parts.begin(), parts.end(), part) != parts.end(); }

  static void describe(auto& visit, auto& self) {
    visit("parts", self.parts, "what is rerun, in this order", {.least = 1});
    visit("seeds", self.seeds, "of the trainings", {.least = 1});
    visit("steps", self.steps, "of the majority runs in 8 dimensions", {.low = 1});
    visit("steps_3d", self.steps_3d, "at most, of those in 3", {.low = 1});
    visit("draws", self.draws, "of the heat maps", {.low = 1});
    visit("samples", self.samples, "of the collapse runs with 12 layers", {.low = 1});
    visit("deep_samples", self.deep_samples, "of those with 128", {.low = 1});
    visit.when(self.budget.has_value(), "budget", self.budget,
               "seconds for pieces, each where a claim is open; amounts are then the most of each",
               {.low = 0});
    visit.when(!self.repeats.empty(), "repeats", self.repeats, "pieces of an earlier audit, in order",
               {.least = 1});
    visit("models", self.models, "pretrained, by the names they are opened by");
    visit("text", self.text, "file that they read, and sentences come from; empty: built in");
    visit.when(self.language.has_value(), "language", self.language, "how the language model is trained");
    visit.when(self.sentiment.has_value(), "sentiment", self.sentiment, "how the sentiment model is trained");
    visit.when(self.sentences.has_value(), "sentences", self.sentences, "which sentences are looked at");
    visit.when(self.asked.has_value(), "asked", self.asked,
               "options as given; what `--resume` with `--only` adds follows from them");
  }
};

// open: not enough was run to tell; answered: the paper asked, and claimed nothing
enum class Holds { yes, conditionally, no, open, answered };
inline std::string name_of(Holds holds) {
  constexpr const char* names[] = {"yes", "conditionally", "no", "open", "answered"};
  return names[static_cast<std::size_t>(holds)];
}
inline std::span<const Holds> values_of(Holds) {
  static constexpr Holds all[] = {Holds::yes, Holds::conditionally, Holds::no, Holds::open, Holds::answered};
  return all;
}

// On which side of its threshold something must lie.
enum class Side { above, below, at_least, at_most };
inline std::string name_of(Side side) {
  constexpr const char* names[] = {"above", "below", "at least", "at most"};
  return names[static_cast<std::size_t>(side)];
}
inline std::span<const Side> values_of(Side) {
  static constexpr Side all[] = {Side::above, Side::below, Side::at_least, Side::at_most};
  return all;
}

// One interval against one threshold: what every verdict is made of.
struct ComparisonResult {
  std::string what, unit;
  double value = 0, low = 0, high = 0;
  std::size_t count = 0;
  Side direction = Side::above;
  double threshold = 0;
  std::string reason;
  std::optional<double> half, twice, published;
  std::string answer;

  static void describe(auto& visit, auto& self) {
    visit("what", self.what, "what was measured");
    visit("unit", self.unit, "of all numbers here: ×, °, %, nats, or none");
    visit("value", self.value, "measured; null: nothing was");
    visit("low", self.low, "lower end of its interval; null: it has none, as of one sample, or no end");
    visit("high", self.high, "upper end");
    visit("count", self.count, "values that the interval is of; 0: an exact number");
    visit("direction", self.direction, "where it must lie");
    visit("threshold", self.threshold, "against which it is held", {.finite = true});
    visit("reason", self.reason, "why this threshold; empty: a natural one, no difference or none at all");
    visit("half", self.half, "half the threshold, counted from no difference; null: it is natural");
    visit("twice", self.twice, "and twice");
    visit("published", self.published, "value of the paper; null: it has none in this unit");
    visit("answer", self.answer, "yes, no or not yet", {.pattern = "^(yes|no|not yet)$"});
  }
};

// A claim beside what was measured.
struct ClaimResult {
  std::string where, claim, published, measured = {}, verdict = {}, why = {};
  std::string id = {}, part = {}, paper = {}, topic = {};
  Holds holds = Holds::open;
  std::string condition = {};
  std::string stand_in = {}, not_at_hand = {}, missing = {}, more = {};
  std::optional<double> more_seconds = {};
  Holds holds_half = Holds::open, holds_twice = Holds::open;
  std::vector<ComparisonResult> comparisons = {};
  double level = 0.95;
  std::size_t looks = 1, pieces = 1;
  std::string amount = {};
  std::vector<std::string> figures = {}, confounds = {};

  static void describe(auto& visit, auto& self) {
    visit("where", self.where, "figure, table or section", {.pattern = "."});
    visit("claim", self.claim, "in the paper's words, shortened", {.pattern = "."});
    visit("published", self.published, "value, with its unit", {.pattern = "."});
    visit("measured", self.measured, "mean and interval, over how many seeds", {.pattern = "."});
    visit("verdict", self.verdict,
          "holds, holds only if …, does not hold, open, or the answer; of a stand-in with its name before it",
          {.pattern = "."});
    visit("why", self.why, "the evidence, in a sentence or two");
    visit("id", self.id, "part and number: the address of its card");
    visit("part", self.part, "of the audit");
    visit("paper", self.paper, "brody2023, wu2024, or beyond");
    visit("topic", self.topic, "what it is about, in a word");
    visit("holds", self.holds, "the verdict in a word");
    visit("condition", self.condition, "what must be granted, or the answer of a question");
    visit("stand_in", self.stand_in, "what was looked at in the place of the paper's; empty: nothing");
    visit("not_at_hand", self.not_at_hand, "what the paper looked at, and was not looked at here");
    visit("missing", self.missing, "what would settle it; of a settled claim, what is nearest to turning it");
    visit("more", self.more, "while it is open: what could be run more of, and at what cost; empty: nothing");
    visit("more_seconds", self.more_seconds, "about, on two cores; null: there is nothing more to run",
          {.low = 0});
    visit("holds_half", self.holds_half, "the verdict with all thresholds halved");
    visit("holds_twice", self.holds_twice, "and doubled");
    visit("comparisons", self.comparisons, "what the verdict is made of, in order");
    visit("level", self.level, "of the intervals: stricter the more there are, and the more often one looks",
          {.low = 0, .high = 1});
    visit("looks", self.looks, "until it was settled, or until now");
    visit("pieces", self.pieces, "of the audit that its part has had");
    visit("amount", self.amount, "of what it was judged by: samples, seeds");
    visit("figures", self.figures, "that belong to it, by name");
    visit("confounds", self.confounds,
          "what the paper did not separate: scale, dropout, eps, head-space, heat-map, mu-scale");
  }
};

// What would settle it, or turn it, and what is left to run of that.
inline std::string what_is_missing(const ClaimResult& claim) {
  std::string text = claim.missing;
  if (!claim.more.empty()) text += (text.empty() ? "" : " ") + ("Left to run: " + claim.more) + ".";
  return text;
}

struct PaperResult {
  Provenance made;
  PaperPlan plan;
  std::vector<PieceResult> pieces;
  std::vector<ClaimResult> claims;

  static void describe(auto& visit, auto& self) {
    std::string command = "paper";
    visit("command", command, "paper", {.always = "paper"});
    Provenance::describe(visit, self.made);
    PaperPlan::describe(visit, self.plan);
    visit("pieces", self.pieces, "in the order in which they were run");
    visit("claims", self.claims, "each with its verdict", {.least = 1});
  }
};

}  // namespace normscope
