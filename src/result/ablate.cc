#include "result/ablate.h"

#include <fmt/format.h>

#include <map>

#include "core/number_text.h"

namespace normscope {
namespace {

std::string fact(const RetrievalChange& change) {
  return fmt::format("{} {:.3g} → {:.3g}, {}", change.measure == "gain" ? "copy gain" : change.measure,
                     change.trained.mean, change.changed.mean, change_text(change.difference));
}

}  // namespace

std::string retrieval_words(const RetrievalChange& change, const AblateResult::Settings& settings) {
  const std::string margin = fmt::format("{:g} % of what it has above chance", 100 * settings.tolerated);
  switch (change.verdict) {
    case RetrievalVerdict::worse: {
      const double loss = settings.tolerated * (change.trained.mean - change.chance);
      return change.difference.above(-loss) ? "worse, by less than " + margin : "worse";
    }
    case RetrievalVerdict::not_worse:
      return "no worse by " + margin;
    case RetrievalVerdict::not_shown:
      return fmt::format("no difference these {} prompts can show", settings.prompts);
    case RetrievalVerdict::untestable:
      return "untestable: as trained, the model does not retrieve beyond doubt";
    case RetrievalVerdict::failed:
      break;
  }
  return name_of(change.verdict);
}

std::string ablate_verdict(const AblateResult& result) {
  std::string text;
  for (const AblateRowResult& row : result.rows) {
    if (!row.retrieval) continue;
    std::string found;
    for (const RetrievalVerdict verdict :
         {RetrievalVerdict::worse, RetrievalVerdict::not_worse, RetrievalVerdict::not_shown}) {
      std::map<std::string, std::vector<std::string>> facts;  // "worse" before "worse, by less than …"
      for (const RetrievalChange& change : *row.retrieval)
        if (change.verdict == verdict)
          facts[retrieval_words(change, result.settings)].push_back(fact(change));
      for (const auto& [words, of] : facts)
        found += fmt::format("{}{} ({})", found.empty() ? "" : "; ", words, fmt::join(of, "; "));
    }
    if (!found.empty()) text += fmt::format("{}{}: retrieval {}.", text.empty() ? "" : " ", row.name, found);
  }
  if (text.empty())
    return "On the probe the model as trained does not retrieve beyond doubt (its interval reaches below "
           "twice the chance, or a single prompt has none), so that a change cannot be judged.";
  return text;
}

}  // namespace normscope
