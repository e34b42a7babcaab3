#include "keys/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "keys/panels.h"
#include "keys/wide.h"

namespace normscope {
namespace {

// mantissa · 2^exponent == value, exactly.
struct Split {
  std::int64_t mantissa;
  int exponent;
};

Split split(double value) {
  if (value == 0) return {0, 0};
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return {static_cast<std::int64_t>(std::ldexp(fraction, 53)), exponent - 53};
}

}  // namespace

Rational rational(double value) {
  const Split parts = split(value);
  if (parts.exponent >= 0) return Rational(Integer(parts.mantissa) << static_cast<unsigned>(parts.exponent));
  return Rational(Integer(parts.mantissa), Integer(1) << static_cast<unsigned>(-parts.exponent));
}

long bits(const Integer& value) {
#ifdef __EMSCRIPTEN__  // no GMP there
  return value == 0 ? 0 : static_cast<long>(msb(abs(value))) + 1;
#else
  return value == 0 ? 0 : static_cast<long>(mpz_sizeinbase(value.backend().data(), 2));
#endif
}

int lowest_exponent(MatrixView<const double> values) {
  int lowest = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < values.rows; ++i)
    for (double value : values[i])
      if (value != 0) lowest = std::min(lowest, split(value).exponent);
  return lowest == std::numeric_limits<int>::max() ? 0 : lowest;
}

Integer scaled(double value, int lowest) {
  const Split parts = split(value);
  if (parts.mantissa == 0) return 0;
  return Integer(parts.mantissa) << static_cast<unsigned>(parts.exponent - lowest);
}

double rounded(const Integer& value, long shift) {
#ifdef __EMSCRIPTEN__  // no GMP there
  const long exponent = bits(value), dropped = std::max(exponent - 63, 0L);
  const auto leading = static_cast<std::int64_t>(Integer(abs(value) >> static_cast<unsigned>(dropped)));
  const double fraction =
      value.sign() * std::ldexp(static_cast<double>(leading), static_cast<int>(dropped - exponent));
#else
  long exponent = 0;
  const double fraction = mpz_get_d_2exp(&exponent, value.backend().data());
#endif
  return std::ldexp(fraction, static_cast<int>(std::clamp(exponent - shift, -4000L, 4000L)));
}

void divide_exactly(Integer& value, const Integer& divisor) {
#ifdef __EMSCRIPTEN__  // no GMP there
  value /= divisor;
#else
  mpz_divexact(value.backend().data(), value.backend().data(), divisor.backend().data());
#endif
}

namespace {

// Row echelon form over the integers, grown one vector at a time: the rank of what was added.
class Echelon {
 public:
  bool add(std::vector<Integer> vector) {
    for (const auto& [lead, row] : rows_) {
      if (vector[lead] == 0) continue;
      const Integer a = row[lead], b = vector[lead];
      for (std::size_t c = 0; c < vector.size(); ++c) vector[c] = vector[c] * a - row[c] * b;
    }
    const auto first = std::find_if(vector.begin(), vector.end(), [](const Integer& x) { return x != 0; });
    if (first == vector.end()) return false;
    Integer common = 0;
    for (const Integer& x : vector) common = gcd(common, x);
    for (Integer& x : vector) x /= common;
    rows_.emplace(static_cast<std::size_t>(first - vector.begin()), std::move(vector));
    return true;
  }
  std::size_t rank() const { return rows_.size(); }
  long largest_bits() const {
    long largest = 0;
    for (const auto& [lead, row] : rows_)
      for (const Integer& x : row) largest = std::max(largest, bits(x));
    return largest;
  }

