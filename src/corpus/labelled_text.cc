#include "normscope/labelled_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <unordered_set>

#include "core/read_number.h"
#include "corpus/fetched_sets.h"
#include "corpus/grammar.h"
#include "corpus/json_array.h"
#include "corpus/permutation.h"
#include "corpus/plain_text.h"
#include "corpus/table.h"
#include "io/bytes.h"
#include "io/file_errors.h"
#include "io/text_bytes.h"
#include "normscope/error.h"

namespace normscope {
namespace {

using namespace corpus;
using io::quoted_name;
using io::quoted_names;
using io::reject;
using nlohmann::json;

constexpr std::uint64_t kLongestFile = std::uint64_t{1} << 30;
constexpr std::size_t kMostClasses = 1000;
constexpr std::uint64_t kSplitStream = 0x73706c6974000000;  // "split"; the class is added
constexpr std::uint64_t kImdbSeed = 20231019;               // its split is the same for every run
constexpr std::array kTextColumns = {"sentence", "text", "content", "review", "t"};
constexpr std::array kLabelColumns = {"label", "sentiment", "s", "class"};

// A row as it stands in a file.
struct WrittenRow {
  std::string text, label;
  std::string where;  // "Line 7"
};

class Columns {
 public:
  Columns(const std::vector<std::string>& there, const LabelledColumns& asked, const std::string& where)
      : text_(find(there, asked.text, kTextColumns, "text", where)),
        label_(find(there, asked.label, kLabelColumns, "label", where)) {}
  std::size_t text() const { return text_; }
  std::size_t label() const { return label_; }

 private:
  template <std::size_t n>
  static std::size_t find(const std::vector<std::string>& there, const std::optional<std::string>& asked,
                          const std::array<const char*, n>& usual, const char* what,
                          const std::string& where) {
    const auto place = [&](std::string_view name) { return std::find(there.begin(), there.end(), name); };
    std::vector<std::string> wanted;
    if (asked)
      wanted.push_back(*asked);
    else
      wanted.assign(usual.begin(), usual.end());
    for (const std::string& name : wanted)
      if (const auto found = place(name); found != there.end())
        return static_cast<std::size_t>(found - there.begin());
    reject(where,
           fmt::format("has no column {}{}; it has {}", asked ? "" : "of ",
                       asked ? quoted_name(*asked) : fmt::format("{}s ({})", what, quoted_names(wanted)),
                       there.empty() ? "none" : quoted_names(there)),
           fmt::format("name the column of {}s", what));
  }

  std::size_t text_, label_;
};

std::vector<WrittenRow> rows_of_table(std::string_view text, TableFormat format, const LabelledColumns& asked,
                                      const std::string& label) {
  std::vector<WrittenRow> rows;
  std::optional<Columns> columns;
  read_table(text, format, label, [&](const TableRow& row) {
    if (!columns) {
      columns.emplace(row.fields, asked, label);
      return;
    }
    rows.push_back(
        {row.fields[columns->text()], row.fields[columns->label()], fmt::format("Line {}", row.line)});
  });
  return rows;
}

std::string label_of(const json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  reject(where, fmt::format("has a label that is {}", value.type_name()),
         "labels are strings or whole numbers");
}

// Objects may have different names, so columns are looked for in each.
WrittenRow row_of(const json& object, const LabelledColumns& asked, std::string where,
                  const std::string& label) {
  const std::string place = fmt::format("{} of {}", where, label);
  std::vector<std::string> names;
  std::vector<const json*> values;
  for (const auto& [name, value] : object.items()) {
    names.push_back(name);
    values.push_back(&value);
  }
  const Columns columns(names, asked, place);
  const json& text = *values[columns.text()];
  if (!text.is_string())
    reject(place, fmt::format("has a text that is {}", text.type_name()), "texts are strings");
  return {text.get<std::string>(), label_of(*values[columns.label()], place), std::move(where)};
}

std::vector<WrittenRow> rows_of_array(const io::Bytes& file, const LabelledColumns& asked,
                                      const std::string& label) {
  std::vector<WrittenRow> rows;
  std::string bytes;
  for (const JsonRange& range : json_objects(file, label)) {
    bytes.resize(range.size);
    file.read(range.begin, std::as_writable_bytes(std::span(bytes)));
    std::string where = fmt::format("Object {}", rows.size() + 1);
    const json object = parse_object(bytes, fmt::format("{} of {}", where, label), range.begin);
    rows.push_back(row_of(object, asked, std::move(where), label));
  }
  return rows;
}

std::vector<WrittenRow> rows_of_lines(std::string_view text, const LabelledColumns& asked,
                                      const std::string& label) {
  std::vector<WrittenRow> rows;
  std::size_t begin = 0;
  for (std::size_t line = 1; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view object = text.substr(begin, end - begin);
    std::string where = fmt::format("Line {}", line);
    const std::string place = fmt::format("{} of {}", where, label);
    if (object.size() > kLongestRecord)
      reject(place, fmt::format("has more than {} bytes", kLongestRecord), "write an object per line");
    if (object.find_first_not_of(" \t\r") != std::string_view::npos)
      rows.push_back(row_of(parse_object(object, place, begin), asked, std::move(where), label));
    begin = end + 1;
  }
  return rows;
}

enum class Format { tab_separated, comma_separated, array, lines };

// By name, else by what it begins with.
Format format_of(const std::string& path, std::string_view beginning) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".tsv") return Format::tab_separated;
  if (extension == ".csv") return Format::comma_separated;
  if (extension == ".jsonl" || extension == ".ndjson") return Format::lines;
  const std::size_t first = std::min(beginning.find_first_not_of(" \t\r\n"), beginning.size());
  if (beginning.substr(first).starts_with('[') || extension == ".json") return Format::array;
  if (beginning.substr(first).starts_with('{')) return Format::lines;
  const std::string_view header = beginning.substr(0, beginning.find('\n'));
  return header.find('\t') != std::string_view::npos ? Format::tab_separated : Format::comma_separated;
}

