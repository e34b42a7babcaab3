#include "serve/runs.h"

#include <fmt/core.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>
#include <string_view>

namespace normscope::serve {
namespace {

constexpr std::size_t kLargestConfig = 1 << 20;  // as in record: no config of ours is larger
constexpr std::size_t kMostSettings = 6, kLongestText = 80, kMostListed = 6;
constexpr std::int64_t kFreshSeconds = 120;

// What a reader of a list would look for first.
constexpr const char* kTelling[] = {"model", "source", "file",     "text",   "corpus",  "masks",
                                    "mask",  "spaces", "variants", "w",      "n",       "d",
                                    "dim",   "tokens", "layers",   "heads",  "classes", "length",
                                    "steps", "draws",  "starts",   "samples"};

std::string shortened(std::string text) {
  if (text.size() <= kLongestText) return text;
  std::size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "…";
}

// What a run did not use (no classes, no text, no variants) is not told.
void add_setting(Run& run, const std::string& name, const Json& value) {
  const std::string text = setting_text(name, value);
  const bool unused = value == 0 || text.empty() || text == "none" || text == "–";
  if (run.settings.size() < kMostSettings && (!unused || name.starts_with("norm")))
    run.settings.emplace_back(name, text);
}

// The norms and seeds of a training, each once.
void add_trained(Run& run, const Json& options) {
  const auto runs = options.find("runs");
  if (runs == options.end() || !runs->is_array()) return;
  Json norms = Json::array();
  std::set<std::string> seen, seeds;
  for (const Json& one : *runs) {
    if (!one.is_object()) continue;
    if (one.contains("norm") && seen.insert(brief(one["norm"])).second) norms.push_back(one["norm"]);
    if (one.contains("seed")) seeds.insert(brief(one["seed"]));
  }
  if (!norms.empty()) add_setting(run, norms.size() == 1 ? "norm" : "norms", norms);
  if (!seeds.empty())
    add_setting(run, seeds.size() == 1 ? "seed" : "seeds",
                seeds.size() == 1 ? Json(*seeds.begin()) : Json(seeds.size()));
}

void add_settings(Run& run, const Json& config) {
  const auto found = config.find("options");
  if (found == config.end() || !found->is_object()) return;
  add_trained(run, *found);
  const auto inner = found->find("settings");
  const Json& options = inner != found->end() && inner->is_object() ? *inner : *found;
  for (const char* norm : {"norms", "norm"}) {
    if (!run.settings.empty() || !options.contains(norm)) continue;
    add_setting(run, norm, options[norm]);
  }
  // Steps, draws and samples of an audit are of parts that it may not have, and with a budget grow as it goes on.
  if (const auto parts = options.find("parts"); parts != options.end()) {
    add_setting(run, "parts", *parts);
    const auto asked = options.find("asked");
    if (asked != options.end() && asked->is_object() && asked->contains("budget"))
      add_setting(run, "budget", (*asked)["budget"]);
    return;
  }
  for (const char* name : kTelling) {
    if (options.contains(name)) add_setting(run, name, options[name]);
  }
}

class Scan {
 public:
  Scan(RunList& list, const ScanLimits& limits) : list_(list), limits_(limits) {}

  // Whether something running is in it.
  bool look(const Folder& folder, std::size_t root, std::vector<std::string>& names, std::size_t depth) {
    if (folders_ == limits_.folders || list_.runs.size() >= limits_.runs) {
      list_.complete = false;
      return false;
    }
    ++folders_;
    const auto config = run_config(folder);
    const std::size_t place = list_.runs.size();
    bool running = false;
    if (config) {
      list_.runs.push_back(run_of(folder, *config, root, names));
      running = list_.runs.back().state == State::running;
    }
    if (depth > 0) running = look_inside(folder, root, names, depth) || running;
    if (config && running && list_.runs[place].state == State::unfinished)
      list_.runs[place].state = State::running;
    return running;
  }

 private:
  bool look_inside(const Folder& folder, std::size_t root, std::vector<std::string>& names,
                   std::size_t depth) {
    bool running = false;
    const auto inside = folder.names(limits_.folders);
    for (const std::string& name : inside) {
      const auto inner = folder.folder(name);
      if (!inner) continue;
      names.push_back(name);
      running = look(*inner, root, names, depth - 1) || running;
      names.pop_back();
    }
    return running;
  }

