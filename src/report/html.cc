// One page, one file. Nothing is fetched: style, script, figures and data are inside, and the page's own
// security policy forbids anything else.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/utf8.h"
#include "normscope/error.h"
#include "page_files.h"
#include "report/page.h"

namespace normscope {
namespace {

constexpr std::size_t kMostWithoutContents = 3;     // figures
constexpr std::size_t kMostListedWithFigures = 12;  // sections

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
  std::set<std::string> taken_ = {"data", "hint", "live", "theme"};  // the page's own
};

// The picture under its name, for those who do not see it; not wider than drawn, and readable on a telephone.
std::string labelled(const std::string& svg, const std::string& id) {
  if (!svg.starts_with("<svg ")) return svg;
  const std::size_t at = svg.find(" width=\"");
  const std::string width = at == std::string::npos ? "" : svg.substr(at + 8, svg.find('"', at + 8) - at - 8);
  return fmt::format("<svg role=\"img\" aria-labelledby=\"{}-title\"{} {}", id,
                     width.empty() ? "" : fmt::format(" style=\"--width:{}px\"", width), svg.substr(5));
}

// level: of the heading
std::string render(const Figure& figure, const std::string& id, int level) {
  std::string html = fmt::format(
      "<figure id=\"{0}\"{1} aria-labelledby=\"{0}-title\">\n<h{2} id=\"{0}-title\">{3}</h{2}>\n", id,
      figure.html.empty() ? "" : " class=\"text-figure\"", level, escape_markup(figure.title));
  html += figure.html.empty() ? fmt::format("<div class=\"wide\">{}</div>\n", labelled(figure.svg, id))
                              : figure.html;
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

std::string render(const ReportTable& table, int level) {
  std::string html = fmt::format("<section>\n<h{0}>{1}</h{0}>\n<div class=\"wide\"><table>\n", level,
                                 escape_markup(table.title));
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    html += "<tr>";
    for (const std::string& cell : table.rows[row]) {
      html += row == 0 ? fmt::format("<th scope=\"col\">{}</th>", escape_markup(cell))
                       : fmt::format("<td>{}</td>", escape_markup(cell));
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
  if (!verdict.empty()) html += fmt::format("<p class=\"verdict\">{}</p>\n", escape_markup(verdict));
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

std::string render_html(const Page& page) {
  if (!page.data.empty() && !nlohmann::json::accept(page.data)) {
    throw Error(fmt::format("The data of the page '{}' is not JSON.", page.title));
  }
  Ids ids;
  std::string body, contents;
  const auto entry = [&](const std::string& id, const std::string& title, const std::string& inner = "") {
    contents += fmt::format("<li><a href=\"#{}\">{}</a>{}</li>\n", id, escape_markup(title), inner);
  };
  if (!page.claims.rows.empty()) body += render(page.claims, 2);
  for (const Figure& figure : page.figures) {
    const std::string id = ids.add(figure.name);
    entry(id, figure.title);
    body += render(figure, id, 2);
  }
  for (const ReportTable& table : page.tables) body += render(table, 2);
  for (const PageSection& section : page.sections) {
    const std::string id = ids.add("run-" + section.title);
    std::string inner;
    body +=
        fmt::format("<section class=\"run\" id=\"{}\">\n<h2>{}</h2>\n", id, escape_markup(section.title)) +
        sentences(section.verdict, section.paragraphs);
    if (!section.link.empty()) {
      body += fmt::format("<p><a href=\"{}\">The run's own report</a></p>\n", address(section.link));
    }
    if (!section.claims.rows.empty()) body += render(section.claims, 3);
    for (const Figure& figure : section.figures) {
      const std::string figure_id = ids.add(figure.name);
      inner += fmt::format("<li><a href=\"#{}\">{}</a></li>", figure_id, escape_markup(figure.title));
      body += render(figure, figure_id, 3);
    }
    for (const ReportTable& table : section.tables) body += render(table, 3);
    body += "</section>\n";
    const bool brief = inner.empty() || page.sections.size() > kMostListedWithFigures;
    entry(id, section.title, brief ? "" : "<ul>" + inner + "</ul>");
  }
  if (page.figures.size() > kMostWithoutContents || !page.sections.empty()) {
    contents = "<nav aria-label=\"Contents\">\n<h2>Contents</h2>\n<ul>\n" + contents + "</ul>\n</nav>\n";
  } else {
    contents.clear();
  }
  const std::string title = escape_markup(page.title);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n"
      "<button type=\"button\" id=\"theme\">Theme: auto</button>\n</header>\n<main>\n",
      title, embedded::page_css);
  html += sentences(page.verdict, page.paragraphs) + contents + body;
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
