// Fig. 4 and Tables 1 to 4: trainings on text, in run directories of their own, whose keys are decided on the
// way.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "cli/paper_parts.h"
#include "core/utf8.h"
#include "corpus/fetched_sets.h"
#include "normscope/corpus.h"
#include "normscope/error.h"
#include "normscope/labelled_text.h"
#include "normscope/text_windows.h"
#include "normscope/token_stream.h"
#include "record/json.h"
#include "study/model_text.h"
#include "study/train_text.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 12;        // sentences of a table
constexpr std::size_t kFewestTokens = 8;  // of a sentence
constexpr std::size_t kGrammarReviews = 10'000;
constexpr double kHeldOutShare = 0.05;

bool needs_language(const PaperPlan& plan) {
  return plan.has("fig4") || plan.has("table1") || plan.has("table2") || plan.has("table3");
}

std::string text_tokenizer_at_hand() {
  try {
    return training_tokenizer("bert").name;
  } catch (const InputError&) {
    return "words";
  }
}

bool is_corpus_name(const std::string& name) {
  return name == "imdb" || name == "gutenberg" || name == "grammar";
}
std::unique_ptr<const Corpus> open_corpus(const std::string& name, std::uint64_t seed) {
  return is_corpus_name(name) ? corpus_by_name(name, seed) : text_corpus(std::span(&name, 1));
}

bool is_review_name(const std::string& name) {
  return name == "imdb" || name == "grammar";
}
LabelledSplit open_reviews(const std::string& name, std::uint64_t seed) {
  constexpr double test_share = 0.2;
  if (name == "imdb") return imdb_reviews();
  return split_labelled(name == "grammar" ? grammar_reviews(kGrammarReviews, seed) : read_labelled(name),
                        test_share, seed);
}

// A file that is read again when the run is resumed, from wherever that is.
std::string lasting_file(const std::string& file, const char* option) {
  if (file == "-")
    throw InputError(fmt::format("{}: a run that can be resumed needs a file, not standard input.", option));
  return lasting_path(file);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Sequence sequence = first_sequence(text);
    if (!sequence.valid) return false;
    text.remove_prefix(sequence.size);
  }
  return true;
}

// A sentence as the model reads it; none if it has too few or too many tokens, or they cut characters.
std::optional<Sentence> tokenized(const std::string& text, const TrainingTokenizer& tokenizer,
                                  std::size_t most_tokens) {
  Sentence sentence;
  std::size_t told = 0;  // bytes of the text; spaces that a tokenizer leaves out go with what follows
  for (const Token& token : tokenizer.tokenizer.encode(text)) {
    sentence.ids.push_back(token.id);
    std::string& spelled = sentence.spelled.emplace_back();
    if (is_added(token) || token.end <= told) continue;
    spelled = text.substr(told, token.end - told);
    told = token.end;
    if (!is_utf8(spelled)) return std::nullopt;
  }
  if (sentence.ids.size() < kFewestTokens || sentence.ids.size() > most_tokens) return std::nullopt;
  return sentence;
}

struct Sentences {
  std::vector<Sentence> all;
  std::string source;  // for people
};

// Those of the text that was given, or the first of each of many reviews of the test part.
Sentences sentences_for(const PaperPlan& plan, const TrainingTokenizer& tokenizer, std::size_t most_tokens) {
  const SentencePlan wanted = plan.sentences.value_or(SentencePlan());
  Sentences found;
  const auto take = [&](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (found.all.size() == wanted.count) return;
      if (auto sentence = tokenized(text, tokenizer, most_tokens)) found.all.push_back(std::move(*sentence));
    }
  };
  if (!plan.text.empty()) {
    take(short_sentences(read_text_file(plan.text, "--text"), SIZE_MAX));
    found.source = label_of_source(plan.text);
  } else {
    LabelledTexts reviews = open_reviews(wanted.reviews, plan.seed).test;
    thin_out(reviews, 4 * wanted.count);  // not every review begins with a sentence that will do
    for (const LabelledText& row : reviews.rows) take(short_sentences(row.text, 1));
    found.source = "reviews: " + reviews.description;
  }
  if (found.all.empty()) {
    throw InputError(fmt::format(
        "{} has no sentence of 30 to 160 characters and at least {} tokens that ends with '.', '!' or '?'.",
        plan.text.empty() ? "The set of reviews" : "--text: " + label_of_source(plan.text), kFewestTokens));
  }
  return found;
}

