// What partial products say of a score is never less than the score, whatever was rounded or left out.
#include "keys/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "normscope/random.h"

namespace normscope {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;
using Wide = long double;  // 64 bits: errs by 2^-11 of what doubles do

Wide exact_score(const Matrix<double>& points, std::size_t i, std::size_t j) {
  Wide sum = 0;
  for (std::size_t c = 0; c < points.cols(); ++c) sum += static_cast<Wide>(points(i, c)) * points(j, c);
  return sum;
}

std::vector<std::size_t> longest_first(const Matrix<double>& points) {
  std::vector<std::size_t> order(points.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return exact_score(points, a, a) > exact_score(points, b, b);
  });
  return order;
}

LeadingFrame as_given(std::size_t d) {
  LeadingFrame frame;
  frame.coordinates.resize(d);
  std::iota(frame.coordinates.begin(), frame.coordinates.end(), std::size_t{0});
  return frame;
}

SlicedPoints sliced(const Matrix<double>& points, std::size_t slice) {
  return slice_points(points, as_given(points.cols()), slice, longest_first(points), Executor(1));
}

// The plain loop beside the kernel: rest times rest, then coordinate by coordinate, in doubles.
double plain_bound(const SlicedPoints& points, std::size_t i, std::size_t j) {
  constexpr std::size_t width = SlicedPoints::kWidth;
  const float* a = points.panel(i / width) + i % width;
  const float* b = points.panel(j / width) + j % width;
  double sum = 0;
  for (std::size_t c = 0; c <= points.slice; ++c) sum += static_cast<double>(a[c * width]) * b[c * width];
  return sum;
}

Matrix<double> gaussian_points(Random& random, std::size_t n, std::size_t d, double spread = 0) {
  Matrix<double> points(n, d);
  for (std::size_t i = 0; i < n; ++i) {
    const double length = std::exp(spread * random.normal());
    for (double& value : points[i]) value = length * random.normal();
  }
  return points;
}

// Every coordinate lies just below the middle of two floats, so that all of them are rounded down.
Matrix<double> rounded_down_points(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> points(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : points[i])
      value = 1 + static_cast<double>(random.below(64)) * 0x1p-23 + 0x1p-24 * (1 - 0x1p-20);
  return points;
}

// One large product, then products just below half a unit in the last place of it: a sum in single precision
// loses every one of them.
Matrix<double> swallowed_points(std::size_t n, std::size_t d) {
  Matrix<double> points(n, d);
  for (std::size_t i = 0; i < n; ++i) {
    points(i, 0) = 1;
    for (std::size_t c = 1; c < d; ++c) points(i, c) = 0x1p-12 * (1 - 0x1p-10);
  }
  return points;
}

// Beyond the slice all are parallel: there the inequality is an equality.
Matrix<double> parallel_rests(Random& random, std::size_t n, std::size_t d, std::size_t slice) {
  Matrix<double> points = gaussian_points(random, n, d, 0.5);
  std::vector<double> direction(d);
  for (double& value : direction) value = random.normal();
  for (std::size_t i = 0; i < n; ++i) {
    const double length = std::exp(random.normal());
    for (std::size_t c = slice; c < d; ++c) points(i, c) = length * direction[c];
  }
  return points;
}

// Bounds of all pairs, both ways and whichever pairs were left open.
void expect_bounds(const Matrix<double>& points, std::size_t slice, const std::string& what) {
  const SlicedPoints packed = sliced(points, slice);
  const std::size_t n = packed.count, panels = packed.panels();
  const PairBounds all = bound_pairs(packed, 0, panels, 0, panels);
  std::vector<bool> open(n * n);
  for (const Pair& pair : all.open) open[pair.first * n + pair.second] = true;
  for (std::size_t i = 0; i < n; ++i) {
    const float top = std::max(all.first[i], all.second[i]);
    double plain_top = -std::numeric_limits<double>::infinity(), size = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      const Wide score = exact_score(points, packed.key[i], packed.key[j]) * packed.scale * packed.scale;
      ASSERT_GE(static_cast<Wide>(top), score)
          << what << ": " << i << ", " << j << " of " << n << ", slice " << slice;
      plain_top = std::max(plain_top, plain_bound(packed, i, j));
      size = std::max(size, std::sqrt(plain_bound(packed, i, i) * plain_bound(packed, j, j)));
      if (j < i) continue;
      const double error = 4 * static_cast<double>(slice + 2) * 0x1p-24 * size + 1e-30;
      const double bound = plain_bound(packed, i, j);
      if (!open[i * n + j]) {
        ASSERT_LE(bound, packed.settled_at[j] + error) << what << ": " << i << ", " << j;
        ASSERT_LE(score, static_cast<Wide>(packed.settled_at[j])) << what << ": " << i << ", " << j;
      } else {
        ASSERT_GE(bound, packed.settled_at[j] - error) << what << ": " << i << ", " << j;
      }
    }
    EXPECT_NEAR(top, plain_top, 4 * static_cast<double>(slice + 2) * 0x1p-24 * size + 1e-30)
        << what << ": " << i;
  }
}

