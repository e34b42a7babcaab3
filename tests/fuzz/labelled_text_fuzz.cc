// Any bytes handed to a reader of labelled texts are rows or rejected with InputError. The first byte chooses
// the reader: t tab-separated, c comma-separated, j a JSON array.
#include "corpus/json_array.h"
#include "corpus/table.h"
#include "io/bytes.h"
#include "normscope/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  using namespace normscope;
  try {
    if (data[0] == 'j') {
      const auto* const begin = reinterpret_cast<const std::byte*>(data) + 1;
      const auto bytes = io::bytes_in_memory({begin, begin + size - 1}, "'input'");
      std::uint64_t last = 0;
      for (const corpus::JsonRange& range : corpus::json_objects(*bytes, "'input'")) {
        if (range.begin < last || range.begin + range.size > text.size()) __builtin_trap();
        last = range.begin + range.size;
        try {
          corpus::parse_object(text.substr(range.begin, range.size), "'input'", range.begin);
        } catch (const InputError&) {
        }
      }
    } else {
      std::size_t fields = 0, line = 0;
      corpus::read_table(
          text, data[0] == 't' ? corpus::TableFormat::tab_separated : corpus::TableFormat::comma_separated,
          "'input'", [&](const corpus::TableRow& row) {
            if (fields == 0) fields = row.fields.size();
            if (row.fields.size() != fields || row.line <= line) __builtin_trap();
            line = row.line;
          });
    }
  } catch (const InputError&) {
  }
  return 0;
}