  static Run run_of(const Folder& folder, const Json& config, std::size_t root,
                    const std::vector<std::string>& names) {
    Run run{
        .root = root, .names = names, .command = {}, .begun = 0, .state = state_of(folder), .settings = {}};
    if (const auto file = folder.file("config.json")) run.begun = file->changed;
    const auto command = config.find("command");
    if (command != config.end() && command->is_string()) run.command = shortened(command->get<std::string>());
    add_settings(run, config);
    return run;
  }

  RunList& list_;
  const ScanLimits& limits_;
  std::size_t folders_ = 0;
};

void sort_newest_first(RunList& list) {
  std::stable_sort(list.runs.begin(), list.runs.end(),
                   [](const Run& a, const Run& b) { return a.begun > b.begun; });
}

}  // namespace

std::string_view word(State state) {
  switch (state) {
    case State::running:
      return "running";
    case State::finished:
      return "finished";
    case State::stopped:
      return "stopped";
    case State::unfinished:
      break;
  }
  return "unfinished";
}

std::optional<Json> run_config(const Folder& folder) {
  auto config = read_json(folder, "config.json", kLargestConfig);
  if (!config || !config->is_object()) return std::nullopt;
  const auto program = config->find("program");
  if (program == config->end() || *program != "normscope") return std::nullopt;
  return config;
}

State state_of(const Folder& folder) {
  const auto log = folder.file("metrics.jsonl"), results = folder.file("results.json");
  if (!log) return results ? State::finished : State::unfinished;
  if (results && results->changed >= log->changed) return State::finished;
  // Who writes the log holds it exclusively. Asking takes a shared lock for an instant, which other readers
  // share; it ends with the descriptor.
  if (::flock(log->descriptor.number(), LOCK_SH | LOCK_NB) != 0) {
    const bool locked = errno == EWOULDBLOCK;
    if (locked || (!results && std::time(nullptr) - log->changed < kFreshSeconds)) return State::running;
  }
  return results ? State::finished : State::stopped;
}

std::string setting_text(std::string_view name, const Json& value) {
  const bool all = (name == "layers" || name == "heads") && value.is_array() && value.empty();
  return all ? "all" : brief(value);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string brief(const Json& value) {
  if (value.is_null()) return "–";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return shortened(value.get<std::string>());
  const auto all = [](const Json& values, const auto& is) {
    return std::all_of(values.begin(), values.end(), is);
  };
  const auto primitive = [](const Json& entry) { return entry.is_primitive(); };
  const bool list = value.is_array() && all(value, primitive);
  if (list && value.size() > kMostListed && value.front().is_number())
    return fmt::format("{} … {} ({} values)", brief(value.front()), brief(value.back()), value.size());
  const auto joined = [](const Json& values, const char* separator) {
    std::string text;
    for (const Json& entry : values) {
      if (text.size() > kLongestText) break;
      text += (text.empty() ? "" : separator) + brief(entry);
    }
    return shortened(std::move(text));
  };
  if (list) return value.empty() ? "none" : joined(value, ", ");
  if (value.is_object() && all(value, primitive))
    return joined(value, " ");  // {"norm", "seed"}: "layernorm 11"
  if (value.is_array() &&
      all(value, [&](const Json& entry) { return entry.is_object() && all(entry, primitive); }))
    return joined(value, ", ");
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

RunList find_runs(std::span<const std::filesystem::path> roots, const ScanLimits& limits) {
  RunList list;
  Scan scan(list, limits);
  for (std::size_t root = 0; root < roots.size(); ++root) {
    std::vector<std::string> names;
    if (const auto folder = Folder::open(roots[root], names)) scan.look(*folder, root, names, limits.depth);
  }
  sort_newest_first(list);
  return list;
}

RunList find_runs_below(const std::filesystem::path& root, std::size_t root_index,
                        const std::vector<std::string>& names, const ScanLimits& limits) {
  RunList list;
  Scan scan(list, limits);
  std::vector<std::string> path = names;
  if (const auto folder = Folder::open(root, names)) scan.look(*folder, root_index, path, limits.depth);
  sort_newest_first(list);
  return list;
}

}  // namespace normscope::serve
