// normscope mask: masks as pictures and as graphs (Wu et al. 2024, §3).
#include "normscope/mask.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "cli/common.h"
#include "cli/masks.h"
#include "io/mask_file.h"
#include "normscope/error.h"
#include "normscope/report.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;
using Panel = MaskFigure::Panel;

constexpr std::size_t kPapersTokens = 128, kMostMasks = 100, kCentresShown = 8;
constexpr std::uint64_t kMostListedEdges = 100'000'000;

struct MaskCall {
  std::vector<std::string> specs;
  std::string n, tensor, edges;
};

// Files have their own number of tokens; without --n, families take that of the first file.
std::vector<Panel> resolve(const MaskCall& call, const Common& common) {
  const auto tensor = call.tensor.empty() ? std::nullopt : std::optional(call.tensor);
  std::optional<std::size_t> n;
  if (!call.n.empty()) n = parse_count(call.n, "--n", 1, Mask::most_tokens);
  if (call.specs.size() > kMostMasks)
    throw InputError(
        fmt::format("{} masks were named; at most {} fit one table.", call.specs.size(), kMostMasks));
  if (tensor && std::none_of(call.specs.begin(), call.specs.end(), names_mask_file))
    throw InputError("--tensor names a tensor of a file, but no mask was given as a file.");
  std::vector<Mask> masks = resolve_masks(call.specs, n, kPapersTokens, common.seed, tensor);
  std::vector<Panel> panels(call.specs.size());
  for (std::size_t k = 0; k < panels.size(); ++k) {
    panels[k].name = call.specs[k];
    panels[k].mask = std::move(masks[k]);
  }
  return panels;
}

Json centres_json(const MaskProperties& properties) {
  Json ranges = Json::array();
  for (const std::uint32_t centre : properties.centres) {
    if (!ranges.empty() && ranges.back()[1] == centre - 1) {
      ranges.back()[1] = centre;
    } else {
      ranges.push_back({centre, centre});
    }
  }
  return {{"count", properties.centres.size()}, {"ranges", ranges}};
}

Json to_json(const Panel& panel) {
  const MaskProperties& properties = panel.properties;
  const auto length = [](const std::optional<std::size_t>& value) { return value ? Json(*value) : Json(); };
  return {{"mask", panel.name},
          {"tokens", properties.n},
          {"edges", properties.edges},
          {"density", properties.density},
          {"sparsity", 1 - properties.density},
          {"self_loops", properties.self_loops},
          {"empty_rows", properties.empty_rows},
          {"components", properties.components},
          {"strongly_connected", properties.strongly_connected()},
          {"quasi_strongly_connected", properties.quasi_strongly_connected()},
          {"centres", centres_json(properties)},
          {"radius", length(properties.radius)},
          {"diameter", length(properties.diameter)}};
}

Json results_json(const MaskFigure& figure, const Provenance& made_by, double seconds) {
  Json results = {{"command", "mask"}};
  results.update(normscope::to_json(made_by));
  results["seconds"] = seconds;
  results["masks"] = Json::array();
  for (const Panel& panel : figure.panels) results["masks"].push_back(to_json(panel));
  return results;
}

void write_run(const RunDirectory& directory, const MaskCall& call, const MaskFigure& figure,
               const Provenance& made_by, const Json& results) {
  Json options = {{"masks", call.specs}, {"n", Json::array()}};
  for (const Panel& panel : figure.panels) options["n"].push_back(panel.mask.n());
  if (!call.tensor.empty()) options["tensor"] = call.tensor;
  directory.write_config("mask", made_by, options.dump(-1, ' ', false, Json::error_handler_t::replace));
  directory.write("results.json", json_text(results));
  directory.write("mask.svg", mask_svg(figure));
  directory.write("report.html", render_html(mask_page(figure, made_by, json_text(results, -1))));
}

// Small masks token by token, two characters wide since characters are about twice as high; larger ones in
// cells, whose shade is the share of allowed pairs.
std::string drawing(const Mask& mask) {
  const std::size_t n = mask.n(), room = std::min<std::size_t>(64, terminal_width() - 10);
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

std::string screen(const MaskFigure& figure) {
  if (figure.panels.size() > 1) {
    MaskFigure shown = figure;
    for (Panel& panel : shown.panels) panel.name = printable(panel.name);
    return table(mask_table(shown));
  }
  const Panel& panel = figure.panels.front();
  return fmt::format("Mask {}: token i (down) attends to token j (across)\n", printable(panel.name)) +
         drawing(panel.mask) + "\n" + property_table(panel);
}

void require_listable(const MaskCall& call, const Common& common, const std::vector<Panel>& panels) {
  if (call.edges.empty()) return;
  if (panels.size() > 1) throw InputError("--edges writes one mask, but several were named; name one.");
  if (common.json && call.edges == "-")
    throw InputError("--json and --edges - both ask for standard output; give --edges a file.");
  const std::uint64_t edges = panels.front().mask.edges();
  if (edges > kMostListedEdges)
    throw InputError(fmt::format("The mask has {} edges; --edges lists at most {}. Take fewer tokens.", edges,
                                 kMostListedEdges));
}

void run_mask(const MaskCall& call, const Common& common) {
  MaskFigure figure{.panels = resolve(call, common), .caption = {}};
  require_listable(call, common, figure.panels);
  if (!call.edges.empty() && call.edges != "-") require_place_for_file(call.edges);
  const auto directory = replaceable_directory(common);
  const auto start = std::chrono::steady_clock::now();
  for (Panel& panel : figure.panels) panel.properties = mask_properties(panel.mask);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const Provenance made_by = provenance(common.seed, 1);
  figure.caption = fmt::format("seed {} · normscope {} ({}, {})", made_by.seed, made_by.version,
                               made_by.commit, made_by.isa);
  const Json results = results_json(figure, made_by, seconds);
  if (directory) {
    write_run(*directory, call, figure, made_by, results);
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (call.edges == "-") return print(io::edge_list(figure.panels.front().mask));
  if (!call.edges.empty()) write_file_atomically(call.edges, io::edge_list(figure.panels.front().mask));
  print(common.json ? json_text(results, -1) : screen(figure));
}

}  // namespace

void add_mask(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "mask", "Draw attention masks and tell their centres, radius and diameter",
      {"mask causal --n 16", "mask full causal window:1 onesided:1 --n 128",
       "mask 'global:2+window:8&causal' --n 4096", "mask random:0.1 --n 24 --seed 3 --out runs/mask",
       "mask mask.npy --json", "mask window:2 --n 6 --edges -"});
  auto call = std::make_shared<MaskCall>();
  command
      ->add_option("SPEC", call->specs,
                   "Masks: families by name, or files; several are compared in one table")
      ->type_name("")
      ->required();
  command->add_option("--n", call->n, "Tokens, up to 16777216 [128, or those of the first file]")
      ->type_name("N");
  command->add_option("--tensor", call->tensor, "Which tensor of a file; needed if it holds several")
      ->type_name("NAME");
  command
      ->add_option(
          "--edges", call->edges,
          "Write the mask as an edge list, `i j`: token i attends to token j; - is standard output, instead "
          "of the text")
      ->type_name("FILE");
  command->footer(
      command->get_footer() + "\n\nFamilies: " + mask_list() +
      "\na+b is the union, a&b the intersection, which binds tighter.\n"
      "Files: rows of 0 and 1; a line `edges n`, then lines `i j`; or an n × n tensor of 0 and 1 in "
      ".npy, .npz or .safetensors. - is standard input.");
  command->callback([call, &common] { run_mask(*call, common); });
}

}  // namespace normscope::cli
