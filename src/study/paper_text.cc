// Fig. 4 and Tables 1 to 4: trainings on text, in run directories of their own, whose keys are decided on the
// way.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/run_pieces.h"
#include "core/utf8.h"
#include "corpus/fetched_sets.h"
#include "normscope/corpus.h"
#include "normscope/error.h"
#include "normscope/labelled_text.h"
#include "normscope/text_windows.h"
#include "normscope/token_stream.h"
#include "paper/published_sentences.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "study/model_text.h"
#include "study/paper_evidence.h"
#include "study/train_text.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFewestTokens = 8;  // of a sentence
constexpr std::size_t kGrammarReviews = 10'000;
constexpr double kHeldOutShare = 0.05;

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

// Those of the text that was given, or those that the paper shows and the first of each of many reviews of the
// test part.
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
    for (const int table : {3, 4})
      for (const PublishedSentence& sentence : published_sentences(table)) take({sentence.text});
    if (!found.all.empty()) found.source = "of Tables 3 and 4, and of ";
    LabelledTexts reviews = open_reviews(wanted.reviews, plan.seed).test;
    thin_out(reviews, 4 * wanted.count);  // not every review begins with a sentence that will do
    for (const LabelledText& row : reviews.rows) take(short_sentences(row.text, 1));
    found.source += "reviews: " + reviews.description;
  }
  if (found.all.empty()) {
    throw InputError(fmt::format(
        "{} has no sentence of 30 to 240 characters and at least {} tokens that ends with '.', '!' or '?'.",
        plan.text.empty() ? "The set of reviews" : "--text: " + label_of_source(plan.text), kFewestTokens));
  }
  return found;
}

