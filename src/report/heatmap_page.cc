#include "report/heatmap_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/number_text.h"
#include "normscope/error.h"
#include "result/columns.h"

namespace normscope {
namespace {

constexpr std::size_t kMostCells = 100'000;  // of a grid that is read

std::string percent(double share) {
  if (share == 0 || share == 1 || share < 0.0001) return short_percent(share, 1);
  return normscope::percent(share, share < 0.01 || share > 0.99 ? 2 : 1);
}

std::string with_error(double share, double error) {
  if (std::isnan(error)) return percent(share);
  return fmt::format("{} (± {:.2g})", percent(share), 100 * error);
}

std::string distribution(KeyInit init) {
  switch (init) {
    case KeyInit::uniform:
      return "U(−1, 1)";
    case KeyInit::xavier:
      return "U(±√(6/(n+d)))";
    case KeyInit::normal:
      break;
  }
  return "N(0, 1)";
}

// Which panel of the paper's Fig. 1 shows the same experiment.
std::string paper_panel(const HeatmapRun& run, const std::string& norm) {
  if (run.init != KeyInit::normal) return "";
  return norm == "none" ? " (Fig. 1c)" : norm == "layernorm" ? " (Fig. 1d)" : "";
}

std::string panel_title(const HeatmapRun& run, const std::string& norm) {
  return (norm == "none" ? "Keys as drawn" : "After " + norm) + paper_panel(run, norm);
}

std::string place(const HeatmapCell& cell) {
  return fmt::format("n = {}, d = {}", cell.n, cell.d);
}

const HeatmapRun::Grid* grid_of(const HeatmapRun& run, std::string_view norm) {
  for (const auto& grid : run.grids) {
    if (grid.norm == norm) return &grid;
  }
  return nullptr;
}

HeatmapFigure::Panel panel_of(const HeatmapRun& run, const HeatmapRun::Grid& grid, bool any) {
  HeatmapFigure::Panel panel{.title = panel_title(run, grid.norm), .values = {}, .hints = {}};
  for (const HeatmapCell& cell : grid.heatmap.cells) {
    panel.values.push_back(any ? cell.any : cell.fraction);
    const bool by_rounding = cell.unselectable > 0 && cell.robust_unselectable == 0;
    panel.hints.push_back(
        fmt::format("{}\n{} of keys\n{} of draws{}", place(cell), with_error(cell.fraction, cell.fraction_se),
                    with_error(cell.any, cell.any_se), by_rounding ? "\nnone robust against rounding" : ""));
  }
  return panel;
}

std::string made_by(const HeatmapRun& run) {
  return fmt::format("{} draws per cell from {} in {} · seed {} · normscope {} ({}, {}, {} thread{})",
                     run.draws, distribution(run.init), name_of(run.precision), run.provenance.seed,
                     run.provenance.version, run.provenance.commit, run.provenance.isa,
                     run.provenance.threads, run.provenance.threads == 1 ? "" : "s");
}

// A line of cells.csv.
struct CellRow {
  std::string norm = {};
  HeatmapCellResult cell = {};

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "applied to the keys");
    HeatmapCellResult::describe(visit, self.cell);
  }
};

struct GridRow {
  std::string norm;
  HeatmapSummary summary;

  static void describe(auto& visit, auto& self) {
    const HeatmapSummary& summary = self.summary;
    visit("norm", self.norm, "of the grid");
    visit("keys", grouped(summary.keys), "of all draws");
    visit("unselectable", grouped(summary.unselectable), "of these");
    visit("robust", grouped(summary.robust_unselectable), "of these, whatever rounding did");
    visit("tied", grouped(summary.tied), "of all keys");
    visit("most keys, n × d", at(summary.most_fraction.fraction, summary.most_fraction),
          "largest share in a cell");
    visit("most draws, n × d", at(summary.most_any.any, summary.most_any), "with one at least");
    visit("cells with none", fmt::format("{} of {}", grouped(summary.clear_cells), grouped(summary.cells)),
          "in any draw");
  }
  static std::string at(double share, const HeatmapCell& cell) {
    return share == 0 ? percent(0) : fmt::format("{} at {} × {}", percent(share), cell.n, cell.d);
  }
};

