#include "oracle/certificate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "oracle/oracle.h"

namespace normscope::oracle {
namespace {

constexpr double weight_relative = 1e-6, weight_absolute = 1e-9, sum_tolerance = 1e-12;
constexpr double residual_tolerance = 1e-9;

std::string key_name(std::size_t j) {
  return "key " + std::to_string(j);
}

// Exact score gap s_i − s_j under a witness, and the magnitude of its terms, over one common denominator.
struct Gap {
  Integer gap = 0, magnitude = 0;

  int sign() const { return gap.sign(); }
  // |gap| ≤ magnitude / parts
  bool within(long long parts) const { return boost::multiprecision::abs(gap) * parts <= magnitude; }
};

class Witness {
 public:
  Witness(const ExactKeys& keys, const std::vector<double>& query) : keys_(keys) {
    std::vector<double> lifted = query;
    lifted.push_back(1.0);  // the offset column
    coefficients_ = scale_to_integers(lifted, keys.exponents()).values;
  }

  // From exact numbers, "p" or "p/q". They may have a million digits, so fractions are not reduced on the way.
  Witness(const ExactKeys& keys, const std::vector<std::string>& query) : keys_(keys) {
    std::vector<Integer> denominators;
    for (std::size_t c = 0; c <= query.size(); ++c) {
      const std::string text = c < query.size() ? query[c] : "1";  // the offset column
      const std::size_t bar = text.find('/');
      const unsigned shift = static_cast<unsigned>(std::abs(keys.exponent(c)));
      const bool smaller = keys.exponent(c) < 0;
      coefficients_.push_back(Integer(text.substr(0, bar)) << (smaller ? 0 : shift));
      denominators.push_back(Integer(bar == std::string::npos ? "1" : text.substr(bar + 1))
                             << (smaller ? shift : 0));
    }
    Integer common = 1;
    for (const Integer& denominator : denominators) {
      if (common % denominator == 0) continue;
      common = denominator % common == 0 ? denominator : boost::multiprecision::lcm(common, denominator);
    }
    for (std::size_t c = 0; c < coefficients_.size(); ++c) coefficients_[c] *= common / denominators[c];
  }

  Gap gap(std::size_t i, std::size_t j) const {
    Gap result;
    const std::vector<Integer> difference = keys_.difference(i, j);
    for (std::size_t c = 0; c < difference.size(); ++c) {
      const Integer term = coefficients_[c] * difference[c];
      result.gap += term;
      result.magnitude += boost::multiprecision::abs(term);
    }
    return result;
  }

