#pragma once
// A benchmark as a program: what it is called with, and the figures it leaves.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

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

// A benchmark as bench/main.cc runs it.
struct Program {
  std::string description;
  std::function<void(CLI::App&)> add_options;
  std::function<int()> run;  // the exit code
};
// Defined once in each benchmark.
Program benchmark();

// From a Call, which adds its options itself but for --json, to what is run with it.
template <class Call>
Program program(std::string description, int (*run)(const Call&), const Call& defaults = {}) {
  const auto call = std::make_shared<Call>(defaults);
  return {std::move(description),
          [call](CLI::App& app) {
            call->add_options(app);
            app.add_option("--json", call->json, "write the figures to this file too");
          },
          [call, run] {
            if (!call->json.empty()) require_place_for_file(call->json);
            return run(*call);
          }};
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
