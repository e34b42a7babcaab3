#include "study/training_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "core/number_text.h"
#include "core/printable.h"
#include "normscope/error.h"

namespace normscope {
namespace {

constexpr const char* kWords = "words";
constexpr std::size_t kMostWords = 30'522, kGeneratedTexts = 10'000;
constexpr std::size_t kHeldOutTokens = 1 << 17;  // that an evaluation looks at

LabelledSplit split_of(const TextData& data) {
  if (data.source == "imdb") return imdb_reviews();
  if (data.source == "grammar")
    return split_labelled(grammar_reviews(kGeneratedTexts, data.seed), data.held_out_share, data.seed);
  if (data.files.empty()) throw InputError("The run's config.json names no file of texts.");
  LabelledColumns columns;
  if (!data.text_column.empty()) columns.text = data.text_column;
  if (!data.label_column.empty()) columns.label = data.label_column;
  LabelledTexts texts = read_labelled(data.files[0], columns);
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

}  // namespace

std::string lasting_path(const std::string& path) {
  return path == "-" || path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

void thin_out(LabelledTexts& texts, std::size_t most) {
  const std::size_t all = texts.rows.size();
  if (most == 0 || most >= all) return;
  for (std::size_t i = 0; i < most; ++i)
    if (const std::size_t from = i * all / most; from != i) texts.rows[i] = std::move(texts.rows[from]);
  texts.rows.resize(most);
}

TextsRead read_language(const Corpus& corpus, const std::string& tokenizer, const StreamOptions& options,
                        std::size_t batch, std::size_t held_out, const Executor& executor,
                        const Corpus* test) {
  TextsRead texts;
  texts.tokenizer = std::make_shared<const TrainingTokenizer>(training_tokenizer(tokenizer));
  texts.stream =
      std::make_shared<const TokenStream>(token_stream(corpus, *texts.tokenizer, options, executor));
  const TokenStream& stream = *texts.stream;
  texts.batches.train = [stream = texts.stream, context = options.context, batch](std::uint64_t seed,
                                                                                  std::uint64_t step) {
    return language_batch(stream->training(), context, batch, seed, step);
  };
  if (test != nullptr)
    texts.test = std::make_shared<const TokenStream>(
        token_stream(*test, *texts.tokenizer, {options.context, 0, 0}, executor));
  if (!texts.measured_on().empty())
    texts.batches.held_out = held_out_batches(texts.measured_on(), options.context, batch, held_out);
  TextsFound& found = texts.found;
  found.source = corpus.name();
  found.description = corpus.description();
  found.generated = corpus.generated();
  found.tokenizer = texts.tokenizer->description;
  found.training_tokens = stream.training_tokens;
  found.held_out_tokens = texts.measured_on().size();
  found.documents = stream.documents;
  found.bytes = stream.bytes;
  found.whole = stream.whole;
  texts.content_hash = stream.content_hash;
  texts.sentence =
      fmt::format("Text: {}, {}{}; {}: {} to train on, {} {}.", found.description,
                  counted(found.documents, "document"), found.whole ? "" : " (not all of it)",
                  found.tokenizer, counted(found.training_tokens, "token"), found.held_out_tokens,
                  test == nullptr ? "held out" : "of another text to test on: " + test->description());
  if (test != nullptr) {
    texts.content_hash += texts.test->content_hash;
    found.description += "; tested on " + test->description();
  }
  return texts;
}

TextsRead read_labelled_texts(const LabelledSplit& split, const std::string& tokenizer, std::size_t context,
                              std::size_t batch, std::size_t all_tests, const Executor& executor) {
  TextsRead texts;
  texts.tokenizer = std::make_shared<const TrainingTokenizer>(
      tokenizer == kWords ? word_tokenizer(split.training.texts(), kMostWords)
                          : training_tokenizer(tokenizer));
  const auto training = std::make_shared<const EncodedTexts>(
      encode_labelled(split.training, *texts.tokenizer, context, executor));
  const EncodedTexts test = encode_labelled(split.test, *texts.tokenizer, context, executor);
  texts.batches.train = [training, batch](std::uint64_t seed, std::uint64_t step) {
    return text_batch(*training, batch, seed, step);
  };
  texts.batches.held_out = text_batches(test, batch);
  TextsFound& found = texts.found;
  found.source = split.training.name;
  found.description = split.training.description;
  found.generated = split.training.generated;
  found.tokenizer = texts.tokenizer->description;
  found.training_texts = training->size();
  found.test_texts = test.size();
  found.cut_texts = training->cut + test.cut;
  found.repeated_texts = split.repeated;
  found.classes = split.training.classes;
  texts.content_hash = training->content_hash + test.content_hash;

  std::string classes = fmt::format("{}", fmt::join(found.classes, ", "));
  constexpr std::size_t longest = 200;
  if (classes.size() > longest) classes = classes.substr(0, longest) + "…";
  const std::string of_all = test.size() < all_tests ? fmt::format(" (of {})", all_tests) : "";
  std::string sentence = fmt::format("Texts: {}; {}: {} to train on, {} to test{}; {} classes: {}.",
                                     found.description, found.tokenizer, found.training_texts,
                                     found.test_texts, of_all, found.classes.size(), classes);
  if (found.cut_texts > 0)
    sentence += fmt::format(" Cut to {} tokens: {}.", context, counted(found.cut_texts, "text"));
  if (const std::size_t shared = count_shared(split); shared > 0)
    sentence += fmt::format(" {} of those to train on are tested too: the accuracy is not that of new texts.",
                            shared);
  if (split.repeated > 0)
    sentence +=
        fmt::format(" Left out of training, because tested too: {}.", counted(split.repeated, "text"));
  texts.sentence = printable(sentence);
  return texts;
}

TextsRead read_texts(const TextPlan& plan, const Executor& executor) {
  const TextData& data = plan.data;
  const std::size_t batch = plan.settings.batch, context = plan.settings.context;
  if (plan.settings.classifies()) {
    LabelledSplit split = split_of(data);
    const std::size_t all_tests = split.test.rows.size();
    thin_out(split.test, data.most_test_texts);
    return read_labelled_texts(split, data.tokenizer, context, batch, all_tests, executor);
  }
  const auto corpus =
      data.source == "files" ? text_corpus(data.files) : corpus_by_name(data.source, data.seed);
  const auto test = data.test.empty() ? nullptr : text_corpus(std::span(&data.test, 1));
  return read_language(*corpus, data.tokenizer, {context, data.most_tokens, data.held_out_share}, batch,
                       std::clamp<std::size_t>(kHeldOutTokens / context, 16, 4096), executor, test.get());
}

}  // namespace normscope
