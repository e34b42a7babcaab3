// SciPy's linprog with HiGHS (python3-scipy), in a process of its own: highs.py, on the same keys as a .npy
// file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "competitor.h"
#include "normscope/tensor_file.h"
#include "python_process.h"

namespace normscope::bench {
namespace {

Answer ask(const Question& question, const std::string& program) {
  const MatrixView<const double> keys = question.keys;
  Answer answer;
  answer.competitor = fmt::format("SciPy HiGHS, {} LP", program == "chebyshev" ? "Chebyshev" : program);
  answer.keys.assign(question.sample.begin(), question.sample.end());
  answer.keys_per_pass = answer.keys.size();

  const TemporaryDirectory directory;
  if (directory.path().empty()) {
    answer.absent = "no temporary directory";
    return answer;
  }
  const std::string file = directory.path() / "keys.npy";
  write_npy(file,
            {"", DType::float64, {keys.rows, keys.cols}, {keys.data, keys.data + keys.rows * keys.cols}});
  const std::string output =
      output_of(fmt::format("OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 {} {} {} {} {} {} {} {}",
                            quoted(BENCH_PYTHON), quoted(BENCH_SOURCE_DIR "/keys/highs.py"), quoted(file),
                            program, fmt::join(answer.keys, ","), question.passes, kLeastRadius, kBox));
  const nlohmann::json result = nlohmann::json::parse(output, nullptr, false);
  if (!result.is_object()) {
    answer.absent = BENCH_PYTHON " failed to run highs.py";
    return answer;
  }
  if (result.contains("scipy"))
    answer.competitor.replace(0, 5, "SciPy " + result["scipy"].get<std::string>());
  if (result.contains("absent")) {
    answer.absent = result["absent"];
    return answer;
  }
  answer.selectable = result["selectable"].get<std::vector<bool>>();
  for (const auto& pass : result["passes"]) answer.passes.push_back({pass["cpu"], pass["wall"]});
  return answer;
}

}  // namespace

Answer ask_highs_chebyshev(const Question& question) {
  return ask(question, "chebyshev");
}
Answer ask_highs_membership(const Question& question) {
  return ask(question, "membership");
}

}  // namespace normscope::bench
