#pragma once
// Patterns of tokenizer files. Oniguruma, since the reference library uses it: the same pattern means the
// same here
// (`\p{N}{1,3}+`, for one, is possessive elsewhere and is not in Oniguruma).
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/aligned_text.h"

namespace normscope::text {

class Regex {
 public:
  // Throws InputError if it is no pattern; `where` says where it was read.
  Regex(std::string_view pattern, std::string_view where);

  // Throws InputError if the search takes more steps than any sensible pattern needs.
  std::vector<Match> find(std::string_view valid) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace normscope::text
