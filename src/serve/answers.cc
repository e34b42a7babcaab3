#include "serve/answers.h"

#include <fmt/core.h>

#include <set>

#include "core/read_number.h"
#include "embedded.h"
#include "report/curves.h"
#include "result/json_writer.h"
#include "serve/metrics.h"
#include "serve/pages.h"
#include "serve/request.h"
#include "serve/runs.h"

namespace normscope::serve {
namespace {

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr std::size_t kMostLines = 1 << 20;    // bytes of a log in one answer
constexpr std::size_t kLargestLog = 64 << 20;  // bytes of a log that are drawn
// Own pages: style and script from here, nothing inline, nothing from elsewhere.
constexpr const char* kOwnPolicy =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri "
    "'none'; form-action 'none'; frame-ancestors 'none'";
// A report may be anyone's. In a sandbox without an origin its scripts work, downloads too, but they can
// neither read another answer of this server nor ask anyone for anything.
constexpr const char* kReportPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads";
constexpr const char* kFilePolicy =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox";
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src "
    "'self' data: blob:; font-src 'self' data:; connect-src 'self' data: blob:; worker-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Answer page_answer(std::string html) {
  Answer given;
  given.type = kHtml;
  given.body = std::move(html);
  given.policy = kOwnPolicy;
  return given;
}

Answer embedded_answer(std::string_view type, std::string_view text) {
  Answer given;
  given.type = type;
  given.body = text;
  given.policy = kFilePolicy;
  return given;
}

Answer file_answer(File file, std::string_view type, const char* policy) {
  Answer given;
  given.type = type;
  given.file = std::move(file);
  given.policy = policy;
  return given;
}

Answer missing() {
  return refusal(404, "There is nothing at this address.");
}

Answer moved(std::string address) {
  Answer given;
  given.status = 301;
  given.policy = kOwnPolicy;
  given.location = std::move(address);
  return given;
}

// The first name is the number of a root.
struct Place {
  std::size_t root;
  std::vector<std::string> names;
  bool directory;
};
std::optional<Place> place_of(const Site& site, const std::optional<Names>& path) {
  if (!path || path->names.empty()) return std::nullopt;
  const auto root = read_number<std::uint64_t>(path->names.front());
  if (!root || *root >= site.roots.size() || path->names.front() != std::to_string(*root))
    return std::nullopt;
  return Place{*root, {path->names.begin() + 1, path->names.end()}, path->directory};
}

Answer run_answer(const Site& site, const Place& place) {
  const auto folder = Folder::open(site.roots[place.root], place.names);
  if (!folder || !run_config(*folder)) return missing();
  if (!place.directory) return moved(run_address(place.root, place.names));
  const RunList list = find_runs_below(site.roots[place.root], place.root, place.names);
  for (const Run& run : list.runs) {
    if (run.names == place.names) return page_answer(run_page(site.roots, *folder, run, list));
  }
  return missing();  // gone since
}

// A file is given out only if it lies in a run: other directories below a root are nobody's business.
std::optional<Answer> run_file_answer(const Site& site, Place place) {
  if (place.directory || place.names.empty()) return std::nullopt;
  const std::string name = place.names.back();
  place.names.pop_back();
  const std::string_view type = run_file_type(name);
  if (type.empty()) return std::nullopt;
  const auto folder = Folder::open(site.roots[place.root], place.names);
  if (!folder || !run_config(*folder)) return std::nullopt;
  auto file = folder->file(name);
  if (!file) return std::nullopt;
  return file_answer(std::move(*file), type, type == kHtml ? kReportPolicy : kFilePolicy);
}

struct Log {
  File file;
  State state;
};
std::optional<Log> log_of(const Site& site, std::string_view target) {
  const auto run = query_value(target, "run");
  const auto place = run ? place_of(site, names_of_path(*run)) : std::nullopt;
  if (!place) return std::nullopt;
  const auto folder = Folder::open(site.roots[place->root], place->names);
  if (!folder || !run_config(*folder)) return std::nullopt;
  const State state = state_of(*folder);  // before the log is opened: what a finished run shows is all of it
  auto file = folder->file("metrics.jsonl");
  if (!file) return std::nullopt;
  return Log{std::move(*file), state};
}

Answer metrics_answer(const Site& site, std::string_view target) {
  const auto log = log_of(site, target);
  if (!log) return refusal(404, "run must name a run with a metrics.jsonl, such as run=0/fig2.");
  const auto from = read_number<std::uint64_t>(query_value(target, "from").value_or("0"));
  auto lines = from ? lines_from(log->file, *from, kMostLines) : std::nullopt;
  if (!lines)
    return refusal(
        416, "from must be a number of bytes at which a line of metrics.jsonl begins; begin anew at 0.");
  Answer given;
  given.type = run_file_type("metrics.jsonl");
  given.body = std::move(*lines);
  given.policy = kFilePolicy;
  return given;
}

// A log as a drawing, and what its reader may choose.
struct CurvesAnswer {
  std::string next, state;
  std::size_t lines = 0;
  double step = 0;
  bool complete = false;
  std::vector<std::string> names, seeds;
  std::string svg;