 private:
  std::map<std::size_t, std::vector<Integer>> rows_;
};

class CoverProgram {
 public:
  // scales: with a column for τ, by which the key grows to (1 + τ)·k_i.
  CoverProgram(MatrixView<const double> points, std::span<const double> offsets, std::size_t count,
               std::size_t key, std::span<const std::size_t> hint, Effort& effort, bool scales = false)
      : effort_(effort),
        points_(points),
        offsets_(offsets),
        count_(count),
        key_(key),
        hint_(hint.begin(), hint.end()),
        dimension_(points.cols),
        rows_(points.cols + (offsets.empty() ? 1 : 2)),
        columns_(count + (offsets.empty() ? 0 : 1) + (scales ? 1 : 0)),
        scale_(scales ? columns_ - 1 : kNone) {
    lowest_ = lowest_exponent(points.first_rows(count));
    if (!offsets.empty()) lowest_ = std::min(lowest_, lowest_exponent({offsets.data(), 1, count}));
    // The ray is as long as the keys are: prices of keys and ray are then of one size, and so are a query's
    // parts.
    double largest = 0;
    for (std::size_t j = 0; j < count; ++j) {
      for (double value : points[j]) largest = std::max(largest, std::abs(value));
      if (!offsets.empty()) largest = std::max(largest, std::abs(offsets[j]));
    }
    ray_exponent_ = largest > 0 ? std::max(lowest_, std::ilogb(largest)) : lowest_;
    std::erase_if(hint_, [&](std::size_t j) { return j >= count || j == key; });
    basis_.assign(rows_, kNone);  // artificial columns: the identity
    Effort::hold(rows_ * rows_, 64);
    adjugate_.assign(rows_ * rows_, 0);
    for (std::size_t r = 0; r < rows_; ++r) adjugate_[r * rows_ + r] = 1;
    determinant_ = 1;
    gain_.assign(columns_, 0);
  }

  ExactVerdict decide() {
    ExactVerdict result;
    feasibility_ = true;
    maximise();
    if (infeasible()) {
      result.verdict = Verdict::selectable;
      take_query(result);
      return result;
    }
    feasibility_ = false;
    drive_out_artificials();
    const std::size_t full_rank = static_cast<std::size_t>(
        std::count_if(basis_.begin(), basis_.end(), [](std::size_t j) { return j != kNone; }));
    result.cover = solution();

    std::vector<bool> used(columns_, false);
    Echelon span;
    std::vector<ExactTerm> sum;
    std::size_t covers = 0;
    while (true) {
      bool wider = false;
      for (std::size_t r = 0; r < rows_; ++r) {
        if (basis_[r] == kNone || value(r) == 0 || used[basis_[r]]) continue;
        used[basis_[r]] = true;
        effort_.spend(span.rank() * rows_, bits(determinant_));
        wider |= span.add(column(basis_[r]));
      }
      if (wider || covers == 0) accumulate(sum, ++covers);
      const bool ray_used = !offsets_.empty() && used[count_];
      if (span.rank() == full_rank || ray_used) {
        finish_unselectable(result, sum, covers, ray_used);
        return result;
      }
      for (std::size_t j = 0; j < columns_; ++j) gain_[j] = used[j] || j == key_ ? 0 : 1;
      maximise();
      if (objective() == 0) break;
    }
    std::vector<std::size_t> ties;
    for (std::size_t j = 0; j < count_; ++j)
      if (j != key_ && used[j]) ties.push_back(j);
    if (ties.size() + 1 == count_) {  // every query with the key on top scores all keys alike
      finish_unselectable(result, sum, covers, false);
      return result;
    }
    result.verdict = Verdict::tied;
    result.tied_with = std::move(ties);
    take_query(result);
    return result;
  }

  ExactReach reach(Change change) {
    feasibility_ = true;
    maximise();
    feasibility_ = false;
    drive_out_artificials();
    const std::size_t moved = change == Change::scale ? scale_ : count_;
    gain_[moved] = 1;
    maximise();
    ExactReach result;
    for (std::size_t r = 0; r < rows_; ++r)
      if (basis_[r] == moved) result.value = value(r);
    if (change == Change::offset) result.value *= rational(std::ldexp(1.0, ray_exponent_));
    result.cover = solution();
    ExactVerdict dual;
    take_query(dual);
    result.query = std::move(dual.query);
    result.offset_factor = std::move(dual.offset_factor);
    return result;
  }

 private:
  // Column j: (k_j − k_i, [b_j − b_i,] 2^-lowest), all times 2^-lowest; the ray is (0, −2^(ray − lowest), 0), the
  // column of τ (−k_i, 0, 0) times 2^-lowest.
  std::vector<Integer> column(std::size_t j) const {
    std::vector<Integer> v(rows_);
    if (j == scale_) {
      for (std::size_t c = 0; c < dimension_; ++c) v[c] = -scaled(points_(key_, c), lowest_);
      return v;
    }
    if (j == count_) {
      v[dimension_] = -(Integer(1) << static_cast<unsigned>(ray_exponent_ - lowest_));
      return v;
    }
    for (std::size_t c = 0; c < dimension_; ++c)
      v[c] = scaled(points_(j, c), lowest_) - scaled(points_(key_, c), lowest_);
    if (!offsets_.empty()) v[dimension_] = scaled(offsets_[j], lowest_) - scaled(offsets_[key_], lowest_);
    v[rows_ - 1] = 1;
    return v;
  }

