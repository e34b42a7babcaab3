#pragma once
// Corpora that `normscope data get` fetched.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corpus/json_array.h"

namespace normscope::corpus {

// Its directory. Throws InputError with how to get it if it is not there.
std::filesystem::path fetched_set(const std::string& name);
bool has_fetched(const std::string& name);

// Reviews of IMDB: [{"t": text, "s": 0 or 1}, …].
class ImdbReviews {
 public:
  ImdbReviews();
  std::size_t size() const { return ranges_.size(); }
  struct Review {
    std::string text;  // "<br />" as a line break
    bool positive = false;
  };
  Review review(std::size_t index) const;

 private:
  std::string label_;
  std::unique_ptr<io::Bytes> file_;
  std::vector<JsonRange> ranges_;
};

}  // namespace normscope::corpus