// Contexts in SQuAD's layout, {"data": [{"paragraphs": [{"context": …}]}]}: of each article all, one after the other.
std::vector<std::string> squad_articles(const std::string& file) {
  const auto wrong = [&](const std::string& what) {
    return InputError(fmt::format(
        "--squad: {} {}; give a file in SQuAD's layout: {{\"data\": [{{\"paragraphs\": [{{\"context\": …}}]}}]}}.",
        label_of_source(file), what));
  };
  const auto json = nlohmann::json::parse(read_text_file(file, "--squad"), nullptr, false);
  if (!json.is_object() || !json.contains("data") || !json["data"].is_array())
    throw wrong("has no list 'data'");
  std::vector<std::string> articles;
  for (const auto& article : json["data"]) {
    if (!article.is_object() || !article.contains("paragraphs") || !article["paragraphs"].is_array())
      throw wrong("has an article without a list 'paragraphs'");
    std::string& text = articles.emplace_back();
    for (const auto& paragraph : article["paragraphs"]) {
      if (!paragraph.is_object() || !paragraph.contains("context") || !paragraph["context"].is_string())
        throw wrong("has a paragraph without a text 'context'");
      text += paragraph["context"].get<std::string>() + "\n";
    }
  }
  return articles;
}
// Whole windows, those of the first article first.
std::vector<std::vector<std::uint32_t>> squad_windows(const std::string& file,
                                                      const TrainingTokenizer& tokenizer, std::size_t tokens,
                                                      std::size_t most) {
  std::vector<std::vector<std::uint32_t>> windows;
  for (const std::string& article : squad_articles(file)) {
    std::vector<std::uint32_t> window;
    for (const Token& token : tokenizer.tokenizer.encode(article)) {
      if (windows.size() == most) return windows;
      if (is_added(token)) continue;
      window.push_back(token.id);
      if (window.size() == tokens) windows.push_back(std::exchange(window, {}));
    }
  }
  if (windows.empty())
    throw InputError(fmt::format("--squad: {} has no article of {} tokens.", label_of_source(file), tokens));
  return windows;
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

// Models with learned normals run in their training only.
bool can_be_looked_at(const TextRun& run) {
  const auto slots = parameter_slots(run.spec);
  return std::none_of(slots.begin(), slots.end(),
                      [](const ParameterSlot& slot) { return slot.name.ends_with(".normals"); });
}

// None if there is no such file, or it cannot be ours or is of another number of windows.
std::optional<ModelTally> read_snapshot(const fs::path& file, std::size_t windows, const Executor& executor) {
  const std::string text = from_first(executor, [&] {
    std::ifstream stream(file);
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  });
  try {
    ModelTally tally = from_json<ModelTally>(text, file.string());
    if (tally.windows == windows) return tally;
  } catch (const InputError&) {
  }
  return std::nullopt;
}

// The directory is null in a process that does not write.
using Looks = std::function<void(std::span<const TextRun>, const RunDirectory*)>;
// Begun, or resumed, to the end. `looks` is called after every evaluation, before a checkpoint goes beyond
// its step, and at the end.
PaperText trained(TextPlan plan, const TextsRead& texts, const fs::path& directory, const char* command,
                  const char* label, const PaperContext& context, const Looks& looks = {}) {
  plan = with_texts(std::move(plan), texts);
  std::optional<TextRecord> record;
  if (is_first_process(context.executor))
    record = TextRecord::begin_or_open(directory, command,
                                       provenance(plan.data.seed, context.executor.threads()), plan);
  const auto look = [&](const TextTraining& training) {
    if (looks) looks(training.runs(), record ? &record->directory() : nullptr);
  };
  PaperText text{
      study_text(plan, texts, record ? &*record : nullptr, context.step(label, "tokens"), look).training,
      {},
      {},
      texts.tokenizer};
  look(text.training);  // one that had ended before
  for (const TextRun& run : text.training.runs()) {
    TextEvidence& evidence = text.runs.emplace_back();
    evidence.id = run.id;
    evidence.rows = run.rows;
    evidence.broken = run.trouble.has_value();  // says nothing of the claims
    if (!run.trouble) continue;
    std::optional<LastGood> good;
    if (run.step > 0) good = LastGood{directory / kCheckpointFile, run.step};
    context.note(
        fmt::format("Left out: {}, seed {}: {}", run.id.norm, run.id.seed, sentence_of(*run.trouble, good)));
  }
  TextRecipe& recipe = text.recipe;
  recipe.corpus = texts.found.description;
  recipe.tokenizer = texts.found.tokenizer;
  recipe.generated = texts.found.generated;
  recipe.steps = plan.settings.steps;
  recipe.batch = plan.settings.batch;
  recipe.context = plan.settings.context;
  recipe.width = plan.settings.spec.model.block.width;
  recipe.learning_rate = plan.settings.adam.learning_rate;
  recipe.dropout = plan.settings.spec.model.block.dropout;
  return text;
}

// What both plans have in common. wanted: a LanguagePlan or a SentimentPlan.
template <class Wanted>
TextPlan plan_of(const PaperPlan& paper, const Wanted& wanted, const TextTrainingSettings& published,
                 Need what) {
  TextPlan plan;
  static_cast<TextTrainingSettings&>(plan.settings) = published;
  plan.settings.adam.learning_rate = wanted.learning_rate;
  plan.settings.adam.schedule.steps = plan.settings.steps = wanted.steps;
  plan.settings.evaluate_every = wanted.evaluate_every;
  plan.settings.batch = wanted.batch;
  plan.runs = every_run(norms_for(paper, what),
                        std::span(paper.seeds).first(std::min(wanted.seeds, paper.seeds.size())));
  plan.data.seed = paper.seed;
  plan.data.tokenizer = wanted.tokenizer;
  return plan;
}

// Trainings on text: a first look beside all other parts, minutes, or as published.
enum class Scale { brief, reduced, published };
Scale scale_of(const PaperOptions& options) {
  return options.full ? Scale::published : options.only.empty() ? Scale::brief : Scale::reduced;
}

// So many steps, and about twelve evaluations on the way.
void set_steps(std::uint64_t steps, std::uint64_t& all, std::uint64_t& evaluate_every) {
  all = steps;
  evaluate_every = std::max<std::uint64_t>(1, steps / 12);
}

void publish(LanguagePlan& language) {
  language.batch = 16;
  language.steps = 50'000;
  language.evaluate_every = 50;  // minutes of all runs: what a kill can cost
  language.learning_rate = 5e-5;
  language.held_out = 64;
  language.windows = 1000;
  language.trend_windows = 16;
  language.snapshots = 11;
}
void publish(SentimentPlan& sentiment) {
  sentiment.steps = 50'000;
  sentiment.evaluate_every = 500;
  sentiment.learning_rate = 5e-5;
  sentiment.most_tokens = 128;
  sentiment.feed_forward = published_sentiment_model().model.block.feed_forward;
}

LanguagePlan resolved_language(const PaperPlan& plan, const PaperOptions& options) {
  LanguagePlan language;
  language.corpus = options.corpus;
  if (language.corpus.empty()) language.corpus = default_corpus(plan.seed)->name();
  language.tokenizer = default_language_tokenizer().name;
  language.squad = options.squad;
  language.test_text = options.test_text;
  if (scale_of(options) == Scale::brief) {
    language.tokenizer = "bytes";
    language.batch = 1;
    language.steps = 400;
    language.held_out = 4;
    language.windows = 2;
    language.trend_windows = 1;
    language.snapshots = 5;
  }
  if (scale_of(options) == Scale::published) publish(language);
  if (options.text_steps) set_steps(*options.text_steps, language.steps, language.evaluate_every);
  language.seeds = std::min(options.seeds.value_or(language.seeds), plan.seeds.size());
  // No more text is read than is trained on, and what is held out beside it.
  if (scale_of(options) != Scale::published) {
    const std::uint64_t seen = language.steps * language.batch * language.context;
    const std::uint64_t held_out = language.context * std::max(language.windows, language.held_out);
    language.most_tokens = seen + seen / 10 + static_cast<std::uint64_t>(1 / kHeldOutShare) * held_out;
  }
  return language;
}

SentimentPlan resolved_sentiment(const PaperPlan& plan, const PaperOptions& options) {
  SentimentPlan sentiment;
  sentiment.reviews = options.reviews;
  try {
    sentiment.tokenizer = training_tokenizer("bert").name;
  } catch (const InputError&) {
    sentiment.tokenizer = "words";
  }
  if (scale_of(options) == Scale::brief) {
    sentiment.steps = 600;
    sentiment.evaluate_every = 200;
    sentiment.test_texts = 400;
  }
  if (scale_of(options) == Scale::published) publish(sentiment);
  if (options.text_steps) set_steps(*options.text_steps, sentiment.steps, sentiment.evaluate_every);
  sentiment.seeds = std::min(options.seeds.value_or(sentiment.seeds), plan.seeds.size());
  if (scale_of(options) != Scale::published) sentiment.training_texts = sentiment.steps * sentiment.batch;
  return sentiment;
}

}  // namespace

