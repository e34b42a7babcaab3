// One page, one file. Nothing is fetched: style, script, figures and data are inside, and the page's own
// security policy forbids anything else.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/utf8.h"
#include "normscope/error.h"
#include "page_files.h"
#include "report/carded_page.h"

namespace normscope {
namespace {

constexpr std::string_view kBeginning =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"generator\" content=\"normscope\">\n";
constexpr std::size_t kMostWithoutContents = 3;     // figures
constexpr std::size_t kMostListedWithFigures = 12;  // sections
// How a card's picture is read.
constexpr const char* kLegend =
    "<p class=\"legend\"><span class=\"key-value\"></span> measured, with its interval "
    "<span class=\"key-published\"></span> published <span class=\"key-threshold\"></span> threshold; the shaded side is "
    "where the sentence holds</p>\n";

// JSON inside <script>: "<", ">" and "&" occur only in its strings, where an escape means the same.
std::string escape_json(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      safe += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// A file name a stranger's title cannot steer: letters, digits, "-" and "_".
std::string file_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    const bool kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    plain += kept ? c : '-';
  }
  return plain.empty() ? "figure" : plain;
}

// Names of places in the page, each once.
class Ids {
 public:
  std::string add(std::string_view name) {
    std::string id = file_name(name);
    for (std::size_t n = 2; !taken_.insert(id).second; ++n) id = fmt::format("{}-{}", file_name(name), n);
    return id;
  }

 private:
  std::set<std::string> taken_ = {"confounds", "data",      "hint",
                                  "live",      "scorecard", "theme"};  // the page's own
};

// The number of an attribute of the picture's first element, as it is written there.
std::string length_of(const std::string& svg, std::string_view name) {
  const std::string attribute = fmt::format(" {}=\"", name);
  const std::size_t end = svg.find('>'), at = svg.find(attribute);
  if (at == std::string::npos || at > end) return "";
  const std::size_t begin = at + attribute.size(), close = svg.find('"', begin);
  const std::string value = svg.substr(begin, close - begin);
  return value.find_first_not_of("0123456789.") == std::string::npos ? value : "";
}

// The picture under its name, for those who do not see it; not wider than drawn, and readable on a telephone.
std::string labelled(const std::string& svg, const std::string& id) {
  if (!svg.starts_with("<svg ")) return svg;
  const std::string width = length_of(svg, "width");
  return fmt::format("<svg role=\"img\" aria-labelledby=\"{0}-title\"{1} {2}", id,
                     width.empty() ? "" : fmt::format(" style=\"--width:{}px\"", width), svg.substr(5));
}

// Opens a box for what may be wider than the screen; the arrow keys move what is in it.
std::string scrolling(const std::string& name) {
  return fmt::format("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">",
                     escape_markup(name));
}

// level: of the heading
std::string render(const Figure& figure, const std::string& id, int level) {
  std::string html = fmt::format(
      "<figure id=\"{0}\"{1} aria-labelledby=\"{0}-title\">\n<h{2} id=\"{0}-title\">{3}</h{2}>\n", id,
      figure.html.empty() ? "" : " class=\"text-figure\"", level, escape_markup(figure.title));
  html += figure.html.empty() ? scrolling(figure.title) + labelled(figure.svg, id) + "</div>\n" : figure.html;
  html += "<div class=\"tools\">";
  const auto button = [&](const char* kind, const char* words, const char* more = "") {
    html += fmt::format("<button type=\"button\" data-kind=\"{}\"{}>{}</button>", kind, more, words);
  };
  if (!figure.csv.empty()) button("table", "Data as table", " aria-expanded=\"false\"");
  if (!figure.svg.empty()) button("svg", "Download SVG");
  if (!figure.csv.empty()) {
    button("csv", "Download CSV");
    html +=
        fmt::format("<script type=\"application/json\">{}</script>", escape_json(json_string(figure.csv)));
  }
  html += "</div>\n";
  if (!figure.caption.empty())
    html += fmt::format("<figcaption>{}</figcaption>\n", escape_markup(figure.caption));
  if (!figure.settings.empty())
    html += fmt::format("<p class=\"settings\">{}</p>\n", escape_markup(figure.settings));
  return html + "</figure>\n";
}

// A sentence in which "12 (> 99.9 %)" stays on one line.
std::string unbroken(std::string_view sentence) {
  constexpr std::string_view digits = "0123456789";
  std::string text;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    const char before = i > 0 ? sentence[i - 1] : ' ',
               after = i + 1 < sentence.size() ? sentence[i + 1] : ' ';
    const bool number = digits.find(before) != std::string_view::npos;
    const bool kept = (number && (after == '%' || (after == '(' && i + 2 < sentence.size() &&
                                                   std::string_view("0123456789<>").find(sentence[i + 2]) !=
                                                       std::string_view::npos))) ||
                      ((before == '<' || before == '>') && digits.find(after) != std::string_view::npos);
    text += sentence[i] == ' ' && kept ? "\u00a0" : std::string(1, sentence[i]);
  }
  return escape_markup(text);
}

