#pragma once
// What random-init runs say about Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: Fig. 2, 6, 7, 8, 9, each in
// eval mode and with dropout, and what lies beyond the paper.
#include <cstdint>
#include <functional>
#include <vector>

#include "normscope/collapse.h"
#include "paper/claim.h"

namespace normscope {

struct WuCollapseSettings {
  std::size_t samples = 8;       // of the figures with 12 layers
  std::size_t deep_samples = 1;  // of the one with 128
  std::uint64_t seed = 0;
};

// Runs cases of BERT-base shape (768 dimensions, 12 heads, 128 tokens, N(0, 0.02²)).
using RunCollapse =
    std::function<std::vector<CollapseCurve>(const std::vector<CollapseCase>&, const CollapseSettings&)>;

// Claims and figures of one part.
struct WuPart {
  std::vector<Claim> claims;
  std::vector<Figure> figures;
  std::vector<ReportTable> tables;
};

// Fig. 2: μ by layer, five variants under four masks, 12 layers.
WuPart wu_figure2(const WuCollapseSettings& settings, const RunCollapse& run);
// Fig. 6: the same over 128 layers.
WuPart wu_figure6(const WuCollapseSettings& settings, const RunCollapse& run);
// Fig. 7: d_QK of 1/64, 1, 64.
WuPart wu_figure7(const WuCollapseSettings& settings, const RunCollapse& run);
// Fig. 8: all singular values by layer.
WuPart wu_figure8(const WuCollapseSettings& settings, const RunCollapse& run);
// Fig. 9: cosines of the initial embeddings.
WuPart wu_figure9(const WuCollapseSettings& settings);
// Other norms, placements and weights; masks of equal sparsity.
WuPart wu_beyond(const WuCollapseSettings& settings, const RunCollapse& run);

}  // namespace normscope
