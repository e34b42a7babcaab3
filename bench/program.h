#pragma once
// A benchmark as a program: what it is called with, and the figures it leaves.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "clock.h"
#include "normscope/record.h"
#include "normscope/version.h"

namespace normscope::bench {

// "--name", then where its value goes, as often as wanted: options that say their default.
inline void add_sizes(CLI::App&) {}
template <class Value, class... More>
void add_sizes(CLI::App& app, const char* name, Value& value, More&&... more) {
  app.add_option(name, value)->capture_default_str();
  add_sizes(app, std::forward<More>(more)...);
}

// Reads `call`: what `options` adds for it, and --json. The exit code is that of `run`, or 1 if it fails.
template <class Call, class Options, class Run>
int run_program(int argc, char** argv, const char* description, Call call, const Options& options,
                const Run& run) {
  CLI::App app(description);
  options(app, call);
  app.add_option("--json", call.json, "write the figures to this file too");
  try {
    app.parse(argc, argv);
    if (!call.json.empty()) require_place_for_file(call.json);
    return run(call);
  } catch (const CLI::ParseError& wrong_call) {
    return app.exit(wrong_call);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}

inline void write_figures(const std::string& file, const nlohmann::ordered_json& figures) {
  if (!file.empty()) write_file_atomically(file, figures.dump(2) + "\n");
}

// Where figures are from.
inline nlohmann::ordered_json figures_of(const char* benchmark) {
  return {{"benchmark", benchmark},   {"version", version()},
          {"commit", commit()},       {"instruction_set", instruction_set()},
          {"processor", processor()}, {"load_average", load_average()}};
}

inline double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace normscope::bench
