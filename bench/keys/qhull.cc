// Qhull (libqhull-dev), reentrant library. Computes the whole hull, of which only the vertices are asked for;
// the number of facets, and with it time and memory, grows like n^⌊d/2⌋.
#include "competitor.h"

#ifdef BENCH_HAVE_QHULL
#include <cstdio>
extern "C" {
#include <libqhull_r/qhull_ra.h>
}
#endif

namespace normscope::bench {

#ifdef BENCH_HAVE_QHULL

namespace {

// False if Qhull fails.
bool find_vertices(MatrixView<const double> keys, std::vector<bool>& is_vertex) {
  std::vector<coordT> points(keys.data, keys.data + keys.rows * keys.cols);
  char command[] = "qhull Pp";  // Pp: no warnings about precision
  qhT state;
  qhT* qh = &state;
  qh_zero(qh, stderr);
  const int failed = qh_new_qhull(qh, static_cast<int>(keys.cols), static_cast<int>(keys.rows), points.data(),
                                  False, command, nullptr, stderr);
  if (failed == 0) {
    is_vertex.assign(keys.rows, false);
    vertexT* vertex = nullptr;
    FORALLvertices is_vertex[static_cast<std::size_t>(qh_pointid(qh, vertex->point))] = true;
  }
  qh_freeqhull(qh, qh_ALL);
  return failed == 0;
}

}  // namespace

Answer ask_qhull(const Question& question) {
  const std::size_t n = question.keys.rows, d = question.keys.cols;
  Answer answer;
  answer.competitor = "Qhull 2020.2, all vertices";
  if (d > 8 || (d > 5 && n > 256)) {
    answer.absent = "out of reach: too many facets";
    return answer;
  }
  for (std::size_t i = 0; i < n; ++i) answer.keys.push_back(i);
  answer.keys_per_pass = n;
  const std::size_t passes = d > 5 && n > 100 ? 1 : question.passes;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const Stopwatch stopwatch;
    const bool found = find_vertices(question.keys, answer.selectable);
    answer.passes.push_back(stopwatch.elapsed());
    if (!found) {
      answer.absent = "Qhull failed";
      return answer;
    }
  }
  return answer;
}

#else

Answer ask_qhull(const Question&) {
  return not_installed("Qhull, all vertices", "libqhull-dev");
}

#endif

}  // namespace normscope::bench
