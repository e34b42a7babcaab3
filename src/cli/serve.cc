// normscope serve: the runs of some directories and the interactive page, in a browser on this machine.
#include <fmt/core.h>
#include <semaphore.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/common.h"
#include "normscope/error.h"
#include "record/json.h"
#include "serve/server.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRoots = 100;

struct ServeCall {
  std::vector<std::string> directories;
  std::string port = "8000", page;
};

fs::path existing_directory(const std::string& name, std::string_view what) {
  std::error_code failed;
  fs::path path = fs::canonical(name, failed);
  if (failed || !fs::is_directory(path, failed))
    throw InputError(fmt::format("'{}' is not a directory; {}.", name, what));
  if (::access(path.c_str(), R_OK | X_OK) != 0)
    throw InputError(fmt::format("The directory '{}' cannot be read.", name));
  return path;
}

// Where `make web` and `make install` put the page.
std::optional<fs::path> find_page(const std::string& named) {
  std::error_code failed;
  if (!named.empty()) {
    fs::path folder = existing_directory(named, "--page names the folder of the interactive page");
    if (!fs::is_regular_file(folder / "index.html", failed))
      throw InputError(
          fmt::format("'{}' holds no index.html; --page names the folder that `make web` makes.", named));
    return folder;
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  for (const fs::path& folder :
       {program.parent_path().parent_path() / "share/normscope/web", program.parent_path() / "web"}) {
    if (fs::is_regular_file(folder / "index.html", failed)) return fs::canonical(folder, failed);
  }
  return std::nullopt;
}

serve::Site resolve(const ServeCall& call) {
  serve::Site site;
  if (call.directories.size() > kMostRoots)
    throw InputError(fmt::format("{} directories were named; at most {} are served.", call.directories.size(),
                                 kMostRoots));
  for (const std::string& directory : call.directories)
    site.roots.push_back(existing_directory(directory, "serve shows the runs below directories"));
  if (site.roots.empty()) site.roots.push_back(existing_directory(".", "it is gone"));
  site.page = find_page(call.page);
  return site;
}

std::string announcement(const serve::Site& site, int port, bool json) {
  const std::string address = fmt::format("http://127.0.0.1:{}/", port);
  if (!json) {
    std::string text;
    for (const fs::path& root : site.roots) text += (text.empty() ? "" : ", ") + printable(root.string());
    return fmt::format("Runs below {}: {}\nCtrl-C ends it.\n", text, address);
  }
  Json object = {{"command", "serve"}};
  Json made_by = normscope::to_json(provenance(0, 0));
  for (const char* none : {"seed", "threads"}) made_by.erase(none);
  object.update(made_by);
  object["address"] = address;
  object["port"] = port;
  object["process"] = ::getpid();
  object["directories"] = Json::array();
  for (const fs::path& root : site.roots) object["directories"].push_back(root.string());
  object["page"] = site.page ? Json(site.page->string()) : Json();
  return json_text(object, -1);
}

// A handler reaches nothing but what is global. Waiting for blocked signals would not do: threads that
// libraries started before main do not block them, and a second Ctrl-C would end the program through one of
// those.
sem_t ended;

void end_serving(int) {
  ::sem_post(&ended);
}

void listen_for_signals() {
  ::sem_init(&ended, 0, 0);
  struct sigaction action {};
  action.sa_handler = end_serving;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

void run_serve(const ServeCall& call, const Common& common) {
  const auto wanted = static_cast<int>(parse_count(call.port, "--port", 0, 65535));
  const serve::Site site = resolve(call);
  serve::Server server(site, wanted);
  listen_for_signals();
  print(announcement(site, server.port(), common.json));
  flush_output();
  std::exception_ptr failure;
  std::thread answering([&] {
    try {
      server.run();
    } catch (...) {
      failure = std::current_exception();
      end_serving(0);
    }
  });
  while (::sem_wait(&ended) != 0) continue;  // a signal came in between
  server.stop();
  answering.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void add_serve(CLI::App& app, Common& common) {
  // Not by add_command: a server has no seed, no results and nothing to write.
  CLI::App* command = app.add_subcommand("serve", "Show runs and live curves in a browser on this machine");
  command->footer(
      "Examples:\n  normscope serve\n  normscope serve runs audit --port 8080\n  normscope serve --port 0 "
      "--json\n\n"
      "Only this machine reaches it, nothing is changed, and only files of runs below DIR are given out.");
  auto call = std::make_shared<ServeCall>();
  command->add_option("DIR", call->directories, "Directories whose runs are shown, at any depth up to 8 [.]")
      ->type_name("");
  command->add_option("--port", call->port, "Port of 127.0.0.1; 0: any free one")
      ->type_name("N")
      ->default_str("8000");
  command
      ->add_option("--page", call->page, "Folder of the interactive page [where it was installed or built]")
      ->type_name("FOLDER");
  command->add_flag("--json", common.json, "Print the address as one JSON object instead of text")
      ->group("Common options");
  command->callback([call, &common] { run_serve(*call, common); });
}

}  // namespace normscope::cli