std::string read_whole(const io::Bytes& file, const std::string& label) {
  if (file.size() > kLongestFile)
    reject(label, fmt::format("has {} bytes, but at most {} are read", file.size(), kLongestFile),
           "split it");
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<WrittenRow> written_rows(const std::string& path, const LabelledColumns& columns,
                                     const std::string& label) {
  std::error_code ignored;
  if (path != "-" && std::filesystem::is_directory(path, ignored))
    reject(label, "is a directory", "name a .tsv, .csv, .json or .jsonl file in it");
  const auto file = io::open_text(path, kLongestFile).bytes;
  std::string beginning(static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), 65536)), '\0');
  file->read(0, std::as_writable_bytes(std::span(beginning)));
  std::string_view visible = beginning;
  if (visible.starts_with(kByteOrderMark)) visible.remove_prefix(kByteOrderMark.size());
  const Format format = format_of(io::without_compression(path), visible);
  if (file->size() > kLongestFile) read_whole(*file, label);
  if (format == Format::array) return rows_of_array(*file, columns, label);
  const std::string all = read_whole(*file, label);
  check_utf8(all, label, 0);
  std::string_view text = all;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (format == Format::lines) return rows_of_lines(text, columns, label);
  return rows_of_table(
      text, format == Format::tab_separated ? TableFormat::tab_separated : TableFormat::comma_separated,
      columns, label);
}

std::vector<std::string> sorted_classes(const std::vector<WrittenRow>& rows, const std::string& label) {
  std::map<std::string, bool> seen;
  for (const WrittenRow& row : rows) {
    if (row.label.empty())
      reject(fmt::format("{} of {}", row.where, label), "has no label", "fill it in, or remove the row");
    seen[row.label] = true;
    if (seen.size() > kMostClasses)
      reject(label, fmt::format("has more than {} different labels", kMostClasses),
             "check which column has the labels");
  }
  std::vector<std::string> classes;
  classes.reserve(seen.size());
  for (const auto& [name, ignored] : seen) classes.push_back(name);
  const bool numbers = std::all_of(classes.begin(), classes.end(), [](const std::string& c) {
    return read_number<std::int64_t>(c).has_value();
  });
  if (numbers)
    std::stable_sort(classes.begin(), classes.end(), [](const std::string& a, const std::string& b) {
      return *read_number<std::int64_t>(a) < *read_number<std::int64_t>(b);
    });
  return classes;
}

// Places of the rows of each class.
std::vector<std::vector<std::size_t>> rows_by_class(const LabelledTexts& texts) {
  std::vector<std::vector<std::size_t>> places(texts.classes.size());
  for (std::size_t i = 0; i < texts.rows.size(); ++i) places.at(texts.rows[i].label).push_back(i);
  return places;
}

LabelledTexts part_of(const LabelledTexts& whole, const std::string& what) {
  LabelledTexts part;
  part.name = whole.name;
  part.description = fmt::format("{} ({})", whole.description, what);
  part.generated = whole.generated;
  part.classes = whole.classes;
  return part;
}

}  // namespace

