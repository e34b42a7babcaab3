// Theorem 3 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: equilibria of every rank up to 6 tokens in 6
// dimensions, their stable rank and linear stability.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "paper/part.h"

namespace normscope {
namespace {

constexpr std::size_t kMost = 6;  // tokens, dimensions

struct Built {
  std::size_t equilibria = 0, wrong = 0, cases = 0, full = 0;  // wrong: ranks or counts; full: of full rank
  std::size_t exceeded = 0, exceeded_full = 0, exceeded_own = 0;  // bounds of the stable rank
  double residual = 0;                                            // largest
  // Of those that exceed the published bound, the first: of fewest tokens.
  struct First {
    std::size_t n = 0, k = 0;
    double w = 0, stable_rank = 0, bound = 0;
  } first = {};
};
Built built(const Evidence& evidence) {
  Built built;
  for (std::size_t n = 1; n <= kMost; ++n) {
    for (std::size_t d = 1; d <= kMost; ++d) {
      for (const double factor : {1.0, 1.5, 4.0}) {
        const double w = factor * static_cast<double>(std::max<std::size_t>(n, 2));
        for (const RankSummary& rank : equilibria_by_rank(n, d, w, evidence.executor)) {
          ++built.cases;
          built.equilibria += rank.count;
          built.wrong += rank.count != std::uint64_t{1} << rank.rank || !(rank.residual < 1e-14) ||
                         rank.least_rank != rank.rank || rank.largest_rank != rank.rank;
          built.residual = std::max(built.residual, rank.residual);
          const bool above = rank.stable_rank > rank.published_bound * (1 + 1e-12);
          if (above && built.exceeded == 0)
            built.first = {n, rank.rank, w, rank.stable_rank, rank.published_bound};
          built.exceeded += above;
          built.exceeded_full += above && rank.rank == n;
          built.full += rank.rank == n;
          built.exceeded_own += rank.stable_rank > rank.own_bound * (1 + 1e-12);
        }
      }
    }
  }
  return built;
}

// Of full rank, those with the least spectral radius at any w.
struct Stable {
  std::size_t n = 0;
  std::uint64_t count = 0;
  double radius = INFINITY;
  std::string signs = {};
};
std::vector<Stable> stable(const Evidence& evidence) {
  std::vector<Stable> all;
  for (std::size_t n = 2; n <= kMost; ++n) {
    Stable found{n};
    for (const double w : {1.1, 2.0, 6.0, 30.0}) {
      const RankSummary rank = equilibria_by_rank(n, n, w, evidence.executor).back();
      found.count = std::max(found.count, rank.stable);
      if (!(rank.least_radius < found.radius)) continue;
      found.radius = rank.least_radius;
      found.signs.clear();
      for (const int sign : rank.least_signs) append(found.signs, sign > 0 ? "+" : "−");
    }
    all.push_back(found);
  }
  return all;
}

Claim every_rank() {
  const auto wrong = of(once<built>, &Built::wrong);
  return {
      .where = "Wu Thm 3",
      .sentence = "Equilibria of every rank k up to min(N, d), 2ᵏ of them for w ≥ N",
      .published = "2ᵏ",
      .measured = written(
          "{} equilibria built for N, d ≤ {} at w = N, 1.5N, 4N: largest residual {:.1e}, {} ranks or counts wrong",
          of(once<built>, &Built::equilibria), kMost, of(once<built>, &Built::residual), wrong),
      .why =
          "With m = N − k + 1 equal tokens the next one needs −m/w where the others have −1/w, hence m ≤ w; m < w is enough for 2ᵏ.",
      .holds = at_most(wrong, 0, "ranks or counts that are wrong"),
      .topic = "dynamics"};
}

Claim stable_rank() {
  const auto exceeded = of(once<built>, &Built::exceeded), of_full = of(once<built>, &Built::exceeded_full);
  return {
      .where = "Wu Thm 3",
      .sentence = "Their stable rank is at most N/(N − (N−1)/w²)",
      .published = "N/(N − (N−1)/w²)",
      .measured = written("exceeded in {} of {} cases (N, d, w, k), {} of the {} with full rank", exceeded,
                          of(once<built>, &Built::cases), of_full, of(once<built>, &Built::full)),
      .why = written(
          "‖X‖₂ ≥ ‖Xe_d‖ proves it for k = N and gives N/(N − (m² + k − 2)/w²) otherwise, exceeded in {} cases.{}",
          of(once<built>, &Built::exceeded_own),
          [](const Evidence& evidence) -> std::string {
            const Built& found = once<built>(evidence);
            if (found.exceeded == 0) return "";
            return fmt::format(
                " The one of fewest tokens: N = {}, k = {}, w = {:g} has SRank {}, the published bound is {}.",
                found.first.n, found.first.k, found.first.w, significant(found.first.stable_rank, 4),
                significant(found.first.bound, 4));
          }),
      .holds = at_most(exceeded, 0, "cases that exceed the bound"),
      .holds_if = {{at_most(of_full, 0, "of those with full rank"), "the rank is full (k = N) or 1"}},
      .topic = "dynamics"};
}

Claim which_are_stable() {
  return {
      .where = "Wu Thm 3",
      .sentence = "Which full-rank equilibria are linearly stable?",
      .published = "not said",
      .measured =
          [](const Evidence& evidence) {
            std::string text;
            for (const Stable& each : once<stable>(evidence))
              append(text, fmt::format("N = {}: {} (least radius {:.3f} at ({}))", each.n, each.count,
                                       each.radius, each.signs));
            return text;
          },
      .why = written(
          "Spectral radius of a layer's derivative on the product of spheres at w = 1.1, 2, 6, 30, d = N, without the marginal eigenvalues 1 of the Jordan block. N up to {}.",
          kMost),
      .answer = [](const Evidence& evidence) -> std::string {
        std::string text;
        for (const Stable& each : once<stable>(evidence)) {
          if (each.count > 0) append(text, fmt::format("({}) for N = {}", each.signs, each.n));
        }
        return text.empty() ? "none" : "only " + text + ", and their negatives";
      }};
}

}  // namespace

Exhibit wu_theorem3() {
  return {{every_rank(), stable_rank(), which_are_stable()}};
}

}  // namespace normscope
