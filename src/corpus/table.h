#pragma once
// Tables of text with a header, row by row.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::corpus {

enum class TableFormat {
  tab_separated,    // fields as they are
  comma_separated,  // RFC 4180: "a ""quoted"" field, of several lines perhaps"
};

struct TableRow {
  std::size_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// Calls `take` for every row, the header first; empty lines are passed over. Throws InputError if a quote is
// never closed, a row is longer than kLongestRecord, or has more or fewer fields than the header.
void read_table(std::string_view text, TableFormat format, const std::string& label,
                const std::function<void(const TableRow&)>& take);

}  // namespace normscope::corpus
