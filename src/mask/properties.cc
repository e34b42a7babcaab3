// Distances in a mask's graph: components, centres, radius, diameter.
//
// A search costs O(n + runs), however many edges the runs hold, because a run is only looked at from its next
// token that is still unvisited on.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "normscope/error.h"
#include "normscope/mask.h"

namespace normscope {
namespace {

using Run = Mask::Run;
constexpr std::uint32_t kUnreached = UINT32_MAX;

// Tokens that were not taken yet, as a forest of pointers to the next one.
class Untaken {
 public:
  explicit Untaken(std::size_t n) : next_(n + 1) { reset(); }
  void reset() { std::iota(next_.begin(), next_.end(), 0u); }
  // The first untaken token from `token` on; n if there is none.
  std::uint32_t from(std::uint32_t token) {
    while (next_[token] != token) token = next_[token] = next_[next_[token]];
    return token;
  }
  void take(std::uint32_t token) { next_[token] = token + 1; }

 private:
  std::vector<std::uint32_t> next_;
};

// Breadth first along `steps`, where row v holds the tokens one step after v.
class Search {
 public:
  explicit Search(const Mask& steps) : steps_(steps), untaken_(steps.n()), distances_(steps.n()) {}

  const std::vector<std::uint32_t>& from(std::uint32_t start) {
    untaken_.reset();
    std::fill(distances_.begin(), distances_.end(), kUnreached);
    order_.clear();
    take(start, 0);
    work_ += steps_.n();
    for (std::size_t k = 0; k < order_.size() && order_.size() < steps_.n(); ++k) {
      const std::uint32_t v = order_[k];
      work_ += steps_.row(v).size();
      for (const Run& run : steps_.row(v)) {
        for (std::uint32_t u = untaken_.from(run.first); u < run.last; u = untaken_.from(u)) {
          take(u, distances_[v] + 1);
        }
      }
    }
    return distances_;
  }
  // Of the last search: the tokens reached, nearest first.
  const std::vector<std::uint32_t>& order() const { return order_; }
  std::uint32_t eccentricity() const { return distances_[order_.back()]; }
  // Of all searches: tokens and runs looked at.
  std::uint64_t work() const { return work_; }

 private:
  void take(std::uint32_t token, std::uint32_t distance) {
    untaken_.take(token);
    distances_[token] = distance;
    order_.push_back(token);
  }

