#include "serve/pages.h"

#include <fmt/core.h>

#include <ctime>

#include "normscope/error.h"
#include "report/page.h"
#include "report/result_cards.h"
#include "report/runs_page.h"
#include "serve/request.h"

namespace normscope::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestResults = 4 << 20, kMostFiles = 200, kMostUnfolded = 12;
constexpr std::size_t kMostOptions = 200;

std::string local_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  char text[32] = "";
  if (::localtime_r(&time, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string file_size(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string root_name(const fs::path& root) {
  const std::string name = root.filename().string();
  return name.empty() ? root.string() : name;
}

// What a run is called: its path below the root, with the root before it if there are several.
std::string run_name(const std::vector<fs::path>& roots, const Run& run) {
  std::string name = roots.size() > 1 || run.names.empty() ? root_name(roots[run.root]) : "";
  for (const std::string& part : run.names) name += (name.empty() ? "" : "/") + part;
  return name;
}

std::string state_badge(State state) {
  std::string_view why;
  switch (state) {
    case State::running:
      why = "a process is writing it";
      break;
    case State::finished:
      why = "results.json is there";
      break;
    case State::stopped:
      why = "it has a log but no results, and nobody writes it; --resume goes on with it";
      break;
    case State::unfinished:
      why = "it has no results yet, and no log that tells whether it still runs";
      break;
  }
  return fmt::format("<span class=\"state {}\" title=\"{}\">{}</span>", word(state), why, word(state));
}

std::string shell(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<link rel=\"icon\" href=\"/assets/icon.svg\">\n<link rel=\"stylesheet\" href=\"/assets/style.css\">\n"
      "<link rel=\"stylesheet\" href=\"/assets/cards.css\">\n"
      "<script src=\"/assets/live.js\" defer></script>\n</head>\n<body>\n"
      "<header><a class=\"home\" href=\"/\">Normscope</a><nav><a href=\"/\">Runs</a>"
      "<a href=\"/page/\">Try it in the browser</a></nav></header>\n"
      "<main>\n{}</main>\n</body>\n</html>\n",
      escape_markup(title), body);
}

std::string settings_text(const Run& run) {
  std::string html;
  for (const auto& [name, value] : run.settings) {
    html += fmt::format("<span class=\"setting\"><span class=\"key\">{}</span> {}</span> ",
                        escape_markup(spaced(name)), escape_markup(value));
  }
  return html;
}

std::string run_rows(const std::vector<fs::path>& roots, const std::vector<Run>& runs) {
  std::string html;
  for (const Run& run : runs) {
    html += fmt::format(
        "<tr><td class=\"name\"><a href=\"{}\">{}</a></td><td>{}</td><td>{}</td>"
        "<td class=\"time\">{}</td><td>{}</td></tr>\n",
        run_address(run.root, run.names), escape_markup(run_name(roots, run)), escape_markup(run.command),
        state_badge(run.state), local_time(run.begun), settings_text(run));
  }
  return html;
}

std::string run_table(const std::vector<fs::path>& roots, const std::vector<Run>& runs) {
  return "<table class=\"runs\">\n<thead><tr><th scope=\"col\">run</th><th scope=\"col\">command</th>"
         "<th scope=\"col\">state</th><th scope=\"col\">begun</th><th "
         "scope=\"col\">settings</th></tr></thead>\n"
         "<tbody>\n" +
         run_rows(roots, runs) + "</tbody>\n</table>\n";
}

std::string scope_row(std::string_view name, std::string_view value) {
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape_markup(name),
                     escape_markup(value));
}

std::string report_table(const ReportTable& table) {
  if (table.rows.size() < 2) return "";
  std::string html = fmt::format("<section><h2>{}</h2>\n", escape_markup(table.title));
  if (!table.note.empty()) html += fmt::format("<p>{}</p>\n", escape_markup(table.note));
  const bool folded = table.rows.size() > kMostUnfolded && table.title != "Claims";
  if (folded) html += fmt::format("<details><summary>{} rows</summary>\n", table.rows.size() - 1);
  html += "<div class=\"wide\"><table>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    html += "<tr>";
    for (const std::string& cell : table.rows[r])
      html += (r == 0 ? "<th scope=\"col\">" : "<td>") + escape_markup(cell) + (r == 0 ? "</th>" : "</td>");
    html += "</tr>\n";
  }
  return html + (folded ? "</table></div>\n</details></section>\n" : "</table></div>\n</section>\n");
}

