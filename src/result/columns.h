#pragma once
// Structs that describe themselves as rows of a table or of a CSV file: a field is a column, its name (or `heading`)
// stands above it, and both are said once, in `describe`.
//
//   struct ArcRow {
//     const ArcBasin& arc;
//     static void describe(auto& visit, auto& self) {
//       visit("mismatches", self.arc.mismatches, "angles whose fate the arcs do not tell");
//       visit("apart", percent(self.arc.share), "share of angles from which the tokens stay apart");
//     }
//   };
//   table_of(rows);   csv_of(rows);
//
// Fields may be words, numbers, flags, enumerations with a name, optional ones, and Named ones, a column per entry. A
// column under `when` is there in all rows or in none.
#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "result/present_only.h"

namespace normscope {

struct Column {
  std::string name;
  const char* sentence;
  std::string text;
  bool quoted;  // in a CSV file also where it need not be
};

// Words that stand in quotes in a CSV file, whatever they are.
struct Quoted {
  std::string words = {};
};

std::string cell_of_number(double value);  // with all its digits; nothing for what is not finite

template <class Field>
std::string cell_of(const Field& field) {
  if constexpr (FieldKind<Field>::optional) {
    return field ? cell_of(*field) : "";
  } else if constexpr (NamedEnumeration<Field>) {
    return name_of(field);
  } else if constexpr (std::is_same_v<Field, bool>) {
    return field ? "yes" : "no";
  } else if constexpr (std::is_floating_point_v<Field>) {
    return cell_of_number(field);
  } else if constexpr (std::is_integral_v<Field>) {
    return std::to_string(field);
  } else if constexpr (std::is_same_v<Field, Quoted>) {
    return field.words;
  } else {
    return std::string(field);
  }
}

// A visitor of describe.h.
class ColumnMaker : public PresentOnly<ColumnMaker> {
 public:
  template <class Field>
  void operator()(const char* name, const Field& field, const char* sentence, const Facts& facts = {}) {
    if constexpr (FieldKind<Field>::named) {
      for (const auto& [entry, value] : field) add(entry, value, sentence);
    } else {
      add(facts.heading != nullptr ? facts.heading : name, field, sentence);
    }
  }
  std::vector<Column> columns() && { return std::move(columns_); }

 private:
  template <class Field>
  void add(std::string name, const Field& field, const char* sentence) {
    columns_.push_back({std::move(name), sentence, cell_of(field), std::is_same_v<Field, Quoted>});
  }
  std::vector<Column> columns_;
};

template <class Row>
std::vector<Column> columns_of(const Row& row) {
  ColumnMaker make;
  Row::describe(make, row);
  return std::move(make).columns();
}

// The headings, then a line for each row; nothing without rows.
template <class Row>
std::vector<std::vector<std::string>> table_of(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> lines;
  for (const Row& row : rows) {
    std::vector<Column> columns = columns_of(row);
    if (lines.empty()) {
      auto& headings = lines.emplace_back();
      for (const Column& column : columns) headings.push_back(column.name);
    }
    auto& line = lines.emplace_back();
    for (Column& column : columns) line.push_back(std::move(column.text));
  }
  return lines;
}

std::string csv_line(const std::vector<Column>& columns);
std::string csv_headings(const std::vector<Column>& columns);

// A CSV file: headings, as a new row has them, and a line for each row. left_out: columns that the file does without.
template <class Row>
class Csv {
 public:
  explicit Csv(std::vector<std::string_view> left_out = {})
      : left_out_(std::move(left_out)), text_(csv_headings(kept(Row()))) {}
  void add(const Row& row) { text_ += csv_line(kept(row)); }
  std::string text() && { return std::move(text_); }

 private:
  std::vector<Column> kept(const Row& row) const {
    std::vector<Column> columns = columns_of(row);
    std::erase_if(columns, [&](const Column& column) {
      return std::find(left_out_.begin(), left_out_.end(), column.name) != left_out_.end();
    });
    return columns;
  }
  std::vector<std::string_view> left_out_;
  std::string text_;
};

}  // namespace normscope