std::vector<std::string_view> LabelledTexts::texts() const {
  std::vector<std::string_view> result;
  result.reserve(rows.size());
  for (const LabelledText& row : rows) result.push_back(row.text);
  return result;
}

LabelledTexts read_labelled(const std::string& path, const LabelledColumns& columns,
                            const std::vector<std::string>* classes) {
  const std::string label = io::label_of(path);
  std::vector<WrittenRow> rows = written_rows(path, columns, label);
  if (rows.empty()) reject(label, "holds no texts", "give a file with a row for each text");
  LabelledTexts texts;
  texts.name = "files";
  texts.description = label;
  texts.classes = classes != nullptr ? *classes : sorted_classes(rows, label);
  if (texts.classes.size() < 2)
    reject(label, fmt::format("has one class only, {}", quoted_names(texts.classes)),
           "give texts of at least two classes");
  std::map<std::string_view, std::uint32_t> ids;
  for (std::uint32_t i = 0; i < texts.classes.size(); ++i) ids.emplace(texts.classes[i], i);
  texts.rows.reserve(rows.size());
  for (WrittenRow& row : rows) {
    const auto id = ids.find(row.label);
    if (id == ids.end())
      reject(fmt::format("{} of {}", row.where, label),
             fmt::format("has the label {}, which the texts to train on do not have; theirs are {}",
                         quoted_name(row.label), quoted_names(texts.classes)),
             "correct it, or add such texts to those to train on");
    texts.rows.push_back({std::move(row.text), id->second});
  }
  return texts;
}

LabelledSplit split_labelled(LabelledTexts texts, double test_share, std::uint64_t seed) {
  if (!(test_share > 0 && test_share < 1))
    throw InputError(
        fmt::format("The share to test on is {}, but must be more than 0 and less than 1.", test_share));
  std::vector<bool> in_test(texts.rows.size());
  const auto by_class = rows_by_class(texts);
  for (std::size_t c = 0; c < by_class.size(); ++c) {
    const std::vector<std::size_t>& places = by_class[c];
    if (places.empty()) continue;
    const Permutation order(places.size(), seed, kSplitStream + c);
    const auto wanted =
        static_cast<std::size_t>(std::llround(test_share * static_cast<double>(places.size())));
    for (std::size_t i = 0; i < wanted; ++i) in_test[places[order(i)]] = true;
  }
  LabelledSplit split{part_of(texts, "training part"), part_of(texts, "test part"), 0};
  std::unordered_set<std::string_view> tested;
  for (std::size_t i = 0; i < texts.rows.size(); ++i)
    if (in_test[i]) tested.insert(texts.rows[i].text);
  std::vector<bool> repeated(texts.rows.size());
  for (std::size_t i = 0; i < texts.rows.size(); ++i) {
    repeated[i] = !in_test[i] && tested.contains(texts.rows[i].text);
    split.repeated += repeated[i] ? 1 : 0;
  }
  tested.clear();  // it looks into rows that move now
  for (std::size_t i = 0; i < texts.rows.size(); ++i)
    if (!repeated[i]) (in_test[i] ? split.test : split.training).rows.push_back(std::move(texts.rows[i]));
  if (split.test.rows.empty() || split.training.rows.empty())
    throw InputError(
        fmt::format("{} texts are too few to be split into a part to train on and a share of {} to test on.",
                    in_test.size(), test_share));
  return split;
}

LabelledSplit imdb_reviews() {
  const ImdbReviews reviews;
  LabelledTexts texts;
  texts.name = "imdb";
  texts.description = fmt::format("{} film reviews of IMDB", reviews.size());
  texts.classes = {"0", "1"};
  texts.rows.reserve(reviews.size());
  for (std::size_t i = 0; i < reviews.size(); ++i) {
    ImdbReviews::Review review = reviews.review(i);
    texts.rows.push_back({std::move(review.text), review.positive ? 1U : 0U});
  }
  return split_labelled(std::move(texts), 0.5, kImdbSeed);
}

LabelledTexts grammar_reviews(std::size_t count, std::uint64_t seed) {
  LabelledTexts texts;
  texts.name = "grammar";
  texts.description = fmt::format("built-in grammar, generated, seed {}", seed);
  texts.generated = true;
  texts.classes = {"negative", "positive"};
  texts.rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    texts.rows.push_back({grammar_review(seed, i, i % 2 == 1), static_cast<std::uint32_t>(i % 2)});
  return texts;
}

}  // namespace normscope