TEST(PartialProducts, AreNeverBelowTheScore) {
  Random random(1);
  for (const std::size_t n : {2, 47, 48, 49, 130})
    for (const std::size_t d : {1, 3, 8, 40})
      for (const std::size_t slice : {std::size_t{1}, (d + 3) / 4, d}) {
        expect_bounds(gaussian_points(random, n, d), slice, "Gaussian");
        expect_bounds(gaussian_points(random, n, d, 1), slice, "lengths of all sizes");
        expect_bounds(gaussian_points(random, n, d, 30), slice, "lengths over many decades");
      }
}

TEST(PartialProducts, AreNeverBelowTheScoreOfAdversaries) {
  Random random(2);
  for (const std::size_t d : {8, 33, 400})
    for (const std::size_t slice : {std::size_t{1}, d / 4, d / 2, d}) {
      expect_bounds(rounded_down_points(random, 60, d), slice, "coordinates rounded down");
      expect_bounds(swallowed_points(60, d), slice, "products that sums swallow");
      expect_bounds(parallel_rests(random, 60, d, slice), slice, "parallel rests");
    }
}

// Otherwise they would show nothing: sums in single precision alone do fall short.
TEST(PartialProducts, AdversariesBeatSumsWithoutTheAllowance) {
  Random random(3);
  const std::size_t d = 400;
  for (const Matrix<double>& points : {rounded_down_points(random, 2, d), swallowed_points(2, d)}) {
    float sum = 0;
    for (std::size_t c = 0; c < d; ++c)
      sum = std::fma(static_cast<float>(points(0, c)), static_cast<float>(points(1, c)), sum);
    EXPECT_LT(static_cast<Wide>(sum), exact_score(points, 0, 1));
  }
}

TEST(PartialProducts, OfARunOfPanelsAreThoseOfTheWhole) {
  Random random(4);
  const SlicedPoints points = sliced(gaussian_points(random, 300, 20, 0.3), 7);
  const PairBounds all = bound_pairs(points, 0, points.panels(), 0, points.panels());
  std::vector<float> tops(points.panels() * SlicedPoints::kWidth, -std::numeric_limits<float>::infinity());
  std::vector<Pair> open;
  const auto merge = [&](std::size_t panel, const std::vector<float>& some) {
    for (std::size_t k = 0; k < some.size(); ++k) {
      float& top = tops[panel * SlicedPoints::kWidth + k];
      top = std::max(top, some[k]);
    }
  };
  for (std::size_t p = 0; p < points.panels(); p += 2)
    for (std::size_t q = p; q < points.panels(); q += 2) {
      const std::size_t p_end = std::min(points.panels(), p + 2), q_end = std::min(points.panels(), q + 2);
      const PairBounds some = bound_pairs(points, p, p_end, q, q_end);
      merge(p, some.first);
      merge(q, some.second);
      open.insert(open.end(), some.open.begin(), some.open.end());
    }
  for (std::size_t i = 0; i < points.count; ++i)
    EXPECT_EQ(tops[i], std::max(all.first[i], all.second[i])) << i;
  std::vector<Pair> whole = all.open;
  std::sort(whole.begin(), whole.end());
  std::sort(open.begin(), open.end());
  EXPECT_EQ(open, whole);
  EXPECT_GT(open.size(), 0u);
}

FramedKeys framed(const Matrix<double>& points) {
  FramedKeys keys;
  keys.dimension = points.cols();
  keys.points = points;
  return keys;
}

