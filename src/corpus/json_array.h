#pragma once
// The objects of a large JSON array, one at a time: a first pass finds where each begins and ends.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/bytes.h"

namespace normscope::corpus {

inline constexpr std::size_t kLongestRecord = std::size_t{1} << 24;  // bytes of one object, line or row

struct JsonRange {
  std::uint64_t begin = 0;
  std::uint32_t size = 0;
};

// Throws InputError if the file is no array of objects, an object is longer than kLongestRecord, or there are
// more than 2²⁴. What is inside an object is not checked yet.
std::vector<JsonRange> json_objects(const io::Bytes& file, const std::string& label);

// `where` names the object in messages; its first byte is at `offset` of the file. Throws InputError if it is
// not a JSON object, or nested deeper than any row of a table is.
nlohmann::json parse_object(std::string_view text, const std::string& where, std::uint64_t offset);

}  // namespace normscope::corpus
