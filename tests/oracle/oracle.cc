#include "oracle/oracle.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace normscope::oracle {
namespace {

// Simplex dictionary of the cone { y = A q ≥ 0 }: each basic y is a linear form in the nonbasic ones,
//   y_basic[r] = Σ_c rows[r][c] / denominator · y_nonbasic[c],
// with integer rows and denominator > 0. The only vertex is the apex, so every dictionary is feasible and
// every pivot degenerate; Bland's rule makes the pivots end.
class ConeDictionary {
 public:
  explicit ConeDictionary(IntegerMatrix constraints) : supported_(constraints.size(), false) {
    eliminate_queries(std::move(constraints));
  }

  // Largest support: maximise the sum of the y not known to be positive. An unbounded ray adds at least one
  // of them to the support; an optimum (of 0) shows that the rest vanish on the whole cone.
  std::vector<bool> support() {
    while (grow_support()) {
    }
    return supported_;
  }

 private:
  // Exchanges the free q for constraints, one column each. A column that no remaining form depends on is
  // a direction in which queries score all keys alike.
  void eliminate_queries(IntegerMatrix forms) {
    const std::size_t queries = forms.empty() ? 0 : forms.front().size();
    std::vector<std::size_t> names(forms.size());
    std::iota(names.begin(), names.end(), std::size_t{0});
    std::vector<bool> kept(queries, false);
    std::vector<std::size_t> columns(queries);
    for (std::size_t column = 0; column < queries; ++column) {
      std::size_t row = 0;
      while (row < forms.size() && forms[row][column] == 0) ++row;
      if (row == forms.size()) continue;
      kept[column] = true;
      columns[column] = names[row];
      exchange(forms, row, column);
      forms.erase(forms.begin() + static_cast<std::ptrdiff_t>(row));  // q itself is not needed any more
      names.erase(names.begin() + static_cast<std::ptrdiff_t>(row));
    }
    for (auto& form : forms) {
      std::vector<Integer> row;
      for (std::size_t column = 0; column < queries; ++column) {
        if (kept[column]) row.push_back(std::move(form[column]));
      }
      rows_.push_back(std::move(row));
    }
    basic_ = std::move(names);
    for (std::size_t column = 0; column < queries; ++column) {
      if (kept[column]) nonbasic_.push_back(columns[column]);
    }
  }

  // Solves form `row` for the variable of `column` and substitutes it everywhere.
  void exchange(IntegerMatrix& forms, std::size_t row, std::size_t column) {
    const Integer pivot = forms[row][column];
    for (std::size_t r = 0; r < forms.size(); ++r) {
      if (r == row) continue;
      for (std::size_t c = 0; c < forms[r].size(); ++c) {
        if (c != column) {
          fraction_free_step(forms[r][c], pivot, forms[r][column], forms[row][c], denominator_);
        }
      }
    }
    for (std::size_t c = 0; c < forms[row].size(); ++c) {
      if (c != column) forms[row][c] = -forms[row][c];
    }
    forms[row][column] = denominator_;
    denominator_ = pivot;
    if (denominator_ > 0) return;
    denominator_ = -denominator_;
    for (auto& form : forms) {
      for (Integer& value : form) value = -value;
    }
  }

  bool grow_support() {
    for (;;) {
      const std::size_t column = entering_column();
      if (column == nonbasic_.size()) return false;
      const std::size_t row = leaving_row(column);
      if (row == rows_.size()) {
        supported_[nonbasic_[column]] = true;
        for (std::size_t r = 0; r < rows_.size(); ++r) {
          if (rows_[r][column] > 0) supported_[basic_[r]] = true;
        }
        return true;
      }
      exchange(rows_, row, column);
      std::swap(basic_[row], nonbasic_[column]);
    }
  }

  std::size_t entering_column() const {
    std::size_t best = nonbasic_.size();
    for (std::size_t column = 0; column < nonbasic_.size(); ++column) {
      if (best < nonbasic_.size() && nonbasic_[column] > nonbasic_[best]) continue;
      Integer gain = supported_[nonbasic_[column]] ? Integer(0) : denominator_;
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        if (!supported_[basic_[r]]) gain += rows_[r][column];
      }
      if (gain > 0) best = column;
    }
    return best;
  }

  std::size_t leaving_row(std::size_t column) const {
    std::size_t best = rows_.size();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r][column] < 0 && (best == rows_.size() || basic_[r] < basic_[best])) best = r;
    }
    return best;
  }

  IntegerMatrix rows_;
  Integer denominator_ = 1;
  std::vector<std::size_t> basic_, nonbasic_;
  std::vector<bool> supported_;
};

}  // namespace

Support support_of(const ExactKeys& keys, std::size_t i, std::span<const std::size_t> others) {
  Support result;
  IntegerMatrix constraints;
  for (std::size_t j : others) {
    if (j == i) continue;
    ++result.others;
    std::vector<Integer> row = keys.difference(i, j);
    if (!std::all_of(row.begin(), row.end(), [](const Integer& x) { return x == 0; }))
      result.all_equal = false;
    if (!keys.has_offsets()) row.pop_back();
    constraints.push_back(std::move(row));
  }
  if (keys.has_offsets()) {  // t ≥ 0, the last variable
    std::vector<Integer> row(keys.dimensions() + 1);
    row.back() = 1;
    constraints.push_back(std::move(row));
  }
  const std::vector<bool> supported = ConeDictionary(std::move(constraints)).support();
  const auto end_of_keys = supported.begin() + static_cast<std::ptrdiff_t>(result.others);
  result.beaten = static_cast<std::size_t>(std::count(supported.begin(), end_of_keys, true));
  result.on_top = !keys.has_offsets() || supported.back();
  return result;
}

Verdict verdict_of(const Support& support) {
  if (!support.on_top) return Verdict::unselectable;
  if (support.beaten == support.others) return Verdict::selectable;
  if (support.beaten > 0 || support.all_equal) return Verdict::tied;
  return Verdict::unselectable;
}

Verdict oracle_verdict(const ExactKeys& keys, std::size_t i) {
  std::vector<std::size_t> all(keys.count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return verdict_of(support_of(keys, i, all));
}

Verdict oracle_verdict(MatrixView<const double> keys, std::span<const double> offsets, std::size_t i) {
  return oracle_verdict(ExactKeys(keys, offsets), i);
}

Matrix<double> on_coordinates(const Matrix<double>& keys, std::span<const std::size_t> kept) {
  Matrix<double> result(keys.rows(), kept.size());
  for (std::size_t i = 0; i < keys.rows(); ++i)
    for (std::size_t c = 0; c < kept.size(); ++c) result(i, c) = keys(i, kept[c]);
  return result;
}

}  // namespace normscope::oracle
