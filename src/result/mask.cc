#include "result/mask.h"

namespace normscope {
namespace {

MaskCentres centres_of(const MaskProperties& properties) {
  MaskCentres centres{properties.centres.size(), {}};
  for (const std::uint32_t centre : properties.centres) {
    if (!centres.ranges.empty() && centres.ranges.back()[1] == centre - 1) {
      centres.ranges.back()[1] = centre;
    } else {
      centres.ranges.push_back({centre, centre});
    }
  }
  return centres;
}

}  // namespace

MaskResult result_of(const NamedMask& panel) {
  const MaskProperties& properties = panel.properties;
  MaskResult result;
  result.mask = panel.name;
  result.tokens = properties.n;
  result.edges = properties.edges;
  result.density = properties.density;
  result.sparsity = 1 - properties.density;
  result.self_loops = properties.self_loops;
  result.empty_rows = properties.empty_rows;
  result.components = properties.components;
  result.strongly_connected = properties.strongly_connected();
  result.quasi_strongly_connected = properties.quasi_strongly_connected();
  result.centres = centres_of(properties);
  result.radius = properties.radius;
  result.diameter = properties.diameter;
  return result;
}

}  // namespace normscope
