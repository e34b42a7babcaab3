#pragma once
// Options, said once: name, default (the value a new struct has), range and sentence. `--help`, the command
// line, Python's keywords and the guide's tables take them from a struct's `describe`:
//
//   struct KeysOptions {
//     std::string file;
//     std::optional<double> query_norm;
//     static void describe(auto& visit, auto& self) {
//       visit.input("FILE", self.file, "A .npy file with n × d keys");
//       visit("query-norm", self.query_norm, "Also the largest weight …", OptionFacts{.type = "R", .low =
//       0});
//     }
//   };
//
// Fields may be words, numbers, flags, enumerations with name_of and values_of, optional ones, and lists of
// words.
#include <cstddef>
#include <limits>

namespace normscope {

struct OptionFacts {
  const char* type = nullptr;  // what stands for the value in --help; null: by the kind of the field
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  const char* otherwise = nullptr;  // the default in words, where the value does not say it
  const char* old_name = nullptr;   // goes on working, unlisted
};

}  // namespace normscope