void resolve_text(PaperPlan& plan, const PaperOptions& given) {
  PaperOptions options = given;
  // What is wrong with a text is better told before the first part than after an hour.
  if (!options.corpus.empty()) {
    if (!is_corpus_name(options.corpus)) options.corpus = lasting_file(options.corpus, "--corpus");
    open_corpus(options.corpus, plan.seed);
  }
  if (!options.squad.empty()) {
    options.squad = lasting_file(options.squad, "--squad");
    squad_articles(options.squad);
  }
  if (!options.test_text.empty()) {
    options.test_text = lasting_file(options.test_text, "--test-text");
    text_corpus(std::span(&options.test_text, 1));
  }
  if (options.reviews.empty()) {
    options.reviews = corpus::has_fetched("imdb") ? "imdb" : "grammar";
  } else {
    if (!is_review_name(options.reviews)) options.reviews = lasting_file(options.reviews, "--reviews");
    open_reviews(options.reviews, plan.seed);
  }
  if (plan_needs(plan, Need::language)) plan.language = resolved_language(plan, options);
  if (plan_needs(plan, Need::sentiment)) plan.sentiment = resolved_sentiment(plan, options);
  if (!plan_needs(plan, Need::sentences)) return;
  SentencePlan sentences;
  sentences.reviews = options.reviews;
  if (scale_of(options) == Scale::brief) sentences.count = 50;
  plan.sentences = sentences;
  if (!plan.text.empty()) sentences_for(plan, training_tokenizer("bytes"), SIZE_MAX);
}

