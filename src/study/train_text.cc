#include "study/train_text.h"

#include <fmt/format.h>

#include "corpus/fetched_sets.h"
#include "study/text_model.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModels = "models";
constexpr std::uint64_t kGeneratedTokens = 4'000'000;

void note(const Context& context, std::string_view sentence) {
  if (context.note) context.note(sentence);
}

// Everything but the texts. settings: as published.
TextPlan resolve(const TextTrainingOptions& options, const TextTrainingSettings& settings) {
  TextPlan plan;
  static_cast<TextTrainingSettings&>(plan.settings) = settings;
  ModelSpec& model = plan.settings.spec.model;
  const bool language = !plan.settings.classifies();
  model.block.width = options.dimension;
  model.block.feed_forward =
      options.feed_forward.value_or(language ? 4 * options.dimension : model.block.feed_forward);
  model.layers = options.layers;
  model.block.heads = options.heads;
  plan.settings.context = options.context;
  plan.settings.batch = options.batch;
  model.positions = language ? options.context : std::max(model.positions, options.context);
  model.block.dropout = options.dropout;
  plan.settings.steps = options.steps;
  // A checkpoint comes with a record: about a minute of the published models on two cores.
  plan.settings.evaluate_every =
      options.evaluate_every.value_or(language ? 100 : std::clamp<std::uint64_t>(options.steps / 20, 1, 500));
  plan.save_every = options.save_every.value_or(0);
  plan.checkpoint_every = options.checkpoint_every;
  AdamSettings& adam = plan.settings.adam;
  adam.learning_rate = options.learning_rate;
  adam.weight_decay = options.weight_decay;
  adam.clip = options.clip;
  adam.schedule.steps = std::max<std::uint64_t>(1, options.steps);
  adam.schedule.warmup = options.warmup;
  if (options.warmup > options.steps)
    throw InputError(fmt::format("--warmup {} is longer than the {} steps of the training (--steps).",
                                 options.warmup, options.steps));
  plan.runs = every_run(parse_norms(options.norm), parse_seeds(options.seeds, options.seed));
  plan.data.seed = options.data_seed;
  return plan;
}

// Text without end is written as far as the training reads it.
std::uint64_t generated_tokens(const TextPlan& plan) {
  const auto context = static_cast<double>(plan.settings.context);
  const double read =
      static_cast<double>(plan.settings.steps) * static_cast<double>(plan.settings.batch) * context;
  const double enough = read / (1 - plan.data.held_out_share) + 2.0 * context + 2;
  return std::max<std::uint64_t>(
      static_cast<std::uint64_t>(std::min(enough, static_cast<double>(kGeneratedTokens))),
      4 * (plan.settings.context + 1));
}

void resolve_data(const LanguageOptions& options, TextPlan& plan, const Context& context) {
  TextData& data = plan.data;
  if (!options.text.empty() && !options.corpus.empty())
    throw InputError("--text and --corpus both name the text to train on; give one of them.");
  if (!options.test.empty() && options.held_out)
    throw InputError("--test and --held-out both name the text to measure on; give one of them.");
  if (options.test == "-" && std::find(options.text.begin(), options.text.end(), "-") != options.text.end())
    throw InputError("--text and --test cannot both be standard input; give a file for one of them.");
  data.test = options.test;
  data.held_out_share = options.test.empty() ? options.held_out.value_or(0.05) : 0;
  data.files = options.text;
  data.source = !options.text.empty() ? "files" : options.corpus;
  if (data.source.empty()) {
    data.source = default_corpus(data.seed)->name();
    if (data.source == "grammar")
      note(context,
           "No corpus has been fetched: the text is written by a built-in grammar. For real text: normscope "
           "data get imdb, or --text FILE.");
  }
  data.most_tokens = options.tokens.value_or(data.source == "grammar" ? generated_tokens(plan) : 0);
  data.tokenizer = options.tokenizer == "gpt2" ? "gpt2-bpe" : options.tokenizer;
  if (data.tokenizer.empty()) {
    data.tokenizer = default_language_tokenizer().name;
    if (data.tokenizer == "bytes")
      note(context,
           "GPT-2's tokenizer has not been fetched: tokens are bytes. To get it: normscope data get "
           "gpt2-bpe.");
  }
}

