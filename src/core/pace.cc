#include "core/pace.h"

#include <algorithm>

namespace normscope {

void Pace::add(double seconds, double done) {
  if (seconds <= points_.back().seconds) return;
  if (done <= points_.front().done) {
    begin_ = seconds;
    points_ = {{seconds, done}};
    return;
  }
  points_.push_back({seconds, done});
  // What lies before the last half is of no use; one point at or before its beginning is.
  const auto later = std::find_if(points_.begin() + 1, points_.end(), [&](const Point& point) {
    return 2 * (point.seconds - begin_) > seconds - begin_;
  });
  points_.erase(points_.begin(), later - 1);
}

double Pace::rate() const {
  const Point &from = points_.front(), &to = points_.back();
  return to.seconds > from.seconds ? (to.done - from.done) / (to.seconds - from.seconds) : 0;
}

}  // namespace normscope