// Steps at which keys are decided: evaluations, evenly spread, the first and the last among them.
std::vector<std::uint64_t> snapshot_steps(const LanguagePlan& plan) {
  std::vector<std::uint64_t> evaluations;
  for (std::uint64_t step = 0; step < plan.steps; step += plan.evaluate_every) evaluations.push_back(step);
  evaluations.push_back(plan.steps);
  const std::size_t count = std::clamp<std::size_t>(plan.snapshots, 2, evaluations.size());
  std::vector<std::uint64_t> steps;
  for (std::size_t i = 0; i < count; ++i)
    steps.push_back(evaluations[i * (evaluations.size() - 1) / (count - 1)]);
  return steps;
}

Json tally_json(const KeyTally& tally) {
  return {tally.keys, tally.tied, tally.unselectable, tally.robust};
}
KeyTally read_tally(const Json& json) {
  const auto at = [&](std::size_t i) { return json.at(i).get<std::size_t>(); };
  return {at(0), at(1), at(2), at(3)};
}

// The tally of one snapshot as it is kept beside the training.
Json snapshot_json(const ModelTally& tally) {
  Json json = {{"columns", {"keys", "tied", "unselectable", "robust"}},
               {"windows", tally.windows},
               {"layers", Json::array()}};
  for (const LayerTally& layer : tally.layers) {
    Json heads = Json::array();
    for (const KeyTally& head : layer.heads) heads.push_back(tally_json(head));
    json["layers"].push_back({{"before", tally_json(layer.before)},
                              {"after", tally_json(layer.after)},
                              {"unrounded", tally_json(layer.unrounded)},
                              {"sphere", tally_json(layer.sphere)},
                              {"heads", heads}});
  }
  return json;
}

