#pragma once
// What scans of models in files and of live ones share: one set of keys decided from the places that see it, and what norms
// and queries did.
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "normscope/keys.h"
#include "normscope/matrix.h"
#include "normscope/scan.h"
#include "scan/places.h"

namespace normscope {

bool asks_for(const ScanSettings& settings, KeySpace space);
// How keys of numbers so precise are decided: verdicts alone, without certificates.
KeyOptions key_options(const ScanSettings& settings, double unit_roundoff);

Matrix<double> columns(MatrixView<const float> from, std::size_t first, std::size_t count);
NormShare norm_share(MatrixView<const float> x);
// Rows of a matrix, and entries of a list (an empty one has none), in the order of `which`.
Matrix<double> rows_of(MatrixView<const double> from, std::span<const std::size_t> which);
std::vector<double> entries_of(std::span<const double> from, std::span<const std::size_t> which);
// Where the tokens wanted stand among those seen; both ascend.
std::vector<std::size_t> positions_in(std::span<const std::size_t> seen, std::span<const std::size_t> wanted);

using Winners = std::span<const std::optional<std::size_t>>;  // per place the token with the highest weight
using OffsetsAt = std::function<std::vector<double>(std::size_t place)>;

// Verdicts for any query; offsets_at: of the scores, from a place; empty: none.
ScanSet decide_space(const Places& places, const Matrix<double>& keys, const KeyOptions& options,
                     Winners winners, const OffsetsAt& offsets_at, const Executor& alone);

// One row of attention weights, of the tokens from `first` on: adds it to sums that `finish` makes means of. The token with
// the highest weight.
std::optional<std::size_t> add_query(std::span<const float> weights, std::size_t first, QueryShare& queries);
void finish(QueryShare& queries);

}  // namespace normscope
