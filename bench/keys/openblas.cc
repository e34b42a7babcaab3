// OpenBLAS (libopenblas-dev): the scores of every key as a query, K·Kᵀ, in double precision on one thread.
// The least that any method does which compares all keys with all.
#include "competitor.h"

#ifdef BENCH_HAVE_OPENBLAS
#include <cblas.h>

#include <algorithm>
#endif

namespace normscope::bench {

#ifdef BENCH_HAVE_OPENBLAS

Answer ask_openblas(const Question& question) {
  openblas_set_num_threads(1);
  const std::size_t n = question.keys.rows, d = question.keys.cols;
  const auto rows = static_cast<blasint>(n), depth = static_cast<blasint>(d);
  std::vector<double> scores(n * n);
  Answer answer;
  answer.competitor = std::string("OpenBLAS (") + openblas_get_corename() + "), K·Kᵀ only";
  answer.keys_per_pass = n;
  answer.passes = repeat([&] {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, rows, depth, 1.0, question.keys.data, depth,
                question.keys.data, depth, 0.0, scores.data(), rows);
  });
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * n);
    const double own = row[static_cast<std::ptrdiff_t>(i)];
    // Rounding of a score is some 1e-16 of it; a lead this small would prove nothing.
    const auto beaten = [&](double score) { return score < own * (1 - 1e-10); };
    if (std::count_if(row, row + rows, beaten) + 1 == rows) {
      answer.keys.push_back(i);
      answer.selectable.push_back(true);
    }
  }
  return answer;
}

#else

Answer ask_openblas(const Question&) {
  return not_installed("OpenBLAS, K·Kᵀ only", "libopenblas-dev");
}

#endif

}  // namespace normscope::bench