// "12", "0.5 ± 0.1", "3 (0.4 %)": is not broken into lines.
bool is_number(std::string_view cell) {
  constexpr std::size_t longest = 40;
  return cell.size() <= longest && cell.find_first_of("0123456789") != std::string_view::npos &&
         cell.find_first_not_of("0123456789.,+-eE%<>() ±–×°") == std::string_view::npos;
}

std::string render(const ReportTable& table, int level, const std::string& id = "") {
  std::string html =
      fmt::format("<section{0}>\n<h{1}>{2}</h{1}>\n", id.empty() ? "" : fmt::format(" id=\"{}\"", id), level,
                  escape_markup(table.title));
  if (!table.note.empty()) html += fmt::format("<p>{}</p>\n", unbroken(table.note));
  html += scrolling(table.title) + "<table>\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    html += "<tr>";
    for (const std::string& cell : table.rows[row]) {
      html += row == 0 ? fmt::format("<th scope=\"col\">{}</th>", escape_markup(cell))
                       : fmt::format("<td{}>{}</td>", is_number(cell) ? " class=\"number\"" : "",
                                     escape_markup(cell));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n</section>\n";
}

// A relative path as the address of a link: other characters than these are escaped, and "./" in front keeps
// a name with a colon from being a scheme.
std::string address(std::string_view path) {
  std::string safe = path.starts_with('/') ? "" : "./";
  for (const char c : path) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.' || c == '/';
    safe += kept ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return safe;
}

std::string sentences(const std::string& verdict, const std::vector<std::string>& paragraphs) {
  std::string html;
  if (!verdict.empty()) html += fmt::format("<p class=\"verdict\">{}</p>\n", unbroken(verdict));
  for (const std::string& paragraph : paragraphs)
    html += fmt::format("<p>{}</p>\n", escape_markup(paragraph));
  return html;
}

// Length of the character that begins here, 0 if it is not one (or not one XML allows).
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 && first != '\n' && first != '\t' && first != '\r') return 0;
  const Utf8Sequence sequence = first_sequence(text);
  return sequence.valid ? sequence.size : 0;
}

// What is in a page, and the list of it, which grows as it is written.
class Writer {
 public:
  explicit Writer(const CardedPage& page) : page_(page) {
    for (const Card& card : page.score.cards) {
      const auto takes = [&](const std::string& name) { in_cards_.insert(name); };
      std::for_each(card.figures.begin(), card.figures.end(), takes);
    }
  }

  std::string body() {
    std::string html = cards();
    if (!page_.claims.rows.empty()) html += render(page_.claims, 2);
    for (const ReportTable& table : page_.above) html += render(table, 2);
    std::string others;
    for (const Figure& figure : page_.figures) {
      if (!in_cards_.contains(figure.name)) others += shown(figure, 2);
    }
    html += others + confounds();
    for (const ReportTable& table : page_.tables) {
      // Among many claims a table is looked for by its name.
      const std::string id = page_.score.papers.empty() ? "" : ids_.add("table-" + table.title);
      if (!id.empty()) entry(id, table.title);
      html += render(table, 2, id);
    }
    for (std::size_t i = 0; i < page_.sections.size(); ++i)
      html += shown(page_.sections[i],
                    i < page_.section_cards.size() ? page_.section_cards[i] : std::vector<Card>());
    return html;
  }

