// bench_keys_heatmap: both grids of Fig. 1c and 1d of Brody et al. (2023), without norm and after LayerNorm,
// as the program draws them on two threads: n = 3…60, d = 3…15, 100 draws each. No competitor has both
// readings.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "program.h"

namespace normscope::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Call {
  std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "normscope");
  std::string json;

  void add_options(CLI::App& app) { app.add_option("--program", program, "the normscope to time"); }
};

struct Drawn {
  std::string output;
  double seconds = 0, cpu_seconds = 0;
};

std::optional<Drawn> draw(const std::string& program) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const Stopwatch stopwatch;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    execl(program.c_str(), program.c_str(), "heatmap", "--norm", "layernorm", "--threads", "2", "--json",
          "--quiet", nullptr);
    _exit(127);
  }
  close(ends[1]);
  Drawn drawn;
  char buffer[65536];
  for (ssize_t got = 0; child > 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    drawn.output.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  rusage usage{};
  int status = 0;
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) return std::nullopt;
  drawn.seconds = stopwatch.elapsed().wall;
  for (const timeval& time : {usage.ru_utime, usage.ru_stime})
    drawn.cpu_seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  return drawn;
}

int run(const Call& call) {
  if (access(call.program.c_str(), X_OK) != 0) {
    fmt::print("Heat maps of Fig. 1: not timed, there is no {}\n", call.program);
    return 0;
  }
  const std::optional<Drawn> drawn = draw(call.program);
  const Json result = drawn ? Json::parse(drawn->output, nullptr, false) : Json();
  if (!result.is_object() || !result.contains("grids") || result["grids"].size() != 2) {
    fmt::print(stderr, "{} heatmap did not draw two grids\n", call.program);
    return 1;
  }
  // The paper's claim, and what the time means: after LayerNorm no key is unselectable but for rounding.
  std::size_t keys = 0, robust_unselectable = 0;
  for (const Json& grid : result["grids"]) {
    for (const Json& cell : grid["cells"]) {
      keys += cell["n"].get<std::size_t>() * cell["draws"].get<std::size_t>();
      if (grid["norm"] == "layernorm") robust_unselectable += cell["robust_unselectable"].get<std::size_t>();
    }
  }
  if (robust_unselectable > 0) {
    fmt::print(stderr, "{} keys are unselectable after LayerNorm, whatever the rounding\n",
               robust_unselectable);
    return 1;
  }
  fmt::print(
      "Heat maps of Fig. 1, both grids, {} keys: {:.1f} s ({:.1f} s of CPU, {:.2f} µs per key) on two "
      "threads; "
      "normscope {} ({}), {}, {}, load average {:.1f}\n",
      keys, drawn->seconds, drawn->cpu_seconds, 1e6 * drawn->cpu_seconds / static_cast<double>(keys),
      result.value("version", ""), result.value("commit", ""), processor(), instruction_set(),
      load_average());
  Json json = figures_of("keys_heatmap");
  json.update({{"version", result.value("version", "")},
               {"commit", result.value("commit", "")},
               {"threads", 2},
               {"keys", keys},
               {"seconds", drawn->seconds},
               {"cpu_seconds", drawn->cpu_seconds}});
  write_figures(call.json, json);
  return 0;
}

}  // namespace
Program benchmark() {
  return program("How long both grids of Fig. 1 take on two threads.", run);
}

}  // namespace normscope::bench
