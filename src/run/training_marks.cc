#include "run/training_marks.h"

#include "paper/majority_measures.h"
#include "result/json_reader.h"
#include "result/training.h"

namespace normscope {

TrainingMarks training_marks(const nlohmann::ordered_json& settings) {
  MajoritySettings published;
  MajorityUsed used;
  try {
    JsonReader::read(settings, "settings", used);
  } catch (const InputError&) {
    return {};  // of another kind of training
  }
  published.feed_forward = published.dimension;
  published.steps = used.steps;
  published.evaluate_every = used.evaluate_every;
  published.path = used.path;
  if (used != published) return {};
  const auto marks = [](std::span<const PublishedValue> values) {
    std::vector<CurveFigure::Mark> list;
    for (const PublishedValue& each : values)
      list.push_back({each.norm, static_cast<double>(each.step), each.value, "read off the paper's figure"});
    return list;
  };
  return {marks(kPublishedLosses), marks(kPublishedAccuracies), marks(kPublishedAngles), {}, {}};
}

}  // namespace normscope
