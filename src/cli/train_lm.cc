// normscope train lm: GPT-2 of any size, by default the published one of width 8.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/train_text.h"
#include "normscope/corpus.h"
#include "normscope/error.h"
#include "normscope/token_stream.h"

namespace normscope::cli {
namespace {

constexpr std::uint64_t kMostTokens = 1'000'000'000, kGeneratedTokens = 4'000'000;
constexpr std::size_t kHeldOutTokens = 1 << 17;  // that an evaluation looks at

std::unique_ptr<const Corpus> corpus_of(const TextData& data) {
  return data.source == "files" ? text_corpus(data.files) : corpus_by_name(data.source, data.seed);
}

// Text without end is written as far as the training reads it.
std::uint64_t generated_tokens(const TextPlan& plan, double held_out_share) {
  const double read = static_cast<double>(plan.settings.steps) * static_cast<double>(plan.batch) *
                      static_cast<double>(plan.context);
  const double enough = read / (1 - held_out_share) + 2.0 * static_cast<double>(plan.context) + 2;
  return static_cast<std::uint64_t>(std::min(enough, static_cast<double>(kGeneratedTokens)));
}

TextData resolve(const TrainTextCall& call, const TextPlan& plan, const Common& common) {
  TextData data;
  if (!call.text.empty() && !call.corpus.empty())
    throw InputError("--text and --corpus both name the text to train on; give one of them.");
  if (!call.data_seed.empty()) data.seed = parse_count(call.data_seed, "--data-seed", 0, UINT64_MAX);
  if (!call.held_out.empty()) data.held_out_share = parse_number(call.held_out, "--held-out", 0, 0.99);
  data.files = call.text;
  data.source = !call.text.empty() ? "files" : call.corpus;
  if (data.source.empty()) {
    data.source = default_corpus(data.seed)->name();
    if (data.source == "grammar") {
      note(common,
           "No corpus has been fetched: the text is written by a built-in grammar. For real text: normscope "
           "data get imdb, or --text FILE.");
    }
  }
  if (!call.tokens.empty()) {
    data.most_tokens = parse_count(call.tokens, "--tokens", 1, kMostTokens);
  } else if (data.source == "grammar") {
    data.most_tokens = std::max(generated_tokens(plan, data.held_out_share), 4 * (plan.context + 1));
  }
  data.tokenizer = call.tokenizer == "gpt2" ? "gpt2-bpe" : call.tokenizer;
  if (data.tokenizer.empty()) {
    data.tokenizer = default_language_tokenizer().name;
    if (data.tokenizer == "bytes")
      note(common,
           "GPT-2's tokenizer has not been fetched: tokens are bytes. To get it: normscope data get "
           "gpt2-bpe.");
  }
  return data;
}

ReadTexts read(const TextPlan& plan, const Executor& executor) {
  const TextData& data = plan.data;
  const auto corpus = corpus_of(data);
  TrainingTokenizer tokenizer = training_tokenizer(data.tokenizer);
  auto stream = std::make_shared<const TokenStream>(
      token_stream(*corpus, tokenizer, {plan.context, data.most_tokens, data.held_out_share}, executor));
  const std::size_t held_out = stream->held_out().size();
  TextBatches batches;
  batches.train = [stream, context = plan.context, batch = plan.batch](std::uint64_t seed,
                                                                       std::uint64_t step) {
    return language_batch(stream->training(), context, batch, seed, step);
  };
  if (held_out > 0) {
    const std::size_t windows = std::clamp<std::size_t>(kHeldOutTokens / plan.context, 16, 4096);
    batches.held_out = held_out_batches(stream->held_out(), plan.context, plan.batch, windows);
  }
  std::string sentence =
      fmt::format("Text: {}, {} documents{}; {}: {} tokens to train on, {} held out.", corpus->description(),
                  stream->documents, stream->whole ? "" : " (not all of it)", tokenizer.description,
                  stream->training_tokens, held_out);
  return {std::move(batches),
          std::move(tokenizer),
          {{"training_tokens", stream->training_tokens},
           {"held_out_tokens", held_out},
           {"documents", stream->documents},
           {"bytes", stream->bytes},
           {"whole", stream->whole}},
          std::move(sentence),
          stream->content_hash,
          corpus->description(),
          corpus->generated(),
          {}};
}

}  // namespace

void add_train_lm(CLI::App& train, Common& common) {
  auto kind = std::make_shared<TextCommand>(TextCommand{
      "train lm",
      published_language_training(),
      16,
      1024,
      "layernorm",
      resolve,
      read,
      {"Training a language model",
       {"A GPT-2 that learns what follows what, as Brody, Alon and Yahav (2023) trained it: the norm is that "
        "before attention. LayerNorm scales its output to one length (but for eps), so no key lies inside "
        "the "
        "others' hull; a norm that only centres does not. Losses are in nats per token."}}});
  CLI::App* command =
      add_command(train, common, "lm", "A language model: GPT-2 of any size, by default the paper's of d 8",
                  {"train lm --norm layernorm,center --out runs/lm", "train lm --text book.txt --steps 2000",
                   "train lm --corpus grammar --tokenizer bytes --context 128 --steps 500",
                   "train lm --resume runs/lm", "scan runs/lm/models/center-seed11 --text book.txt"});
  auto call = std::make_shared<TrainTextCall>();
  const auto add = [&](const char* name, std::string& text, const char* type, const char* help) {
    command->add_option(name, text, help)->type_name(type);
  };
  add("--norm", call->norm, "NAME", "Norm before attention, or several with commas [layernorm]");
  command->add_option("--text", call->text, "Text to train on: one or more files; - is standard input")
      ->type_name("FILE");
  add("--corpus", call->corpus, "NAME",
      "Text to train on: imdb, gutenberg or grammar (generated) [the first that was fetched]");
  add("--tokens", call->tokens, "N", "Most tokens of the text that are read [all]");
  add("--tokenizer", call->tokenizer, "NAME",
      "gpt2, bytes, or a directory with a tokenizer [gpt2 if it was fetched, else bytes]");
  add("--held-out", call->held_out, "SHARE", "Share of the text that is measured on, not trained on [0.05]");
  add("--context", call->context, "N", "Tokens of a text, the longest the model takes [1024]");
  add("--feed-forward", call->feed_forward, "N", "Width of the feed-forward part [4 × --dimension]");
  add("--evaluate-every", call->evaluate_every, "N", "Steps between two records [100]");
  command->add_flag("--train-all", call->train_all,
                    "Also train what the paper froze: gain and bias of the norm before attention, and the "
                    "bias of queries, keys and values");
  add_text_options(*command, *call, *kind);
  command->callback([kind, call, &common, command] { run_text(*kind, *call, common, *command); });
}

}  // namespace normscope::cli
