#pragma once
// Which piece of an audit is run next: where a claim is open, and where the most is to be decided for the time it
// takes. It follows from what was found so far and from the times that pieces are estimated to take, never from the
// clock, so that the same seed and budget give the same pieces in the same order; the clock only says after how many to
// stop.
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "result/paper.h"

namespace normscope {

// Something that can be run more of, and what was found of it so far.
struct Line {
  std::string name;
  std::size_t level = 0, levels = 1;      // that has been run, and the last there is
  std::vector<double> seconds = {};       // about, of every level
  std::size_t waiting = 1;                // claims that look at it, before it has been run
  double growth = 2;                      // how many times more values the next level has
  std::vector<ClaimResult> claims = {};   // that look at it, as judged by then
  std::optional<std::size_t> after = {};  // another line, whose level must be as high
};

// What one more level can be expected to settle of a claim: 0 of one that is settled, or that no further run can
// settle, since no interval of it is undecided: what it lacks is of another kind, such as longer trainings; near 1 if its intervals need to shrink by no more than the level makes them shrink.
double promise_of(const ClaimResult& claim, double growth);

// The line whose next level is to be run: the one with the most promise for a second, where what has never been
// looked at comes before what has. What takes more than `left` seconds has to wait until nothing else is to be run.
// None: everything is settled, or there is no more to run.
std::optional<std::size_t> next_line(std::span<const Line> lines,
                                     double left = std::numeric_limits<double>::infinity());

}  // namespace normscope
