#pragma once
// Exact checks of the certificate that a KeyVerdict carries, independent of the engine that made it.
//
// Witness. Its coordinates are taken as exact rationals.
//   selectable  q·(k_i − k_j) + (b_i − b_j) > 0 for every j ≠ i, exactly. With offsets the query cannot be
//   rescaled
//               and the set of witnesses may be too thin to hold any double; a shortfall of at most 2^-50 of
//               the terms' magnitude is then accepted if the verdict does not claim to be verified, and
//               noted.
//   tied        the keys of tied_with, at least one, share the top score; another key does not, unless all
//   keys
//               and offsets are equal. A face's normal is rarely a double, so scores may be off by 1e-12 of
//               Σ_c |q_c (k_i − k_j)_c| + |b_i − b_j|; noted when it is needed.
// Cover (tied, unselectable): distinct keys other than i, positive weights with sum 1 (1e-12), affinely
//   independent; the exact barycentric coordinates of k_i in them exist, are ≥ 0, give at least its offset
//   and agree with the weights (1e-6 relative or 1e-9 absolute). Keys that are dependent only without their
//   offsets must reproduce (k_i, b_i).
// Proof of unselectable, one of
//   the cover gives strictly more than the offset of i: some key of it scores above i under every query;
//   cover or interior spans the hull of all (k_j, b_j), and (k_i, b_i) is in its relative interior (exactly).
#include <cstddef>
#include <span>
#include <string>

#include "normscope/keys.h"
#include "oracle/exact.h"

namespace normscope::oracle {

struct CertificateNotes {
  bool rounded_witness = false;  // the witness holds only up to the rounding allowed above
};

// "" if the certificate proves what it should, else a sentence that says what is wrong.
std::string check_certificate(const ExactKeys& keys, std::size_t i, const KeyVerdict& verdict,
                              CertificateNotes* notes = nullptr);
std::string check_certificate(MatrixView<const double> keys, std::span<const double> offsets, std::size_t i,
                              const KeyVerdict& verdict, CertificateNotes* notes = nullptr);

}  // namespace normscope::oracle