// BERT's, if it was fetched.
std::string default_tokenizer(const Context& context) {
  try {
    return training_tokenizer("bert").name;
  } catch (const InputError&) {
    note(context,
         "BERT's tokenizer has not been fetched: tokens are the words of the texts. To get it: normscope "
         "data get tokenizers.");
    return "words";
  }
}

std::string reviews_at_hand(const Context& context) {
  if (corpus::has_fetched("imdb")) return "imdb";
  note(context,
       "No reviews have been fetched: the texts are written by a built-in grammar. For real ones: normscope "
       "data get imdb, or --data FILE.");
  return "grammar";
}

void resolve_data(const SentimentOptions& options, TextPlan& plan, const Context& context) {
  TextData& data = plan.data;
  data.held_out_share = options.test_share.value_or(0.2);
  data.most_test_texts = options.test_texts;
  data.text_column = options.text_column;
  data.label_column = options.label_column;
  data.test = options.test;
  if (!options.data.empty()) {
    if (!options.corpus.empty())
      throw InputError("--data and --corpus both name the texts to train on; give one of them.");
    if (!options.test.empty() && options.test_share)
      throw InputError("--test and --test-share both name the texts to test on; give one of them.");
    data.source = "files";
    data.files = {options.data};
  } else {
    const std::pair<bool, const char*> of_files[] = {{!options.test.empty(), "--test"},
                                                     {options.test_share.has_value(), "--test-share"},
                                                     {!options.text_column.empty(), "--text-column"},
                                                     {!options.label_column.empty(), "--label-column"}};
    for (const auto& [given, name] : of_files)
      if (given)
        throw InputError(fmt::format("{} says something of a file of texts; name it with --data.", name));
    data.source = options.corpus.empty() ? reviews_at_hand(context) : options.corpus;
    if (data.source != "imdb" && data.source != "grammar")
      throw InputError(fmt::format("--corpus takes imdb or grammar, not '{}'.", data.source));
  }
  data.tokenizer = options.tokenizer.empty() ? default_tokenizer(context) : options.tokenizer;
}

PlannedTexts planned(TextPlan plan, const Context& context) {
  TextsRead texts = read_texts(plan, context.executor);
  plan = with_texts(std::move(plan), texts);
  check_plan(plan);
  return {std::move(plan), std::move(texts)};
}

std::string model_name(const TrainingRunId& id) {
  return fmt::format("{}-seed{}", id.norm, id.seed);
}
std::string model_name(const TrainingRunId& id, std::uint64_t step) {
  return fmt::format("{}-step{}", model_name(id), step);
}
// Of the run as it ended: the trained model, or the last good one.
std::string model_name(const TextRun& run) {
  return run.trouble ? model_name(run.id, run.step) : model_name(run.id);
}

// Norms with weights of their own can be trained, but are part of no model that can be written.
bool can_be_written(const TextRun& run) {
  const auto slots = parameter_slots(run.spec);
  return std::none_of(slots.begin(), slots.end(), [](const ParameterSlot& slot) {
    return slot.name.ends_with(".normals") || slot.name.ends_with(".alpha");
  });
}

// Whether there is something to write: a run that failed before its first evaluation has learned nothing.
bool leaves_model(const TextRun& run) {
  return can_be_written(run) && (!run.trouble || run.step > 0);
}

// Written whole or not at all, and the same each time.
void write_model(const fs::path& place, const TextRun& run, const TextsRead& texts) {
  if (!fs::exists(place)) write_text_model(place, run, *texts.tokenizer, texts.found.classes);
}

// Models of the runs whose last evaluation was the first at or after a multiple of `every`.
void save_models(const fs::path& folder, const TextTraining& training, std::uint64_t every,
                 const TextsRead& texts) {
  for (const TextRun& run : training.runs()) {
    if (run.rows.size() < 2 || run.trouble || !can_be_written(run)) continue;
    const std::uint64_t step = run.rows.back().step, before = run.rows[run.rows.size() - 2].step;
    if (step / every > before / every) write_model(folder / model_name(run.id, step), run, texts);
  }
}

double held_out_loss(const TextRow& row) {
  return row.held_out ? row.held_out->loss : std::nan("");
}
double accuracy(const TextRow& row) {
  return row.held_out ? row.held_out->accuracy : std::nan("");
}

// The rows that a measure is finite in.
std::vector<const TextRow*> last_rows(std::span<const TextRun> runs, const std::string& norm,
                                      double (*measure)(const TextRow&)) {
  std::vector<const TextRow*> rows;
  for (const TextRun& run : runs)
    if (run.id.norm == norm && !run.trouble && std::isfinite(measure(run.rows.back())))
      rows.push_back(&run.rows.back());
  return rows;
}

