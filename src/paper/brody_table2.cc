// Table 2 of Brody, Alon, Yahav 2023: unselectable keys of the language model before and after LayerNorm.
#include "paper/brody_tables.h"

namespace normscope {
namespace {

Findings shown(const Evidence& evidence) {
  const TextRuns with = sound_runs(evidence.texts, kWithScaling);
  const std::size_t layers = layers_of(with);
  return {
      .tables = {
          {"Table 2: unselectable keys, per cent, before and after LayerNorm of the trained language model",
           {layer_header(layers), published_row("before: published", kTable2, layers),
            measured_row("before: measured", with, layers, before),
            published_row("after: published", kZeros, layers),
            measured_row("after: measured, projection and scaling alone", with, layers, sphere),
            measured_row("after: with eps, in float32, as the model computes it", with, layers, after)}}}};
}

}  // namespace

Exhibit brody_table2() {
  return {{share_claim("Table 2", "With LayerNorm, a substantial share of what enters it is unselectable",
                       kWithScaling, kTable2, before),
           zero_claim("Table 2", "Of what leaves it, nothing is")},
          shown};
}

}  // namespace normscope
