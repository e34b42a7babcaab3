#pragma once
// A published claim beside what was measured.
#include <string>
#include <vector>

#include "report/page.h"

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

// "holds", "holds only if …", "does not hold", "open", or the answer
std::string verdict_of(const Claim& claim);
ReportTable claims_table(const std::vector<Claim>& claims);

}  // namespace normscope
