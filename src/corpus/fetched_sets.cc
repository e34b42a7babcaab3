#include "corpus/fetched_sets.h"

#include <fmt/format.h>

#include <span>

#include "core/fetched.h"
#include "corpus/plain_text.h"
#include "io/file_errors.h"

namespace normscope::corpus {

std::filesystem::path fetched_set(const std::string& name) {
  const auto directory = fetched_directory(name);
  if (!directory)
    io::reject(io::quoted_name(name), "is not on this machine yet",
               fmt::format("get it with: normscope data get {}", name));
  return *directory;
}

bool has_fetched(const std::string& name) {
  return fetched_directory(name).has_value();
}

ImdbReviews::ImdbReviews() {
  const std::string path = (fetched_set("imdb") / "reviews.json").string();
  label_ = io::quoted_path(path);
  file_ = io::open_bytes(path, std::uint64_t{1} << 30);
  ranges_ = json_objects(*file_, label_);
  if (ranges_.empty()) io::reject(label_, "holds no reviews", "fetch it again: normscope data get imdb");
}

ImdbReviews::Review ImdbReviews::review(std::size_t index) const {
  const JsonRange& range = ranges_.at(index);
  std::string bytes(range.size, '\0');
  file_->read(range.begin, std::as_writable_bytes(std::span(bytes)));
  const std::string where = fmt::format("review {} of {}", index + 1, label_);
  const nlohmann::json object = parse_object(bytes, where, range.begin);
  const auto text = object.find("t"), sentiment = object.find("s");
  const bool whole = text != object.end() && text->is_string() && sentiment != object.end() &&
                     sentiment->is_number_unsigned() && sentiment->get<std::uint64_t>() <= 1;
  if (!whole)
    io::reject(where, R"(is not {"t": text, "s": 0 or 1})", "fetch it again: normscope data get imdb");
  return {replaced(text->get_ref<const std::string&>(), "<br />", "\n"), *sentiment == 1};
}

}  // namespace normscope::corpus
