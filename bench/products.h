#pragma once
// The products of a transformer's layers and nothing else: what SGEMM alone takes on the same shapes.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>
#include <vector>

#ifdef BENCH_HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "clock.h"
#include "normscope/block.h"
#include "normscope/executor.h"

namespace normscope::bench {

// Best of the turns, per sample.
struct Times {
  std::vector<double> wall, cpu;

  void add(Duration turn, std::size_t samples) {
    wall.push_back(turn.wall / static_cast<double>(samples));
    cpu.push_back(turn.cpu / static_cast<double>(samples));
  }
  double best() const { return wall.empty() ? NAN : *std::min_element(wall.begin(), wall.end()); }
  double best_cpu() const { return cpu.empty() ? NAN : *std::min_element(cpu.begin(), cpu.end()); }
};

inline void write_numbers(std::ofstream& file, std::span<const float> numbers) {
  file.write(reinterpret_cast<const char*>(numbers.data()),  // NOLINT: bytes of floats
             static_cast<std::streamsize>(numbers.size_bytes()));
}
inline void write_numbers(std::ofstream& file, const Matrix<float>& matrix) {
  write_numbers(file, std::span(matrix.values()));
}

#ifdef BENCH_HAVE_OPENBLAS
// Samples side by side, each on a thread of its own, layer by layer. Layers of as many query as key heads,
// without gates.
class Products {
 public:
  Products(const std::vector<BlockWeights<float>>& layers, std::size_t heads,
           const std::vector<Matrix<float>>& start, const Executor& executor)
      : layers_(layers), heads_(heads), executor_(executor) {
    for (const Matrix<float>& x : start) {
      const std::size_t n = x.rows(), d = x.cols();
      lanes_.push_back({x, {n, 3 * d}, {n, n}, {n, d}, {n, layers.front().up.cols()}});
    }
  }

  Duration run(bool feed_forward) {
    const Stopwatch stopwatch(CLOCK_PROCESS_CPUTIME_ID);
    for (const BlockWeights<float>& weights : layers_) {
      executor_.for_each(lanes_.size(), [&](std::size_t s) { run_layer(weights, feed_forward, lanes_[s]); });
    }
    return stopwatch.elapsed();
  }

 private:
  struct Lane {
    Matrix<float> x, qkv, scores, y, hidden;
  };

  // c = a·op(b), with a rows × inner, c rows × cols.
  static void multiply(CBLAS_TRANSPOSE op, std::size_t rows, std::size_t cols, std::size_t inner,
                       const float* a, std::size_t a_stride, const float* b, std::size_t b_stride, float* c,
                       std::size_t c_stride) {
    const auto size = [](std::size_t value) { return static_cast<blasint>(value); };
    cblas_sgemm(CblasRowMajor, CblasNoTrans, op, size(rows), size(cols), size(inner), 1, a, size(a_stride), b,
                size(b_stride), 0, c, size(c_stride));
  }

  void run_layer(const BlockWeights<float>& weights, bool feed_forward, Lane& lane) const {
    const std::size_t n = lane.x.rows(), d = lane.x.cols(), width = d / heads_;
    const auto linear = [&](const Matrix<float>& in, const Matrix<float>& w, Matrix<float>& out) {
      multiply(CblasNoTrans, n, w.cols(), w.rows(), in.data(), in.cols(), w.data(), w.cols(), out.data(),
               out.cols());
    };
    linear(lane.x, weights.query_key_value, lane.qkv);
    for (std::size_t head = 0; head < heads_; ++head) {
      const float* query = lane.qkv.data() + head * width;
      multiply(CblasTrans, n, n, width, query, 3 * d, query + d, 3 * d, lane.scores.data(), n);
      multiply(CblasNoTrans, n, width, n, lane.scores.data(), n, query + 2 * d, 3 * d,
               lane.y.data() + head * width, d);
    }
    linear(lane.y, weights.output, lane.x);
    if (!feed_forward || weights.up.cols() == 0) return;
    linear(lane.x, weights.up, lane.hidden);
    linear(lane.hidden, weights.down, lane.x);
  }

  const std::vector<BlockWeights<float>>& layers_;
  std::size_t heads_;
  const Executor& executor_;
  std::vector<Lane> lanes_;
};
#endif

}  // namespace normscope::bench