  // Right-hand side is the last unit vector.
  const Integer& numerator(std::size_t r) const { return adjugate_[r * rows_ + rows_ - 1]; }
  Rational value(std::size_t r) const {
    // Boost's own rationals take no negative denominator.
    return determinant_ < 0 ? Rational(-numerator(r), -determinant_) : Rational(numerator(r), determinant_);
  }

  int gain(std::size_t j) const { return feasibility_ ? 0 : gain_[j]; }
  int basic_gain(std::size_t r) const {
    if (basis_[r] == kNone) return feasibility_ ? -1 : 0;
    return gain(basis_[r]);
  }

  void compute_dual() {
    dual_.assign(rows_, 0);
    for (std::size_t r = 0; r < rows_; ++r) {
      const int g = basic_gain(r);
      if (g == 0) continue;
      for (std::size_t c = 0; c < rows_; ++c) {
        if (g > 0)
          dual_[c] += adjugate_[r * rows_ + c];
        else
          dual_[c] -= adjugate_[r * rows_ + c];
      }
    }
    if (determinant_ < 0)
      for (Integer& y : dual_) y = -y;
    magnitude_ = abs(determinant_);
    // Rounded dual for screening, on a common scale; coordinates multiply unscaled differences, whence
    // 2^-lowest.
    screen_.assign(rows_, 0.0);
    long top = bits(magnitude_);
    for (std::size_t c = 0; c < rows_; ++c)
      top = std::max(top, bits(dual_[c]) - (c + 1 < rows_ ? lowest_ : 0));
    for (std::size_t c = 0; c < rows_; ++c)
      screen_[c] = rounded(dual_[c], top + (c + 1 < rows_ ? lowest_ : 0));
    screen_unit_ = rounded(magnitude_, top);
  }

  Integer exact_price(std::size_t j) const {
    const std::vector<Integer> v = column(j);
    Integer sum = magnitude_ * gain(j);
    for (std::size_t c = 0; c < rows_; ++c)
      if (v[c] != 0) sum -= dual_[c] * v[c];
    return sum;
  }

  struct Price {
    double value, error;
  };
  Price screened_price(std::size_t j) const {
    double sum = screen_unit_ * gain(j), size = std::abs(sum), reach = 0;
    const auto term = [&](double y, double difference) {
      const double product = y * difference;
      sum -= product;
      size += std::abs(product);
      reach += std::abs(difference);
    };
    if (j == scale_) {
      for (std::size_t c = 0; c < dimension_; ++c) term(screen_[c], -points_(key_, c));
    } else if (j == count_) {
      term(screen_[dimension_], std::ldexp(-1.0, ray_exponent_));
    } else {
      for (std::size_t c = 0; c < dimension_; ++c) term(screen_[c], points_(j, c) - points_(key_, c));
      if (!offsets_.empty()) term(screen_[dimension_], offsets_[j] - offsets_[key_]);
      term(screen_[rows_ - 1], 1.0);
    }
    // A part of the dual that is less than doubles hold may meet a difference as large as they hold.
    return {sum, size * static_cast<double>(rows_ + 6) * 0x1p-51 + 1e-290 + 0x1p-1073 * reach};
  }

  // Sign of the price of column j: screened, exact where unclear.
  int price_sign(std::size_t j) const {
    const Price price = screened_price(j);
    if (price.value > price.error) return 1;
    if (price.value < -price.error) return -1;
    return exact_price(j).sign();
  }

  bool enterable(std::size_t j) const {
    return j != key_ && std::find(basis_.begin(), basis_.end(), j) == basis_.end();
  }

