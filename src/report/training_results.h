#pragma once
// What trainings came to, from their results alone: a row for each norm, on the screen, in reports and from the server.
#include "report/run_view.h"
#include "result/training.h"

namespace normscope {

// The note says what stands for several seeds.
ReportTable majority_table(const MajorityResult& result);
ReportTable text_training_table(const TextResult& result);

RunView majority_view(const MajorityResult& result, const Provenance& made);
RunView text_training_view(const TextResult& result, const Provenance& made);

}  // namespace normscope