  std::string contents() const {
    const bool short_page =
        page_.figures.size() <= kMostWithoutContents && page_.sections.empty() && page_.score.papers.empty();
    if (short_page) return "";
    return "<nav class=\"contents\" aria-label=\"Contents\">\n<h2>Contents</h2>\n<ul>\n" + contents_ +
           "</ul>\n</nav>\n";
  }

 private:
  void entry(const std::string& id, const std::string& title, const std::string& inner = "",
             const std::string& before = "") {
    contents_ +=
        fmt::format("<li>{}<a href=\"#{}\">{}</a>{}</li>\n", before, id, escape_markup(title), inner);
  }

  std::string shown(const Figure& figure, int level) {
    const std::string id = ids_.add(figure.name);
    entry(id, figure.title);
    return render(figure, id, level);
  }

  std::string shown(const PageSection& section, const std::vector<Card>& cards) {
    const std::string id = ids_.add("run-" + section.title);
    std::string inner, html = fmt::format("<section class=\"run\" id=\"{}\">\n<h2>{}</h2>\n", id,
                                          escape_markup(section.title)) +
                              sentences(section.verdict, section.paragraphs);
    if (!section.link.empty())
      html += fmt::format("<p><a href=\"{}\">The run's own report</a></p>\n", address(section.link));
    if (cards.size() > 1) html += bar_html(cards);
    for (Card card : cards) {
      card.id = ids_.add(card.id);
      html += card_html(card, 3);
    }
    if (!section.claims.rows.empty()) html += render(section.claims, 3);
    for (const Figure& figure : section.figures) {
      const std::string figure_id = ids_.add(figure.name);
      inner += fmt::format("<li><a href=\"#{}\">{}</a></li>", figure_id, escape_markup(figure.title));
      html += render(figure, figure_id, 3);
    }
    for (const ReportTable& table : section.tables) html += render(table, 3);
    const bool brief = inner.empty() || page_.sections.size() > kMostListedWithFigures;
    entry(id, section.title, brief ? "" : "<ul>" + inner + "</ul>");
    return html + "</section>\n";
  }

  const Figure* figure_of(const std::string& name) const {
    const auto found = std::find_if(page_.figures.begin(), page_.figures.end(),
                                    [&](const Figure& figure) { return figure.name == name; });
    return found == page_.figures.end() ? nullptr : &*found;
  }

  // The figures of a card: those that no card before it has; to the others a link, in whose place the script puts the
  // figure itself.
  std::string figures_of(const Card& card, int level) {
    std::string html;
    for (const std::string& name : card.figures) {
      const Figure* figure = figure_of(name);
      if (figure == nullptr) continue;
      const auto known = shown_.find(name);
      if (known == shown_.end()) {
        const std::string id = shown_[name] = ids_.add(name);
        html += render(*figure, id, level);
      } else {
        html += fmt::format("<a class=\"see\" href=\"#{}\">Figure: {}</a>\n", known->second,
                            escape_markup(figure->title));
      }
    }
    return html;
  }

  std::string listed(const Card& card) const {
    return fmt::format(
        "<li data-card=\"{0}\"><a href=\"#{0}\"><span class=\"letter {1}\" aria-hidden=\"true\">{3}</span>"
        "<span class=\"unseen\">{2}: </span>{4}: {5}</a></li>\n",
        escape_markup(card.id), name_of(card.badge), word_of(card.badge), letter_of(card.badge),
        escape_markup(card.where), escape_markup(card.sentence));
  }

  std::string cards() {
    const Scorecard& score = page_.score;
    std::string html;
    if (score.papers.empty()) {
      if (score.cards.size() > 1) html += bar_html(score.cards);
      for (Card card : score.cards) {
        card.id = ids_.add(card.id);
        html += card_html(card, 2, figures_of(card, 3));
      }
      return html;
    }
    entry("scorecard", "Scorecard");
    html += filters_html(score) + kLegend;
    for (const Scorecard::Paper& paper : score.papers) {
      const std::string id = ids_.add("paper-" + paper.name);
      std::string inner;
      html +=
          fmt::format("<section class=\"cards\" id=\"{}\">\n<h2>{}</h2>\n", id, escape_markup(paper.title));
      for (const Card& card : score.cards) {
        if (card.paper != paper.name) continue;
        ids_.add(card.id);
        inner += listed(card);
        html += card_html(card, 3, figures_of(card, 4));
      }
      html += "</section>\n";
      entry(id, paper.title, "<ul>\n" + inner + "</ul>");
    }
    return html;
  }

