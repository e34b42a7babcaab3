#pragma once
#include "report/training_page.h"

namespace normscope {

// What Brody et al. 2023 published in Fig. 2 and 3, if the settings are theirs; how long and how often the
// training is evaluated does not matter.
TrainingMarks training_marks(const nlohmann::ordered_json& settings);

}  // namespace normscope
