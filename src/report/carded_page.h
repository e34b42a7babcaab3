#pragma once
// Pages of cards: a score of them at the top, each with its figure, and what could be read in two ways.
#include <utility>

#include "report/card.h"
#include "report/page.h"

namespace normscope {

// The claims of papers, and what they come to.
struct Scorecard {
  struct Paper {
    std::string name, title, sentence;  // name: as cards have it
  };
  std::vector<Paper> papers = {};  // none: the cards alone are shown
  std::vector<Card> cards = {};
  std::string caveat =
      {};  // "Reduced run": what the paragraphs of the page are folded under; empty: they are not
};

// Two readings of one thing, side by side; figures of a study that are named so belong to the confound NAME of
// confound-NAME-….
inline constexpr std::string_view kConfoundFigure = "confound-";
struct Confound {
  std::string name;  // as cards have it
  std::string title, sentence;
  std::vector<Figure> readings = {};
};

// A figure that a card names stands in the first card that does.
struct CardedPage : Page {
  CardedPage(Page page = {}) : Page(std::move(page)) {}

  Scorecard score = {};
  std::vector<Confound> confounds = {};
  std::string unseparated = {};  // a sentence above them
  std::vector<std::vector<Card>> section_cards =
      {};  // of the page's sections, in order, as far as they have any
};
std::string render_html(const CardedPage& page);

// Markup of the first screen, the paragraphs folded in; and of the buttons that choose among the cards.
std::string scorecard_html(const Scorecard& score, std::string_view verdict, std::string_view paragraphs);
std::string filters_html(const Scorecard& score);

}  // namespace normscope
