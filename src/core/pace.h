#pragma once
#include <vector>

namespace normscope {

// How long the rest takes, at the pace of the last half of the time: work is often slower, or faster, towards
// its end. While nothing is done, such as during preparations, no time counts.
class Pace {
 public:
  // Seconds since the beginning, and the units of work done by then; neither falls.
  void add(double seconds, double done);
  // Units in a second; 0: not known yet.
  double rate() const;

 private:
  struct Point {
    double seconds, done;
  };
  std::vector<Point> points_ = {{0, 0}};
  double begin_ = 0;  // when the work was last told to be where it began
};

// When to tell of work where lines stay, as in the log of a job: after ten seconds, and then whenever a quarter more
// has gone by, some dozens of lines in a day.
class SparseLines {
 public:
  // Seconds since the beginning, which do not fall.
  bool due(double seconds) {
    if (seconds < next_) return false;
    next_ = 1.25 * seconds;
    return true;
  }

 private:
  double next_ = 10;
};

}  // namespace normscope
