#include "normscope/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "corpus/fetched_sets.h"
#include "corpus/permutation.h"
#include "corpus/plain_text.h"
#include "corpus/slices.h"
#include "io/bytes.h"
#include "io/file_errors.h"
#include "io/text_bytes.h"
#include "normscope/error.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using namespace corpus;

constexpr std::size_t kPassage = std::size_t{1} << 16, kSection = std::size_t{1} << 14;
constexpr std::uint64_t kMostOfStream = std::uint64_t{1} << 30;
// The order of fetched corpora is the same for every run: a different seed is no different corpus.
constexpr std::uint64_t kShuffleSeed = 20231019;

// Files are opened for each read: there may be more of them than a process may hold open.
struct TextFile {
  std::string path, label;
  std::shared_ptr<const io::Bytes>
      stream;  // of what is no regular file, which can be read only once, or was unpacked
  std::uint64_t size = 0;
  std::uint64_t first = 0;  // of its passages

  std::shared_ptr<const io::Bytes> open() const {
    if (stream) return stream;
    std::shared_ptr<const io::Bytes> bytes = io::open_bytes(path, kMostOfStream);
    if (bytes->size() != size)
      io::reject(label, fmt::format("has changed: it had {} bytes and has {}", size, bytes->size()),
                 "leave it alone while it is being read");
    return bytes;
  }
};

TextFile text_file(const std::string& path) {
  const std::string label = io::label_of(path);
  std::error_code ignored;
  if (path != "-" && fs::is_directory(path, ignored))
    io::reject(label, "is a directory", "name the text files in it");
  io::TextBytes opened = io::open_text(path, kMostOfStream);
  TextFile file{path, label, std::move(opened.bytes), 0, 0};
  file.size = file.stream->size();
  if (file.size == 0) io::reject(label, "is empty", "name a file with text to train on");
  if (path != "-" && !opened.unpacked && fs::is_regular_file(path, ignored)) file.stream.reset();
  return file;
}

// Of the files, cut into slices of this size, and which file a slice belongs to.
class SlicedFiles {
 public:
  SlicedFiles(std::span<const std::string> paths, std::size_t slice) : slice_(slice) {
    for (const std::string& path : paths) {
      files_.push_back(text_file(path));
      files_.back().first = count_;
      count_ += slice_count(files_.back().size, slice_);
    }
  }
  std::uint64_t count() const { return count_; }
  std::size_t files() const { return files_.size(); }
  const TextFile& file_of(std::uint64_t index) const {
    const auto behind =
        std::upper_bound(files_.begin(), files_.end(), index,
                         [](std::uint64_t i, const TextFile& file) { return i < file.first; });
    return *std::prev(behind);
  }
  Slice read(const TextFile& file, std::uint64_t index, GoodPlace good) const {
    return read_slice(*file.open(), index - file.first, slice_, good);
  }
  bool is_last(const TextFile& file, std::uint64_t index) const {
    return index + 1 == file.first + slice_count(file.size, slice_);
  }

 private:
  std::size_t slice_;
  std::vector<TextFile> files_;
  std::uint64_t count_ = 0;
};

class TextCorpus final : public Corpus {
 public:
  explicit TextCorpus(std::span<const std::string> paths) : slices_(paths, kPassage) {
    if (paths.empty()) throw InputError("There are no text files to train on; name at least one.");
    description_ = paths.size() == 1 ? io::label_of(paths[0])
                                     : fmt::format("{} files, {} to {}", paths.size(),
                                                   io::label_of(paths.front()), io::label_of(paths.back()));
  }
  std::string name() const override { return "files"; }
  std::string description() const override { return description_; }
  std::uint64_t passages() const override { return slices_.count(); }
  Passage passage(std::uint64_t index) const override {
    const TextFile& file = slices_.file_of(index);
    Slice slice = slices_.read(file, index, before_white_space);
    check_utf8(slice.bytes, file.label, slice.begin);
    if (slice.begin == 0 && slice.bytes.starts_with(kByteOrderMark))
      slice.bytes.erase(0, kByteOrderMark.size());
    return {with_plain_line_ends(std::move(slice.bytes)), slices_.is_last(file, index)};
  }

 private:
  SlicedFiles slices_;
  std::string description_;
};

std::vector<std::string> book_paths() {
  const fs::path directory = fetched_set("gutenberg");
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == ".txt" && entry->is_regular_file(ignored))
      paths.push_back(entry->path().string());
  }
  if (paths.empty())
    io::reject(io::quoted_path(directory.string()), "holds no books",
               "remove it and fetch it again: normscope data get gutenberg");
  std::sort(paths.begin(), paths.end());
  return paths;
}

class GutenbergCorpus final : public Corpus {
 public:
  GutenbergCorpus() : slices_(book_paths(), kSection), order_(slices_.count(), kShuffleSeed, 0) {}
  std::string name() const override { return "gutenberg"; }
  std::string description() const override {
    return fmt::format("{} books of Project Gutenberg, in sections of about {} KiB, shuffled",
                       slices_.files(), kSection >> 10);
  }
  std::uint64_t passages() const override { return slices_.count(); }
  Passage passage(std::uint64_t index) const override {
    const std::uint64_t section = order_(index);
    Slice slice = slices_.read(slices_.file_of(section), section, begins_paragraph);
    std::string text = is_utf8(slice.bytes) ? std::move(slice.bytes) : from_latin1(slice.bytes);
    text = with_plain_line_ends(std::move(text));
    text.erase(std::min(text.find_last_not_of(" \n\t") + 1, text.size()));
    return {std::move(text), true};
  }

 private:
  SlicedFiles slices_;
  Permutation order_;
};

class ImdbCorpus final : public Corpus {
 public:
  ImdbCorpus() : order_(reviews_.size(), kShuffleSeed, 0) {}
  std::string name() const override { return "imdb"; }
  std::string description() const override {
    return fmt::format("{} film reviews of IMDB, shuffled", reviews_.size());
  }
  std::uint64_t passages() const override { return reviews_.size(); }
  Passage passage(std::uint64_t index) const override {
    return {reviews_.review(static_cast<std::size_t>(order_(index))).text, true};
  }

 private:
  ImdbReviews reviews_;
  Permutation order_;
};

}  // namespace

std::unique_ptr<const Corpus> text_corpus(std::span<const std::string> paths) {
  return std::make_unique<TextCorpus>(paths);
}

std::unique_ptr<const Corpus> imdb_corpus() {
  return std::make_unique<ImdbCorpus>();
}

std::unique_ptr<const Corpus> gutenberg_corpus() {
  return std::make_unique<GutenbergCorpus>();
}

std::unique_ptr<const Corpus> corpus_by_name(const std::string& name, std::uint64_t seed) {
  if (name == "imdb") return imdb_corpus();
  if (name == "gutenberg") return gutenberg_corpus();
  if (name == "grammar") return grammar_corpus(seed);
  throw InputError(fmt::format(
      "There is no corpus {}; there are imdb, gutenberg and grammar; files are given with --text.",
      io::quoted_name(name)));
}

std::unique_ptr<const Corpus> default_corpus(std::uint64_t seed) {
  for (const char* name : {"imdb", "gutenberg"})
    if (has_fetched(name)) return corpus_by_name(name, seed);
  return grammar_corpus(seed);
}

}  // namespace normscope
