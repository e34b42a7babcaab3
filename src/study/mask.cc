#include "study/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "normscope/error.h"
#include "study/masks.h"

namespace normscope {
namespace {

constexpr std::size_t kPapersTokens = 128, kMostMasks = 100;

}  // namespace

MaskPlan plan_masks(const MaskOptions& options, std::uint64_t seed) {
  check_options(options);
  const auto tensor = options.tensor.empty() ? std::nullopt : std::optional(options.tensor);
  if (options.masks.size() > kMostMasks)
    throw InputError(
        fmt::format("{} masks were named; at most {} fit one table.", options.masks.size(), kMostMasks));
  if (tensor && std::none_of(options.masks.begin(), options.masks.end(), names_mask_file))
    throw InputError("--tensor names a tensor of a file, but no mask was given as a file.");
  MaskPlan plan;
  plan.masks = resolve_masks(options.masks, options.n, kPapersTokens, seed, tensor);
  plan.settings.masks = options.masks;
  for (const Mask& mask : plan.masks) plan.settings.n.push_back(mask.n());
  plan.settings.tensor = options.tensor;
  return plan;
}

MaskStudy study_masks(MaskPlan plan, const Context& context) {
  MaskStudy study;
  MasksResult& result = study.result;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t k = 0; k < plan.masks.size(); ++k) {
    const MaskProperties properties = mask_properties(plan.masks[k]);
    study.masks.push_back({plan.settings.masks[k], std::move(plan.masks[k]), properties});
    if (context.progress) context.progress(k + 1, plan.masks.size());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.made = provenance(context.seed, 1);
  for (const NamedMask& panel : study.masks) result.masks.push_back(result_of(panel));
  study.settings = std::move(plan.settings);
  return study;
}

MaskStudy study_masks(const MaskOptions& options, const Context& context) {
  return study_masks(plan_masks(options, context.seed), context);
}

}  // namespace normscope