  const Mask& steps_;
  Untaken untaken_;
  std::vector<std::uint32_t> distances_, order_;
  std::uint64_t work_ = 0;
};

// Tokens in the order in which a depth-first search leaves them.
std::vector<std::uint32_t> leaving_order(const Mask& steps) {
  struct Place {
    std::uint32_t token;
    std::size_t run;
  };
  const std::size_t n = steps.n();
  Untaken untaken(n);
  std::vector<std::uint32_t> order;
  std::vector<Place> path;
  const auto enter = [&](std::uint32_t token) {
    untaken.take(token);
    path.push_back({token, 0});
  };
  for (std::uint32_t root = untaken.from(0); root < n; root = untaken.from(root)) {
    enter(root);
    while (!path.empty()) {
      Place& place = path.back();
      const auto runs = steps.row(place.token);
      std::uint32_t next = static_cast<std::uint32_t>(n);
      for (; place.run < runs.size(); ++place.run) {
        next = untaken.from(runs[place.run].first);
        if (next < runs[place.run].last) break;
      }
      if (place.run < runs.size()) {
        enter(next);
      } else {
        order.push_back(place.token);
        path.pop_back();
      }
    }
  }
  return order;
}

// Kosaraju: whoever is left last and still alone gathers, against the edges, its component.
std::size_t count_components(const Mask& against, const std::vector<std::uint32_t>& leaving) {
  Untaken untaken(against.n());
  std::size_t count = 0;
  std::vector<std::uint32_t> stack;
  for (std::size_t k = leaving.size(); k-- > 0;) {
    if (untaken.from(leaving[k]) != leaving[k]) continue;
    ++count;
    untaken.take(leaving[k]);
    stack.push_back(leaving[k]);
    while (!stack.empty()) {
      const std::uint32_t v = stack.back();
      stack.pop_back();
      for (const Run& run : against.row(v)) {
        for (std::uint32_t u = untaken.from(run.first); u < run.last; u = untaken.from(u)) {
          untaken.take(u);
          stack.push_back(u);
        }
      }
    }
  }
  return count;
}

// Every row one run around its token, both ends ascending: what a token has reached is then an interval,
// whose ends move by themselves.
bool is_band(const Mask& mask) {
  Run last;
  for (std::size_t v = 0; v < mask.n(); ++v) {
    const auto runs = mask.row(v);
    if (runs.size() != 1 || runs[0].first > v || runs[0].last <= v) return false;
    if (runs[0].first < last.first || runs[0].last < last.last) return false;
    last = runs[0];
  }
  return true;
}

struct Extremes {
  std::uint32_t radius, diameter;  // diameter: the greatest eccentricity of a centre
};

Extremes band_extremes(const Mask& out, const std::vector<std::uint32_t>& centres) {
  const std::size_t n = out.n();
  // Steps until the interval of a token ends at token 0, and at token n − 1.
  std::vector<std::uint32_t> down(n, kUnreached), up(n, kUnreached);
  const auto one_more = [](std::uint32_t steps) { return steps == kUnreached ? steps : steps + 1; };
  down[0] = up[n - 1] = 0;
  for (std::size_t v = 1; v < n; ++v) {
    const std::uint32_t first = out.row(v)[0].first;
    if (first < v) down[v] = one_more(down[first]);
  }
  for (std::size_t v = n - 1; v-- > 0;) {
    const std::uint32_t last = out.row(v)[0].last - 1;
    if (last > v) up[v] = one_more(up[last]);
  }
  Extremes extremes{kUnreached, 0};
  for (const std::uint32_t c : centres) {
    const std::uint32_t eccentricity = std::max(down[c], up[c]);
    extremes.radius = std::min(extremes.radius, eccentricity);
    extremes.diameter = std::max(extremes.diameter, eccentricity);
  }
  return extremes;
}

// Eccentricities of up to kAtOnce tokens by one pass over all edges per layer, a bit for each token.
constexpr std::size_t kWords = 8, kAtOnce = 64 * kWords;
using Bits = std::array<std::uint64_t, kWords>;

std::vector<std::uint32_t> eccentricities(const Mask& mask, std::span<const std::uint32_t> tokens) {
  std::vector<Bits> seen(mask.n()), next(mask.n());
  Bits all{};
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    seen[tokens[k]][k / 64] |= std::uint64_t{1} << k % 64;
    all[k / 64] |= std::uint64_t{1} << k % 64;
  }
  // What token i has seen after another layer. A row need not be read to its end once all was seen.
  const auto layered = [&](std::size_t i) {
    Bits bits = seen[i];
    for (const Run& run : mask.row(i)) {
      if (bits == all) break;
      for (std::uint32_t j = run.first; j < run.last && bits != all; ++j) {
        for (std::size_t w = 0; w < kWords; ++w) bits[w] |= seen[j][w];
      }
    }
    return bits;
  };
  std::vector<std::uint32_t> result(tokens.size());
  for (std::uint32_t layer = 1;; ++layer) {
    Bits grown{};
    for (std::size_t i = 0; i < mask.n(); ++i) {
      next[i] = layered(i);
      for (std::size_t w = 0; w < kWords; ++w) grown[w] |= next[i][w] & ~seen[i][w];
    }
    if (grown == Bits{}) return result;
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      if (grown[k / 64] >> k % 64 & 1) result[k] = layer;
    }
    std::swap(seen, next);
  }
}

// Bounds on the eccentricity e of every centre, narrowed by searches from and to single tokens (Takes and
// Kosters 2011, Borassi et al. 2015), until no centre can have a smaller or a greater one than those known:
//
//   max(d(v, u), e(u) − d(u, v)) ≤ e(v) ≤ d(v, u) + e(u)
class BoundedSearch {
 public:
  BoundedSearch(const Mask& mask, const Mask& out, const std::vector<std::uint32_t>& centres)
      : mask_(mask),
        centres_(centres),
        strong_(centres.size() == mask.n()),
        forward_(out),
        backward_(mask),
        low_(centres.size(), mask.n() > 1 ? 1 : 0),
        high_(centres.size(), kUnreached),
        edges_(mask.edges()) {
    for (std::size_t v = 0; v < mask.n(); ++v) {
      degrees_.push_back(
          std::accumulate(out.row(v).begin(), out.row(v).end(), std::uint32_t{0},
                          [](std::uint32_t sum, const Run& run) { return sum + (run.last - run.first); }));
    }
  }

  Extremes extremes() {
    while (const auto next = most_promising()) {
      if (cheaper_at_once()) {
        settle_all();
        break;
      }
      search(*next);
    }
    return found_;
  }

