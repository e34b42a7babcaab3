// The main function of every benchmark.
#include <cstdio>
#include <exception>

#include "program.h"

int main(int argc, char** argv) {
  const normscope::bench::Program program = normscope::bench::benchmark();
  CLI::App app(program.description);
  program.add_options(app);
  try {
    app.parse(argc, argv);
    return program.run();
  } catch (const CLI::ParseError& wrong_call) {
    return app.exit(wrong_call);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