MeanResult mean_of(std::span<const TextRun> runs, const std::string& norm,
                   double (*measure)(const TextRow&)) {
  std::vector<double> values;
  for (const TextRow* row : last_rows(runs, norm, measure)) values.push_back(measure(*row));
  return {mean_interval(values)};
}

// Over seeds; the accuracy of a single run is a share of the texts it was tested on.
MeanResult mean_accuracy(std::span<const TextRun> runs, const std::string& norm) {
  const auto rows = last_rows(runs, norm, accuracy);
  if (rows.size() != 1) return mean_of(runs, norm, accuracy);
  const TransformerLoss& tested = *rows[0]->held_out;
  MeanResult share{share_interval(
      static_cast<std::size_t>(std::llround(tested.accuracy * static_cast<double>(tested.targets))),
      tested.targets)};
  share.count = 1;
  share.mean = tested.accuracy;
  return share;
}

TextRunResult run_result(const TextRun& run, const TextPlan& plan, bool written) {
  TextRunResult result;
  result.run = {run.id};
  result.parameters = run.parameters.size();
  result.step = run.rows.back().step;
  result.measures = measures_of(run.rows.back(), plan);
  result.perplexity = std::exp(result.measures.held_out_loss);
  if (run.trouble) result.trouble = TroubleResult{*run.trouble};
  if (written && leaves_model(run)) result.model = fmt::format("{}/{}", kModels, model_name(run));
  return result;
}

}  // namespace

PlannedTexts plan_language(const LanguageOptions& options, const Context& context) {
  check_options(options);
  TextPlan plan = resolve(options, published_language_training());
  if (options.train_all) {
    plan.settings.spec.model.block.norm.affine = true;
    plan.settings.spec.query_key_value_bias = true;
  }
  check_plan(plan);
  resolve_data(options, plan, context);
  return planned(std::move(plan), context);
}

PlannedTexts plan_sentiment(const SentimentOptions& options, const Context& context) {
  check_options(options);
  TextPlan plan = resolve(options, published_sentiment_training());
  check_plan(plan);
  resolve_data(options, plan, context);
  return planned(std::move(plan), context);
}

TextPlan with_texts(TextPlan plan, const TextsRead& texts) {
  plan.settings.spec.model.vocabulary = texts.tokenizer->size();
  if (plan.settings.classifies()) plan.settings.spec.classes = texts.found.classes.size();
  TextData& data = plan.data;
  plan.settings.text = data.description = texts.found.description;
  plan.settings.tokenizer = data.tokenizer_description = texts.found.tokenizer;
  plan.settings.content_hash = data.content_hash = texts.content_hash;
  data.generated = texts.found.generated;
  data.classes = texts.found.classes;
  for (std::string& file : data.files) file = lasting_path(file);
  data.test = lasting_path(data.test);
  if (fs::exists(data.tokenizer)) data.tokenizer = lasting_path(data.tokenizer);
  return plan;
}

TextsRead read_again(const TextPlan& plan, const Executor& executor) {
  TextsRead texts = read_texts(plan, executor);
  require_same_data(plan, with_texts(plan, texts));
  return texts;
}

void require_same_data(const TextPlan& begun, const TextPlan& now) {
  const std::size_t expected = begun.settings.spec.model.vocabulary,
                    vocabulary = now.settings.spec.model.vocabulary;
  if (vocabulary != expected) {
    throw InputError(
        fmt::format("The tokenizer '{}' has {} tokens, but the model of the run was begun with {}; put the "
                    "tokenizer back as it was, or start anew.",
                    begun.data.tokenizer, vocabulary, expected));
  }
  if (now.data.content_hash != begun.data.content_hash) {
    throw InputError(
        fmt::format("The text is not what the run was begun with ({}): its tokens hash to {}, not to {}; put "
                    "the same text and tokenizer back, or start anew.",
                    begun.data.description, now.data.content_hash, begun.data.content_hash));
  }
}

void check_plan(const TextPlan& plan) {
  const std::string& family = plan.settings.spec.model.family;
  if (family != "gpt2" && family != "bert")
    throw InputError(fmt::format("The run's config.json holds the model '{}', which is not known.", family));
  if (plan.settings.classifies() != (family == "bert"))
    throw InputError("The run's config.json holds a number of 'classes' that does not fit its model.");
  check_text_training(plan.settings, norms_of(plan.runs));
}

