// Majority solved by hand: attention at equal weights, and types that point apart.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "normscope/majority.h"
#include "train/parameters.h"

namespace normscope {
namespace {

constexpr double kLength = 0x1p-10;  // of an embedding: what a token says of itself is far less than the mean
constexpr double kSharpest = 1e4;
constexpr std::size_t kMostSequences = 10'000;  // that the sharpness is chosen by

double wave(std::size_t frequency, std::size_t steps, std::size_t classes) {
  return 2 * std::numbers::pi * static_cast<double>(frequency * steps % classes) /
         static_cast<double>(classes);
}

// Frequencies of a frame in so many dimensions, each of which takes two: one after the other the one with which the
// directions that are most alike are least so.
std::vector<std::size_t> frequencies(std::size_t classes, std::size_t dimensions, bool alternating) {
  std::vector<std::size_t> chosen;
  std::vector<double> alike(classes);  // of directions so many types apart
  for (std::size_t apart = 0; apart < classes; ++apart)
    alike[apart] = alternating ? apart % 2 == 0 ? 0.5 : -0.5 : 0;
  while (2 * (chosen.size() + 1) <= dimensions) {
    std::size_t best = 0;
    double least = HUGE_VAL;
    for (std::size_t k = 1; 2 * k < classes; ++k) {
      if (std::find(chosen.begin(), chosen.end(), k) != chosen.end()) continue;
      double most = -HUGE_VAL;
      for (std::size_t apart = 1; apart < classes; ++apart)
        most = std::max(most, alike[apart] + std::cos(wave(k, apart, classes)));
      constexpr double rounding = 1e-12;  // of equal ones the first
      if (most < least - rounding) best = k, least = most;
    }
    if (best == 0) break;  // all are taken
    chosen.push_back(best);
    for (std::size_t apart = 0; apart < classes; ++apart)
      alike[apart] += std::cos(wave(best, apart, classes));
  }
  return chosen;
}

// Of each sequence, how far the mean of its types' directions lies along that of every type: sequences × classes.
Matrix<double> along_directions(const Matrix<double>& directions, const SequenceSet& set,
                                std::size_t sequences) {
  const std::size_t d = directions.cols();
  Matrix<double> along(sequences, set.classes);
  for (std::size_t s = 0; s < sequences; ++s) {
    std::vector<double> mean(d);
    for (std::size_t i = 0; i < set.length; ++i) {
      const auto direction = directions[set.tokens[s * set.length + i]];
      for (std::size_t j = 0; j < d; ++j) mean[j] += direction[j] / static_cast<double>(set.length);
    }
    for (std::size_t c = 0; c < set.classes; ++c)
      along(s, c) = std::inner_product(mean.begin(), mean.end(), directions[c].begin(), 0.0);
  }
  return along;
}

double loss_at(double sharpness, const Matrix<double>& along, std::span<const std::uint16_t> labels) {
  double loss = 0;
  for (std::size_t s = 0; s < along.rows(); ++s) {
    const auto row = along[s];
    const double top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const double value : row) sum += std::exp(sharpness * (value - top));
    loss += std::log(sum) - sharpness * (row[labels[s]] - top);
  }
  return loss / static_cast<double>(along.rows());
}

}  // namespace

Matrix<double> type_directions(std::size_t classes, std::size_t dimension) {
  const std::size_t dimensions = dimension - 1;
  const bool alternating = classes % 2 == 0 && (dimensions % 2 == 1 || dimensions + 1 >= classes);
  const std::vector<std::size_t> waves =
      frequencies(classes, dimensions - (alternating ? 1 : 0), alternating);
  Matrix<double> directions(classes, dimension);
  for (std::size_t c = 0; c < classes; ++c) {
    std::vector<double> place;
    for (const std::size_t k : waves) {
      place.push_back(std::cos(wave(k, c, classes)));
      place.push_back(std::sin(wave(k, c, classes)));
    }
    if (alternating) place.push_back(c % 2 == 0 ? std::sqrt(0.5) : -std::sqrt(0.5));
    if (place.empty()) place.push_back(1);  // no two can be told apart
    const double length = std::sqrt(std::inner_product(place.begin(), place.end(), place.begin(), 0.0));
    for (std::size_t m = 0; m < place.size(); ++m) {
      // An orthonormal basis of the hyperplane orthogonal to 1.
      for (std::size_t j = 0; j < dimension; ++j)
        directions(c, j) += place[m] / length * std::sqrt(2 / static_cast<double>(dimension)) *
                            std::cos(std::numbers::pi * static_cast<double>((m + 1) * (2 * j + 1)) /
                                     static_cast<double>(2 * dimension));
    }
  }
  return directions;
}

double averaging_loss(const Matrix<double>& directions, double sharpness, const SequenceSet& set) {
  return loss_at(sharpness, along_directions(directions, set, set.size()), set.labels);
}

AveragingSolution averaging_solution(const MajoritySettings& settings, const SequenceSet& train) {
  AveragingSolution solution{majority_encoder(settings, "layernorm"), {}, 1};
  const EncoderSpec& spec = solution.spec;
  check_encoder(spec);
  const std::size_t d = spec.dimension;
  const Matrix<double> directions = type_directions(spec.classes, d);

  // The loss is convex in the sharpness: golden section of its logarithm.
  const Matrix<double> along = along_directions(directions, train, std::min(train.size(), kMostSequences));
  const auto loss = [&](double logarithm) { return loss_at(std::exp(logarithm), along, train.labels); };
  constexpr double section = 1 / std::numbers::phi;
  double low = 0, high = std::log(kSharpest);
  while (high - low > 1e-3) {
    const double left = high - section * (high - low), right = low + section * (high - low);
    if (loss(left) <= loss(right)) {
      high = right;
    } else {
      low = left;
    }
  }
  solution.sharpness = std::exp((low + high) / 2);

  solution.parameters.assign(parameter_count(spec), 0.0F);
  const auto parts = slices(spec, std::span(solution.parameters));
  for (std::size_t c = 0; c < spec.classes; ++c) {
    // Along 1 anywhere: the projection takes it away.
    const double shift = (c % 2 == 0 ? 1 : -1) / std::sqrt(static_cast<double>(d));
    for (std::size_t j = 0; j < d; ++j)
      parts.embedding[c * d + j] = static_cast<float>(kLength * (directions(c, j) + shift));
  }
  const auto diagonal = [&](std::span<float> matrix, double value) {
    for (std::size_t i = 0; i < matrix.size(); i += d + 1) matrix[i] = static_cast<float>(value);
  };
  for (const LayerSlices<float>& layer : parts.layers) {
    diagonal(layer.matrix, 1);
    std::fill(layer.norm2.gain.begin(), layer.norm2.gain.end(), 1.0F);
  }
  const LayerSlices<float>& first = parts.layers.front();
  for (std::size_t head = 0; head < spec.heads; ++head) {
    const std::size_t row = head * (d / spec.heads);
    for (std::size_t j = 0; j < d; ++j) {
      first.in_proj[row * d + j] = 1 / static_cast<float>(j + 1);
      first.in_proj[(d + row) * d + j] = 1;
    }
  }
  diagonal(first.in_proj.subspan(2 * d * d), 1);
  diagonal(first.out_weight, solution.sharpness / (kLength * std::sqrt(static_cast<double>(d))));
  return solution;
}

}  // namespace normscope
