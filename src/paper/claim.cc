#include "paper/claim.h"

#include <utility>

namespace normscope {

Claim claim_of(std::string where, std::string claim, std::string published) {
  Claim result;
  result.where = std::move(where);
  result.claim = std::move(claim);
  result.published = std::move(published);
  return result;
}

std::string verdict_of(const Claim& claim) {
  switch (claim.holds) {
    case Holds::yes:
      return "holds";
    case Holds::conditionally:
      return "holds only if " + claim.condition;
    case Holds::no:
      return "does not hold";
    case Holds::answered:
      return claim.condition;
    case Holds::open:
      break;
  }
  return "open";
}

ReportTable claims_table(const std::vector<Claim>& claims) {
  ReportTable table{"Claims", {{"where", "claim", "published", "measured", "verdict", "why"}}};
  for (const Claim& claim : claims) {
    table.rows.push_back(
        {claim.where, claim.claim, claim.published, claim.measured, verdict_of(claim), claim.why});
  }
  return table;
}

}  // namespace normscope