std::string verdict_part(const std::string& verdict) {
  return verdict.empty() ? "" : fmt::format("<p class=\"verdict\">{}</p>\n", escape_markup(verdict));
}

// As in the run's report, but for the figures.
std::string cards_part(const std::vector<Card>& cards) {
  if (cards.empty()) return "";
  std::string html = "<section>\n" + (cards.size() > 1 ? bar_html(cards) : "");
  for (const Card& card : cards) html += card_html(card, 2);
  return html + "</section>\n";
}

// The verdict and the claims, then the pictures, then the rest.
std::string results_part(const Folder& folder, const Run& run, const std::string& pictures) {
  const auto file = folder.file("results.json");
  if (!file) return pictures;
  if (file->size > kLargestResults) {
    return pictures +
           fmt::format(
               "<p class=\"faint\">results.json has {}, too much to be shown here; it is among the files "
               "below.</p>\n",
               file_size(file->size));
  }
  const auto results = parse_json(file->read(0, kLargestResults));
  if (!results || !results->is_object())
    return pictures + "<p class=\"faint\">results.json cannot be read: it is not a JSON object.</p>\n";
  try {
    const RunView view = results_view(run.command, *results, run_config(folder).value_or(Json()));
    std::string tables;
    for (const ReportTable& table : view.section.tables) tables += report_table(table);
    return verdict_part(view.section.verdict) + cards_part(results_cards(run.command, *results)) +
           report_table(view.section.claims) + pictures + tables;
  } catch (const InputError& error) {
    return pictures + fmt::format("<p class=\"faint\">results.json cannot be shown: {}</p>\n",
                                  escape_markup(error.what()));
  }
}

void add_option_rows(std::string& html, std::size_t& rows, const Json& options) {
  for (const auto& [name, value] : options.items()) {
    if (rows++ >= kMostOptions) return;
    if (value.is_object()) {
      add_option_rows(html, rows, value);
    } else {
      html += scope_row(spaced(name), setting_text(name, value));
    }
  }
}

std::string config_part(const Json& config) {
  std::string html = "<section><h2>Settings</h2>\n<div class=\"wide\"><table class=\"settings\">\n";
  std::size_t rows = 0;
  for (const auto& [name, value] : config.items()) {
    if (name == "program") continue;
    if (name == "options" && value.is_object()) {
      add_option_rows(html, rows, value);
    } else if (rows++ < kMostOptions) {
      html += scope_row(spaced(name), brief(value));
    }
  }
  return html + "</table></div>\n</section>\n";
}

struct FilesPart {
  std::string list, pictures;
  bool report = false, log = false;
};

FilesPart files_part(const Folder& folder) {
  FilesPart part;
  std::string rows;
  for (const std::string& name : folder.names(kMostFiles)) {
    if (run_file_type(name).empty()) continue;
    const auto file = folder.file(name);
    if (!file) continue;
    const std::string address = percent_encoded(name), shown = escape_markup(name);
    rows += fmt::format("<tr><td><a href=\"{}\">{}</a></td><td>{}</td><td class=\"time\">{}</td></tr>\n",
                        address, shown, file_size(file->size), local_time(file->changed));
    part.report = part.report || name == "report.html";
    part.log = part.log || name == "metrics.jsonl";
    if (name.ends_with(".svg")) {
      part.pictures += fmt::format(
          "<figure class=\"picture\"><a href=\"{}\"><img src=\"{}\" alt=\"{}\" "
          "loading=\"lazy\"></a></figure>\n",
          address, address, shown);
    }
  }
  part.list =
      "<section><h2>Files</h2>\n<div class=\"wide\"><table>\n" + rows + "</table></div>\n</section>\n";
  return part;
}

