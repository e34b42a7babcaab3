#include "corpus/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "corpus/grammar_words.h"
#include "normscope/corpus.h"
#include "normscope/random.h"

namespace normscope {
namespace corpus {
namespace {

using std::string;
using words::Words;

// "story", "review": streams of a seed that no other use of it has. The index of a text is added.
constexpr std::uint64_t kStories = 0x73746f7279000000, kReviews = 0x7265766965000000;

std::vector<std::string_view> list(Words words) {
  std::vector<std::string_view> result;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    result.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return result;
}

string spaced(std::string_view word) {
  string result(word);
  std::replace(result.begin(), result.end(), '_', ' ');
  return result;
}

bool is_vowel(char c) {
  return std::string_view("aeiou").find(c) != std::string_view::npos;
}

std::string_view before_slash(std::string_view word) {
  return word.substr(0, word.find('/'));
}

std::string_view irregular(std::string_view word) {
  const std::size_t slash = word.find('/');
  return slash == std::string_view::npos ? std::string_view() : word.substr(slash + 1);
}

// Plural of nouns, third person of verbs: boat-s, box-es, carry → carri-es. A second word stays as it is.
string with_s(std::string_view word) {
  const std::size_t end = std::min(word.find('_'), word.size());
  const std::string_view stem = word.substr(0, end), rest = word.substr(end);
  const bool hissing = stem.ends_with('s') || stem.ends_with('x') || stem.ends_with("ch") ||
                       stem.ends_with("sh") || stem.ends_with('o');
  if (hissing) return fmt::format("{}es{}", stem, rest);
  if (stem.ends_with('y') && stem.size() > 1 && !is_vowel(stem[stem.size() - 2]))
    return fmt::format("{}ies{}", stem.substr(0, stem.size() - 1), rest);
  return fmt::format("{}s{}", stem, rest);
}

string plural(std::string_view noun) {
  const std::string_view own = irregular(noun);
  return own.empty() ? with_s(noun) : string(own);
}

// Verbs of one vowel and one consonant behind it double that: drop → dropped, but open → opened.
bool doubles(std::string_view verb) {
  if (std::count_if(verb.begin(), verb.end(), is_vowel) != 1) return false;
  const std::size_t n = verb.size();
  if (n < 3 || is_vowel(verb[n - 1]) || !is_vowel(verb[n - 2]) || is_vowel(verb[n - 3])) return false;
  return std::string_view("wxy").find(verb[n - 1]) == std::string_view::npos;
}

string past(std::string_view verb) {
  const std::string_view own = irregular(verb);
  if (!own.empty()) return string(own);
  const std::size_t end = std::min(verb.find('_'), verb.size());
  const std::string_view stem = verb.substr(0, end), rest = verb.substr(end);
  if (stem.ends_with('e')) return fmt::format("{}d{}", stem, rest);
  if (doubles(stem)) return fmt::format("{}{}ed{}", stem, stem.back(), rest);
  return fmt::format("{}ed{}", stem, rest);
}

// By sound, not by spelling.
string with_article(const string& phrase) {
  const bool silent = phrase.starts_with("honest"), spoken = phrase.starts_with("useful");
  return ((is_vowel(phrase[0]) && !spoken) || silent ? "an " : "a ") + phrase;
}

string sentence(string words) {
  if (words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words + ".";
}

struct Chooser {
  Random random;

  bool chance(double probability) { return random.uniform() < probability; }
  std::uint64_t below(std::uint64_t bound) { return random.below(bound); }
  std::string_view any(const std::vector<std::string_view>& words) { return words[below(words.size())]; }
  string any(Words words) { return spaced(any(list(words))); }
  // `count` different ones.
  std::vector<std::string_view> some(Words words, std::size_t count) {
    std::vector<std::string_view> all = list(words);
    for (std::size_t i = 0; i < std::min(count, all.size()); ++i)
      std::swap(all[i], all[i + below(all.size() - i)]);
    all.resize(std::min(count, all.size()));
    return all;
  }
};

enum class Number { singular, plural };

struct NounPhrase {
  string words;
  Number number = Number::singular;
};

struct Hero {
  string name;
  bool woman = false;
  std::string_view trade;
};

// One story: topic, tense, heroes and the few things it is about stay the same, so what comes late can be
// told from what came early.
class Story {
 public:
  Story(std::uint64_t seed, std::uint64_t index)
      : choose_{Random(seed, kStories + index)},
        topic_(words::topics[choose_.below(words::topics.size())]),
        past_(choose_.chance(0.6)),
        things_(choose_.some(topic_.things, 5)),
        actions_(choose_.some(topic_.actions, 6)) {
    const bool woman = choose_.chance(0.5);
    const auto women = choose_.some(words::women, 2), men = choose_.some(words::men, 2);
    const auto trades = choose_.some(topic_.persons, 2);
    heroes_.push_back({string(woman ? women[0] : men[0]), woman, trades[0]});
    heroes_.push_back({string(woman ? men[1] : women[1]), !woman, trades[1]});
  }

  string text() {
    string result = introduction();
    for (std::uint64_t paragraphs = 1 + choose_.below(4); paragraphs > 0; --paragraphs) {
      result += "\n\n";
      string paragraph;
      for (std::uint64_t sentences = 3 + choose_.below(4); sentences > 0; --sentences)
        paragraph += (paragraph.empty() ? "" : " ") + any_sentence();
      result += paragraph;
    }
    return result + "\n\n" + conclusion() + "\n";
  }

 private:
  string verb(std::string_view base, Number number) const {
    if (past_) return spaced(past(base));
    return spaced(number == Number::singular ? with_s(before_slash(base)) : string(before_slash(base)));
  }
  string be(Number number) const {
    if (past_) return number == Number::singular ? "was" : "were";
    return number == Number::singular ? "is" : "are";
  }
  const Hero& hero() { return heroes_[choose_.below(heroes_.size())]; }

  string introduction() {
    const string place = choose_.any(topic_.places);
    string result;
    for (const Hero& each : heroes_) {
      const string trade =
          fmt::format("{} {}", choose_.any(words::adjectives_of_persons), before_slash(each.trade));
      result +=
          (result.empty() ? "" : " ") +
          sentence(fmt::format("{} {} {} {}", each.name, be(Number::singular), with_article(trade), place));
    }
    return result;
  }

  string conclusion() {
    const Hero &first = heroes_[0], &second = heroes_[1];
    const string when = past_ ? "in the end" : "at last";
    return sentence(fmt::format(
        "{}, {}, the {}, {}, and {}, the {}, {} the {}", when, first.name, before_slash(first.trade),
        verb(choose_.any(list(topic_.doings)), Number::singular), second.name, before_slash(second.trade),
        verb(choose_.any(actions_), Number::singular), before_slash(choose_.any(things_))));
  }

  NounPhrase thing() {
    const std::string_view noun = choose_.any(things_);
    string adjective;
    if (choose_.chance(0.5))
      adjective = choose_.any(choose_.chance(0.6) ? topic_.adjectives : words::adjectives_of_things) + " ";
    switch (choose_.below(4)) {
      case 0:
        return {with_article(adjective + string(before_slash(noun))), Number::singular};
      case 1:
        return {fmt::format("the {}{}", adjective, plural(noun)), Number::plural};
      case 2:
        return {fmt::format("{} {}{}", list(words::numbers)[2 + choose_.below(11)], adjective, plural(noun)),
                Number::plural};
      default:
        return {fmt::format("the {}{}", adjective, before_slash(noun)), Number::singular};
    }
  }

  NounPhrase person(int depth) {
    const std::uint64_t kind = choose_.below(8);
    if (kind < 4) {
      const Hero& one = hero();
      if (depth > 0 && choose_.chance(0.15))
        return {fmt::format("{}, who {},", one.name, predicate(Number::singular, 0)), Number::singular};
      return {one.name, Number::singular};
    }
    if (kind == 4) return {fmt::format("{} and {}", heroes_[0].name, heroes_[1].name), Number::plural};
    const std::string_view noun = choose_.any(list(topic_.persons));
    const Number number = choose_.chance(0.35) ? Number::plural : Number::singular;
    const string adjective = choose_.chance(0.4) ? choose_.any(words::adjectives_of_persons) + " " : "";
    string phrase =
        "the " + adjective + (number == Number::plural ? plural(noun) : string(before_slash(noun)));
    if (depth > 0 && choose_.chance(0.2)) phrase += " who " + predicate(number, 0);
    return {std::move(phrase), number};
  }

  string predicate(Number number, int depth) {
    const std::uint64_t kind = choose_.below(10);
    if (kind < 5) {
      string object = thing().words;
      if (depth > 0 && choose_.chance(0.15))
        object += fmt::format(" that {} {}", hero().name, verb(choose_.any(actions_), Number::singular));
      return fmt::format("{} {}", verb(choose_.any(actions_), number), object);
    }
    if (kind < 8) {
      const string doing = verb(choose_.any(list(topic_.doings)), number);
      return choose_.chance(0.5) ? fmt::format("{} {}", doing, choose_.any(words::manners)) : doing;
    }
    return fmt::format("{} {}", be(number), choose_.any(words::adjectives_of_persons));
  }

  string clause(int depth) {
    if (choose_.chance(0.2)) {
      const NounPhrase subject = thing();
      return fmt::format("{} {}", subject.words, verb(choose_.any(list(topic_.states)), subject.number));
    }
    const NounPhrase subject = person(depth);
    return fmt::format("{} {}", subject.words, predicate(subject.number, depth));
  }

  // There are some, some go, the rest is what is left.
  string counting() {
    const auto names = list(words::numbers);
    const std::uint64_t all = 2 + choose_.below(11), taken = 1 + choose_.below(all - 1);
    const std::string_view noun = choose_.any(things_);
    const auto number = [](std::uint64_t n) { return n == 1 ? Number::singular : Number::plural; };
    return sentence(fmt::format("there {} {} {} {}", be(Number::plural), names[all], plural(noun),
                                choose_.any(topic_.places))) +
           " " +
           sentence(fmt::format("{} {} {} of them, so {} {} left", hero().name,
                                verb("take/took", Number::singular), names[taken], names[all - taken],
                                be(number(all - taken))));
  }

  // A name, and a pronoun for it in the next sentence.
  string pair() {
    const Hero& one = hero();
    return sentence(fmt::format("{} {}", one.name, predicate(Number::singular, 1))) + " " +
           sentence(fmt::format("{} {} {}", one.woman ? "she" : "he", choose_.any("also soon then still"),
                                predicate(Number::singular, 0)));
  }

  string question() {
    const std::string_view noun = choose_.any(things_);
    return fmt::format("Where {} the {}? It {} {}.", be(Number::singular), before_slash(noun),
                       be(Number::singular), choose_.any(topic_.places));
  }

  string any_sentence() {
    switch (choose_.below(10)) {
      case 0:
        return counting();
      case 1:
        return pair();
      case 2:
        return question();
      case 3:
        return sentence(
            fmt::format("{}, {}", choose_.any(past_ ? words::times_past : words::times_present), clause(1)));
      case 4: {
        const NounPhrase subject = person(0);
        return sentence(fmt::format("{} {} that {}", subject.words,
                                    verb(choose_.any(list(words::beliefs)), subject.number), clause(0)));
      }
      case 5:
        return sentence(fmt::format("{} {} {}", clause(0), choose_.any(words::reasons), clause(0)));
      case 6:
        return sentence(fmt::format("{} {}", clause(1), choose_.any(topic_.places)));
      case 7:
        return sentence(fmt::format("{}, and {}", clause(0), clause(0)));
      default:
        return sentence(clause(1));
    }
  }

  Chooser choose_;
  const words::Topic& topic_;
  bool past_;
  std::vector<std::string_view> things_, actions_;
  std::vector<Hero> heroes_;
};

string judgement(Chooser& choose, const string& subject, bool positive) {
  const bool denied = choose.chance(0.35);
  // Denied blame is praise.
  const string adjective = choose.any(positive != denied ? words::praise : words::blame);
  if (denied) return fmt::format("{} was {} {}", subject, choose.any(words::denials), adjective);
  if (choose.chance(0.4)) return fmt::format("{} was {} {}", subject, choose.any(words::degrees), adjective);
  return fmt::format("{} was {}", subject, adjective);
}

}  // namespace

string grammar_story(std::uint64_t seed, std::uint64_t index) {
  return Story(seed, index).text();
}

string grammar_review(std::uint64_t seed, std::uint64_t index, bool positive) {
  Chooser choose{Random(seed, kReviews + index)};
  const string what = choose.any(words::reviewed);
  string text;
  const auto add = [&](const string& words) { text += (text.empty() ? "" : " ") + sentence(words); };
  if (choose.chance(0.5))
    add(fmt::format("{} saw this {} with {}", choose.chance(0.5) ? "I" : "we", what,
                    choose.any(choose.chance(0.5) ? words::women : words::men)));
  add(judgement(choose, fmt::format("the {}", what), positive));
  for (std::uint64_t more = choose.below(3); more > 0; --more) {
    const string aspect = choose.any(words::aspects);
    if (choose.chance(0.3))
      add(fmt::format("{}, and {}", judgement(choose, fmt::format("the {} of it", aspect), positive),
                      judgement(choose, "the " + choose.any(words::aspects), positive)));
    else
      add(judgement(choose, fmt::format("the {}", aspect), positive));
  }
  return text;
}

namespace {

class GrammarCorpus final : public Corpus {
 public:
  explicit GrammarCorpus(std::uint64_t seed) : seed_(seed) {}
  string name() const override { return "grammar"; }
  string description() const override { return fmt::format("built-in grammar, generated, seed {}", seed_); }
  bool generated() const override { return true; }
  std::uint64_t passages() const override { return std::uint64_t{1} << 40; }
  Passage passage(std::uint64_t index) const override { return {grammar_story(seed_, index), true}; }

 private:
  std::uint64_t seed_;
};

}  // namespace
}  // namespace corpus

std::unique_ptr<const Corpus> grammar_corpus(std::uint64_t seed) {
  return std::make_unique<corpus::GrammarCorpus>(seed);
}

}  // namespace normscope
