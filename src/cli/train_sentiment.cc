// normscope train sentiment: a BERT that classifies texts, by default the published one without norms.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "cli/train_text.h"
#include "corpus/fetched_sets.h"
#include "normscope/error.h"
#include "normscope/labelled_text.h"

namespace normscope::cli {
namespace {

constexpr const char* kWords = "words";
constexpr std::size_t kMostWords = 30'522, kGeneratedTexts = 10'000, kTestTexts = 2500, kMost = 1'000'000'000;

// Of BERT's, if it was fetched.
std::string default_tokenizer(const Common& common) {
  try {
    return training_tokenizer("bert").name;
  } catch (const InputError&) {
    note(common,
         "BERT's tokenizer has not been fetched: tokens are the words of the texts. To get it: normscope "
         "data get tokenizers.");
    return kWords;
  }
}

std::string default_source(const Common& common) {
  if (corpus::has_fetched("imdb")) return "imdb";
  note(common,
       "No reviews have been fetched: the texts are written by a built-in grammar. For real ones: normscope "
       "data get imdb, or --data FILE.");
  return "grammar";
}

TextData resolve(const TrainTextCall& call, const TextPlan&, const Common& common) {
  TextData data;
  if (!call.data_seed.empty()) data.seed = parse_count(call.data_seed, "--data-seed", 0, UINT64_MAX);
  data.held_out_share = call.held_out.empty() ? 0.2 : parse_number(call.held_out, "--test-share", 1e-6, 0.99);
  data.most_test_texts =
      call.test_texts.empty() ? kTestTexts : parse_count(call.test_texts, "--test-texts", 0, kMost);
  data.text_column = call.text_column;
  data.label_column = call.label_column;
  data.test = call.test;
  if (!call.data.empty()) {
    if (!call.corpus.empty())
      throw InputError("--data and --corpus both name the texts to train on; give one of them.");
    if (!call.test.empty() && !call.held_out.empty())
      throw InputError("--test and --test-share both name the texts to test on; give one of them.");
    data.source = "files";
    data.files = {call.data};
  } else {
    const std::pair<const std::string*, const char*> of_files[] = {{&call.test, "--test"},
                                                                   {&call.held_out, "--test-share"},
                                                                   {&call.text_column, "--text-column"},
                                                                   {&call.label_column, "--label-column"}};
    for (const auto& [value, name] : of_files)
      if (!value->empty())
        throw InputError(fmt::format("{} says something of a file of texts; name it with --data.", name));
    data.source = call.corpus.empty() ? default_source(common) : call.corpus;
    if (data.source != "imdb" && data.source != "grammar")
      throw InputError(fmt::format("--corpus takes imdb or grammar, not '{}'.", data.source));
  }
  data.tokenizer = call.tokenizer.empty() ? default_tokenizer(common) : call.tokenizer;
  return data;
}

LabelledSplit split_of(const TextData& data) {
  if (data.source == "imdb") return imdb_reviews();
  if (data.source == "grammar")
    return split_labelled(grammar_reviews(kGeneratedTexts, data.seed), data.held_out_share, data.seed);
  LabelledColumns columns;
  if (!data.text_column.empty()) columns.text = data.text_column;
  if (!data.label_column.empty()) columns.label = data.label_column;
  LabelledTexts texts = read_labelled(data.files.at(0), columns);
  if (data.test.empty()) return split_labelled(std::move(texts), data.held_out_share, data.seed);
  LabelledTexts test = read_labelled(data.test, columns, &texts.classes);
  return {std::move(texts), std::move(test), 0};
}

// Of the texts to train on, those that are tested too.
std::size_t count_shared(const LabelledSplit& split) {
  const auto test = split.test.texts(), training = split.training.texts();
  const std::unordered_set<std::string_view> tested(test.begin(), test.end());
  return static_cast<std::size_t>(std::count_if(
      training.begin(), training.end(), [&](std::string_view text) { return tested.contains(text); }));
}

// Evenly spaced ones, in their order.
void keep_most(LabelledTexts& texts, std::size_t most) {
  const std::size_t size = texts.rows.size();
  if (most == 0 || size <= most) return;
  std::vector<LabelledText> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(std::move(texts.rows[i * size / most]));
  texts.rows = std::move(kept);
}

ReadTexts read(const TextPlan& plan, const Executor& executor) {
  const TextData& data = plan.data;
  if (data.source == "files" && data.files.empty())
    throw InputError("The run's config.json names no file of texts.");
  LabelledSplit split = split_of(data);
  const std::size_t all_tests = split.test.rows.size();
  keep_most(split.test, data.most_test_texts);
  TrainingTokenizer tokenizer = data.tokenizer == kWords ? word_tokenizer(split.training.texts(), kMostWords)
                                                         : training_tokenizer(data.tokenizer);
  const auto training = std::make_shared<const EncodedTexts>(
      encode_labelled(split.training, tokenizer, plan.context, executor));
  const EncodedTexts test = encode_labelled(split.test, tokenizer, plan.context, executor);
  TextBatches batches;
  batches.train = [training, batch = plan.batch](std::uint64_t seed, std::uint64_t step) {
    return text_batch(*training, batch, seed, step);
  };
  batches.held_out = text_batches(test, plan.batch);
  std::string classes;
  for (const std::string& name : split.training.classes) classes += (classes.empty() ? "" : ", ") + name;
  constexpr std::size_t longest = 200;
  if (classes.size() > longest) classes = classes.substr(0, longest) + "…";
  const std::string of_all = test.size() < all_tests ? fmt::format(" (of {})", all_tests) : "";
  std::string sentence = fmt::format("Texts: {}; {}: {} to train on, {} to test{}; {} classes: {}.",
                                     split.training.description, tokenizer.description, training->size(),
                                     test.size(), of_all, split.training.classes.size(), classes);
  if (training->cut + test.cut > 0)
    sentence += fmt::format(" {} were cut to {} tokens.", training->cut + test.cut, plan.context);
  if (const std::size_t shared = count_shared(split); shared > 0)
    sentence += fmt::format(" {} of those to train on are tested too: the accuracy is not that of new texts.",
                            shared);
  if (split.repeated > 0)
    sentence += fmt::format(" {} texts that are tested too were left out of training.", split.repeated);
  return {std::move(batches),
          std::move(tokenizer),
          {{"training_texts", training->size()},
           {"test_texts", test.size()},
           {"cut_texts", training->cut + test.cut},
           {"repeated_texts", split.repeated},
           {"classes", split.training.classes}},
          printable(sentence),
          training->content_hash + test.content_hash,
          split.training.description,
          split.training.generated,
          split.training.classes};
}

}  // namespace

void add_train_sentiment(CLI::App& train, Common& common) {
  auto kind = std::make_shared<TextCommand>(
      TextCommand{"train sentiment",
                  published_sentiment_training(),
                  32,
                  128,
                  "none",
                  resolve,
                  read,
                  {"Training a classifier of texts",
                   {"A BERT that names the class of a text, as Brody, Alon and Yahav (2023) trained it, "
                    "without any norm; "
                    "another norm stands in every place that BERT has one. Losses are in nats per text."}}});
  CLI::App* command = add_command(
      train, common, "sentiment",
      "A classifier of texts: BERT of any size, by default the paper's without norms",
      {"train sentiment --steps 2000 --out runs/sentiment", "train sentiment --norm none,layernorm --seeds 3",
       "train sentiment --data train.tsv --test dev.tsv", "train sentiment --resume runs/sentiment"});
  auto call = std::make_shared<TrainTextCall>();
  const auto add = [&](const char* name, std::string& text, const char* type, const char* help) {
    command->add_option(name, text, help)->type_name(type);
  };
  add("--norm", call->norm, "NAME", "Every norm of the model, or several to compare, with commas [none]");
  add("--data", call->data, "FILE", "Texts with labels to train on: .tsv, .csv, .json or .jsonl");
  add("--text-column", call->text_column, "NAME", "Column of the texts [sentence, text, content or review]");
  add("--label-column", call->label_column, "NAME", "Column of the labels [label, sentiment or class]");
  add("--test", call->test, "FILE", "Texts to test on, with the same columns [a share of --data]");
  add("--test-share", call->held_out, "SHARE", "Share of --data to test on, of each class [0.2]");
  add("--test-texts", call->test_texts, "N",
      "Most texts that each record is tested on, evenly spaced; 0: all [2500]");
  add("--corpus", call->corpus, "NAME",
      "Texts to train on: imdb or grammar (generated) [imdb if it was fetched]");
  add("--tokenizer", call->tokenizer, "NAME",
      "bert, words (those of the texts), or a directory with a tokenizer [bert if it was fetched, else "
      "words]");
  add("--length", call->context, "N", "Tokens of a text; longer texts are cut [128]");
  add("--feed-forward", call->feed_forward, "N", "Width of the feed-forward part [3072]");
  add("--evaluate-every", call->evaluate_every, "N",
      "Steps between two records [a twentieth of --steps, at most 500]");
  add_text_options(*command, *call, *kind);
  command->callback([kind, call, &common, command] { run_text(*kind, *call, common, *command); });
}

}  // namespace normscope::cli