// Filled in by live.js; run: as a query value.
std::string curves_part(const Run& run) {
  std::string path = fmt::format("{}", run.root);
  for (const std::string& name : run.names) path += "/" + name;
  return fmt::format(
      "<section id=\"curves\" data-run=\"{}\">\n<h2>Curves</h2>\n<p class=\"controls\">"
      "<label>seeds <select id=\"seed\"><option value=\"mean\">mean over all</option>"
      "<option value=\"each\">each on its own</option></select></label>"
      "<label>norm <select id=\"name\"><option value=\"\">all</option></select></label>"
      "<span id=\"pulse\" role=\"status\"></span></p>\n"
      "<figure class=\"live wide\" id=\"drawing\"></figure>\n<div id=\"hint\" hidden></div>\n"
      "<noscript>The curves need JavaScript.</noscript></section>\n",
      percent_encoded(path));
}

}  // namespace

std::string run_address(std::size_t root, const std::vector<std::string>& names) {
  std::string address = fmt::format("/run/{}/", root);
  for (const std::string& name : names) address += percent_encoded(name) + "/";
  return address;
}

std::string list_page(const std::vector<fs::path>& roots, const RunList& list) {
  std::string where;
  for (const fs::path& root : roots)
    where += fmt::format("{}<code>{}</code>", where.empty() ? "" : ", ", escape_markup(root.string()));
  std::string html = "<h1>Runs</h1>\n<p class=\"faint\">below " + where + "</p>\n";
  html +=
      "<p><input id=\"filter\" type=\"search\" placeholder=\"Filter: words of name, command, state, "
      "settings\" aria-label=\"Filter runs\" autocomplete=\"off\" spellcheck=\"false\"> <span id=\"count\" "
      "class=\"faint\" role=\"status\"></span></p>\n<div id=\"runs\" data-refresh=\"5\">\n";
  if (list.runs.empty()) {
    html +=
        "<p>No run was found here yet. Any command with <code>--out DIR</code> leaves one, for instance "
        "<code>normscope heatmap --out fig1</code>; this page finds it by itself.</p>\n";
  } else {
    html += run_table(roots, list.runs);
  }
  if (!list.complete)
    html +=
        "<p class=\"faint\">There are more directories than are looked at; serve a smaller one to see all of "
        "its runs.</p>\n";
  return shell("Runs · Normscope", html + "</div>\n");
}

std::string run_page(const std::vector<fs::path>& roots, const Folder& folder, const Run& run,
                     const RunList& list) {
  const std::string name = run_name(roots, run);
  const FilesPart files = files_part(folder);
  std::string html = fmt::format(
      "<div id=\"head\" data-refresh=\"0\">\n<h1>{}</h1>\n<p class=\"facts\">{} <span>normscope {}</span> "
      "<span class=\"faint\">begun {}</span> <span class=\"settings\">{}</span></p>\n",
      escape_markup(name), state_badge(run.state), escape_markup(run.command), local_time(run.begun),
      settings_text(run));
  if (files.report) html += "<p><a class=\"button\" href=\"report.html\">Open the report</a></p>\n";
  html += "</div>\n";
  if (files.log) html += curves_part(run);
  html += "<div id=\"details\" data-refresh=\"0\">\n" + results_part(folder, run, files.pictures);
  std::vector<Run> inside;
  for (const Run& other : list.runs) {
    if (other.names != run.names) inside.push_back(other);
  }
  if (!inside.empty()) html += "<section><h2>Runs inside</h2>\n" + run_table(roots, inside) + "</section>\n";
  if (const auto config = run_config(folder)) html += config_part(*config);
  return shell(name + " · Normscope", html + files.list + "</div>\n");
}

std::string message_page(std::string_view title, std::string_view sentence) {
  return shell(title, fmt::format("<h1>{}</h1>\n<p>{}</p>\n", escape_markup(title), escape_markup(sentence)));
}

}  // namespace normscope::serve
