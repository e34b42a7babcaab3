// Fig. 1c and 1d of Brody, Alon, Yahav 2023: random keys, without a norm and after LayerNorm.
#include <fmt/core.h>

#include <iterator>

#include "normscope/heatmap.h"
#include "paper/part.h"
#include "report/heatmap_page.h"

namespace normscope {
namespace {

HeatmapRun run(const Evidence& evidence) {
  HeatmapRun run;
  run.draws = evidence.plan.draws;
  run.provenance = provenance(evidence.plan.seed, evidence.executor.threads());
  HeatmapOptions options;
  for (std::size_t n = 3; n <= 60; ++n) options.n.push_back(n);
  for (std::size_t d = 3; d <= 15; ++d) options.d.push_back(d);
  options.draws = evidence.plan.draws;
  options.seed = evidence.plan.seed;
  const std::vector<NormSpec> norms{parse_norm("none"), parse_norm("layernorm")};
  for (Heatmap& map :
       key_heatmaps(options, norms, evidence.executor, evidence.progress("Fig. 1c/d", "draws")))
    run.grids.push_back({name_of(norms[run.grids.size()]), std::move(map)});
  return run;
}

HeatmapSummary before(const Evidence& evidence) {
  return summarise(once<run>(evidence).grids[0].heatmap);
}
HeatmapSummary after(const Evidence& evidence) {
  return summarise(once<run>(evidence).grids[1].heatmap);
}

Findings shown(const Evidence& evidence) {
  const HeatmapRun& maps = once<run>(evidence);
  Findings found{.figures = {{"fig1cd", "Unselectable random keys",
                              "Grey: no draw had an unselectable key." + rounding_sentence(maps),
                              heatmap_svg(heatmap_figure(maps)), heatmap_csv(maps)}}};
  constexpr const char* readings[] = {"Share of keys, as the caption says",
                                      "Draws with at least one, as the code counts"};
  for (std::size_t row = 0; row < std::size(readings); ++row)
    found.figures.push_back({fmt::format("confound-heat-map-{}", row + 1), readings[row], "",
                             heatmap_svg(heatmap_reading(maps, row))});
  return found;
}

}  // namespace

Exhibit brody_fig1cd() {
  return {
      {{.where = "Fig. 1c/d",
        .sentence = "Random keys are often unselectable; after LayerNorm none is",
        .published = "heat map, 0 everywhere after LayerNorm",
        .measured = written(
            "up to {:.0f} % of keys and {:.0f} % of draws before; after LayerNorm {} of {} keys, {} of them beyond what float32 rounding can do",
            of(before, [](const HeatmapSummary& each) { return 100 * each.most_fraction.fraction; }),
            of(before, [](const HeatmapSummary& each) { return 100 * each.most_any.any; }),
            of(after, &HeatmapSummary::unselectable), of(after, &HeatmapSummary::keys),
            of(after, &HeatmapSummary::robust_unselectable)),
        .why = of(once<run>, heatmap_readings),
        .holds = all_of(
            {at_least(of(before, &HeatmapSummary::unselectable), 1, "unselectable random keys, in all cells"),
             at_most(of(after, &HeatmapSummary::robust_unselectable), 0,
                     "unselectable keys after LayerNorm, beyond rounding")}),
        .topic = "selectability",
        .confounds = {"heat-map"}}},
      shown};
}

}  // namespace normscope
