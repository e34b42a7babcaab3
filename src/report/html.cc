// One page, one file. Nothing is fetched: style, script, figures and data are inside, and the page's own
// security policy forbids anything else.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "normscope/error.h"
#include "normscope/report.h"

namespace normscope {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c1e21; --faint: #5d636b; --line: #d5d9de; --ground: #ffffff;
  --panel: #f5f6f8; --accent: #2c728e; --zero: #dddddd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --faint: #a2a9b2; --line: #3b4048; --ground: #15171a;
  --panel: #1f2226; --accent: #5fb4d3; --zero: #3d4147; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 3rem; max-width: 76rem; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 0 0 .6rem; }
p { max-width: 48rem; margin: 0 0 .9rem; }
.verdict { border-left: .3rem solid var(--accent); background: var(--panel); padding: .7rem 1rem; max-width: 48rem;
  font-weight: 600; }
figure, section { margin: 2rem 0 0; }
figure svg { display: block; max-width: 100%; height: auto; color: var(--ink); }
figure svg .paper { fill: none; }
figure svg .zero { fill: var(--zero); }
@media (prefers-color-scheme: dark) { figure svg [stroke="#0072b2"] { stroke: #2b87d1; }
  figure svg [fill="#0072b2"] { fill: #2b87d1; } }
figure svg .point:hover { stroke: var(--ink); stroke-width: 1.5px; }
figcaption { color: var(--faint); font-size: .9rem; max-width: 48rem; margin-top: .5rem; }
button { font: inherit; font-size: .85rem; color: var(--accent); background: none; border: 1px solid var(--line);
  border-radius: .3rem; padding: .2rem .7rem; margin: .5rem .5rem 0 0; cursor: pointer; }
button:hover, button:focus-visible { background: var(--panel); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; }
footer { margin-top: 2.5rem; color: var(--faint); font-size: .85rem; }
#hint { position: fixed; pointer-events: none; background: var(--ink); color: var(--ground); padding: .2rem .55rem;
  border-radius: .25rem; font-size: .85rem; white-space: pre; z-index: 1; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } button, #hint { display: none; }
  figure, section { break-inside: avoid; } }
)";

// Hints are <title> elements in the file, so they also work where scripts do not; here they are shown at
// once.
constexpr std::string_view kScript = R"(
const hint = document.getElementById('hint');
for (const title of document.querySelectorAll('figure svg * > title')) {
  title.parentNode.dataset.hint = title.textContent;
  title.remove();
}
for (const figure of document.querySelectorAll('figure')) {
  const svg = figure.querySelector('svg');
  if (svg) {
    svg.addEventListener('pointermove', event => {
      const text = event.target.dataset.hint;
      hint.hidden = !text;
      if (!text) return;
      hint.textContent = text;
      const right = event.clientX + 14 + hint.offsetWidth > innerWidth;
      hint.style.left = (right ? event.clientX - 14 - hint.offsetWidth : event.clientX + 14) + 'px';
      hint.style.top = event.clientY + 14 + 'px';
    });
    svg.addEventListener('pointerleave', () => { hint.hidden = true; });
  }
  for (const button of figure.querySelectorAll('button')) {
    button.addEventListener('click', () => {
      const isSvg = button.dataset.kind === 'svg';
      save(figure.id + '.' + button.dataset.kind, isSvg ? standalone(svg) : JSON.parse(
        figure.querySelector('script').textContent), isSvg ? 'image/svg+xml' : 'text/csv');
    });
  }
}
function standalone(svg) {
  const copy = svg.cloneNode(true);
  for (const cell of copy.querySelectorAll('[data-hint]')) {
    const title = document.createElementNS('http://www.w3.org/2000/svg', 'title');
    title.textContent = cell.dataset.hint;
    cell.append(title);
    delete cell.dataset.hint;
  }
  return new XMLSerializer().serializeToString(copy);
}
function save(name, text, type) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
)";

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

std::string render(const Figure& figure) {
  std::string html = fmt::format("<figure id=\"{}\">\n<h2>{}</h2>\n<div class=\"wide\">{}</div>\n",
                                 file_name(figure.name), escape_markup(figure.title), figure.svg);
  if (!figure.caption.empty())
    html += fmt::format("<figcaption>{}</figcaption>\n", escape_markup(figure.caption));
  if (!figure.svg.empty()) html += "<button type=\"button\" data-kind=\"svg\">Download SVG</button>";
  if (!figure.csv.empty()) {
    html += fmt::format(
        "<button type=\"button\" data-kind=\"csv\">Download CSV</button>"
        "<script type=\"application/json\">{}</script>",
        escape_json(json_string(figure.csv)));
  }
  return html + "\n</figure>\n";
}

std::string render(const ReportTable& table) {
  std::string html =
      fmt::format("<section>\n<h2>{}</h2>\n<div class=\"wide\"><table>\n", escape_markup(table.title));
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

// Length of the UTF-8 sequence that begins here, 0 if it is not one (or not a character XML allows).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\t' || first == '\r';
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool too_large = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
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
  const std::string title = escape_markup(page.title);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
      title, kStyle, title);
  if (!page.verdict.empty())
    html += fmt::format("<p class=\"verdict\">{}</p>\n", escape_markup(page.verdict));
  for (const std::string& paragraph : page.paragraphs)
    html += fmt::format("<p>{}</p>\n", escape_markup(paragraph));
  if (!page.claims.rows.empty()) html += render(page.claims);
  for (const Figure& figure : page.figures) html += render(figure);
  for (const ReportTable& table : page.tables) html += render(table);
  html += fmt::format("<footer>{}</footer>\n<div id=\"hint\" hidden></div>\n", escape_markup(page.footer));
  if (!page.data.empty()) {
    html +=
        fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", escape_json(page.data));
  }
  return html + fmt::format("<script>{}</script>\n</body>\n</html>\n", kScript);
}

}  // namespace normscope