// None if there is no such file, or it cannot be ours or is of another number of windows.
std::optional<ModelTally> read_snapshot(const fs::path& file, std::size_t windows) {
  std::ifstream stream(file);
  const Json json = Json::parse(stream, nullptr, false);
  try {
    ModelTally tally;
    json.at("windows").get_to(tally.windows);
    if (tally.windows != windows) return std::nullopt;
    for (const Json& each : json.at("layers")) {
      LayerTally& layer = tally.layers.emplace_back();
      layer.before = read_tally(each.at("before"));
      layer.after = read_tally(each.at("after"));
      layer.unrounded = read_tally(each.at("unrounded"));
      layer.sphere = read_tally(each.at("sphere"));
      for (const Json& head : each.at("heads")) layer.heads.push_back(read_tally(head));
    }
    return tally;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::vector<PlannedRun> runs_of(const PaperPlan& plan, std::size_t seeds,
                                const std::vector<std::string>& norms) {
  return every_run(norms, std::span(plan.seeds).first(std::min(seeds, plan.seeds.size())));
}

// Trained from where it was left; evidence has its rows.
TextStudy train_on(const Audit& audit, const TextPlan& plan, const TextsRead& texts, TextRecord& record,
                   const char* label, const std::function<void(const TextTraining&)>& evaluated = {}) {
  Progress progress(audit.common, label, "tokens", &audit.whole);
  TextStudy study{
      study_text(plan, texts, &record, context_of(audit.common, audit.executor, &progress), evaluated)
          .training,
      {},
      {},
      texts.tokenizer};
  for (const TrainingRunId& id : plan.runs) study.runs.emplace_back().id = id;
  return study;
}

// Runs whose loss left its course say nothing of the claims.
void take_rows(TextStudy& study) {
  const auto runs = study.training.runs();
  for (std::size_t r = 0; r < runs.size(); ++r) {
    study.runs[r].rows = runs[r].rows;
    study.runs[r].broken = runs[r].trouble.has_value();
  }
}

void note_trouble(const Audit& audit, const TextStudy& study, const fs::path& directory) {
  for (const TextRun& run : study.training.runs()) {
    if (!run.trouble) continue;
    std::optional<LastGood> good;
    if (run.step > 0) good = LastGood{directory / kCheckpointFile, run.step};
    note(audit.common,
         fmt::format("Left out: {}, seed {}: {}", run.id.norm, run.id.seed, sentence_of(*run.trouble, good)));
  }
}

TextStudy study_language(const Audit& audit) {
  const LanguagePlan& wanted = *audit.plan.language;
  const std::unique_ptr<const Corpus> corpus = open_corpus(wanted.corpus, audit.plan.seed);
  const TextsRead texts =
      read_language(*corpus, wanted.tokenizer, {wanted.context, wanted.most_tokens, kHeldOutShare},
                    wanted.batch, wanted.held_out, audit.executor);
  const TokenStream& stream = *texts.stream;

  TextPlan plan;
  static_cast<TextTrainingSettings&>(plan.settings) = published_language_training();
  plan.settings.spec.model.positions = std::max(plan.settings.spec.model.positions, wanted.context);
  plan.settings.adam.learning_rate = wanted.learning_rate;
  plan.settings.adam.schedule.steps = plan.settings.steps = wanted.steps;
  plan.settings.evaluate_every = wanted.evaluate_every;
  plan.runs = runs_of(audit.plan, wanted.seeds, {kWithScaling, kWithoutScaling});
  plan.settings.batch = wanted.batch;
  plan.settings.context = wanted.context;
  plan.data.source = corpus->name();
  if (!is_corpus_name(wanted.corpus)) plan.data.files = {wanted.corpus};
  plan.data.seed = audit.plan.seed;
  plan.data.most_tokens = wanted.most_tokens;
  plan.data.held_out_share = kHeldOutShare;
  plan.data.tokenizer = wanted.tokenizer;
  plan = with_texts(std::move(plan), texts);
  const auto windows_of = [&](std::size_t most) {
    std::vector<std::vector<std::uint32_t>> windows;
    for (const TokenBatch& batch : held_out_batches(stream.held_out(), wanted.context, 1, most))
      windows.push_back(batch.tokens);
    return windows;
  };
  const auto last_windows = windows_of(wanted.windows), trend_windows = windows_of(wanted.trend_windows);

  const fs::path directory = audit.directory / "language";
  TextRecord record = TextRecord::begin_or_open(directory, "train lm",
                                                provenance(audit.plan.seed, audit.executor.threads()), plan);
  const bool looks = audit.plan.has("table1") || audit.plan.has("table2");
  const std::vector<std::uint64_t> steps = looks ? snapshot_steps(wanted) : std::vector<std::uint64_t>();
  const auto file_of = [&](const TrainingRunId& id, std::uint64_t step) {
    return fmt::format("keys-{}-seed{}-step{}.json", id.norm, id.seed, step);
  };
  const auto windows_at = [&](std::uint64_t step) -> const auto& {
    return step == plan.settings.steps ? last_windows : trend_windows;
  };
  // Kept before a checkpoint goes beyond the step.
  const auto look = [&](const TextTraining& training) {
    for (const TextRun& run : training.runs()) {
      if (run.trouble || std::find(steps.begin(), steps.end(), run.step) == steps.end()) continue;
      const std::string file = file_of(run.id, run.step);
      const auto& windows = windows_at(run.step);
      if (read_snapshot(directory / file, windows.size())) continue;
      const auto model = trained_model(run.spec, run.parameters);
      record.directory().write(file,
                               json_text(snapshot_json(tally_keys(*model, windows, audit.executor)), -1));
    }
  };
  TextStudy study = train_on(audit, plan, texts, record, "Language model", look);
  look(study.training);  // a training that had ended before
  take_rows(study);
  note_trouble(audit, study, directory);
  for (TextEvidence& run : study.runs) {
    for (const std::uint64_t step : steps) {
      if (auto tally = read_snapshot(directory / file_of(run.id, step), windows_at(step).size()))
        run.snapshots.push_back({step, std::move(*tally)});
    }
  }

  study.recipe.corpus = texts.found.description;
  study.recipe.tokenizer = texts.found.tokenizer;
  study.recipe.generated = texts.found.generated;
  study.recipe.steps = wanted.steps;
  study.recipe.batch = wanted.batch;
  study.recipe.context = wanted.context;
  study.recipe.learning_rate = wanted.learning_rate;
  study.recipe.dropout = plan.settings.spec.model.block.dropout;
  study.recipe.eps = plan.settings.spec.model.block.norm.eps;
  study.recipe.vocabulary = texts.tokenizer->size();
  study.recipe.training_tokens = stream.training_tokens;
  study.recipe.windows = last_windows.size();
  return study;
}

// Trained by the first part that looks at it, which also shows the recipe.
TextStudy& language_of(Audit& audit, std::string_view part) {
  if (!audit.language) audit.language.emplace(study_language(audit));
  const auto& parts = audit.plan.parts;
  const auto first = std::find_if(parts.begin(), parts.end(), [](const std::string& each) {
    return each == "fig4" || each == "table1" || each == "table2" || each == "table3";
  });
  if (first != parts.end() && *first == part) audit.tables.push_back(language_recipe(audit.language->recipe));
  return *audit.language;
}

void mark(const Audit& audit, TextStudy& study, const std::string& label) {
  const Sentences sentences = sentences_for(audit.plan, *study.tokenizer, study.recipe.context);
  study.recipe.sentences = sentences.all.size();
  study.recipe.sentence_source = sentences.source;
  Progress progress(audit.common, label, "sentences", &audit.whole);
  const auto runs = study.training.runs();
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].trouble) continue;
    const auto model = trained_model(runs[r].spec, runs[r].parameters);
    study.runs[r].marked = mark_sentences(*model, sentences.all, audit.executor);
    progress.update((r + 1) * sentences.all.size(), runs.size() * sentences.all.size());
  }
}