  static void describe(auto& visit, auto& self) {
    visit("next", self.next, "bytes of the log that were read");
    visit("state", self.state, "of the run");
    visit("lines", self.lines, "that were read");
    visit("step", self.step, "the last");
    visit("complete", self.complete, "false: the log is longer than what is read");
    visit("names", self.names, "of series");
    visit("seeds", self.seeds, "of series");
    visit("svg", self.svg, "the drawing");
  }
};

Answer curves_answer(const Site& site, std::string_view target) {
  const auto log = log_of(site, target);
  if (!log) return refusal(404, "run must name a run with a metrics.jsonl, such as run=0/fig2.");
  const auto lines = lines_from(log->file, 0, kLargestLog);
  if (!lines) return refusal(422, "metrics.jsonl holds a line that is too long to be one of a training.");
  const std::string next = std::to_string(lines->size());
  Answer given;
  given.policy = kFilePolicy;
  if (query_value(target, "from") == next && query_value(target, "state") == word(log->state)) {
    given.status = 204;
    return given;
  }
  const Metrics metrics = read_metrics(*lines);
  const CurveChoice choice{query_value(target, "name").value_or(""),
                           query_value(target, "seed").value_or("mean")};
  CurvesAnswer curves{.next = next,
                      .state = std::string(word(log->state)),
                      .lines = metrics.lines,
                      .step = metrics.last_step,
                      .complete = log->file.size <= kLargestLog,
                      .names = {},
                      .seeds = {},
                      .svg = curves_svg(metrics_figure(metrics, choice))};
  std::set<std::string> known_names = {""}, known_seeds = {""};
  for (const Metrics::Series& series : metrics.series) {
    if (known_names.insert(series.name).second) curves.names.push_back(series.name);
    if (known_seeds.insert(series.seed).second) curves.seeds.push_back(series.seed);
  }
  given.type = "application/json";
  given.body = json_of(curves, -1);
  return given;
}

Answer static_page_answer(const Site& site, std::string_view path) {
  auto names = names_of_address(path);
  if (!names) return missing();
  if (!site.page) {
    return names->names.empty()
               ? refusal(404,
                         "The interactive page is not built: `make web` in the source makes it, and "
                         "--page FOLDER says where it is.")
               : missing();
  }
  if (names->directory) names->names.emplace_back("index.html");
  const std::string name = names->names.back();
  names->names.pop_back();
  const std::string_view type = page_file_type(name);
  const auto folder = Folder::open(*site.page, names->names);
  auto file = folder && !type.empty() ? folder->file(name) : std::nullopt;
  return file ? file_answer(std::move(*file), type, kPagePolicy) : missing();
}

Answer routed(const Site& site, std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  const auto below = [&](std::string_view prefix) {
    if (!path.starts_with(prefix)) return false;
    path.remove_prefix(prefix.size());
    return true;
  };
  if (path == "/") return page_answer(list_page(site.roots, find_runs(site.roots)));
  if (path == "/assets/style.css") return embedded_answer("text/css; charset=utf-8", embedded::style_css);
  if (path == "/assets/cards.css") return embedded_answer("text/css; charset=utf-8", embedded::cards_css);
  if (path == "/assets/live.js") return embedded_answer("text/javascript; charset=utf-8", embedded::live_js);
  if (path == "/assets/icon.svg" || path == "/favicon.ico")
    return embedded_answer("image/svg+xml", embedded::icon_svg);
  if (path == "/api/metrics") return metrics_answer(site, target);
  if (path == "/api/curves") return curves_answer(site, target);
  if (path == "/page") return moved("/page/");
  if (below("/page/")) return static_page_answer(site, path);
  if (!below("/run/")) return missing();
  const auto place = place_of(site, names_of_address(path));
  if (!place) return missing();
  auto file = run_file_answer(site, *place);
  return file ? std::move(*file) : run_answer(site, *place);
}

std::string_view title_of(int status) {
  switch (status) {
    case 400:
      return "Bad request";
    case 404:
      return "Not found";
    case 405:
      return "Read-only";
    case 421:
      return "Another host";
    default:
      return "That did not work";
  }
}

}  // namespace

Answer refusal(int status, std::string_view sentence) {
  Answer given = page_answer(message_page(title_of(status), sentence));
  given.status = status;
  return given;
}

Answer answer(const Site& site, int port, const Request& request) {
  if (!known_host(request.host, port)) {
    return refusal(421, fmt::format("This server answers at http://127.0.0.1:{}/ only.", port));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    Answer given = refusal(405, "This server only shows; GET and HEAD are all it takes.");
    given.allow = "GET, HEAD";
    return given;
  }
  if (!request.target.starts_with('/')) return refusal(400, "The address must begin with a slash.");
  return routed(site, request.target.substr(0, request.target.find('#')));
}

}  // namespace normscope::serve