// Up to `count` indices spread over [0, size), ends included.
std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(size, count); ++i) {
    chosen.push_back(size <= count ? i : i * (size - 1) / (count - 1));
  }
  return chosen;
}

struct ReadingRow {
  const HeatmapCell& cell;

  static void describe(auto& visit, auto& self) {
    const HeatmapCell& cell = self.cell;
    visit("n", cell.n, "keys");
    visit("d", cell.d, "their dimension");
    visit("mean share of keys", with_error(cell.fraction, cell.fraction_se), "that are unselectable");
    visit("draws with at least one", with_error(cell.any, cell.any_se), "share");
  }
};

ReportTable readings_table(const HeatmapRun::Grid& grid) {
  const Heatmap& heatmap = grid.heatmap;
  std::vector<ReadingRow> rows;
  for (const std::size_t row : spread(heatmap.d.size(), 4))
    for (const std::size_t column : spread(heatmap.n.size(), 3))
      rows.push_back({heatmap.cells[row * heatmap.n.size() + column]});
  return {"The two readings at some cells, norm " + grid.norm, table_of(rows)};
}

}  // namespace

ReportTable heatmap_summary(const HeatmapRun& run) {
  std::vector<GridRow> rows;
  for (const auto& grid : run.grids) rows.push_back({grid.norm, summarise(grid.heatmap)});
  return {"Summary", table_of(rows)};
}

std::string heatmap_csv(const HeatmapRun& run) {
  Csv<CellRow> csv({"unselectable", "robust_unselectable"});
  for (const auto& grid : run.grids)
    for (const HeatmapCell& cell : grid.heatmap.cells) csv.add({grid.norm, {cell}});
  return std::move(csv).text();
}

HeatmapFigure heatmap_figure(const HeatmapRun& run) {
  HeatmapFigure figure{.x_label = "n (number of keys)",
                       .y_label = "d (dimension)",
                       .x = {},
                       .y = {},
                       .rows = {},
                       .caption = made_by(run)};
  figure.rows = {{"Mean share of unselectable keys (the paper's caption)", "share of keys", {}},
                 {"Draws with at least one unselectable key (the paper's code)", "share of draws", {}}};
  for (const auto& grid : run.grids) {
    figure.x = grid.heatmap.n;
    figure.y = grid.heatmap.d;
    figure.rows[0].panels.push_back(panel_of(run, grid, false));
    figure.rows[1].panels.push_back(panel_of(run, grid, true));
  }
  return figure;
}

HeatmapFigure heatmap_reading(const HeatmapRun& run, std::size_t row) {
  HeatmapFigure figure = heatmap_figure(run);
  figure.rows = {figure.rows.at(row)};
  figure.rows[0].panels.resize(std::min<std::size_t>(1, figure.rows[0].panels.size()));
  return figure;
}

std::string rounding_sentence(const HeatmapRun& run) {
  std::string text;
  for (const auto& grid : run.grids) {
    const auto by_rounding = [](const HeatmapCell& cell) {
      return cell.unselectable > 0 && cell.robust_unselectable == 0;
    };
    const HeatmapSummary all = summarise(grid.heatmap);
    if (all.robust_unselectable > 0) continue;
    const auto cells = static_cast<std::size_t>(
        std::count_if(grid.heatmap.cells.begin(), grid.heatmap.cells.end(), by_rounding));
    if (cells > 0)
      text += fmt::format(
          " After {} {} of {} {} not grey: rounding to {} alone moved {} of {} into the others' hull, and none of these "
          "verdicts is robust.",
          grid.norm, cells, counted(all.cells, "cell"), cells == 1 ? "is" : "are", name_of(run.precision),
          grouped(all.unselectable), grouped(all.keys) + " keys");
  }
  return text;
}

