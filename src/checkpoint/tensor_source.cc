#include "checkpoint/tensor_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/file_errors.h"

namespace normscope::checkpoint {

void read_finite_rows(const TensorSource& source, const std::string& name, std::size_t first,
                      std::span<float> into) {
  source.read_rows(name, first, into);
  // 0 · x is 0 for finite x and NaN for all others, in a loop the compiler turns into vectors: one sum per
  // lane, since additions may not be reordered.
  constexpr std::size_t kLanes = 16;
  float sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= into.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += 0.0f * into[i + lane];
  for (; i < into.size(); ++i) sums[0] += 0.0f * into[i];
  if (std::none_of(std::begin(sums), std::end(sums), [](float sum) { return std::isnan(sum); })) return;
  const auto bad = std::find_if(into.begin(), into.end(), [](float value) { return !std::isfinite(value); });
  const TensorInfo& info = *source.find(name);
  std::size_t width = 1;
  for (std::size_t axis = 1; axis < info.shape.size(); ++axis) width *= info.shape[axis];
  const std::size_t row = first + static_cast<std::size_t>(bad - into.begin()) / width;
  io::reject(fmt::format("{} (tensor {})", source.label_of(name), io::quoted_name(name)),
             fmt::format("holds {} in row {}, where weights must be finite and within the range of float",
                         std::isnan(*bad) ? "NaN" : "an infinite number", row),
             "use a checkpoint saved before training diverged, or download the file again");
}

}  // namespace normscope::checkpoint
