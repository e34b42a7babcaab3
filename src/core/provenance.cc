#include "normscope/provenance.h"

#include "normscope/version.h"

namespace normscope {

Provenance provenance(std::uint64_t seed, int threads) {
  return {version(), commit(), instruction_set(), seed, threads};
}

}  // namespace normscope
