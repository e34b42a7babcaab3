#include <fmt/format.h>

#include <algorithm>

#include "report/carded_page.h"

namespace normscope {
namespace {

struct BadgeText {
  const char* name;
  const char* word;
  char letter;
};
constexpr BadgeText kTexts[] = {{"holds", "holds", 'H'},
                                {"only-if", "only if", 'I'},
                                {"fails", "does not", 'N'},
                                {"open", "open", 'O'},
                                {"answered", "answered", 'A'}};

const BadgeText& text_of(Badge badge) {
  return kTexts[static_cast<std::size_t>(badge)];
}

std::string paragraph(const char* of_class, const char* name, std::string_view words) {
  return words.empty() ? ""
                       : fmt::format("<p class=\"{}\"><span class=\"name\">{}</span> {}</p>\n", of_class,
                                     name, escape_markup(words));
}

}  // namespace

const char* name_of(Badge badge) {
  return text_of(badge).name;
}
const char* word_of(Badge badge) {
  return text_of(badge).word;
}
char letter_of(Badge badge) {
  return text_of(badge).letter;
}

std::string badge_html(Badge badge, std::string_view words) {
  return fmt::format(
      "<span class=\"badge {}\"><span class=\"letter\" aria-hidden=\"true\">{}</span>{}</span>",
      name_of(badge), letter_of(badge), escape_markup(words.empty() ? word_of(badge) : words));
}

std::string card_html(const Card& card, int level, std::string_view inside) {
  const std::string id = escape_markup(card.id);
  std::string html = fmt::format(
      "<article class=\"card {0}\" id=\"{1}\" aria-labelledby=\"{1}-title\" data-verdict=\"{0}\" "
      "data-paper=\"{2}\" data-topic=\"{3}\">\n<div class=\"said\">\n<p class=\"where\">{4}<a class=\"address\" "
      "href=\"#{1}\" aria-label=\"Address of this card\">#</a></p>\n<h{5} id=\"{1}-title\">{6}</h{5}>\n"
      "<p class=\"told\">{7}</p>\n",
      name_of(card.badge), id, escape_markup(card.paper), escape_markup(card.topic),
      escape_markup(card.where), level, escape_markup(card.sentence), badge_html(card.badge, card.verdict));
  html += "</div>\n";
  if (const std::string pictures = readings_html(card.readings); !pictures.empty())
    html += fmt::format(
        "<div class=\"readings\">{}{}</div>\n", pictures,
        card.note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", escape_markup(card.note)));
  if (!card.facts.empty()) {
    html += "<dl>\n";
    for (const Card::Fact& fact : card.facts)
      html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_markup(fact.name),
                          escape_markup(fact.words));
    html += "</dl>\n";
  }
  html +=
      paragraph("why", "Why", card.why) + paragraph("change", "What would change this verdict", card.change);
  return html + std::string(inside) + "</article>\n";
}

std::string bar_html(std::span<const Card> cards) {
  std::string bar, words;
  double left = 0;
  for (const Badge badge : kBadges) {
    const auto count =
        std::count_if(cards.begin(), cards.end(), [&](const Card& card) { return card.badge == badge; });
    if (count == 0) continue;
    const double width = 100 * static_cast<double>(count) / static_cast<double>(cards.size());
    bar += fmt::format(
        "<g class=\"{}\"><rect x=\"{:.3f}%\" width=\"{:.3f}%\" height=\"100%\"/><text x=\"{:.3f}%\" "
        "y=\"50%\" dy=\".36em\" text-anchor=\"middle\">{}</text></g>",
        name_of(badge), left, width, left + width / 2, count);
    words += fmt::format("<li>{}<b>{}</b></li>", badge_html(badge), count);
    left += width;
  }
  if (bar.empty()) return "";
  return fmt::format(
      "<svg class=\"bar\" width=\"100%\" height=\"40\" aria-hidden=\"true\">{}</svg>\n<ul class=\"counts\">{}</ul>\n",
      bar, words);
}

std::string scorecard_html(const Scorecard& score, std::string_view verdict, std::string_view paragraphs) {
  std::string html = "<section class=\"score\" id=\"scorecard\" aria-label=\"Scorecard\">\n";
  html += fmt::format("<p class=\"sum\">{}</p>\n", escape_markup(verdict)) + bar_html(score.cards);
  if (!score.caveat.empty())
    html += fmt::format("<details class=\"caveats\"><summary>{}</summary>\n<div>\n{}</div></details>\n",
                        escape_markup(score.caveat), paragraphs);
  html += "<div class=\"papers\">\n";
  for (const Scorecard::Paper& paper : score.papers) {
    html += fmt::format("<div class=\"paper-score\">\n<h2>{}</h2>\n<p>{}</p>\n<ul class=\"tiles\">\n",
                        escape_markup(paper.title), escape_markup(paper.sentence));
    for (const Card& card : score.cards) {
      if (card.paper != paper.name) continue;
      html += fmt::format(
          "<li><a class=\"tile {}\" href=\"#{}\" title=\"{}\"><span class=\"letter\" aria-hidden=\"true\">{}</span>"
          "<span class=\"where\">{}</span><span class=\"word\">{}</span></a></li>\n",
          name_of(card.badge), escape_markup(card.id), escape_markup(card.sentence), letter_of(card.badge),
          escape_markup(card.where), word_of(card.badge));
    }
    html += "</ul>\n</div>\n";
  }
  return html + "</div>\n" + (score.caveat.empty() ? std::string(paragraphs) : "") + "</section>\n";
}

std::string filters_html(const Scorecard& score) {
  const auto group = [](const char* name, const char* kind, const std::string& buttons) {
    return fmt::format("<fieldset data-filter=\"{}\"><legend>{}</legend>{}</fieldset>\n", kind, name,
                       buttons);
  };
  const auto button = [](std::string_view value, std::string_view markup) {
    return fmt::format("<button type=\"button\" aria-pressed=\"false\" value=\"{}\">{}</button>",
                       escape_markup(value), markup);
  };
  std::string papers, verdicts, topics;
  for (const Scorecard::Paper& paper : score.papers) papers += button(paper.name, escape_markup(paper.title));
  for (const Badge badge : kBadges) {
    if (std::any_of(score.cards.begin(), score.cards.end(),
                    [&](const Card& card) { return card.badge == badge; }))
      verdicts += button(name_of(badge), badge_html(badge));
  }
  std::vector<std::string> known;
  for (const Card& card : score.cards) {
    if (card.topic.empty() || std::find(known.begin(), known.end(), card.topic) != known.end()) continue;
    known.push_back(card.topic);
    topics += button(card.topic, escape_markup(card.topic));
  }
  return "<form class=\"filters\" aria-label=\"Choose claims\">\n" + group("Paper", "paper", papers) +
         group("Verdict", "verdict", verdicts) + (topics.empty() ? "" : group("Topic", "topic", topics)) +
         fmt::format(
             "<p class=\"shown\"><output>All {} claims</output> <button type=\"reset\" hidden>Show all</button></p>"
             "\n</form>\n",
             score.cards.size());
}

}  // namespace normscope
