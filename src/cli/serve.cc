// normscope serve: the runs of some directories and the interactive page, in a browser on this machine.
#include <fmt/core.h>
#include <semaphore.h>

#include <csignal>
#include <exception>
#include <memory>
#include <thread>

#include "cli/common.h"
#include "cli/options.h"
#include "result/json_writer.h"
#include "serve/server.h"
#include "serve/site.h"

namespace normscope::cli {
namespace {

std::string announcement(const serve::Site& site, int port) {
  std::string text;
  for (const auto& root : site.roots) text += (text.empty() ? "" : ", ") + printable(root.string());
  return fmt::format("Runs below {}: {}\nCtrl-C ends it.\n", text, serve::serve_result(site, port).address);
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

void run_serve(const serve::ServeOptions& options) {
  const serve::Site site = serve::site_of(options);
  serve::Server server(site, options.port);
  listen_for_signals();
  print(options.json ? json_of(serve::serve_result(site, server.port()), -1)
                     : announcement(site, server.port()));
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

void add_serve(CLI::App& app, Common&) {
  CLI::App* command =
      add_plain_command(app, "serve", "Show runs and live curves in a browser on this machine",
                        {"serve", "serve runs audit --port 8080", "serve --port 0 --json"});
  add_to_footer(
      *command,
      "Only this machine reaches it, nothing is changed, and only files of runs below DIR are given out.");
  auto options = std::make_shared<serve::ServeOptions>();
  add_options(*command, *options);
  when_called(*command, [options] { run_serve(*options); });
}

}  // namespace normscope::cli