void publish_texts(PaperPlan& plan) {
  if (plan.language) publish(*plan.language);
  if (plan.sentiment) publish(*plan.sentiment);
}

PaperText paper_language(const PaperPlan& paper, const fs::path& directory, const PaperContext& context) {
  const LanguagePlan& wanted = *paper.language;
  const std::unique_ptr<const Corpus> corpus = open_corpus(wanted.corpus, paper.seed);
  const auto test = wanted.test_text.empty() ? nullptr : text_corpus(std::span(&wanted.test_text, 1));
  const double held_out_share = test ? 0 : kHeldOutShare;
  const TextsRead texts =
      read_language(*corpus, wanted.tokenizer, {wanted.context, wanted.most_tokens, held_out_share},
                    wanted.batch, wanted.held_out, context.executor, test.get());
  TextPlan plan = plan_of(paper, wanted, published_language_training(), Need::language);
  plan.settings.context = wanted.context;
  plan.settings.spec.model.positions = std::max(plan.settings.spec.model.positions, wanted.context);
  plan.data.source = corpus->name();
  if (!is_corpus_name(wanted.corpus)) plan.data.files = {wanted.corpus};
  plan.data.most_tokens = wanted.most_tokens;
  plan.data.held_out_share = held_out_share;
  plan.data.test = wanted.test_text;

  const auto windows_of = [&](std::size_t most) {
    if (!wanted.squad.empty()) return squad_windows(wanted.squad, *texts.tokenizer, wanted.context, most);
    std::vector<std::vector<std::uint32_t>> windows;
    for (const TokenBatch& batch : held_out_batches(texts.measured_on(), wanted.context, 1, most))
      windows.push_back(batch.tokens);
    return windows;
  };
  const auto last_windows = windows_of(wanted.windows), trend_windows = windows_of(wanted.trend_windows);
  const auto windows_at = [&](std::uint64_t step) -> const auto& {
    return step == wanted.steps ? last_windows : trend_windows;
  };
  const auto file_of = [](const TrainingRunId& id, std::uint64_t step) {
    return fmt::format("keys-{}-seed{}-step{}.json", id.norm, id.seed, step);
  };
  const std::vector<std::uint64_t> steps =
      plan_needs(paper, Need::keys) ? snapshot_steps(wanted) : std::vector<std::uint64_t>();
  // A training that nobody looked at on the way, before a part that does was added, is run again.
  const bool unseen = !steps.empty() && fs::exists(directory / kCheckpointFile) &&
                      std::none_of(plan.runs.begin(), plan.runs.end(), [&](const PlannedRun& run) {
                        return fs::exists(directory / file_of(run, steps.front()));
                      });
  if (unseen) fs::remove_all(directory);
  const auto look = [&](std::span<const TextRun> runs, const RunDirectory* kept) {
    for (const TextRun& run : runs) {
      if (run.trouble || !can_be_looked_at(run) ||
          std::find(steps.begin(), steps.end(), run.step) == steps.end())
        continue;
      const std::string file = file_of(run.id, run.step);
      const auto& windows = windows_at(run.step);
      if (read_snapshot(directory / file, windows.size(), context.executor)) continue;
      const auto model = trained_model(run.spec, run.parameters);
      const PieceScope scope(context.executor, file);
      const ModelTally tally = tally_keys(*model, windows, context.executor);
      if (kept != nullptr) kept->write(file, json_of(tally, -1));
    }
  };
  PaperText text = trained(plan, texts, directory, "train lm", "Language model", context, look);
  for (TextEvidence& run : text.runs) {
    for (const std::uint64_t step : steps) {
      if (auto tally =
              read_snapshot(directory / file_of(run.id, step), windows_at(step).size(), context.executor))
        run.snapshots.push_back({step, std::move(*tally)});
    }
  }
  text.recipe.eps = plan.settings.spec.model.block.norm.eps;
  text.recipe.training_tokens = texts.stream->training_tokens;
  text.recipe.windows = last_windows.size();
  if (!wanted.squad.empty())
    text.recipe.window_source = "contexts of " + label_of_source(wanted.squad);
  else if (!wanted.test_text.empty())
    text.recipe.window_source = "of " + label_of_source(wanted.test_text);
  return text;
}

