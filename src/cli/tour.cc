// normscope tour: what the program answers, on small examples that need no input; then a page over all of them.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "normscope/error.h"
#include "normscope/random.h"
#include "normscope/record.h"
#include "normscope/tensor_file.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

struct TourCall {
  std::string out = "tour";

  static void describe(auto& visit, auto& self) {
    visit("out", self.out, "Directory for what the commands read and write, and for the page, tour.html",
          OptionFacts{.type = "DIR", .needs = "the name of a directory"});
  }
};

struct Stop {
  const char* says;
  std::vector<std::string> command;
};

// In the order in which one thing leads to the next. "@" stands for the directory of the tour.
std::vector<Stop> stops() {
  return {
      {"A key between the others scores highest under no query: the four corners of a square, its centre, the "
       "middle of a side.",
       {"keys", "@/square.npy", "--out", "@/square"}},
      {"The same of twelve random keys in three dimensions …", {"keys", "@/random.npy", "--out", "@/random"}},
      {"… and after LayerNorm, which puts all of them on a circle.",
       {"keys", "@/random.npy", "--norm", "layernorm", "--out", "@/layernorm"}},
      {"How often that happens to random keys, by their number and dimension.",
       {"heatmap", "--n", "4,8,16,32", "--d", "3,8", "--draws", "20", "--out", "@/heatmap"}},
      {"A mask decides how far what a token knows can go.",
       {"mask", "window:1", "--n", "12", "--out", "@/mask"}},
      {"Layer by layer, tokens become alike; how soon depends on the mask and the norm.",
       {"collapse", "--mask", "full", "causal", "window:1", "--variant", "san", "san+norm", "--tokens", "32",
        "--dim", "16", "--out", "@/collapse"}},
      {"Does a norm's projection help to learn? A small majority task, three seeds each: rmsnorm is LayerNorm "
       "without projection; published is that, but d times smaller, as the paper's code has it.",
       {"train", "majority", "--norm", "layernorm,rmsnorm,published", "--seeds", "3", "--classes", "5",
        "--length", "20", "--samples", "2000", "--steps", "300", "--out", "@/majority"}},
  };
}

void write_keys(const fs::path& directory) {
  Tensor square{"", DType::float64, {6, 2}, {1, 1, 1, -1, -1, 1, -1, -1, 0, 0, 1, 0}};
  write_npy((directory / "square.npy").string(), square);
  Tensor keys{"", DType::float32, {12, 3}, std::vector<double>(36)};
  Random random(0);
  for (double& value : keys.values) value = static_cast<float>(random.normal());
  write_npy((directory / "random.npy").string(), keys);
}

std::string line_of(const std::vector<std::string>& command) {
  return fmt::format("$ normscope {}\n", fmt::join(command, " "));
}

constexpr const char* kCommands = "tour.txt";  // what was run; and by it an earlier tour is known

void run_tour(const TourCall& call, const RunCommand& run_command) {
  const fs::path directory = call.out;
  if (fs::exists(directory) &&
      !(fs::is_directory(directory) && (fs::is_empty(directory) || fs::exists(directory / kCommands))))
    throw InputError(
        fmt::format("'{}' holds something other than an earlier tour; name another directory with --out.",
                    printable(call.out)));
  fs::create_directories(directory);
  std::vector<Stop> all = stops();
  std::vector<std::string> report{"report"};
  std::string commands;
  for (Stop& stop : all) {
    for (std::string& word : stop.command)
      if (word.starts_with("@/")) word = (directory / word.substr(2)).string();
    report.push_back(stop.command.back());
    commands += line_of(stop.command);
  }
  const std::string page = (directory / "tour.html").string();
  report.insert(report.end(), {"--out", page});
  write_file_atomically((directory / kCommands).string(), commands + line_of(report));
  write_keys(directory);
  const auto run = [&](std::vector<std::string> command) {
    print(line_of(command));
    flush_output();
    command.emplace_back("--quiet");
    run_command(command, {});
    print("\n");
  };
  for (const Stop& stop : all) {
    print(wrapped(stop.says) + "\n");
    fs::remove_all(stop.command.back());  // of an earlier tour: a training would not be overwritten
    run(stop.command);
  }
  print("All of it as one page:\n");
  run(report);
  print(page + "\n");
}

}  // namespace

void add_tour(CLI::App& app, const RunCommand& run_command) {
  CLI::App* command =
      add_plain_command(app, "tour", "What the program answers, on small examples, and a page: a minute",
                        {"tour", "tour --out /tmp/tour"});
  auto call = std::make_shared<TourCall>();
  add_options(*command, *call);
  when_called(*command, [call, run_command] { run_tour(*call, run_command); });
}

}  // namespace normscope::cli