void show_sentences(Audit& audit, const TextStudy& study, const char* norm, const char* name,
                    const std::string& title) {
  const TextEvidence* run = first_run(study.runs, norm);
  if (run == nullptr) return;
  TextFinding finding;
  finding.name = name;
  finding.title = title;
  finding.caption = fmt::format(
      "{}Of {} sentences ({}) those with the most unselectable tokens, a line each; underlined is what no "
      "query "
      "can put on top, among the tokens of its sentence, in at least one layer. Tokens: {}. Seed {}.",
      study.recipe.generated ? "GENERATED TEXT, not language. " : "", run->marked.sentences.size(),
      study.recipe.sentence_source, study.recipe.tokenizer, run->id.seed);
  finding.text = marked_figure(run->marked.sentences, kShown);
  audit.texts.push_back(std::move(finding));
}

TextStudy study_sentiment(const Audit& audit) {
  const SentimentPlan& wanted = *audit.plan.sentiment;
  LabelledSplit reviews = open_reviews(wanted.reviews, audit.plan.seed);
  thin_out(reviews.training, wanted.training_texts);
  thin_out(reviews.test, wanted.test_texts);
  const TextsRead texts = read_labelled_texts(reviews, wanted.tokenizer, wanted.most_tokens, wanted.batch,
                                              reviews.test.rows.size(), audit.executor);

  TextPlan plan;
  static_cast<TextTrainingSettings&>(plan.settings) = published_sentiment_training();
  plan.settings.spec.model.block.feed_forward = wanted.feed_forward;
  plan.settings.adam.learning_rate = wanted.learning_rate;
  plan.settings.adam.schedule.steps = plan.settings.steps = wanted.steps;
  plan.settings.evaluate_every = wanted.evaluate_every;
  plan.runs = runs_of(audit.plan, wanted.seeds, {"none"});
  plan.settings.batch = wanted.batch;
  plan.settings.context = wanted.most_tokens;
  plan.data.source = reviews.training.name;
  if (!is_review_name(wanted.reviews)) plan.data.files = {wanted.reviews};
  plan.data.seed = audit.plan.seed;
  plan.data.tokenizer = wanted.tokenizer;
  plan = with_texts(std::move(plan), texts);

  const fs::path directory = audit.directory / "sentiment";
  TextRecord record = TextRecord::begin_or_open(directory, "train sentiment",
                                                provenance(audit.plan.seed, audit.executor.threads()), plan);
  TextStudy study = train_on(audit, plan, texts, record, "Sentiment model");
  take_rows(study);
  note_trouble(audit, study, directory);

  study.recipe.corpus = texts.found.description;
  study.recipe.tokenizer = texts.found.tokenizer;
  study.recipe.generated = texts.found.generated;
  study.recipe.steps = wanted.steps;
  study.recipe.batch = wanted.batch;
  study.recipe.context = wanted.most_tokens;
  study.recipe.feed_forward = wanted.feed_forward;
  study.recipe.learning_rate = wanted.learning_rate;
  study.recipe.dropout = plan.settings.spec.model.block.dropout;
  study.recipe.vocabulary = texts.tokenizer->size();
  study.recipe.training_texts = texts.found.training_texts;
  study.recipe.classes = plan.settings.spec.classes;
  return study;
}

