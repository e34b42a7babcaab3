// CLP (coinor-libclp-dev). Of its algorithms the fastest on these problems is used: primal simplex on the
// Chebyshev LP, dual simplex on the membership LP, both without presolve. Only loading and solving is timed.
#include "competitor.h"

#ifdef BENCH_HAVE_CLP
#include <ClpSimplex.hpp>
#include <cmath>
#include <functional>
#endif

namespace normscope::bench {

#ifdef BENCH_HAVE_CLP

namespace {

// min objective·x s.t. row_low ≤ A x ≤ row_high, low ≤ x ≤ high, A dense by columns.
struct Problem {
  Problem(int columns_, int rows_)
      : columns(columns_),
        rows(rows_),
        low(columns_),
        high(columns_),
        objective(columns_),
        row_low(rows_),
        row_high(rows_) {
    for (int column = 0; column <= columns; ++column) starts.push_back(column * rows);
    for (int column = 0; column < columns; ++column)
      for (int row = 0; row < rows; ++row) row_of.push_back(row);
    values.resize(row_of.size());
  }
  double& at(std::size_t row, std::size_t column) {
    return values[column * static_cast<std::size_t>(rows) + row];
  }
  void load(ClpSimplex& model) const {
    model.setLogLevel(0);
    model.loadProblem(columns, rows, starts.data(), row_of.data(), values.data(), low.data(), high.data(),
                      objective.data(), row_low.data(), row_high.data());
  }

  int columns, rows;
  std::vector<CoinBigIndex> starts;
  std::vector<int> row_of;
  std::vector<double> values, low, high, objective, row_low, row_high;
};

Problem chebyshev(MatrixView<const double> keys, std::size_t i) {
  const std::size_t n = keys.rows, d = keys.cols;
  Problem problem(static_cast<int>(d + 1), static_cast<int>(n - 1));
  std::fill(problem.low.begin(), problem.low.end(), -kBox);
  std::fill(problem.high.begin(), problem.high.end(), kBox);
  problem.low[d] = 0;
  problem.high[d] = COIN_DBL_MAX;
  problem.objective[d] = -1;
  std::fill(problem.row_low.begin(), problem.row_low.end(), -COIN_DBL_MAX);
  for (std::size_t j = 0, row = 0; j < n; ++j) {
    if (j == i) continue;
    double squares = 0;
    for (std::size_t c = 0; c < d; ++c) {
      const double difference = keys(j, c) - keys(i, c);
      problem.at(row, c) = difference;
      squares += difference * difference;
    }
    problem.at(row++, d) = std::sqrt(squares);
  }
  return problem;
}

Problem membership(MatrixView<const double> keys, std::size_t i) {
  const std::size_t n = keys.rows, d = keys.cols;
  Problem problem(static_cast<int>(n - 1), static_cast<int>(d + 1));
  std::fill(problem.high.begin(), problem.high.end(), COIN_DBL_MAX);
  problem.row_low[d] = problem.row_high[d] = 1;
  for (std::size_t j = 0, column = 0; j < n; ++j) {
    if (j == i) continue;
    for (std::size_t c = 0; c < d; ++c) problem.at(c, column) = keys(j, c) - keys(i, c);
    problem.at(d, column++) = 1;
  }
  return problem;
}

// `solve` returns whether the key is selectable, or adds to `unsolved` if CLP did not say.
Answer ask(const Question& question, const std::string& name,
           Problem (*state)(MatrixView<const double>, std::size_t),
           const std::function<bool(ClpSimplex&, std::size_t&)>& solve) {
  Answer answer;
  answer.competitor = name;
  answer.keys.assign(question.sample.begin(), question.sample.end());
  answer.keys_per_pass = answer.keys.size();
  std::size_t unsolved = 0;
  for (std::size_t pass = 0; pass < question.passes; ++pass) {
    answer.selectable.clear();
    Duration sum;
    for (std::size_t i : answer.keys) {
      const Problem problem = state(question.keys, i);
      const Stopwatch stopwatch;
      ClpSimplex model;
      problem.load(model);
      answer.selectable.push_back(solve(model, unsolved));
      const Duration elapsed = stopwatch.elapsed();
      sum.cpu += elapsed.cpu;
      sum.wall += elapsed.wall;
    }
    answer.passes.push_back(sum);
  }
  if (unsolved > 0) answer.absent = "CLP gave up on " + std::to_string(unsolved) + " problems";
  return answer;
}

}  // namespace

Answer ask_clp_chebyshev(const Question& question) {
  return ask(question, "CLP " CLP_VERSION ", Chebyshev LP", chebyshev,
             [](ClpSimplex& model, std::size_t& unsolved) {
               model.primal();
               unsolved += model.isProvenOptimal() ? 0 : 1;
               return model.primalColumnSolution()[model.numberColumns() - 1] > kLeastRadius;
             });
}

Answer ask_clp_membership(const Question& question) {
  return ask(question, "CLP " CLP_VERSION ", membership LP", membership,
             [](ClpSimplex& model, std::size_t& unsolved) {
               model.dual();
               unsolved += model.isProvenOptimal() || model.isProvenPrimalInfeasible() ? 0 : 1;
               return model.isProvenPrimalInfeasible();
             });
}

#else

Answer ask_clp_chebyshev(const Question&) {
  return not_installed("CLP, Chebyshev LP", "coinor-libclp-dev");
}

Answer ask_clp_membership(const Question&) {
  return not_installed("CLP, membership LP", "coinor-libclp-dev");
}

#endif

}  // namespace normscope::bench
