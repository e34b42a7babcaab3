#pragma once
// Texts to train a language model on: files of the user, corpora that `normscope data get` fetched, or text
// that a built-in grammar writes. A corpus is a list of passages, read one at a time and in any order, so no
// more text is held than is being worked on.
//
// Files are UTF-8. Other bytes, and zero bytes, are refused with their place rather than replaced: a model
// would learn the replacements. A byte order mark is left out, and line ends become \n, as Python reads text.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normscope {

struct Passage {
  std::string text;
  // Documents of more than 64 KiB come in several passages, cut before white space: tokenizers that never
  // look across it (GPT-2's, BERT's) give the ids of the whole.
  bool ends_document = true;
};

class Corpus {
 public:
  virtual ~Corpus() = default;
  // "imdb", "gutenberg", "grammar", or "files".
  virtual std::string name() const = 0;
  // What it is, for people: "built-in grammar, generated, seed 3".
  virtual std::string description() const = 0;
  // Written by a program: never to be taken for results on real text.
  virtual bool generated() const { return false; }
  // A generated corpus has more than anyone asks for.
  virtual std::uint64_t passages() const = 0;
  // May be called by several threads at once. Throws InputError if the text is not as it must be.
  virtual Passage passage(std::uint64_t index) const = 0;

 protected:
  Corpus() = default;
  Corpus(const Corpus&) = default;
  Corpus& operator=(const Corpus&) = default;
};

// A document for each file, in the order given; "-" is standard input. Throws InputError if there is none, or
// one is empty, a directory or unreadable.
std::unique_ptr<const Corpus> text_corpus(std::span<const std::string> paths);

// Reviews of `normscope data get imdb`, shuffled (they lie sorted by sentiment), "<br />" as a line break.
std::unique_ptr<const Corpus> imdb_corpus();

// Books of `normscope data get gutenberg`, in sections of about 16 KiB that begin with a paragraph, shuffled,
// so that any part of the corpus has something of every book. Two books are Latin-1 and are read as such.
std::unique_ptr<const Corpus> gutenberg_corpus();

// Stories written by a context-free grammar with agreement, subordinate clauses, numbers that add up, and a
// topic and persons that stay the same throughout a story; some 1300 words. Story i depends on (seed, i)
// only.
std::unique_ptr<const Corpus> grammar_corpus(std::uint64_t seed);

// "imdb", "gutenberg" or "grammar". Throws InputError with how to get it if it is not there.
std::unique_ptr<const Corpus> corpus_by_name(const std::string& name, std::uint64_t seed);

// imdb, else gutenberg, else, if none has been fetched, the grammar.
std::unique_ptr<const Corpus> default_corpus(std::uint64_t seed);

}  // namespace normscope
