// SciPy's linprog with HiGHS (python3-scipy), in a process of its own: highs.py, on the same keys as a .npy
// file.
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "competitor.h"
#include "normscope/tensor_file.h"

namespace normscope::bench {
namespace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "normscope-bench-XXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; pipe && (got = fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    output.append(buffer.data(), got);
  return output;
}

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