  std::size_t entering(bool bland) {
    compute_dual();
    if (bland) {
      for (std::size_t j = 0; j < columns_; ++j)
        if (enterable(j) && price_sign(j) > 0) return j;
      return kNone;
    }
    for (std::size_t j : hint_)
      if (enterable(j)) {
        const Price price = screened_price(j);
        if (price.value > price.error) return j;
      }
    std::size_t best = kNone;
    double best_value = 0;
    std::vector<std::size_t> unclear;
    for (std::size_t j = 0; j < columns_; ++j) {
      if (j == key_) continue;
      const Price price = screened_price(j);
      if (price.value > price.error) {
        if ((best == kNone || price.value > best_value) && enterable(j)) best = j, best_value = price.value;
      } else if (!(price.value < -price.error)) {
        unclear.push_back(j);
      }
    }
    if (best != kNone) return best;
    for (std::size_t j : unclear)
      if (enterable(j) && exact_price(j) > 0) return j;
    return kNone;
  }

  // adj(B)·v: the entering column in terms of the basis, times the determinant.
  std::vector<Integer> in_basis(std::size_t j) const {
    const std::vector<Integer> v = column(j);
    std::vector<Integer> direction(rows_);
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t c = 0; c < rows_; ++c)
        if (v[c] != 0) direction[r] += adjugate_[r * rows_ + c] * v[c];
    return direction;
  }

  void pivot(std::size_t row, std::size_t j, const std::vector<Integer>& direction) {
    const Integer& pivot_value = direction[row];
    Effort::hold(rows_ * rows_, bits(pivot_value));
    effort_.spend(rows_ * rows_, bits(pivot_value));
    for (std::size_t r = 0; r < rows_; ++r) {
      if (r == row) continue;
      for (std::size_t c = 0; c < rows_; ++c) {
        Integer& entry = adjugate_[r * rows_ + c];
        entry = entry * pivot_value - direction[r] * adjugate_[row * rows_ + c];
        divide_exactly(entry, determinant_);
      }
    }
    determinant_ = pivot_value;
    basis_[row] = j;
  }

  // Row that leaves when column j enters: least ratio, ties to the lowest basic index (Bland), artificials
  // first.
  std::size_t leaving(const std::vector<Integer>& direction) const {
    const int sign = determinant_.sign();
    std::size_t best = kNone;
    for (std::size_t r = 0; r < rows_; ++r) {
      const int direction_sign = direction[r].sign() * sign;
      // An artificial that stays at zero must not grow: it leaves as soon as the column touches its row.
      const bool held = !feasibility_ && basis_[r] == kNone;
      if (held && direction_sign != 0) return r;
      if (direction_sign <= 0) continue;
      if (best == kNone) {
        best = r;
        continue;
      }
      const Integer left = numerator(r) * direction[best], right = numerator(best) * direction[r];
      // Both directions have the determinant's sign, so their product is positive and the comparison is
      // direct, except that numerators carry the determinant's sign too.
      const int order = (left < right ? -1 : (left > right ? 1 : 0));
      if (order < 0 || (order == 0 && order_of(r) < order_of(best))) best = r;
    }
    return best;
  }
  std::size_t order_of(std::size_t r) const { return basis_[r] == kNone ? r : rows_ + basis_[r]; }

  void maximise() {
    std::size_t degenerate = 0;
    while (true) {
      const std::size_t j = entering(degenerate > 4 * rows_);
      if (j == kNone) return;
      const std::vector<Integer> direction = in_basis(j);
      const std::size_t row = leaving(direction);
      if (row == kNone)
        return;  // cannot happen: Σ λ = 1 bounds every key, and the ray's value is bounded by them
      degenerate = numerator(row) == 0 ? degenerate + 1 : 0;
      pivot(row, j, direction);
    }
  }

  bool infeasible() const {
    for (std::size_t r = 0; r < rows_; ++r)
      if (basis_[r] == kNone && numerator(r) != 0) return true;
    return false;
  }

  Rational objective() const {
    Rational sum = 0;
    for (std::size_t r = 0; r < rows_; ++r)
      if (basic_gain(r) != 0) sum += value(r) * basic_gain(r);
    return sum;
  }

  // Artificials left in the basis at zero are exchanged for real columns; a row no column touches is
  // redundant.
  void drive_out_artificials() {
    for (std::size_t r = 0; r < rows_; ++r) {
      if (basis_[r] != kNone) continue;
      for (std::size_t j = 0; j < columns_; ++j) {
        if (!enterable(j)) continue;
        effort_.spend(2 * rows_, bits(determinant_));
        const std::vector<Integer> v = column(j);
        Integer entry = 0;
        for (std::size_t c = 0; c < rows_; ++c)
          if (v[c] != 0) entry += adjugate_[r * rows_ + c] * v[c];
        if (entry == 0) continue;
        pivot(r, j, in_basis(j));
        break;
      }
    }
  }

