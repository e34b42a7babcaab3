#include "report/result_cards.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/number_text.h"
#include "normscope/error.h"
#include "report/paper_cards.h"
#include "result/json_reader.h"

namespace normscope {
namespace {

constexpr std::size_t kMostCards = 200;

const char* space_words(std::string_view space) {
  if (space == "before") return "before the norm";
  if (space == "model") return "after the norm";
  if (space == "head") return "in a head, by any query";
  return "in a head, by the queries its layer can form";
}

Reading share(const char* name, std::size_t part, std::size_t whole) {
  Reading reading{.name = name, .unit = "%"};
  if (whole > 0) reading.value = 100 * static_cast<double>(part) / static_cast<double>(whole);
  reading.answer = part == 0;
  return reading;
}

Reading measured(std::string name, const Interval& interval, std::string unit, double factor = 1) {
  Reading reading{.name = std::move(name),
                  .unit = std::move(unit),
                  .value = factor * interval.mean,
                  .low = factor * interval.low,
                  .high = factor * interval.high};
  if (const auto both = interval.both()) reading.both = {factor * (*both)[0], factor * (*both)[1]};
  return reading;
}

// Two values stand in the order of the seeds, as in tables; a file has only their mean and interval.
template <class RunResult, class Value>
Interval in_order(Interval mean, const std::vector<RunResult>& runs, const std::string& norm,
                  const Value& value) {
  std::vector<double> values;
  for (const RunResult& run : runs)
    if (run.run.norm == norm && std::isfinite(value(run))) values.push_back(value(run));
  if (mean.count == 2 && values.size() == 2) {
    mean.first = values[0];
    mean.second = values[1];
  }
  return mean;
}

const char* retrieval_words(std::string_view measure) {
  if (measure == "gain") return "copying gains less from the first copy";
  if (measure == "copy") return "copying finds the right token less often";
  if (measure == "lookup") return "lookup finds the right value less often";
  return "the best head finds the token less often";
}

Card norm_card(const std::string& norm, std::size_t runs) {
  return {.id = "norm-" + norm,
          .where = norm,
          .sentence = fmt::format("Where {} of {} ended", counted(runs, "training"), norm),
          .badge = Badge::answered,
          .verdict = {},
          .figures = {"training"}};
}

}  // namespace

std::vector<Card> scan_cards(const ScanResult& result) {
  std::vector<Card> cards;
  for (const auto& [space, found] : result.spaces) {
    if (cards.size() == kMostCards) break;
    if (found.sets == 0 || found.tokens == 0) continue;  // nothing was asked there
    const bool all = found.unselectable_in_some == 0;
    Card card{.id = "space-" + space,
              .where = space,
              .sentence = fmt::format("Every token can be selected {}", space_words(space)),
              .badge = !all                          ? Badge::fails
                       : found.undecided_in_some > 0 ? Badge::open
                       : found.tied_in_some > 0      ? Badge::only_if
                                                     : Badge::holds};
    const std::string tokens = counted(found.tokens, "token"), sets = counted(found.sets, "set");
    switch (card.badge) {
      case Badge::fails:
        card.verdict = fmt::format("does not hold: {} of {} cannot in some of {}", found.unselectable_in_some,
                                   tokens, sets);
        break;
      case Badge::only_if:
        card.verdict = fmt::format("holds only if ties count: {} of {} never lead alone in some of {}",
                                   found.tied_in_some, tokens, sets);
        break;
      case Badge::holds:
        card.verdict = fmt::format("holds of {} in {}", tokens, sets);
        break;
      default:
        card.verdict = word_of(card.badge);
    }
    card.readings = {share("unselectable in some set", found.unselectable_in_some, found.tokens),
                     share("unselectable in every set", found.unselectable_in_all, found.tokens)};
    if (found.tied_in_some > 0)
      card.facts.push_back({"Tied", fmt::format("{} in some set", counted(found.tied_in_some, "token"))});
    if (found.undecided_in_some > 0)
      card.facts.push_back(
          {"Undecided", fmt::format("{} in some set", counted(found.undecided_in_some, "token"))});
    cards.push_back(std::move(card));
  }
  return cards;
}

std::vector<Card> ablate_cards(const AblateResult& result) {
  std::vector<Card> cards;
  for (const AblateRowResult& row : result.rows) {
    for (const RetrievalChange& change : row.retrieval.value_or(std::vector<RetrievalChange>())) {
      if (cards.size() == kMostCards) return cards;
      const bool worse = change.verdict == RetrievalVerdict::worse,
                 not_worse = change.verdict == RetrievalVerdict::not_worse;
      Card card{.id = fmt::format("change-{}-{}", row.name, change.measure),
                .where = row.name,
                .sentence =
                    fmt::format("With {} in the norm's place, {}", row.name, retrieval_words(change.measure)),
                .badge = worse       ? Badge::holds
                         : not_worse ? Badge::fails
                                     : Badge::open,
                .verdict = retrieval_words(change, result.settings)};
      const std::string unit = change.measure == "gain" ? "nats" : "%";
      const double factor = change.measure == "gain" ? 1 : 100;
      Reading difference = measured("change", change.difference, unit, factor);
      difference.threshold = 0;
      difference.above = false;
      if (worse || not_worse) difference.answer = worse;
      card.readings = {difference, measured("as trained", change.trained, unit, factor),
                       measured("changed", change.changed, unit, factor)};
      card.facts = {{"Chance", percent(change.chance, 1)}};
      if (change.verdict == RetrievalVerdict::not_shown)
        card.change = "More prompts (--prompts) narrow the interval.";
      cards.push_back(std::move(card));
    }
  }
  return cards;
}

std::vector<Card> training_cards(const MajorityResult& result) {
  std::vector<Card> cards;
  for (const MajorityNormResult& norm : result.norms) {
    if (cards.size() == kMostCards) break;
    Card& card = cards.emplace_back(norm_card(norm.norm, norm.runs));
    const auto over_seeds = [&](const Interval& mean, double MajorityMeasures<double>::*measure) {
      return in_order(mean, result.runs, norm.norm,
                      [=](const MajorityRunResult& run) { return run.measures.*measure; });
    };
    using M = MajorityMeasures<double>;
    const Interval accuracy = over_seeds(norm.measures.accuracy, &M::accuracy);
    card.verdict = fmt::format("accuracy {} %", with_interval(accuracy, 1, 100));
    card.readings = {measured("positions right", accuracy, "%", 100),
                     measured("training loss", over_seeds(norm.measures.train_loss, &M::train_loss), "nats"),
                     measured("queries to 1", over_seeds(norm.measures.angle_mean, &M::angle_mean), "°")};
  }
  return cards;
}

std::vector<Card> training_cards(const TextResult& result) {
  std::vector<Card> cards;
  for (const TextNormResult& norm : result.norms) {
    if (cards.size() == kMostCards) break;
    Card& card = cards.emplace_back(norm_card(norm.norm, norm.runs));
    std::vector<TextRunResult> sound = result.runs;
    std::erase_if(sound, [](const TextRunResult& run) { return run.trouble.has_value(); });
    const auto over_seeds = [&](const Interval& mean, const auto& value) {
      return in_order(mean, sound, norm.norm, value);
    };
    using Run = TextRunResult;
    const Interval train_loss =
        over_seeds(norm.train_loss, [](const Run& run) { return run.measures.train_loss; });
    const Interval held_out_loss =
        over_seeds(norm.held_out_loss, [](const Run& run) { return run.measures.held_out_loss; });
    card.verdict = fmt::format("held-out loss {} nats", with_interval(held_out_loss, 3));
    if (norm.accuracy) {
      const Interval accuracy =
          over_seeds(*norm.accuracy, [](const TextRunResult& run) { return run.measures.accuracy; });
      card.verdict = fmt::format("accuracy {} %", with_interval(accuracy, 1, 100));
      card.readings.push_back(measured("texts right", accuracy, "%", 100));
    }
    card.readings.push_back(measured("training loss", train_loss, "nats"));
    card.readings.push_back(measured("held-out loss", held_out_loss, "nats"));
  }
  return cards;
}

std::vector<Card> results_cards(std::string_view command, const nlohmann::ordered_json& results) {
  const auto read = [](const nlohmann::ordered_json& json, auto result) {
    JsonReader::read(json, "", result);
    return result;
  };
  if (command == "paper") return paper_cards(read(results, PaperResult()), kMostCards);
  if (command == "ablate") return ablate_cards(read(results, AblateResult()));
  if (command == "scan") {
    // The verdict of every token can be large, and no card needs it.
    nlohmann::ordered_json head = nlohmann::ordered_json::object();
    for (const auto& [name, value] : results.items())
      if (name != "windows") head[name] = value;
    return scan_cards(read(head, ScanResult()));
  }
  try {
    if (command == "train majority") return training_cards(read(results, MajorityResult()));
    if (command == "train lm") return training_cards(read(results, TextResult::of_a_language_model()));
    if (command == "train sentiment") return training_cards(read(results, TextResult::of_a_classifier()));
  } catch (const InputError&) {
    // A training is shown by its log, whatever its results.json is like.
  }
  return {};
}

}  // namespace normscope
