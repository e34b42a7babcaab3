#pragma once
// Time and machine: what a figure needs beside it to mean anything.
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

namespace normscope::bench {

struct Duration {
  double cpu = 0, wall = 0;  // seconds
};

class Stopwatch {
 public:
  // CLOCK_THREAD_CPUTIME_ID: of the calling thread; CLOCK_PROCESS_CPUTIME_ID: of all threads.
  explicit Stopwatch(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) : clock_(clock), cpu_(cpu()) {}
  Duration elapsed() const {
    return {cpu() - cpu_, std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count()};
  }

 private:
  double cpu() const {
    timespec now{};
    clock_gettime(clock_, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  clockid_t clock_;
  double cpu_;
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
};

// Runs `pass` once to warm up, then until half a second has passed, five times at least and 2000 at most.
template <class Pass>
std::vector<Duration> repeat(const Pass& pass, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  pass();
  std::vector<Duration> passes;
  double spent = 0;
  while (passes.size() < 2000 && (passes.size() < 5 || spent < 0.5)) {
    const Stopwatch stopwatch(clock);
    pass();
    passes.push_back(stopwatch.elapsed());
    spent += passes.back().wall;
  }
  return passes;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline double median_cpu(const std::vector<Duration>& passes) {
  std::vector<double> values;
  for (const Duration& pass : passes) values.push_back(pass.cpu);
  return median(values);
}

inline double median_wall(const std::vector<Duration>& passes) {
  std::vector<double> values;
  for (const Duration& pass : passes) values.push_back(pass.wall);
  return median(values);
}

inline double least_cpu(const std::vector<Duration>& passes) {
  return std::min_element(passes.begin(), passes.end(),
                          [](const Duration& a, const Duration& b) { return a.cpu < b.cpu; })
      ->cpu;
}

inline std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

// Processes that wanted to run, averaged over the last minute; those of others disturb.
inline double load_average() {
  std::array<double, 1> load{};
  return getloadavg(load.data(), 1) == 1 ? load[0] : -1;
}

}  // namespace normscope::bench
