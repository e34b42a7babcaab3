// extremalrays of PyPI, in a process of its own: extremal_rays.py, on the same keys as a .npy file. Clarkson's order
// over one warm-started model of HiGHS, all vertices at once.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "competitor.h"
#include "normscope/tensor_file.h"
#include "python_process.h"

namespace normscope::bench {

Answer ask_extremalrays(const Question& question) {
  const MatrixView<const double> keys = question.keys;
  Answer answer;
  answer.competitor = "extremalrays, all vertices";
  if (!std::filesystem::exists(BENCH_VENV_PYTHON)) {
    answer.absent = "not installed (make bench fetches it from PyPI, where that is in reach)";
    return answer;
  }
  const TemporaryDirectory directory;
  if (directory.path().empty()) {
    answer.absent = "no temporary directory";
    return answer;
  }
  const std::string file = directory.path() / "keys.npy";
  write_npy(file,
            {"", DType::float64, {keys.rows, keys.cols}, {keys.data, keys.data + keys.rows * keys.cols}});
  constexpr std::size_t kMany = 20000;  // numbers, from which on a pass takes a minute
  const std::size_t passes = keys.rows * keys.cols > kMany ? 1 : question.passes;
  const std::string output = output_of(
      fmt::format("OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 {} -B {} {} {}", quoted(BENCH_VENV_PYTHON),
                  quoted(BENCH_SOURCE_DIR "/keys/extremal_rays.py"), quoted(file), passes));
  const nlohmann::json result = nlohmann::json::parse(output, nullptr, false);
  if (!result.is_object()) {
    answer.absent = BENCH_VENV_PYTHON " failed to run extremal_rays.py";
    return answer;
  }
  if (result.contains("absent")) {
    answer.absent = result["absent"];
    return answer;
  }
  answer.competitor = fmt::format("extremalrays {}, all vertices", result["version"].get<std::string>());
  for (std::size_t i = 0; i < keys.rows; ++i) answer.keys.push_back(i);
  answer.keys_per_pass = keys.rows;
  answer.selectable.assign(keys.rows, false);
  for (const auto& vertex : result["vertices"]) answer.selectable.at(vertex.get<std::size_t>()) = true;
  for (const auto& pass : result["passes"]) answer.passes.push_back({pass["cpu"], pass["wall"]});
  return answer;
}

}  // namespace normscope::bench