TEST(CentreScores, AreBoundsAndTheScoresOfNearRivals) {
  Random random(5);
  std::vector<std::pair<const char*, Matrix<double>>> sets;
  sets.emplace_back("Gaussian", gaussian_points(random, 700, 24));
  sets.emplace_back("spread lengths", gaussian_points(random, 700, 30, 0.3));
  sets.emplace_back("many decades", gaussian_points(random, 500, 24, 40));
  Matrix<double> turned = gaussian_points(random, 1500, 32);  // strong directions that no coordinate shows
  const Matrix<double> mix = gaussian_points(random, 32, 32);
  for (std::size_t i = 0; i < turned.rows(); ++i) {
    std::vector<double> out(32);
    for (std::size_t c = 0; c < 32; ++c)
      for (std::size_t a = 0; a < 32; ++a)
        out[c] += std::exp(-0.3 * static_cast<double>(a)) * turned(i, a) * mix(a, c);
    std::copy(out.begin(), out.end(), turned[i].begin());
  }
  sets.emplace_back("hidden directions", turned);
  Matrix<double> twins = gaussian_points(random, 600, 40);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t c = 0; c < 40; ++c) twins(300 + i, c) = twins(i, c) * (1 + 1e-9 * random.normal());
  sets.emplace_back("twins", twins);
  for (const auto& [name, points] : sets) {
    const FramedKeys keys = framed(points);
    const std::vector<std::size_t> order = longest_first(points);
    const std::vector<double> one = highest_centre_scores(keys, order, Executor(1), 0);
    std::size_t near = 0;
    for (std::size_t i = 0; i < points.rows(); ++i) {
      Wide top = -std::numeric_limits<Wide>::infinity();
      for (std::size_t j = 0; j < points.rows(); ++j)
        if (j != i) top = std::max(top, exact_score(points, i, j));
      const Wide own = exact_score(points, i, i), longest = exact_score(points, order[0], order[0]),
                 error = 1e-14L * std::sqrt(own * longest);
      ASSERT_GE(one[i] + error, top) << name << ", " << i;
      if (top > own * kSettledShare * (1 + 1e-6L)) {
        ++near;
        ASSERT_NEAR(one[i], static_cast<double>(top), static_cast<double>(error)) << name << ", " << i;
      } else {
        ASSERT_LE(one[i], own * kSettledShare * (1 + 1e-5L) + error) << name << ", " << i;
      }
    }
    if (std::string(name) != "Gaussian") {
      EXPECT_GT(near, 0u) << name;
    }
    for (const int threads : {2, 8})
      EXPECT_EQ(one, highest_centre_scores(keys, order, Executor(threads), 0))
          << name << ", " << threads << " threads";
  }
}

TEST(CentreScores, AreTheScoresWhereNothingIsLeftOut) {
  Random random(6);
  const Matrix<double> points = gaussian_points(random, 400, 50, 0.2);
  const std::vector<double> tops = highest_centre_scores(framed(points), longest_first(points), Executor(1));
  for (std::size_t i = 0; i < points.rows(); ++i) {
    Wide top = -std::numeric_limits<Wide>::infinity(), size = 0;
    for (std::size_t j = 0; j < points.rows(); ++j) {
      size = std::max(size, std::sqrt(exact_score(points, i, i) * exact_score(points, j, j)));
      if (j != i) top = std::max(top, exact_score(points, i, j));
    }
    EXPECT_GE(tops[i] + 1e-14L * size, top) << i;
    EXPECT_LE(tops[i], top + 2e-5L * size) << i;
  }
}

TEST(Passes, ListAllThatScoresAboveItsLimit) {
  Random random(7);
  for (const double spread : {0.0, 0.5, 20.0}) {
    const Matrix<double> points = gaussian_points(random, 333, 37, spread);
    const SlicedPoints whole = whole_points(points);
    Matrix<double> queries(13, 37);
    std::vector<double> limits, all(points.rows());
    std::vector<std::size_t> keys(points.rows());
    std::iota(keys.begin(), keys.end(), std::size_t{0});
    for (std::size_t k = 0; k < queries.rows(); ++k) {
      const double size = std::exp(spread * random.normal());
      for (double& value : queries[k]) value = size * random.normal();
      score_points(points, queries[k], keys, all);
      limits.push_back(all[k]);  // a score itself
    }
    const auto listed = scores_above(whole, queries.view(), limits);
    ASSERT_EQ(listed.size(), queries.rows());
    for (std::size_t k = 0; k < queries.rows(); ++k) {
      std::vector<bool> found(points.rows());
      score_points(points, queries[k], keys, all);
      for (const ListedScore& each : listed[k]) {
        ASSERT_LT(each.position, points.rows());
        found[each.position] = true;
        EXPECT_GE(each.bound, all[each.position] * (1 - 1e-14)) << k << ", " << each.position;
      }
      for (std::size_t j = 0; j < points.rows(); ++j) {
        if (found[j]) continue;
        EXPECT_LE(all[j], limits[k] + 1e-12 * std::abs(limits[k])) << k << ", " << j;
      }
      if (spread == 0) {
        EXPECT_LT(
            std::count(found.begin(), found.end(), true),
            2 + std::count_if(all.begin(), all.end(), [&](double score) { return score > limits[k] - 0.01; }))
            << k;
      }
    }
  }
}

}  // namespace
}  // namespace normscope
