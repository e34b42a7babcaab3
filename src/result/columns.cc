#include "result/columns.h"

#include "core/number_text.h"

namespace normscope {
namespace {

std::string field_of(const Column& column) {
  const std::string& words = column.text;
  if (!column.quoted && words.find_first_of(",\"\r\n") == std::string::npos) return words;
  std::string quoted = "\"";
  for (const char c : words) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace

std::string cell_of_number(double value) {
  return all_digits(value);
}

std::string csv_headings(const std::vector<Column>& columns) {
  std::string line;
  for (const Column& column : columns) line += (line.empty() ? "" : ",") + column.name;
  return line + "\n";
}

std::string csv_line(const std::vector<Column>& columns) {
  std::string line;
  for (std::size_t c = 0; c < columns.size(); ++c) line += (c == 0 ? "" : ",") + field_of(columns[c]);
  return line + "\n";
}

}  // namespace normscope
