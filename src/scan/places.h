#pragma once
// From which places of a window a token is seen, and from which of them its verdict has to be decided.
//
// A query at place p is compared with the keys S_p that p sees, and a token has the best verdict of all
// places that see it. Where the queries of all places are the same, only the keys seen differ, and fewer
// rivals can only help: a key that some query puts alone on top of S_p is alone on top of every subset that
// holds it. So places whose S_p holds that of another place which sees the token need no decision of their
// own.
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "normscope/keys.h"
#include "normscope/mask.h"
#include "normscope/scan.h"

namespace normscope {

class Places {
 public:
  explicit Places(Mask mask);
  Places() = default;

  const Mask& mask() const { return mask_; }
  std::size_t count() const { return mask_.n(); }
  std::vector<std::size_t> seen_from(std::size_t place) const;  // tokens, ascending
  bool sees(std::size_t place, std::size_t token) const { return mask_.attends(place, token); }
  // Is what the place sees the least set that the token needs: that of no other place which sees the token
  // lies strictly inside, and of equal ones this is the first? Masks with rows of several runs: always.
  bool is_least(std::size_t place, std::size_t token) const;
  // All places see all tokens.
  bool one_set() const;
  // A place sees what those before it see, and itself: the least set of a token is that of its own place.
  bool nested() const;
  // A few places that together see every token that is seen at all; the last comes first.
  std::vector<std::size_t> covering() const;

 private:
  Mask mask_;
  bool ascending_ = false;  // rows are single runs whose ends never fall
};

// What was found from one place about one token.
struct PlaceVerdict {
  std::optional<Verdict> verdict;  // none: undecided
  double margin = 0;
  bool robust = false;
  // Unselectable, and more keys would not change that. Keys in the relative interior of a flat hull can come
  // to lie on a face, and be tied, when a key outside the flat is added.
  bool lasting = false;
  std::optional<double> largest_weight;
};

// The best of verdicts from several places: selectable, else undecided if any is, else tied, else
// unselectable.
std::optional<Verdict> better(std::optional<Verdict> a, std::optional<Verdict> b);
// None unless it is one of selectable, tied and unselectable.
std::optional<Verdict> decided(std::optional<Verdict> verdict);

struct PlacesQuestion {
  const Places& places;
  bool alike = false;   // the queries are the same at all places
  bool robust = false;  // it is told by `decide`
  // Per place the token that won there, if any: where to look first.
  std::span<const std::optional<std::size_t>> winners;
  // Ends after the places that largest weights are from, without having asked all that matter.
  bool covering_only = false;
  struct Answer {
    std::vector<PlaceVerdict> verdicts;  // of the tokens wanted
    std::size_t rank = 0;
  };
  // Verdicts of some of the tokens seen from a place; `first`: with their largest weights.
  std::function<Answer(std::size_t place, std::span<const std::size_t> seen,
                       std::span<const std::size_t> wanted, bool first)>
      decide;
};

// Every token from every place that matters, until it is selectable from one. Asks at most once per place.
ScanSet decide_from_places(const PlacesQuestion& question);

}  // namespace normscope
