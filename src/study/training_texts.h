#pragma once
// What models are trained on: texts read, as batches of tokens.
#include <memory>
#include <string>

#include "normscope/corpus.h"
#include "normscope/labelled_text.h"
#include "normscope/token_stream.h"
#include "normscope/training_tokenizer.h"
#include "result/training.h"

namespace normscope {

// Texts as they were read: batches to train on, and what else is known of them.
struct TextsRead {
  TextBatches batches;
  std::shared_ptr<const TrainingTokenizer> tokenizer;
  TextsFound found;
  std::string sentence;  // the same, for people
  std::string content_hash;
  std::shared_ptr<const TokenStream> stream;  // of a language model
  std::shared_ptr<const TokenStream> test;    // another text to measure on; null: what `stream` holds out

  std::span<const std::uint32_t> measured_on() const { return test ? test->training() : stream->held_out(); }
};
// held_out: most windows that an evaluation looks at. test: the text they are of; null: what is held out.
TextsRead read_language(const Corpus& corpus, const std::string& tokenizer, const StreamOptions& options,
                        std::size_t batch, std::size_t held_out, const Executor& executor,
                        const Corpus* test = nullptr);
// tokenizer: a name, or "words": those of the texts to train on. all_tests: as many texts were there to test
// on.
TextsRead read_labelled_texts(const LabelledSplit& split, const std::string& tokenizer, std::size_t context,
                              std::size_t batch, std::size_t all_tests, const Executor& executor);
// So many rows, evenly spaced, for they may lie sorted; 0: all.
void thin_out(LabelledTexts& texts, std::size_t most);

// Absolute, so that a run can be resumed from anywhere; "-" stays.
std::string lasting_path(const std::string& path);

// The texts that a plan names.
TextsRead read_texts(const TextPlan& plan, const Executor& executor);

}  // namespace normscope
