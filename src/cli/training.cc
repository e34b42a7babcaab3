#include "cli/training.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>

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

std::string state_of(std::span<const TextRun> runs) {
  double loss = 0, held_out = 0, count = 0, measured = 0;
  for (const TextRun& run : runs) {
    if (run.rows.size() < 2) continue;
    loss += run.rows.back().train_loss;
    ++count;
    if (!run.rows.back().held_out) continue;
    held_out += run.rows.back().held_out->loss;
    ++measured;
  }
  if (count == 0) return "";
  std::string text = fmt::format("loss {:.3f}", loss / count);
  if (measured > 0) text += fmt::format(" · held out {:.3f}", held_out / measured);
  return text;
}

Tensor tensor(const std::string& name, const Matrix<double>& matrix) {
  return {name, DType::float64, {matrix.rows(), matrix.cols()}, matrix.values()};
}

}  // namespace

std::string lasting_path(const std::string& path) {
  return path == "-" || path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

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
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), done, 0};
}

TrainingTime train(TextTraining& training, TextRecord* record, const std::string& label, const Common& common,
                   const Executor& executor, const Whole* whole, const std::function<void()>& evaluated) {
  Progress progress(common, label, "tokens", whole);
  std::atomic<std::size_t> steps = 0, tokens = 0;
  std::size_t total = 0;  // steps that are left
  for (const TextRun& run : training.runs())
    if (!run.finished) total += training.settings().steps - run.step;
  const auto start = std::chrono::steady_clock::now();
  if (record != nullptr && training.done()) record->add(training);
  while (!training.done()) {
    training.advance(executor, [&](std::size_t seen) {
      const std::size_t step = ++steps, all = tokens += seen;
      progress.update(all, std::max(all, all / step * total));  // texts may have lengths of their own
    });
    if (evaluated) evaluated();
    if (record != nullptr) record->add(training);
    if (const std::string state = state_of(training.runs()); !state.empty()) progress.set_detail(state);
  }
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), steps, tokens};
}

std::vector<std::uint64_t> parse_seeds(const std::string& text, const Common& common, bool seed_given) {
  const auto ten = paper_seeds();
  if (text.empty()) return {seed_given ? common.seed : ten[0]};
  if (seed_given) throw InputError("--seed and --seeds both name the seeds; give one of them.");
  if (text.find(',') == std::string::npos) {
    std::uint64_t count = 0;
    try {
      count = parse_count(text, "--seeds", 1, ten.size());
    } catch (const InputError&) {
      throw InputError(
          fmt::format("--seeds {}: without a comma it says how many of the paper's ten seeds to run, from 1 "
                      "to 10; a list has "
                      "commas ('11,42'), and one seed is --seed N.",
                      text));
    }
    return {ten.begin(), ten.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  std::vector<std::uint64_t> seeds;
  for (const std::string_view each : split(text, ',')) {
    if (each.empty() && !seeds.empty()) continue;  // "42," is a list of one
    const std::uint64_t seed = parse_count(each, "--seeds", 0, UINT64_MAX);
    if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end()) {
      throw InputError(fmt::format("--seeds names {} twice.", seed));
    }
    seeds.push_back(seed);
  }
  return seeds;
}

std::vector<std::string> parse_norms(const std::string& text) {
  std::vector<std::string> norms;
  for (const std::string_view name : split(text, ',')) {
    std::string norm = name_of(parse_norm(name));
    if (std::find(norms.begin(), norms.end(), norm) != norms.end()) {
      throw InputError(fmt::format("--norm names {} twice.", norm));
    }
    norms.push_back(std::move(norm));
  }
  return norms;
}

std::string over_seeds(std::span<const std::size_t> runs) {
  const bool two = std::find(runs.begin(), runs.end(), 2) != runs.end();
  const bool other = std::any_of(runs.begin(), runs.end(), [](std::size_t count) { return count != 2; });
  std::string text = other ? "± is the 95 % interval over seeds" : "";
  if (two) text += fmt::format("{}of two seeds both values are shown", other ? "; " : "");
  return text;
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
