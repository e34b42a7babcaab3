#include "cli/training_marks.h"

#include "paper/majority_claims.h"
#include "record/majority_record.h"

namespace normscope::cli {

TrainingMarks training_marks(const nlohmann::ordered_json& settings) {
  const nlohmann::ordered_json published = to_json(MajoritySettings());
  if (!settings.is_object()) return {};
  for (const auto& [name, value] : published.items()) {
    if (name == "steps" || name == "evaluate_every" || name == "path") continue;
    if (!settings.contains(name) || settings[name] != value) return {};
  }
  const auto marks = [](std::span<const PublishedValue> values) {
    std::vector<CurveFigure::Mark> list;
    for (const PublishedValue& each : values)
      list.push_back({each.norm, static_cast<double>(each.step), each.value, "read off the paper's figure"});
    return list;
  };
  return {marks(published_losses()), marks(published_accuracies()), marks(published_angles()), {}, {}};
}

}  // namespace normscope::cli