 private:
  const ExactKeys& keys_;
  std::vector<Integer> coefficients_;
};

std::string check_witness_shape(const ExactKeys& keys, const std::vector<double>& witness) {
  if (witness.size() != keys.dimensions()) {
    return "the witness has " + std::to_string(witness.size()) + " coordinates instead of " +
           std::to_string(keys.dimensions());
  }
  if (!std::all_of(witness.begin(), witness.end(), [](double x) { return std::isfinite(x); })) {
    return "the witness is not finite";
  }
  return "";
}

std::string check_selectable_witness(const ExactKeys& keys, std::size_t i, const KeyVerdict& verdict,
                                     CertificateNotes& notes) {
  if (std::string problem = check_witness_shape(keys, verdict.witness); !problem.empty()) return problem;
  // Where no doubles pass, the certificate is the exact witness and the doubles are its rounding.
  notes.rounded_witness = !verdict.exact_witness.empty();
  const Witness witness =
      notes.rounded_witness ? Witness(keys, verdict.exact_witness) : Witness(keys, verdict.witness);
  for (std::size_t j = 0; j < keys.count(); ++j) {
    if (j == i) continue;
    const Gap gap = witness.gap(i, j);
    if (gap.sign() <= 0) {
      return "under the witness " + key_name(j) + " scores " + (gap.sign() == 0 ? "the same" : "higher") +
             " (gap " +
             std::to_string(ratio(gap.gap, gap.magnitude == 0 ? Integer(1) : gap.magnitude) * 0x1p53) +
             " · 2^-53 of its terms)";
    }
  }
  return "";
}

std::string check_tied_witness(const ExactKeys& keys, std::size_t i, const KeyVerdict& verdict,
                               CertificateNotes& notes) {
  if (std::string problem = check_witness_shape(keys, verdict.witness); !problem.empty()) return problem;
  std::vector<bool> shares(keys.count(), false);
  for (std::size_t j : verdict.tied_with) {
    if (j >= keys.count() || j == i || shares[j]) return "tied_with lists " + key_name(j) + " wrongly";
    shares[j] = true;
  }
  if (verdict.tied_with.empty()) return "tied_with is empty";
  if (keys.lifted_rank() > 0 && verdict.tied_with.size() + 1 == keys.count()) {
    return "the witness of a tied key scores all keys alike";
  }
  const Witness witness =
      verdict.exact_witness.empty() ? Witness(keys, verdict.witness) : Witness(keys, verdict.exact_witness);
  constexpr long long parts = 1'000'000'000'000;
  bool exact_on_top = true, exact_ties = true;
  std::vector<std::size_t> unlisted_ties;
  for (std::size_t j = 0; j < keys.count(); ++j) {
    if (j == i) continue;
    const Gap gap = witness.gap(i, j);
    if (shares[j] && gap.sign() != 0) {
      exact_ties = false;
      if (!gap.within(parts)) {
        return key_name(j) + " is in tied_with, but scores " + (gap.sign() > 0 ? "lower" : "higher") +
               " under the witness";
      }
    }
    if (!shares[j] && gap.sign() == 0) unlisted_ties.push_back(j);
    if (!shares[j] && gap.sign() < 0) {
      exact_on_top = false;
      if (!gap.within(parts)) return "under the witness " + key_name(j) + " scores higher";
    }
  }
  // Rounding may move a key that is barely lower to an exact tie, but not while it leaves the listed ties
  // exact.
  if (!unlisted_ties.empty() && exact_ties) {
    return key_name(unlisted_ties.front()) + " shares the top score but is not in tied_with";
  }
  notes.rounded_witness = !exact_ties || !exact_on_top;
  return "";
}

std::string check_terms(const ExactKeys& keys, std::size_t i, const std::vector<CoverTerm>& terms,
                        const std::string& what) {
  std::vector<bool> seen(keys.count(), false);
  double sum = 0;
  for (const auto& [index, weight] : terms) {
    if (index >= keys.count()) return "the " + what + " names a key that does not exist";
    if (index == i) return "the " + what + " contains the key itself";
    if (seen[index]) return "the " + what + " contains " + key_name(index) + " twice";
    if (!(weight > 0)) return "the " + what + " gives " + key_name(index) + " no positive weight";
    seen[index] = true;
    sum += weight;
  }
  if (!(std::abs(sum - 1) <= sum_tolerance)) return "the weights of the " + what + " do not sum to 1";
  return "";
}

// Numerators over one positive denominator.
struct Barycentric {
  std::vector<Integer> numerators;
  Integer denominator;
};

struct BarycentricResult {
  bool independent = false;
  std::optional<Barycentric> coordinates;  // absent: the point is not in their affine hull
};

BarycentricResult barycentric(const ExactKeys& keys, std::size_t i, const std::vector<CoverTerm>& terms,
                              bool lifted) {
  const std::size_t columns = terms.size();
  IntegerMatrix equations(1, std::vector<Integer>(columns + 1, Integer(1)));  // Σ λ = 1
  for (std::size_t c = 0; c < keys.dimensions() + (lifted ? 1 : 0); ++c) {
    std::vector<Integer> row;
    for (const CoverTerm& term : terms) row.push_back(keys.at(term.index, c));
    row.push_back(keys.at(i, c));
    equations.push_back(std::move(row));
  }
  const Echelon echelon = eliminate(std::move(equations));
  BarycentricResult result;
  const bool consistent = echelon.pivots.empty() || echelon.pivots.back() != columns;
  result.independent = echelon.pivots.size() - (consistent ? 0 : 1) == columns;
  if (!result.independent || !consistent) return result;
  Barycentric coordinates{std::vector<Integer>(columns), echelon.determinant};
  for (std::size_t column = 0; column < columns; ++column)
    coordinates.numerators[column] = echelon.rows[column][columns];
  if (coordinates.denominator < 0) {
    coordinates.denominator = -coordinates.denominator;
    for (Integer& numerator : coordinates.numerators) numerator = -numerator;
  }
  result.coordinates = std::move(coordinates);
  return result;
}

struct CoverFacts {
  bool strictly_above = false;  // Σ λ b > b_i
  bool interior = false;        // spans the lifted hull with all λ > 0 and Σ λ b = b_i
};

std::string check_cover(const ExactKeys& keys, std::size_t i, const std::vector<CoverTerm>& cover,
                        CoverFacts& facts) {
  if (cover.empty()) return "the cover is empty";
  if (std::string problem = check_terms(keys, i, cover, "cover"); !problem.empty()) return problem;
  if (cover.size() > keys.dimensions() + (keys.has_offsets() ? 2 : 1)) return "the cover has too many keys";
  BarycentricResult solved = barycentric(keys, i, cover, false);
  if (!solved.independent && keys.has_offsets()) solved = barycentric(keys, i, cover, true);
  if (!solved.independent) return "the cover is not affinely independent";
  if (!solved.coordinates) return "the key is not in the affine hull of its cover";

  const auto& [numerators, denominator] = *solved.coordinates;
  bool all_positive = true;
  Integer excess = -denominator * keys.at(i, keys.dimensions());  // Σ λ b − b_i
  for (std::size_t term = 0; term < cover.size(); ++term) {
    if (numerators[term] < 0)
      return "the exact weight of " + key_name(cover[term].index) + " in the cover is negative";
    if (numerators[term] == 0) all_positive = false;
    const double exact = ratio(numerators[term], denominator), error = std::abs(exact - cover[term].weight);
    if (!(error <= weight_absolute || error <= weight_relative * exact)) {
      return "the cover gives " + key_name(cover[term].index) + " the weight " +
             std::to_string(cover[term].weight) + " instead of " + std::to_string(exact);
    }
    excess += numerators[term] * keys.at(cover[term].index, keys.dimensions());
  }
  if (excess < 0) return "the cover does not reach the offset of the key";
  facts.strictly_above = excess > 0;
  std::vector<std::size_t> indices;
  for (const CoverTerm& term : cover) indices.push_back(term.index);
  facts.interior = excess == 0 && all_positive && keys.lifted_rank(indices) == keys.lifted_rank();
  return "";
}

// Whether the weights of the interior reproduce k_i and reach b_i up to rounding: exact ones are seldom
// doubles.
bool reproduces(const ExactKeys& keys, std::size_t i, const std::vector<CoverTerm>& terms) {
  std::vector<double> weights;
  for (const CoverTerm& term : terms) weights.push_back(term.weight);
  const ScaledIntegers scaled = scale_to_integers(weights);
  // Σ w (k_j − k_i) in one coordinate, and the sum of its terms' magnitudes.
  const auto residual = [&](std::size_t c) {
    Integer sum = 0, magnitude = 0;
    for (std::size_t term = 0; term < terms.size(); ++term) {
      const Integer product = scaled.values[term] * (keys.at(terms[term].index, c) - keys.at(i, c));
      sum += product;
      magnitude += boost::multiprecision::abs(product);
    }
    const int exponent = scaled.exponent + keys.exponent(c);
    return std::pair(std::ldexp(sum.convert_to<double>(), exponent),
                     std::ldexp(magnitude.convert_to<double>(), exponent));
  };
  double largest = 0, scale = 0;
  for (std::size_t c = 0; c < keys.dimensions(); ++c) {
    const auto [sum, magnitude] = residual(c);
    largest = std::max(largest, std::abs(sum));
    scale = std::max(scale, magnitude);
  }
  const auto [excess, offset_scale] = residual(keys.dimensions());
  return largest <= residual_tolerance * scale && -excess <= residual_tolerance * offset_scale;
}

std::string check_unselectable(const ExactKeys& keys, std::size_t i, const KeyVerdict& verdict,
                               const CoverFacts& cover) {
  if (verdict.interior.empty()) {
    if (cover.strictly_above || cover.interior) return "";
    return "the cover does not prove unselectable: it spans less than the hull and there is no interior";
  }
  const std::vector<CoverTerm>& terms = verdict.interior;
  if (std::string problem = check_terms(keys, i, terms, "interior"); !problem.empty()) return problem;
  if (!reproduces(keys, i, terms)) return "the interior does not reproduce the key";
  if (cover.strictly_above) return "";
  std::vector<std::size_t> indices;
  for (const CoverTerm& term : terms) indices.push_back(term.index);
  const Support support = support_of(keys, i, indices);
  if (!support.on_top) return "";
  if (keys.lifted_rank(indices) != keys.lifted_rank())
    return "the interior spans less than the hull of the keys";
  if (support.beaten > 0) return "the key is not a positive combination of all keys of its interior";
  return "";
}

}  // namespace

std::string check_certificate(const ExactKeys& keys, std::size_t i, const KeyVerdict& verdict,
                              CertificateNotes* notes) {
  CertificateNotes ignored;
  CertificateNotes& out = notes ? *notes : ignored;
  if (verdict.verdict == Verdict::selectable) return check_selectable_witness(keys, i, verdict, out);
  CoverFacts cover;
  if (std::string problem = check_cover(keys, i, verdict.cover, cover); !problem.empty()) return problem;
  if (verdict.verdict == Verdict::unselectable) return check_unselectable(keys, i, verdict, cover);
  return check_tied_witness(keys, i, verdict, out);
}

std::string check_certificate(MatrixView<const double> keys, std::span<const double> offsets, std::size_t i,
                              const KeyVerdict& verdict, CertificateNotes* notes) {
  return check_certificate(ExactKeys(keys, offsets), i, verdict, notes);
}

}  // namespace normscope::oracle
