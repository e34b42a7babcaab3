#pragma once
// The main function of a benchmark.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace normscope::bench {

// Reads the options that `app` knows, then runs: the exit code of `run`, or 1 if it fails.
template <class Run>
int run_program(CLI::App& app, int argc, char** argv, const Run& run) {
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& wrong_call) {
    return app.exit(wrong_call);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace normscope::bench
