// What masks are as graphs, in words and tables.
#include "report/mask_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "normscope/error.h"

namespace normscope {
namespace {

std::string or_none(const std::optional<std::size_t>& length, std::string_view none) {
  return length ? std::to_string(*length) : std::string(none);
}

std::string connection(const MaskProperties& properties) {
  if (properties.strongly_connected()) return "strongly";
  return properties.quasi_strongly_connected() ? "quasi-strongly" : "no";
}

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
  std::vector<std::vector<std::string>> rows = {{"mask", "tokens", "edges", "density", "self-loops",
                                                 "empty rows", "connected", "centres", "radius", "diameter"}};
  for (const MaskFigure::Panel& panel : figure.panels) {
    const MaskProperties& properties = panel.properties;
    rows.push_back({panel.name, std::to_string(properties.n), std::to_string(properties.edges),
                    fmt::format("{:.4g} %", 100 * properties.density), std::to_string(properties.self_loops),
                    std::to_string(properties.empty_rows), connection(properties),
                    std::to_string(properties.centres.size()), or_none(properties.radius, "infinite"),
                    or_none(properties.diameter, "infinite")});
  }
  return rows;
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
  ReportTable table{"As graphs",
                    {{"mask", "tokens", "edges", "density", "components", "centres", "radius", "diameter"}}};
  MaskFigure figure;
  for (const MaskResult& mask : result.masks) {
    if (table.rows.size() > RunView::most_rows) break;
    table.rows.push_back({mask.mask, std::to_string(mask.tokens), std::to_string(mask.edges),
                          fmt::format("{:.4g} %", 100 * mask.density), std::to_string(mask.components),
                          std::to_string(mask.centres.count), or_none(mask.radius, "infinite"),
                          or_none(mask.diameter, "infinite")});
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
  if (table.rows.size() == 1) throw InputError("there is no mask");
  section.verdict = table.rows.size() == 2 ? fmt::format("{}: radius {}, {} centres.", table.rows[1][0],
                                                         table.rows[1][6], table.rows[1][5])
                                           : fmt::format("{} masks.", table.rows.size() - 1);
  if (!figure.panels.empty())
    section.figures.push_back({"mask", "The masks",
                               "Rows are tokens, columns what they attend to. Small masks are also graphs.",
                               mask_svg(figure), mask_csv(figure), settings_text(made)});
  if (figure.panels.size() + 1 < table.rows.size())
    section.paragraphs.emplace_back(
        "Masks from files and large ones are drawn in the run's own report only.");
  section.tables.push_back(std::move(table));
  return view;
}

}  // namespace normscope
