#pragma once
// What the majority runs say about §4.1 of Brody, Alon, Yahav 2023: Fig. 1a/b, 2 and 3, and its open
// questions.
#include <span>
#include <vector>

#include "normscope/majority.h"
#include "paper/claim.h"

namespace normscope {

// Values read off the paper's figures; "with projection" is LayerNorm, "without" what the published code
// computes.
struct PublishedValue {
  const char* norm;
  std::uint64_t step;
  double value;
};
std::span<const PublishedValue> published_losses();      // Fig. 2a, training loss
std::span<const PublishedValue> published_angles();      // Fig. 2b, degrees
std::span<const PublishedValue> published_accuracies();  // Fig. 3, per position

// Runs of layernorm, rmsnorm, xsigma and published with the same seeds.
std::vector<Claim> claims_of_figure2(std::span<const MajorityRun> runs);
std::vector<Claim> claims_of_figure3(std::span<const MajorityRun> runs);
// Runs of majority_in_3d().
std::vector<Claim> claims_of_figure1ab(std::span<const MajorityRun> runs);
// project:k beside layernorm: the questions of the paper's last section.
std::vector<Claim> answers_to_followups(std::span<const MajorityRun> runs);

Figure figure2(std::span<const MajorityRun> runs);
Figure figure3(std::span<const MajorityRun> runs);
Figure figure1ab(std::span<const MajorityRun> runs);
Figure followup_figure(std::span<const MajorityRun> runs);

}  // namespace normscope
