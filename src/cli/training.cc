#include "cli/training.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "normscope/error.h"

namespace normscope::cli {
namespace {

std::string state_of(std::span<const MajorityRun> runs) {
  double loss = 0, accuracy = 0, angle = 0, count = 0;
  for (const MajorityRun& run : runs) {
    if (run.rows.size() < 2) continue;
    loss += run.rows.back().train_loss;
    accuracy += run.rows.back().test.accuracy;
    angle += run.rows.back().angle_mean;
    ++count;
  }
  if (count == 0) return "";
  return fmt::format("loss {:.3f} · accuracy {:.1f} % · angle {:.0f}°", loss / count, 100 * accuracy / count,
                     angle / count);
}

Tensor tensor(const std::string& name, const Matrix<double>& matrix) {
  return {name, DType::float64, {matrix.rows(), matrix.cols()}, matrix.values()};
}

}  // namespace

bool resumes(const CLI::App& command, std::initializer_list<std::string_view> allowed) {
  constexpr std::string_view harmless[] = {"--resume", "--threads", "--json", "--quiet"};
  const bool resume = command.get_option("--resume")->count() > 0;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    const auto is_name = [&](std::string_view other) { return other == name; };
    if (option->get_items_expected_min() > 0 && option->results().front().empty())
      throw InputError(fmt::format("{} needs a value, not an empty one.", name));
    if (resume && std::none_of(std::begin(harmless), std::end(harmless), is_name) &&
        std::none_of(allowed.begin(), allowed.end(), is_name)) {
      throw InputError(
          fmt::format("--resume goes on with the settings of the run; {} cannot be given with it.", name));
    }
  }
  return resume;
}

TrainingTime train(MajorityTraining& training, MajorityRecord* record, const std::string& label,
                   const Common& common, const Executor& executor, const Whole* whole) {
  Progress progress(common, label, "steps", whole);
  std::atomic<std::size_t> done = 0;
  std::size_t before = 0;
  for (const MajorityRun& run : training.runs())
    before += run.finished ? training.settings().steps : run.step;
  const std::size_t total = training.settings().steps * training.runs().size() - before;
  const auto start = std::chrono::steady_clock::now();
  if (record != nullptr && training.done()) record->add(training);
  while (!training.done()) {
    training.advance(executor, [&] { progress.update(++done, total); });
    if (record != nullptr) record->add(training);
    if (const std::string state = state_of(training.runs()); !state.empty()) progress.set_detail(state);
  }
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), done};
}

void write_geometry(const RunDirectory& directory, std::span<const MajorityRun> runs) {
  std::vector<Tensor> tensors;
  for (const MajorityRun& run : runs) {
    const TypeGeometry geometry = type_geometry(run.spec, run.parameters);
    const std::string at = fmt::format("{}/seed{}/", run.id.norm, run.id.seed);
    tensors.push_back(tensor(at + "keys", geometry.keys));
    tensors.push_back(tensor(at + "queries", geometry.queries));
  }
  write_safetensors((directory.path() / "geometry.safetensors").string(), tensors);
}

}  // namespace normscope::cli