  std::vector<ExactTerm> solution() const {
    std::vector<ExactTerm> terms;
    for (std::size_t r = 0; r < rows_; ++r)
      if (basis_[r] != kNone && basis_[r] < count_ && numerator(r) != 0)
        terms.push_back({basis_[r], value(r)});
    std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    return terms;
  }

  void accumulate(std::vector<ExactTerm>& sum, std::size_t) const {
    for (ExactTerm& term : solution()) {
      const auto at =
          std::find_if(sum.begin(), sum.end(), [&](const auto& t) { return t.index == term.index; });
      if (at == sum.end())
        sum.push_back(std::move(term));
      else
        at->weight += term.weight;
    }
  }

  void finish_unselectable(ExactVerdict& result, std::vector<ExactTerm>& sum, std::size_t covers,
                           bool ray_used) {
    result.verdict = Verdict::unselectable;
    if (ray_used) {  // a cover with a strictly higher offset says it all
      result.cover = solution();
      return;
    }
    if (covers == 1) return;
    for (ExactTerm& term : sum) term.weight /= static_cast<unsigned>(covers);
    std::sort(sum.begin(), sum.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    result.interior = std::move(sum);
  }

  void take_query(ExactVerdict& result) {
    compute_dual();
    result.query.resize(dimension_);
    for (std::size_t c = 0; c < dimension_; ++c) result.query[c] = -dual_[c];
    if (!offsets_.empty()) result.offset_factor = -dual_[dimension_];
  }

  Effort& effort_;
  MatrixView<const double> points_;
  std::span<const double> offsets_;
  std::size_t count_, key_;
  std::vector<std::size_t> hint_;
  std::size_t dimension_, rows_, columns_, scale_;
  int lowest_ = 0, ray_exponent_ = 0;
  bool feasibility_ = true;
  std::vector<std::size_t> basis_;  // column in each row; kNone is that row's artificial
  std::vector<Integer> adjugate_;   // rows × rows
  Integer determinant_, magnitude_;
  std::vector<Integer> dual_;  // y·|det|
  std::vector<double> screen_;
  double screen_unit_ = 1;
  std::vector<int> gain_;
};

}  // namespace

ExactVerdict decide_exactly(MatrixView<const double> points, std::span<const double> offsets,
                            std::size_t count, std::size_t key, std::span<const std::size_t> hint,
                            Effort& effort) {
  return CoverProgram(points, offsets, count, key, hint, effort).decide();
}

ExactReach exact_reach(MatrixView<const double> points, std::span<const double> offsets, std::size_t key,
                       Change change, std::span<const std::size_t> hint, Effort& effort) {
  return CoverProgram(points, offsets, points.rows, key, hint, effort, change == Change::scale).reach(change);
}

std::vector<Rational> exact_query(const ExactVerdict& verdict, MatrixView<const double> points,
                                  std::span<const double> offsets, std::size_t key) {
  std::vector<Rational> query(verdict.query.begin(), verdict.query.end());
  if (offsets.empty()) return query;
  Rational factor = 0;
  if (verdict.offset_factor > 0) {
    factor = Rational(1) / Rational(verdict.offset_factor);
  } else {
    for (std::size_t j = 0; j < points.rows; ++j) {
      const Rational deficit = rational(offsets[j]) - rational(offsets[key]);
      if (j == key || deficit < 0) continue;
      Rational gap = 0;
      for (std::size_t c = 0; c < points.cols; ++c)
        gap += query[c] * (rational(points(key, c)) - rational(points(j, c)));
      const Rational needed = deficit / gap + 1;
      if (needed > factor) factor = needed;
    }
    if (factor == 0) factor = 1;
  }
  for (Rational& q : query) q *= factor;
  return query;
}