 private:
  bool settled(std::size_t k) const { return low_[k] == high_[k]; }
  bool matters(std::size_t k) const {
    return low_[k] < found_.radius || (strong_ && high_[k] > found_.diameter);
  }
  // The centre that may have the least eccentricity; if none may go below the least known, the greatest.
  std::optional<std::size_t> most_promising() const {
    std::optional<std::size_t> best;
    for (std::size_t k = 0; k < centres_.size(); ++k) {
      if (settled(k) || low_[k] >= found_.radius) continue;
      const auto key = [&](std::size_t i) { return std::pair(low_[i], ~degrees_[centres_[i]]); };
      if (!best || key(k) < key(*best)) best = k;
    }
    if (best || !strong_) return best;
    for (std::size_t k = 0; k < centres_.size(); ++k) {
      if (settled(k) || high_[k] <= found_.diameter) continue;
      const auto key = [&](std::size_t i) { return std::pair(~high_[i], degrees_[centres_[i]]); };
      if (!best || key(k) < key(*best)) best = k;
    }
    return best;
  }
  void settle(std::size_t k, std::uint32_t eccentricity) {
    low_[k] = high_[k] = eccentricity;
    found_.radius = std::min(found_.radius, eccentricity);
    found_.diameter = std::max(found_.diameter, eccentricity);
  }
  void search(std::size_t chosen) {
    const std::uint32_t u = centres_[chosen];
    const std::vector<std::uint32_t>& from = forward_.from(u);
    const std::uint32_t eccentricity = forward_.eccentricity(), farthest = forward_.order().back();
    const std::vector<std::uint32_t>& to = backward_.from(u);
    for (std::size_t k = 0; k < centres_.size(); ++k) {
      const std::uint32_t v = centres_[k];
      raise(k, std::max(to[v], eccentricity - std::min(eccentricity, from[v])));
      high_[k] = std::min(high_[k], to[v] + eccentricity);
    }
    settle(chosen, eccentricity);
    const std::vector<std::uint32_t>& to_farthest = backward_.from(farthest);
    for (std::size_t k = 0; k < centres_.size(); ++k) raise(k, to_farthest[centres_[k]]);
    for (std::size_t k = 0; k < centres_.size(); ++k) {
      if (settled(k)) settle(k, low_[k]);
    }
  }
  void raise(std::size_t k, std::uint32_t bound) {
    low_[k] = std::max(low_[k], bound);
    found_.diameter = std::max(found_.diameter, low_[k]);
  }

  // Where bounds are of any use, few searches do; no more work goes into them than an eighth of what it takes
  // to do without.
  bool cheaper_at_once() const {
    std::uint64_t left = 0;
    for (std::size_t k = 0; k < centres_.size(); ++k) left += !settled(k) && matters(k);
    const std::uint64_t layers = found_.diameter + 1, passes = (left + kAtOnce - 1) / kAtOnce * layers;
    return forward_.work() + backward_.work() > passes * edges_ / 8;
  }
  void settle_all() {
    for (std::size_t k = 0; k < centres_.size();) {
      std::vector<std::size_t> places;
      std::vector<std::uint32_t> tokens;
      for (; k < centres_.size() && tokens.size() < kAtOnce; ++k) {
        if (settled(k) || !matters(k)) continue;
        places.push_back(k);
        tokens.push_back(centres_[k]);
      }
      const std::vector<std::uint32_t> result = eccentricities(mask_, tokens);
      for (std::size_t i = 0; i < places.size(); ++i) settle(places[i], result[i]);
    }
  }

  const Mask& mask_;
  const std::vector<std::uint32_t>& centres_;
  bool strong_;
  Search forward_, backward_;
  std::vector<std::uint32_t> low_, high_;  // by place in centres_
  std::vector<std::uint32_t> degrees_;     // by token: how many attend to it
  std::uint64_t edges_;
  Extremes found_{kUnreached, 0};
};

}  // namespace

MaskProperties mask_properties(const Mask& mask) {
  MaskProperties properties;
  properties.n = mask.n();
  if (properties.n == 0) return properties;
  properties.edges = mask.edges();
  properties.density =
      static_cast<double>(properties.edges) / static_cast<double>(mask.n()) / static_cast<double>(mask.n());
  for (std::size_t i = 0; i < mask.n(); ++i) {
    properties.self_loops += mask.attends(i, i);
    properties.empty_rows += mask.row(i).empty();
  }
  const Mask out = transpose(mask);
  const std::vector<std::uint32_t> leaving = leaving_order(out);
  properties.components = count_components(mask, leaving);

  // If there are centres, the token left last is one, and the others are those that reach it.
  Search forward(out);
  forward.from(leaving.back());
  if (forward.order().size() < mask.n()) return properties;
  Search backward(mask);
  backward.from(leaving.back());
  properties.centres = backward.order();
  std::sort(properties.centres.begin(), properties.centres.end());

  const Extremes extremes = properties.centres.size() == 1 ? Extremes{forward.eccentricity(), 0}
                            : is_band(out)                 ? band_extremes(out, properties.centres)
                                           : BoundedSearch(mask, out, properties.centres).extremes();
  properties.radius = extremes.radius;
  if (properties.strongly_connected()) properties.diameter = extremes.diameter;
  return properties;
}

std::vector<std::uint32_t> distances_from(const Mask& mask, std::size_t from) {
  if (from >= mask.n())
    throw InputError(
        fmt::format("Token {} is not in a mask of {} tokens; they count from 0.", from, mask.n()));
  const Mask out = transpose(mask);
  return Search(out).from(static_cast<std::uint32_t>(from));
}

}  // namespace normscope
