#include "corpus/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "corpus/json_array.h"
#include "io/file_errors.h"

namespace normscope::corpus {
namespace {

constexpr std::size_t kMostFields = 4096;

class Reader {
 public:
  Reader(std::string_view text, TableFormat format, const std::string& label)
      : text_(text), separator_(format == TableFormat::tab_separated ? '\t' : ','), label_(label) {}

  bool next(TableRow& row) {
    while (at_ < text_.size() && line_end(at_) > 0) {
      at_ += line_end(at_);
      ++line_;
    }
    if (at_ == text_.size()) return false;
    row.line = line_;
    row.fields.clear();
    begin_ = at_;
    do {
      if (row.fields.size() == kMostFields)
        io::reject(where(row.line), fmt::format("has more than {} fields", kMostFields),
                   "check the separators");
      row.fields.push_back(quotes() && at_ < text_.size() && text_[at_] == '"' ? quoted_field(row.line)
                                                                               : plain_field());
      check_size(row.line);
    } while (take_separator());
    const std::size_t end = at_ < text_.size() ? line_end(at_) : 0;
    if (at_ < text_.size() && end == 0)
      io::reject(where(line_), "has text behind a closing quote", "double the quotes inside a quoted field");
    at_ += end;
    ++line_;
    return true;
  }

  std::string where(std::size_t line) const { return fmt::format("Line {} of {}", line, label_); }

 private:
  bool quotes() const { return separator_ == ','; }

  // Bytes of the line end at this place; 0 if there is none.
  std::size_t line_end(std::size_t at) const {
    if (text_[at] == '\n') return 1;
    if (text_[at] != '\r') return 0;
    return at + 1 < text_.size() && text_[at + 1] == '\n' ? 2 : 1;
  }

  bool take_separator() {
    if (at_ == text_.size() || text_[at_] != separator_) return false;
    ++at_;
    return true;
  }

  std::string plain_field() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && line_end(at_) == 0) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted_field(std::size_t row) {
    const std::size_t opened = line_;
    std::string field;
    ++at_;
    for (;;) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos || quote - begin_ > kLongestRecord)
        io::reject(where(opened), "opens a quote that is never closed",
                   "close it, or double a quote that is part of the text");
      const std::string_view part = text_.substr(at_, quote - at_);
      line_ += static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n'));
      field += part;
      at_ = quote + 1;
      check_size(row);
      if (at_ == text_.size() || text_[at_] != '"') return field;
      field += '"';
      ++at_;
    }
  }

  void check_size(std::size_t row) const {
    if (at_ - begin_ > kLongestRecord)
      io::reject(where(row), fmt::format("begins a row of more than {} bytes", kLongestRecord),
                 "check its line ends and quotes");
  }

  std::string_view text_;
  char separator_;
  const std::string& label_;
  std::size_t at_ = 0, begin_ = 0, line_ = 1;
};

}  // namespace

void read_table(std::string_view text, TableFormat format, const std::string& label,
                const std::function<void(const TableRow&)>& take) {
  Reader reader(text, format, label);
  TableRow row;
  std::size_t columns = 0;
  while (reader.next(row)) {
    if (columns == 0) columns = row.fields.size();
    if (row.fields.size() != columns)
      io::reject(reader.where(row.line),
                 fmt::format("has {} field{}, but the header has {}", row.fields.size(),
                             row.fields.size() == 1 ? "" : "s", columns),
                 format == TableFormat::tab_separated ? "put one tab between the fields"
                                                      : "put quotes around fields with commas");
    take(row);
  }
}

}  // namespace normscope::corpus
