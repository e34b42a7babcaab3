// normscope mask: masks as pictures and as graphs (Wu et al. 2024, §3).
#include "study/mask.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/options.h"
#include "io/mask_file.h"
#include "normscope/error.h"
#include "report/mask_page.h"
#include "result/json_writer.h"
#include "run/finished.h"
#include "study/masks.h"

namespace normscope::cli {
namespace {

using Panel = MaskFigure::Panel;

constexpr std::size_t kCentresShown = 8;
constexpr std::uint64_t kMostListedEdges = 100'000'000;

// Small masks token by token, two characters wide since characters are about twice as high; larger ones in
// cells, whose shade is the share of allowed pairs.
std::string drawing(const Mask& mask) {
  const std::size_t n = mask.n(), room = std::clamp<std::size_t>(terminal_width(), 20, 74) - 10;
  const bool whole = 2 * n <= room;
  const std::size_t columns = whole ? n : std::min(n, room);
  const std::size_t rows = whole ? n : std::max<std::size_t>(1, columns / 2);
  const std::vector<double> shares = mask_shares(mask, rows, columns);
  const auto mark = [](double share) {
    if (share <= 0) return "·";
    if (share >= 1) return "█";
    return share < 1.0 / 3 ? "░" : share < 2.0 / 3 ? "▒" : "▓";
  };
  const bool colours = colour_output();
  std::string text;
  for (std::size_t r = 0; r < rows; ++r) {
    text += fmt::format("{:>8} {}", r * n / rows, colours ? "\x1b[36m" : "");
    for (std::size_t c = 0; c < columns; ++c) {
      text += mark(shares[r * columns + c]);
      if (whole) text += mark(shares[r * columns + c]);
    }
    text += colours ? "\x1b[0m\n" : "\n";
  }
  if (whole) return text;
  const bool even = n % rows == 0 && n % columns == 0;
  return text + fmt::format("         one cell is {}{} × {} tokens: · none  ░ ▒ ▓ some  █ all\n",
                            even ? "" : "about ", (n + rows / 2) / rows, (n + columns / 2) / columns);
}

std::string property_table(const Panel& panel) {
  const MaskProperties& properties = panel.properties;
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  const auto length = [](const std::optional<std::size_t>& value) {
    return value ? std::to_string(*value) : std::string("infinite");
  };
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("{:<26}{}\n", what, value);
  };
  line("tokens", std::to_string(properties.n));
  line("edges", std::to_string(properties.edges));
  line("density",
       fmt::format("{:.6g} % (sparsity {:.6g} %)", 100 * properties.density, 100 * (1 - properties.density)));
  line("self-loops", std::to_string(properties.self_loops));
  line("strongly connected",
       properties.strongly_connected() ? "yes" : fmt::format("no: {} components", properties.components));
  line("quasi-strongly connected", yes(properties.quasi_strongly_connected()));
  line("centres", properties.centres.empty() ? "none"
                                             : fmt::format("{} ({})", properties.centres.size(),
                                                           centre_list(properties, kCentresShown)));
  line("radius", length(properties.radius));
  line("diameter", length(properties.diameter));
  line("empty rows", properties.empty_rows == 0
                         ? "0"
                         : fmt::format("{}: their softmax is over no score, attention is defined as 0",
                                       properties.empty_rows));
  return text;
}

std::string screen(const std::vector<NamedMask>& masks) {
  if (masks.size() > 1) {
    MaskFigure shown{masks, ""};
    for (Panel& panel : shown.panels) panel.name = printable(panel.name);
    return table(mask_table(shown));
  }
  const Panel& panel = masks.front();
  return fmt::format("Mask {}: token i (down) attends to token j (across)\n", printable(panel.name)) +
         drawing(panel.mask) + "\n" + property_table(panel);
}

void require_listable(const std::string& edges, const Common& common, const std::vector<Mask>& masks) {
  if (edges.empty()) return;
  if (masks.size() > 1) throw InputError("--edges writes one mask, but several were named; name one.");
  if (common.json && edges == "-")
    throw InputError("--json and --edges - both ask for standard output; give --edges a file.");
  const std::uint64_t count = masks.front().edges();
  if (count > kMostListedEdges)
    throw InputError(fmt::format("The mask has {} edges; --edges lists at most {}. Take fewer tokens.", count,
                                 kMostListedEdges));
}

void run_mask(const MaskCall& call, const Common& common) {
  const std::string& edges = call.edges;  // "-": standard output; empty: nowhere
  MaskPlan plan = plan_masks(call.study, common.seed);
  require_listable(edges, common, plan.masks);
  if (!edges.empty() && edges != "-") require_place_for_file(edges);
  const auto directory = replaceable_directory(common);
  const Executor executor(1, common.stop);
  const MaskStudy study = study_masks(std::move(plan), {executor, common.seed});
  if (directory) {
    write_run(*directory, study);
    note_report(common, *directory);
  }
  if (edges == "-") return print(io::edge_list(study.masks.front().mask));
  if (!edges.empty()) write_file_atomically(edges, io::edge_list(study.masks.front().mask));
  common.json ? write_json(study.result, -1, print) : print(screen(study.masks));
}

}  // namespace

void add_mask(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "mask", "Draw attention masks and tell their centres, radius and diameter",
      {"mask causal --n 16", "mask full causal window:1 onesided:1 --n 128",
       "mask 'global:2+window:8&causal' --n 4096", "mask random:0.1 --n 24 --seed 3 --out runs/mask",
       "mask mask.npy --json", "mask window:2 --n 6 --edges -"});
  auto call = std::make_shared<MaskCall>();
  add_options(*command, *call);
  add_to_footer(
      *command,
      "Families: " + mask_list() +
          "\na+b is the union, a&b the intersection, which binds tighter.\n"
          "Files: rows of 0 and 1; a line `edges n`, then lines `i j`; or an n × n tensor of 0 and 1 in "
          ".npy, .npz or .safetensors. - is standard input.");
  when_called(*command, [call, &common] { run_mask(*call, common); });
}

}  // namespace normscope::cli
