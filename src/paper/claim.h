#pragma once
// A published claim beside what was measured.
#include <string>
#include <vector>

#include "normscope/report.h"
#include "normscope/statistics.h"

namespace normscope {

// open: not enough was run to tell; answered: the paper asked, and claimed nothing
enum class Holds { yes, conditionally, no, open, answered };

struct Claim {
  std::string where;      // "Fig. 2a"
  std::string claim;      // in the paper's words, shortened
  std::string published;  // value, with its unit
  std::string measured;   // mean ± interval, over how many seeds
  Holds holds = Holds::open;
  std::string condition;  // what must be granted, continuing "holds only if"; or the answer
  std::string why;        // the evidence, in a sentence or two
};

// A claim as it stands in a paper, not yet measured.
Claim claim_of(std::string where, std::string claim, std::string published);

// "0.97 ± 0.01" with so many digits, or as many as the interval leaves; one value has no interval.
std::string with_interval(const Interval& interval, int digits, double unit = 1);
std::string with_interval(const Interval& interval);
// "1.30× (1.10 to 1.54)"; "median more than 2.00× (more than 1.40), 3 of 10 seeds censored".
std::string with_interval(const RatioInterval& ratio);
// "0.31 (0.30 to 0.32)": of samples or windows, all known, and possibly far from 1.
std::string factor_text(const RatioInterval& factor);

// "holds", "holds only if …", "does not hold", "open", or the answer
std::string verdict_of(const Claim& claim);
ReportTable claims_table(const std::vector<Claim>& claims);

}  // namespace normscope