bool lies_in_flat(MatrixView<const double> keys, std::size_t dimension, Effort& effort) {
  const int lowest = lowest_exponent(keys);
  Echelon span;
  long largest = 0;
  for (std::size_t j = 1; j < keys.rows; ++j) {
    std::vector<Integer> difference(keys.cols);
    for (std::size_t c = 0; c < keys.cols; ++c)
      difference[c] = scaled(keys(j, c), lowest) - scaled(keys(0, c), lowest);
    for (const Integer& x : difference) largest = std::max(largest, bits(x));
    // A vector grows by the bits of each row it is reduced by.
    effort.spend((span.rank() + 1) * keys.cols, largest * static_cast<long>(span.rank() + 1));
    if (!span.add(std::move(difference))) continue;
    if (span.rank() > dimension) return false;
    largest = std::max(largest, span.largest_bits());
  }
  return true;
}

std::vector<Rational> barycentric_coordinates(MatrixView<const double> points, std::size_t key,
                                              std::span<const std::size_t> members, Effort& effort) {
  // Gauss-Jordan on [k_m − k_i; 1] λ = (0, 1).
  const std::size_t rows = points.cols + 1, cols = members.size();
  std::vector<std::vector<Rational>> m(rows, std::vector<Rational>(cols + 1));
  for (std::size_t a = 0; a < cols; ++a) {
    for (std::size_t c = 0; c + 1 < rows; ++c)
      m[c][a] = rational(points(members[a], c)) - rational(points(key, c));
    m[rows - 1][a] = 1;
  }
  m[rows - 1][cols] = 1;
  std::size_t row = 0;
  for (std::size_t a = 0; a < cols; ++a, ++row) {
    std::size_t p = row;
    while (p < rows && m[p][a] == 0) ++p;
    if (p == rows) return {};
    std::swap(m[p], m[row]);
    const Rational lead = m[row][a];
    effort.spend(4 * rows * (cols - a), bits(Integer(numerator(lead))) + bits(Integer(denominator(lead))));
    for (std::size_t c = a; c <= cols; ++c) m[row][c] /= lead;
    for (std::size_t r = 0; r < rows; ++r) {
      if (r == row || m[r][a] == 0) continue;
      const Rational factor = m[r][a];
      for (std::size_t c = a; c <= cols; ++c) m[r][c] -= factor * m[row][c];
    }
  }
  for (std::size_t r = row; r < rows; ++r)
    if (m[r][cols] != 0) return {};
  std::vector<Rational> weights(cols);
  for (std::size_t a = 0; a < cols; ++a) weights[a] = m[a][cols];
  return weights;
}

int exact_score_difference_sign(std::span<const double> query, MatrixView<const double> keys,
                                std::span<const double> offsets, std::size_t i, std::size_t j) {
  double sum = 0, size = 0;
  for (std::size_t c = 0; c < query.size(); ++c) {
    const double product = query[c] * (keys(i, c) - keys(j, c));
    sum += product;
    size += std::abs(product);
  }
  if (!offsets.empty()) {
    sum += offsets[i] - offsets[j];
    size += std::abs(offsets[i] - offsets[j]);
  }
  const double error = size * static_cast<double>(query.size() + 4) * 0x1p-52 + 1e-290;
  if (sum > error) return 1;
  if (sum < -error) return -1;
  // Then in wide numbers, where nothing underflows or overflows on the way.
  if (size > 1e-200 && size < 1e200) {
    Wide wide;
    for (std::size_t c = 0; c < query.size(); ++c)
      wide = wide + wide_difference(keys(i, c), keys(j, c)) * query[c];
    if (!offsets.empty()) wide = wide + wide_difference(offsets[i], offsets[j]);
    const double wide_error = size * static_cast<double>(query.size() + 4) * 4 * kWideError + 1e-250;
    if (wide.high > wide_error) return 1;
    if (wide.high < -wide_error) return -1;
  }
  Rational exact = 0;
  for (std::size_t c = 0; c < query.size(); ++c)
    exact += rational(query[c]) * (rational(keys(i, c)) - rational(keys(j, c)));
  if (!offsets.empty()) exact += rational(offsets[i]) - rational(offsets[j]);
  return exact.sign();
}

Rational power_of_two_below(std::span<const Rational> values) {
  bool any = false;
  long top = 0;
  for (const Rational& value : values) {
    if (value == 0) continue;
    const long exponent = bits(Integer(numerator(value))) - bits(Integer(denominator(value)));
    top = any ? std::max(top, exponent) : exponent;
    any = true;
  }
  const Integer power = Integer(1) << static_cast<unsigned>(std::abs(top));
  return top >= 0 ? Rational(power) : Rational(Integer(1), power);
}

}  // namespace normscope