std::string heatmap_readings(const HeatmapRun& run) {
  const std::string text =
      "The paper's caption calls its colour the average fraction of unselectable keys; its published code "
      "counts the draws with at least one, so that is what it plotted.";
  const HeatmapRun::Grid* widest = nullptr;
  HeatmapCell cell;
  for (const auto& grid : run.grids) {
    const HeatmapCell gap = summarise(grid.heatmap).widest_gap;
    if (gap.any > gap.fraction && (widest == nullptr || gap.any - gap.fraction > cell.any - cell.fraction)) {
      widest = &grid;
      cell = gap;
    }
  }
  if (widest == nullptr) return text + " On this grid the two agree: both are 0, or every key counts.";
  return text + fmt::format(" They differ most at {} ({}): {} of the keys, but {} of the draws.", place(cell),
                            widest->norm == "none" ? "no norm" : widest->norm, percent(cell.fraction),
                            percent(cell.any));
}

Page heatmap_page(const HeatmapRun& run, std::string data) {
  Page page;
  page.title = "Unselectable random keys";
  page.verdict = heatmap_verdict(run);
  page.paragraphs = {
      fmt::format(
          "Each cell holds {} draws of n keys in d dimensions from {}. A key is unselectable if every query "
          "that tells the keys apart scores some other key strictly higher: it lies in the interior of the "
          "convex hull of the keys. The same draws are used under every norm. Verdicts are exact for the {} "
          "numbers. Grey marks cells where no draw had an unselectable key.",
          run.draws, distribution(run.init), name_of(run.precision)),
      heatmap_readings(run)};
  if (const HeatmapRun::Grid* none = grid_of(run, "none"); none != nullptr && run.grids.size() > 1) {
    page.paragraphs.push_back(heatmap_sentence(run, *none));
  }
  page.paragraphs.emplace_back(
      "Keys here are what enters the attention block. A head scores them after multiplication with W_K, into "
      "fewer dimensions, where keys that are all selectable here need not be.");
  const HeatmapFigure figure = heatmap_figure(run);
  page.figures.push_back(
      {"heatmap", "Unselectable keys by number of keys and dimension",
       "After Brody, Alon, Yahav (2023), Fig. 1c and 1d. Point at a cell for its values (± standard error)." +
           rounding_sentence(run),
       heatmap_svg(figure), heatmap_csv(run), made_by(run)});
  page.tables.push_back(heatmap_summary(run));
  if (!run.grids.empty()) {
    const HeatmapRun::Grid* none = grid_of(run, "none");
    page.tables.push_back(readings_table(none != nullptr ? *none : run.grids.front()));
  }
  page.footer = made_by(run);
  page.data = std::move(data);
  return page;
}

RunView heatmap_view(const HeatmapResult& result, const Provenance& made) {
  HeatmapRun run{{}, result.init, result.precision, result.draws, made};
  for (const HeatmapGridResult& grid : result.grids) {
    if (grid.cells.empty() || grid.cells.size() > kMostCells ||
        grid.cells.size() != result.n.size() * result.d.size())
      throw InputError("a grid has not one cell for every n and d");
    HeatmapRun::Grid& each = run.grids.emplace_back(HeatmapRun::Grid{grid.norm, {result.n, result.d, {}}});
    for (const HeatmapCellResult& cell : grid.cells) each.heatmap.cells.push_back(cell.cell);
  }
  if (run.grids.empty()) throw InputError("there is no grid");
  Page page = heatmap_page(run, "");
  RunView view;
  view.section.verdict = page.verdict;
  view.section.paragraphs = {heatmap_readings(run)};
  view.section.tables = {page.tables.front()};
  // Without a hint in every cell: the page reads them from the CSV, and the file stays small.
  HeatmapFigure figure = heatmap_figure(run);
  figure.x_column = "n";
  figure.y_column = "d";
  for (auto& row : figure.rows) {
    for (std::size_t p = 0; p < row.panels.size(); ++p) {
      row.panels[p].hints.clear();
      row.panels[p].where = "norm=" + run.grids[p].norm;
    }
  }
  Figure& drawn = view.section.figures.emplace_back(std::move(page.figures.front()));
  drawn.svg = heatmap_svg(figure);
  return view;
}

}  // namespace normscope