PaperText paper_sentiment(const PaperPlan& paper, const fs::path& directory, const PaperContext& context) {
  const SentimentPlan& wanted = *paper.sentiment;
  LabelledSplit reviews = open_reviews(wanted.reviews, paper.seed);
  thin_out(reviews.training, wanted.training_texts);
  thin_out(reviews.test, wanted.test_texts);
  const TextsRead texts = read_labelled_texts(reviews, wanted.tokenizer, wanted.most_tokens, wanted.batch,
                                              reviews.test.rows.size(), context.executor);
  TextPlan plan = plan_of(paper, wanted, published_sentiment_training(), Need::sentiment);
  plan.settings.context = wanted.most_tokens;
  plan.settings.spec.model.block.feed_forward = wanted.feed_forward;
  plan.data.source = reviews.training.name;
  if (!is_review_name(wanted.reviews)) plan.data.files = {wanted.reviews};
  PaperText text = trained(plan, texts, directory, "train sentiment", "Sentiment model", context);
  text.recipe.feed_forward = wanted.feed_forward;
  text.recipe.training_texts = texts.found.training_texts;
  text.recipe.classes = texts.found.classes.size();
  return text;
}

namespace {

constexpr std::size_t kWeighed = 20;  // sentences, those of the tables first

// Of each token of the text, by how much the loss of the class that a classifier gives the sentence rises without it.
std::vector<double> importance_of(const Sentence& sentence, const TextRun& run,
                                  TransformerGradient<float>& model, const Executor& executor) {
  const auto loss = [&](std::vector<std::uint32_t> ids, std::uint32_t label) {
    const std::size_t length = ids.size();
    return model.measure({1, length, std::move(ids), {}, {label}}, run.parameters, executor).loss;
  };
  std::uint32_t label = 0;
  for (std::uint32_t other = 1; other < run.spec.classes; ++other)
    if (loss(sentence.ids, other) < loss(sentence.ids, label)) label = other;
  const double whole = loss(sentence.ids, label);
  std::vector<double> importance;
  for (std::size_t i = 0; i < sentence.ids.size(); ++i) {
    if (sentence.spelled[i].empty()) continue;
    std::vector<std::uint32_t> without = sentence.ids;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    importance.push_back(loss(std::move(without), label) - whole);
  }
  return importance;
}

}  // namespace

void mark_sentences(PaperText& text, const PaperPlan& plan, const std::string& label,
                    const PaperContext& context) {
  const Sentences sentences = sentences_for(plan, *text.tokenizer, text.recipe.context);
  text.recipe.sentences = sentences.all.size();
  text.recipe.sentence_source = sentences.source;
  const Tell progress = context.step(label, "sentences").progress;
  const auto runs = text.training.runs();
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].trouble || !can_be_looked_at(runs[r])) continue;
    const auto model = trained_model(runs[r].spec, runs[r].parameters);
    MarkedText& marked = text.runs[r].marked;
    marked = mark_sentences(*model, sentences.all, context.executor);
    if (runs[r].spec.classes > 0) {
      const auto classifier = make_transformer_gradient<float>(runs[r].spec);
      for (std::size_t s = 0; s < std::min(kWeighed, sentences.all.size()); ++s)
        marked.sentences[s].importance =
            importance_of(sentences.all[s], runs[r], *classifier, context.executor);
    }
    progress((r + 1) * sentences.all.size(), runs.size() * sentences.all.size());
  }
}

}  // namespace normscope