  // Cards that a confound bears on.
  std::string touched(const Confound& confound) const {
    std::string html;
    for (const Card& card : page_.score.cards) {
      if (std::find(card.confounds.begin(), card.confounds.end(), confound.name) == card.confounds.end())
        continue;
      html += fmt::format("<li>{}<a href=\"#{}\">{}: {}</a></li>\n", badge_html(card.badge),
                          escape_markup(card.id), escape_markup(card.where), escape_markup(card.sentence));
    }
    return html.empty() ? "" : "<ul class=\"touched\">\n" + html + "</ul>\n";
  }

  std::string confounds() {
    if (page_.confounds.empty()) return "";
    const char* title = "What the papers did not separate";
    std::string inner,
        html = fmt::format("<section class=\"confounds\" id=\"confounds\">\n<h2>{}</h2>\n<p>{}</p>\n", title,
                           escape_markup(page_.unseparated));
    for (const Confound& confound : page_.confounds) {
      const std::string id = ids_.add("confound-" + confound.name);
      inner += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id, escape_markup(confound.title));
      html += fmt::format(
          "<section class=\"confound\" id=\"{0}\">\n<h3>{1}</h3>\n<p>{2}</p>\n<div class=\"pair\">\n", id,
          escape_markup(confound.title), escape_markup(confound.sentence));
      for (const Figure& figure : confound.readings) html += render(figure, ids_.add(figure.name), 4);
      html += "</div>\n" + touched(confound) + "</section>\n";
    }
    entry("confounds", title, "<ul>\n" + inner + "</ul>");
    return html + "</section>\n";
  }

  const CardedPage& page_;
  Ids ids_;
  std::set<std::string> in_cards_;
  std::map<std::string, std::string> shown_;  // ids of figures by name
  std::string contents_;
};

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    switch (text.front()) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += length > 0 ? text.substr(0, length) : "\xEF\xBF\xBD";
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return safe;
}

bool is_report_of_ours(std::string_view html) {
  return html.starts_with(kBeginning);
}

std::string render_html(const Page& page) {
  return render_html(CardedPage{page});
}

std::string render_html(const CardedPage& page) {
  if (!page.data.empty() && !nlohmann::json::accept(page.data)) {
    throw Error(fmt::format("The data of the page '{}' is not JSON.", page.title));
  }
  Writer writer(page);
  const std::string body = writer.body(), contents = writer.contents();
  const std::string title = escape_markup(page.title);
  std::string html =
      std::string(kBeginning) +
      fmt::format(
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<title>{0}</title>\n<style>{1}{2}</style>\n</head>\n<body{3}>\n<header>\n<h1>{0}</h1>\n"
          "<button type=\"button\" id=\"theme\">Theme: auto</button>\n</header>\n<main>\n",
          title, embedded::page_css, embedded::cards_css, contents.empty() ? "" : " class=\"with-contents\"");
  html += page.score.papers.empty()
              ? sentences(page.verdict, page.paragraphs)
              : scorecard_html(page.score, page.verdict, sentences("", page.paragraphs));
  html += fmt::format("{}<div class=\"body\">\n{}</div>\n", contents, body);
  html += fmt::format(
      "</main>\n<footer>{}</footer>\n<div id=\"hint\" hidden></div>\n"
      "<div id=\"live\" class=\"unseen\" aria-live=\"polite\"></div>\n",
      escape_markup(page.footer));
  if (!page.data.empty()) {
    html +=
        fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", escape_json(page.data));
  }
  html += "<script>";
  html += embedded::page_js;
  return html + "</script>\n</body>\n</html>\n";
}

std::string settings_text(const Provenance& provenance, std::string_view settings) {
  return fmt::format("{}{}seed {} · normscope {} ({}, {}, {} thread{})", settings,
                     settings.empty() ? "" : " · ", provenance.seed, provenance.version, provenance.commit,
                     provenance.isa, provenance.threads, provenance.threads == 1 ? "" : "s");
}

}  // namespace normscope
