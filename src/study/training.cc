#include "study/training.h"

#include <fmt/format.h>

#include "normscope/norm.h"
#include "study/parse.h"

namespace normscope {

std::vector<std::string> parse_norms(const std::string& text) {
  std::vector<std::string> norms;
  for (const std::string_view name : split(text, ',')) {
    std::string norm = name_of(parse_norm(name));
    if (std::find(norms.begin(), norms.end(), norm) != norms.end())
      throw InputError(fmt::format("--norm names {} twice.", norm));
    norms.push_back(std::move(norm));
  }
  return norms;
}

std::vector<std::uint64_t> parse_seeds(const std::string& text, std::optional<std::uint64_t> seed) {
  const auto ten = paper_seeds();
  if (text.empty()) return {seed.value_or(ten[0])};
  if (seed) throw InputError("--seed and --seeds both name the seeds; give one of them.");
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
    const std::uint64_t value = parse_count(each, "--seeds", 0, UINT64_MAX);
    if (std::find(seeds.begin(), seeds.end(), value) != seeds.end())
      throw InputError(fmt::format("--seeds names {} twice.", value));
    seeds.push_back(value);
  }
  return seeds;
}

std::vector<PlannedRun> every_run(const std::vector<std::string>& norms,
                                  std::span<const std::uint64_t> seeds) {
  std::vector<PlannedRun> runs;
  for (const std::string& norm : norms) {
    for (const std::uint64_t seed : seeds) runs.push_back(PlannedRun{{norm, seed}});
  }
  return runs;
}

std::vector<std::string> norms_of(const std::vector<PlannedRun>& runs) {
  std::vector<std::string> norms;
  for (const PlannedRun& run : runs)
    if (std::find(norms.begin(), norms.end(), run.norm) == norms.end()) norms.push_back(run.norm);
  return norms;
}

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

}  // namespace normscope
