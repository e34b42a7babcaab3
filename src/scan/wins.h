#pragma once
// A query that won is a witness: no verdict may say that its winner cannot.
#include <cstddef>
#include <span>

#include "normscope/matrix.h"
#include "normscope/scan.h"

namespace normscope {

// What a query saw.
struct SeenKeys {
  MatrixView<const double> keys;      // of all tokens
  std::span<const double> offsets;    // of the scores, per token; empty: none
  std::span<const std::size_t> seen;  // by the query
  double error = 0;                   // no key seen is farther than this from the one meant
};

// By how much a token's score leads all others seen, beyond what rounding of the keys explains: their error,
// and what the rank policy may have taken for rounding, 8·2⁻²⁴ of a key's length in each dimension. Not
// positive: the query proves nothing.
double certain_lead(std::span<const double> query, const SeenKeys& from, std::size_t token);

// Throws Error, which names all of it, unless the set leaves the token selectable or undecided.
void require_selectable(const ScanSet& set, std::size_t token, KeySpace space, std::size_t layer,
                        std::size_t head, std::size_t place, double lead);

}  // namespace normscope