// So many steps, and about twelve evaluations on the way.
void set_steps(std::uint64_t steps, std::uint64_t& all, std::uint64_t& evaluate_every) {
  all = steps;
  evaluate_every = std::max<std::uint64_t>(1, steps / 12);
}

LanguagePlan resolved_language(const PaperPlan& plan, const TextWishes& wishes) {
  LanguagePlan language;
  language.corpus = wishes.corpus;
  if (language.corpus.empty()) language.corpus = default_corpus(plan.seed)->name();
  language.tokenizer = default_language_tokenizer().name;
  if (wishes.scale == TextScale::brief) {
    language.tokenizer = "bytes";
    language.batch = 1;
    language.steps = 400;
    language.held_out = 4;
    language.windows = 2;
    language.trend_windows = 1;
    language.snapshots = 5;
  }
  if (wishes.scale == TextScale::published) {
    language.batch = 16;
    language.steps = 50'000;
    language.evaluate_every = 50;  // minutes of all runs: what a kill can cost
    language.learning_rate = 5e-5;
    language.held_out = 64;
    language.windows = 1000;
    language.trend_windows = 16;
    language.snapshots = 11;
  }
  if (wishes.steps) set_steps(*wishes.steps, language.steps, language.evaluate_every);
  language.seeds = std::min(wishes.seeds.value_or(language.seeds), plan.seeds.size());
  // No more text is read than is trained on, and what is held out beside it.
  if (wishes.scale != TextScale::published) {
    const std::uint64_t seen = language.steps * language.batch * language.context;
    const std::uint64_t held_out = language.context * std::max(language.windows, language.held_out);
    language.most_tokens = seen + seen / 10 + static_cast<std::uint64_t>(1 / kHeldOutShare) * held_out;
  }
  return language;
}

SentimentPlan resolved_sentiment(const PaperPlan& plan, const TextWishes& wishes) {
  SentimentPlan sentiment;
  sentiment.reviews = wishes.reviews;
  sentiment.tokenizer = text_tokenizer_at_hand();
  if (wishes.scale == TextScale::brief) {
    sentiment.steps = 600;
    sentiment.evaluate_every = 200;
    sentiment.test_texts = 400;
  }
  if (wishes.scale == TextScale::published) {
    sentiment.steps = 50'000;
    sentiment.evaluate_every = 500;
    sentiment.learning_rate = 5e-5;
    sentiment.most_tokens = 128;
    sentiment.feed_forward = published_sentiment_model().model.block.feed_forward;
  }
  if (wishes.steps) set_steps(*wishes.steps, sentiment.steps, sentiment.evaluate_every);
  sentiment.seeds = std::min(wishes.seeds.value_or(sentiment.seeds), plan.seeds.size());
  if (wishes.scale != TextScale::published) sentiment.training_texts = sentiment.steps * sentiment.batch;
  return sentiment;
}

}  // namespace

bool needs_sentences(const PaperPlan& plan) {
  return plan.has("table3") || plan.has("table4");
}
bool needs_text(const PaperPlan& plan) {
  return needs_language(plan) || plan.has("table4");
}

