#pragma once
// What other commands than `paper` find, as cards: of results.json, and of nothing else.
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "report/card.h"
#include "result/ablate.h"
#include "result/scan.h"
#include "result/training.h"

namespace normscope {

// A card for each key space: can every token be selected?
std::vector<Card> scan_cards(const ScanResult& result);
// A card for each change and measure of retrieval: does it get worse without the norm?
std::vector<Card> ablate_cards(const AblateResult& result);
// A card for each norm: where its trainings ended.
std::vector<Card> training_cards(const MajorityResult& result);
std::vector<Card> training_cards(const TextResult& result);

// Of results.json of a command; none if it has no cards. Throws InputError if the results are not what the command
// writes.
std::vector<Card> results_cards(std::string_view command, const nlohmann::ordered_json& results);

}  // namespace normscope
