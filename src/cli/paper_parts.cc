#include "cli/paper_parts.h"

#include <algorithm>
#include <iterator>

namespace normscope::cli {

std::span<const PaperPart> paper_parts() {
  static constexpr PaperPart parts[] = {
      {"fig1ab", "keys and queries of the majority task in three dimensions", run_fig1ab},
      {"fig1cd", "heat maps of unselectable random keys", run_fig1cd},
      {"fig2", "majority: training loss and the angle of queries to 1", run_fig2},
      {"fig3", "majority: test accuracy", run_fig3},
      {"followups", "majority: learned normals instead of 1 (the paper's open questions)", run_followups},
      {"wu1", "two tokens in the plane, with and without LayerNorm", run_wu1},
      {"wu2", "collapse over 12 layers, random init, eval mode and dropout", run_wu2},
      {"wu5", "phase portrait and equilibria of every rank", run_wu5},
      {"wu6", "collapse over 128 layers", run_wu6},
      {"wu7", "temperature d_QK and collapse", run_wu7},
      {"wu8", "singular values by layer", run_wu8},
      {"wu9", "cosines of the initial embeddings", run_wu9},
      {"beyond", "other norms, placements, weights; masks of equal sparsity", run_beyond},
  };
  return parts;
}

bool PaperPlan::has(std::string_view part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

void Audit::add(std::vector<Claim> more) {
  std::move(more.begin(), more.end(), std::back_inserter(claims));
}

}  // namespace normscope::cli