TextMeasures measures_of(const TextRow& row, const TextPlan& plan) {
  TextMeasures measures;
  measures.train_loss = row.train_loss;
  measures.held_out_loss = held_out_loss(row);
  measures.accuracy = accuracy(row);
  if (row.held_out) measures.held_out_targets = row.held_out->targets;
  // Texts of a classifier have lengths of their own.
  const std::uint64_t texts = row.step * plan.settings.batch;
  if (plan.settings.classifies()) {
    measures.texts = texts;
  } else {
    measures.tokens = texts * plan.settings.context;
  }
  return measures;
}

TextRow row_of(std::uint64_t step, const TextMeasures& measures) {
  TextRow row{step, measures.train_loss, {}};
  if (!measures.held_out()) return row;
  TransformerLoss& held_out = row.held_out.emplace();
  held_out.loss = measures.held_out_loss;
  held_out.targets = measures.held_out_targets;
  held_out.accuracy = measures.accuracy;
  return row;
}

TextNormResult norm_result(const std::string& norm, std::span<const TextRun> runs, bool classifies) {
  TextNormResult result;
  result.norm = norm;
  result.runs = static_cast<std::size_t>(std::count_if(
      runs.begin(), runs.end(), [&](const TextRun& run) { return run.id.norm == norm && !run.trouble; }));
  result.train_loss = mean_of(runs, norm, [](const TextRow& row) { return row.train_loss; });
  result.held_out_loss = mean_of(runs, norm, held_out_loss);
  if (classifies) {
    result.accuracy = mean_accuracy(runs, norm);
  } else {
    result.perplexity = mean_of(runs, norm, [](const TextRow& row) { return std::exp(held_out_loss(row)); });
  }
  return result;
}

TextTrainingStudy study_text(const TextPlan& plan, const TextsRead& texts, TextRecord* record,
                             const Context& context,
                             const std::function<void(const TextTraining&)>& evaluated) {
  TextTrainingStudy study{
      TextTraining(plan.settings, {plan.runs.begin(), plan.runs.end()}, texts.batches), {}, {}};
  TextTraining& training = study.training;
  fs::path models;
  restore(training, record, context.executor);
  if (record != nullptr) {
    models = record->directory().path() / kModels;
    const auto runs = training.runs();
    const auto learns = std::find_if_not(runs.begin(), runs.end(), can_be_written);
    if (learns != runs.end())
      note(context, fmt::format("A model with the norm {} can be trained, but not be written as a "
                                "checkpoint; its parameters are in checkpoint.safetensors.",
                                learns->id.norm));
  }
  study.time = train_to_end(training, record, context, [&] {
    if (evaluated) evaluated(training);
    if (record != nullptr && plan.save_every > 0) save_models(models, training, plan.save_every, texts);
  });
  for (const TextRun& run : training.runs())
    if (record != nullptr && leaves_model(run)) write_model(models / model_name(run), run, texts);

  TextResult& result = study.result;
  result.command = plan.settings.classifies() ? "train sentiment" : "train lm";
  result.made = {provenance(0, context.executor.threads()), study.time.seconds};
  result.tokens_per_second = study.time.tokens_per_second();
  result.settings = plan.settings;
  result.data = texts.found;
  result.data.source = plan.data.source;
  result.data.description = plan.data.description;
  result.data.tokenizer = plan.data.tokenizer_description;
  for (const TextRun& run : training.runs()) result.runs.push_back(run_result(run, plan, record != nullptr));
  for (const std::string& norm : norms_of(plan.runs))
    result.norms.push_back(norm_result(norm, training.runs(), plan.settings.classifies()));
  return study;
}

std::vector<std::string> troubles(std::span<const TextRun> runs, const std::optional<fs::path>& checkpoint) {
  std::vector<std::string> sentences;
  for (const TextRun& run : runs) {
    if (!run.trouble) continue;
    std::optional<LastGood> good;
    if (checkpoint && run.step > 0) good = LastGood{*checkpoint, run.step};
    sentences.push_back(
        fmt::format("{} with seed {}: {}", run.id.norm, run.id.seed, sentence_of(*run.trouble, good)));
  }
  return sentences;
}

}  // namespace normscope