void resolve_text(PaperPlan& plan, const TextWishes& given) {
  TextWishes wishes = given;
  // What is wrong with a text is better told before the first part than after an hour.
  if (!wishes.corpus.empty()) {
    if (!needs_language(plan))
      throw InputError("--corpus is for fig4, table1, table2 and table3, none of which --only names.");
    if (!is_corpus_name(wishes.corpus)) wishes.corpus = lasting_file(wishes.corpus, "--corpus");
    open_corpus(wishes.corpus, plan.seed);
  }
  if (wishes.reviews.empty()) {
    wishes.reviews = corpus::has_fetched("imdb") ? "imdb" : "grammar";
  } else {
    if (!needs_sentences(plan))
      throw InputError("--reviews is for table3 and table4, none of which --only names.");
    if (!is_review_name(wishes.reviews)) wishes.reviews = lasting_file(wishes.reviews, "--reviews");
    open_reviews(wishes.reviews, plan.seed);
  }
  if (needs_language(plan)) plan.language = resolved_language(plan, wishes);
  if (plan.has("table4")) plan.sentiment = resolved_sentiment(plan, wishes);
  if (!needs_sentences(plan)) return;
  SentencePlan sentences;
  sentences.reviews = wishes.reviews;
  if (wishes.scale == TextScale::brief) sentences.count = 50;
  plan.sentences = sentences;
  if (!plan.text.empty()) sentences_for(plan, training_tokenizer("bytes"), SIZE_MAX);
}

std::string text_paragraph(const PaperPlan& plan) {
  std::string text =
      "The language model of Brody, Alon and Yahav 2023 (GPT-2's architecture, d 8, 4 layers, 4 heads of 2 "
      "dimensions; with scaling: "
      "LayerNorm "
      "before attention, without: projection only) and their sentiment model (BERT's architecture, d 8, no "
      "norm "
      "anywhere), trained here. What was published and what was done differ as the tables \"Recipe\" say.";
  const bool published = (!plan.language || plan.language->steps >= 50'000) &&
                         (!plan.sentiment || plan.sentiment->steps >= 50'000);
  if (!published)
    text +=
        " This is a REDUCED recipe, of minutes: verdicts that would need the published 50 000 steps are "
        "conditional or open. --text-steps takes more, --full all of them.";
  const bool generated = (plan.language && plan.language->corpus == "grammar") ||
                         (plan.sentiment && plan.sentiment->reviews == "grammar");
  if (generated)
    text +=
        " No corpus has been fetched, so TEXT WAS GENERATED BY A BUILT-IN GRAMMAR: it is not language, and "
        "what is found on it is not found on language. normscope data get imdb (26 MB) brings real text.";
  return text;
}

void run_fig4(Audit& audit) {
  const TextStudy& study = language_of(audit, "fig4");
  audit.add(claims_of_figure4(study.runs, study.recipe));
  audit.figures.push_back(figure4(study.runs, study.recipe));
}

void run_table1(Audit& audit) {
  const TextStudy& study = language_of(audit, "table1");
  audit.add(claims_of_table1(study.runs, study.recipe));
  audit.figures.push_back(selectability_trend(study.runs, study.recipe));
  audit.tables.push_back(table1(study.runs));
}

void run_table2(Audit& audit) {
  const TextStudy& study = language_of(audit, "table2");
  audit.add(claims_of_table2(study.runs, study.recipe));
  audit.tables.push_back(table2(study.runs));
}

void run_table3(Audit& audit) {
  TextStudy& study = language_of(audit, "table3");
  mark(audit, study, "Table 3");
  audit.add(claims_of_table3(study.runs, study.recipe));
  show_sentences(audit, study, kWithoutScaling, "table3",
                 "Table 3: unselectable words, language model without scaling");
}

void run_table4(Audit& audit) {
  TextStudy study = study_sentiment(audit);
  mark(audit, study, "Table 4");
  audit.add(claims_of_table4(study.runs, study.recipe));
  show_sentences(audit, study, "none", "table4", "Table 4: unselectable words, BERT without norms");
  audit.tables.push_back(table4(study.runs));
  audit.tables.push_back(sentiment_recipe(study.recipe));
}

}  // namespace normscope::cli
