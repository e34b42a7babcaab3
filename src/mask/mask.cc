// Masks as runs: one representation, kept normal, so that equal masks are equal bytes.
#include "normscope/mask.h"

#include <fmt/format.h>

#include <algorithm>

#include "normscope/error.h"

namespace normscope {
namespace {

using Run = Mask::Run;

// Ascending, disjoint, with a gap between two runs, inside [0, n).
void normalise(std::vector<Run>& runs, std::size_t n) {
  const auto end = static_cast<std::uint32_t>(n);
  for (Run& run : runs) run.last = std::min(run.last, end);
  std::erase_if(runs, [](const Run& run) { return run.first >= run.last; });
  const auto before = [](const Run& a, const Run& b) { return a.first < b.first; };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::sort(runs.begin(), runs.end(), before);
  std::size_t kept = 0;
  for (const Run& run : runs) {
    if (kept > 0 && run.first <= runs[kept - 1].last) {
      runs[kept - 1].last = std::max(runs[kept - 1].last, run.last);
    } else {
      runs[kept++] = run;
    }
  }
  runs.resize(kept);
}

void require_size(std::size_t n) {
  if (n == 0) throw InputError("A mask needs at least one token.");
  if (n > Mask::most_tokens)
    throw InputError(
        fmt::format("A mask of {} tokens is too large; at most {} are possible.", n, Mask::most_tokens));
}

[[noreturn]] void reject_runs(std::size_t n) {
  throw InputError(fmt::format(
      "A mask of {} tokens with more than {} runs of neighbouring tokens is too large; take fewer "
      "tokens or a mask with longer runs.",
      n, Mask::most_runs));
}

void require_same_size(const Mask& a, const Mask& b) {
  if (a.n() != b.n())
    throw InputError(fmt::format("Masks of {} and {} tokens cannot be combined; give them the same number.",
                                 a.n(), b.n()));
}

// Calls toggle(j) for every token j that exactly one of the two rows attends to.
template <class Toggle>
void for_each_difference(std::span<const Run> a, std::span<const Run> b, Toggle toggle) {
  // Each end of a run switches its row on or off; between two ends the rows differ everywhere or nowhere.
  const auto end_at = [](std::span<const Run> row, std::size_t k) -> std::size_t {
    if (k >= 2 * row.size()) return SIZE_MAX;
    return k % 2 == 0 ? row[k / 2].first : row[k / 2].last;
  };
  std::size_t ka = 0, kb = 0, from = 0;
  while (ka < 2 * a.size() || kb < 2 * b.size()) {
    const std::size_t to = std::min(end_at(a, ka), end_at(b, kb));
    if (ka % 2 != kb % 2) {
      for (std::size_t j = from; j < to; ++j) toggle(j);
    }
    if (end_at(a, ka) == to) ++ka;
    if (end_at(b, kb) == to) ++kb;
    from = to;
  }
}

}  // namespace

Mask Mask::from_rows(std::size_t n, const std::function<void(std::size_t, std::vector<Run>&)>& fill) {
  require_size(n);
  Mask mask;
  mask.starts_.reserve(n + 1);
  mask.starts_.push_back(0);
  std::vector<Run> runs;
  for (std::size_t i = 0; i < n; ++i) {
    runs.clear();
    fill(i, runs);
    normalise(runs, n);
    if (runs.size() > most_runs - mask.runs_.size()) reject_runs(n);
    mask.runs_.insert(mask.runs_.end(), runs.begin(), runs.end());
    mask.starts_.push_back(mask.runs_.size());
  }
  return mask;
}

Mask::Mask(const std::vector<std::vector<Run>>& rows)
    : Mask(from_rows(rows.size(), [&](std::size_t i, std::vector<Run>& runs) { runs = rows[i]; })) {}

Mask Mask::from_dense(MatrixView<const std::uint8_t> allowed) {
  if (allowed.rows != allowed.cols)
    throw InputError(
        fmt::format("A mask has as many rows as columns, not {} × {}; give one row and one column "
                    "per token.",
                    allowed.rows, allowed.cols));
  return from_rows(allowed.rows, [&](std::size_t i, std::vector<Run>& runs) {
    const std::span<const std::uint8_t> row = allowed[i];
    for (std::size_t j = 0; j < row.size();) {
      if (row[j] == 0) {
        ++j;
        continue;
      }
      const auto first = static_cast<std::uint32_t>(j);
      while (j < row.size() && row[j] != 0) ++j;
      runs.push_back({first, static_cast<std::uint32_t>(j)});
    }
  });
}

bool Mask::attends(std::size_t i, std::size_t j) const {
  const auto runs = row(i);
  const auto after = std::upper_bound(runs.begin(), runs.end(), j,
                                      [](std::size_t token, const Run& run) { return token < run.first; });
  return after != runs.begin() && j < std::prev(after)->last;
}

std::uint64_t Mask::edges() const {
  std::uint64_t count = 0;
  for (const Run& run : runs_) count += run.last - run.first;
  return count;
}

Mask::Run Mask::reach(std::size_t first, std::size_t last) const {
  Run range{UINT32_MAX, 0};
  for (std::size_t i = first; i < std::min(last, n()); ++i) {
    const auto runs = row(i);
    if (runs.empty()) continue;
    range.first = std::min(range.first, runs.front().first);
    range.last = std::max(range.last, runs.back().last);
  }
  return range.last == 0 ? Run{} : range;
}

Mask unite(const Mask& a, const Mask& b) {
  require_same_size(a, b);
  if (a.n() == 0) return {};
  return Mask::from_rows(a.n(), [&](std::size_t i, std::vector<Run>& runs) {
    const auto x = a.row(i), y = b.row(i);
    runs.resize(x.size() + y.size());
    std::merge(x.begin(), x.end(), y.begin(), y.end(), runs.begin(),
               [](const Run& p, const Run& q) { return p.first < q.first; });
  });
}

Mask intersect(const Mask& a, const Mask& b) {
  require_same_size(a, b);
  if (a.n() == 0) return {};
  return Mask::from_rows(a.n(), [&](std::size_t i, std::vector<Run>& runs) {
    const auto x = a.row(i), y = b.row(i);
    for (std::size_t p = 0, q = 0; p < x.size() && q < y.size();) {
      const Run common{std::max(x[p].first, y[q].first), std::min(x[p].last, y[q].last)};
      if (common.first < common.last) runs.push_back(common);
      x[p].last < y[q].last ? ++p : ++q;
    }
  });
}

Mask transpose(const Mask& mask) {
  const std::size_t n = mask.n();
  if (n == 0) return {};
  // Down the rows, a run of column j begins and ends where two rows in turn differ at j.
  const auto row = [&](std::size_t i) { return i < n ? mask.row(i) : std::span<const Run>(); };
  std::vector<std::size_t> starts(n + 1);
  std::vector<bool> open(n);
  std::size_t total = 0;
  std::span<const Run> above;
  for (std::size_t i = 0; i < n; ++i) {
    for_each_difference(above, row(i), [&](std::size_t j) {
      open[j] = !open[j];
      if (!open[j]) return;
      ++starts[j + 1];
      ++total;
    });
    if (total > Mask::most_runs) reject_runs(n);
    above = row(i);
  }
  for (std::size_t j = 0; j < n; ++j) starts[j + 1] += starts[j];
  std::vector<Run> runs(total);
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
  open.assign(n, false);
  above = {};
  for (std::size_t i = 0; i <= n; ++i) {
    for_each_difference(above, row(i), [&](std::size_t j) {
      open[j] = !open[j];
      if (open[j]) {
        runs[next[j]].first = static_cast<std::uint32_t>(i);
      } else {
        runs[next[j]++].last = static_cast<std::uint32_t>(i);
      }
    });
    above = row(i);
  }
  return Mask::from_rows(n, [&](std::size_t j, std::vector<Run>& column) {
    column.assign(runs.begin() + static_cast<std::ptrdiff_t>(starts[j]),
                  runs.begin() + static_cast<std::ptrdiff_t>(starts[j + 1]));
  });
}

}  // namespace normscope
