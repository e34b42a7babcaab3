// What masks are as graphs, in words and tables.
#include "report/mask_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "normscope/error.h"
#include "result/columns.h"

namespace normscope {
namespace {

std::string or_none(const std::optional<std::size_t>& length, std::string_view none) {
  return length ? std::to_string(*length) : std::string(none);
}

struct MaskRow {
  MaskResult mask;

  static void describe(auto& visit, auto& self) {
    const MaskResult& mask = self.mask;
    visit("mask", mask.mask, "as given");
    visit("tokens", mask.tokens, "n");
    visit("edges", mask.edges, "pairs of a token and one that it attends to");
    visit("density", fmt::format("{:.4g} %", 100 * mask.density), "edges / n²");
    visit("self-loops", mask.self_loops, "tokens that attend to themselves");
    visit("empty rows", mask.empty_rows, "tokens that attend to nothing");
    visit("connected",
          mask.strongly_connected         ? "strongly"
          : mask.quasi_strongly_connected ? "quasi-strongly"
                                          : "no",
          "every token reaches every token, or some token does");
    visit("centres", mask.centres.count, "tokens that reach every token");
    visit("radius", or_none(mask.radius, "infinite"), "layers after which some token has reached all");
    visit("diameter", or_none(mask.diameter, "infinite"), "layers after which every token has");
  }
};

std::string sentence(const MaskFigure::Panel& panel) {
  const MaskProperties& properties = panel.properties;
  if (!properties.quasi_strongly_connected())
    return fmt::format("{}: no token reaches all, the radius is infinite.", panel.name);
  return fmt::format("{}: after {} layer{} some token has reached all.", panel.name, *properties.radius,
                     properties.radius == 1u ? "" : "s");
}

}  // namespace

std::string centre_list(const MaskProperties& properties, std::size_t most) {
  std::string list;
  for (std::size_t k = 0; k < std::min(most, properties.centres.size()); ++k)
    list += fmt::format("{}{}", k == 0 ? "" : ", ", properties.centres[k]);
  return list + (properties.centres.size() > most ? " …" : "");
}

std::vector<std::vector<std::string>> mask_table(const MaskFigure& figure) {
  std::vector<MaskRow> rows;
  for (const MaskFigure::Panel& panel : figure.panels) rows.push_back({result_of(panel)});
  return table_of(rows);
}

Page mask_page(const MaskFigure& figure, const Provenance& provenance, std::string data) {
  Page page;
  page.title = figure.panels.size() == 1 ? "Mask " + figure.panels.front().name : "Masks";
  for (const MaskFigure::Panel& panel : figure.panels)
    page.verdict += (page.verdict.empty() ? "" : " ") + sentence(panel);
  page.paragraphs = {
      "A mask is a graph (Wu et al. 2024): nodes are tokens, and information flows from token j to token i "
      "if i attends to j. A centre is a token that reaches every token. The mask is quasi-strongly connected "
      "if there is one, and strongly connected if all tokens are. The radius is the least, over the centres, "
      "of the greatest distance to a token: the number of layers after which some token has reached all. The "
      "diameter is the greatest distance of two tokens.",
      "A token that attends to nothing (an empty row) has no score to take a softmax of; its attention is "
      "defined as 0."};
  page.figures.push_back(
      {"mask", figure.panels.size() == 1 ? "The mask" : "The masks",
       "Rows are tokens, columns what they attend to. Small masks are also drawn as graphs.",
       mask_svg(figure), mask_csv(figure), settings_text(provenance)});
  page.tables.push_back({"As graphs", mask_table(figure)});
  page.footer = fmt::format("seed {} · normscope {} ({}, {})", provenance.seed, provenance.version,
                            provenance.commit, provenance.isa);
  page.data = std::move(data);
  return page;
}

RunView mask_view(const MasksResult& result, const Provenance& made) {
  constexpr std::size_t most_drawn = 12, most_tokens = 4096, longest_name = 500;
  RunView view;
  PageSection& section = view.section;
  std::vector<MaskRow> rows;
  MaskFigure figure;
  for (const MaskResult& mask : result.masks) {
    if (rows.size() >= RunView::most_rows) break;
    rows.push_back({mask});
    if (mask.mask.size() > longest_name || mask.tokens == 0 || mask.tokens > most_tokens ||
        figure.panels.size() >= most_drawn)
      continue;
    try {
      Mask built = parse_mask(mask.mask, mask.tokens, made.seed);
      if (built.edges() != mask.edges) continue;
      MaskProperties properties = mask_properties(built);
      figure.panels.push_back({mask.mask, std::move(built), std::move(properties)});
    } catch (const InputError&) {
      continue;  // a file
    }
  }
  if (rows.empty()) throw InputError("there is no mask");
  const MaskResult& first = rows.front().mask;
  section.verdict = rows.size() == 1 ? fmt::format("{}: radius {}, {} centre{}.", first.mask,
                                                   or_none(first.radius, "infinite"), first.centres.count,
                                                   first.centres.count == 1 ? "" : "s")
                                     : fmt::format("{} masks.", rows.size());
  if (!figure.panels.empty())
    section.figures.push_back({"mask", "The masks",
                               "Rows are tokens, columns what they attend to. Small masks are also graphs.",
                               mask_svg(figure), mask_csv(figure), settings_text(made)});
  if (figure.panels.size() < rows.size())
    section.paragraphs.emplace_back(
        "Masks from files and large ones are drawn in the run's own report only.");
  section.tables.push_back({"As graphs", table_of(rows)});
  return view;
}

}  // namespace normscope
