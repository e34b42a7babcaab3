#pragma once
// Cards: a sentence, how it ended as a badge, what was measured beside what was published as a picture, and why. The
// same for the claims of papers and for what other commands find.
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normscope {

// How a question ended; a letter, a word and a colour, so that no one needs all three.
enum class Badge { holds, only_if, fails, open, answered };
inline constexpr Badge kBadges[] = {Badge::holds, Badge::only_if, Badge::fails, Badge::open, Badge::answered};
const char* name_of(Badge badge);  // in addresses and classes: "only-if"
const char* word_of(Badge badge);  // for people: "only if"
char letter_of(Badge badge);

// A number and its interval, on an axis that all readings with its unit share.
struct Reading {
  std::string name = {};  // empty if the card has no other
  std::string unit = {};
  double value = NAN, low = NAN, high = NAN;       // without an interval, low and high are not numbers
  std::optional<std::array<double, 2>> both = {};  // of two values: shown in place of the others
  std::optional<double> published = {}, threshold = {};
  bool above = true;                // on which side of the threshold the sentence holds
  bool itself = false;              // and at the threshold
  std::optional<bool> answer = {};  // whether it does there; none: it cannot be told yet
};
// Values as dots, intervals as bars, thresholds as lines with the side shaded on which the sentence holds, published values as
// diamonds; beyond a few they are folded. Markup; empty without a number to draw.
std::string readings_html(std::span<const Reading> readings);
// "1.04× (0.92 to 1.2)", of two values "0.98, 1.1×"
std::string words_of(const Reading& reading);

struct Card {
  struct Fact {
    std::string name, words;
  };
  std::string id;     // its address in the page
  std::string where;  // "Fig. 2a"
  std::string sentence;
  Badge badge = Badge::open;
  std::string verdict = {};  // in full: "holds only if …"
  std::vector<Fact> facts = {};
  std::vector<Reading> readings = {};
  std::string note = {};                    // below them: what the thresholds are, and why
  std::string why = {}, change = {};        // the evidence; what would change the verdict
  std::vector<std::string> figures = {};    // of the page, by name
  std::string paper = {}, topic = {};       // that it can be filtered by
  std::vector<std::string> confounds = {};  // of the page, by name
};

// Markup of a badge, of one card, and of the bar that counts them.
std::string badge_html(Badge badge, std::string_view words = {});
// level: of its heading; inside: markup at the end of the card, its figures.
std::string card_html(const Card& card, int level, std::string_view inside = {});
std::string bar_html(std::span<const Card> cards);

}  // namespace normscope
