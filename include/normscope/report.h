#pragma once
// Figures and pages: one self-contained HTML file per report (opens from disk, no network, data inside),
// figures as SVG that also stand alone.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/equilibria.h"
#include "normscope/heatmap.h"
#include "normscope/mask.h"
#include "normscope/record.h"

namespace normscope {

// Text made safe inside HTML and SVG, in elements and in quoted attributes; what is not UTF-8 becomes U+FFFD.
std::string escape_markup(std::string_view text);

struct Figure {
  std::string name;  // of the files it is downloaded as, without extension
  std::string title, caption;
  std::string svg = {};  // markup, used as it is
  std::string csv = {};
  std::string settings = {};  // seed, version, settings: what it takes to make the figure again
  std::string html = {};      // markup, used as it is, in the place of svg

  // As it is kept; html is made anew.
  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "of its files");
    visit("title", self.title, "");
    visit("caption", self.caption, "");
    visit("svg", self.svg, "markup");
    visit("csv", self.csv, "what is drawn");
    visit("settings", self.settings, "what it takes to make it again");
  }
};

// "seed 7 · normscope 0.1.0 (commit, instruction set, 4 threads)", after `settings` and " · " if there are
// any.
std::string settings_text(const Provenance& provenance, std::string_view settings = {});

struct ReportTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;  // the first is the header

  static void describe(auto& visit, auto& self) {
    visit("title", self.title, "");
    visit("rows", self.rows, "the first is the header");
  }
};

// A part of a page under a heading of its own: one run of several.
struct PageSection {
  std::string title;
  std::string verdict = {};
  std::vector<std::string> paragraphs = {};
  ReportTable claims = {};
  std::vector<Figure> figures = {};
  std::vector<ReportTable> tables = {};
  std::string link = {};  // relative path of the run's own report; empty: none
};

// Everything but Figure::svg and Figure::html is plain text and is escaped.
struct Page {
  std::string title;
  std::string verdict;  // one sentence, set off at the top; may be empty
  std::vector<std::string> paragraphs;
  ReportTable claims;  // before the figures; without rows: none
  std::vector<Figure> figures;
  std::vector<ReportTable> tables;
  std::string footer;
  std::string data;  // JSON; embedded as <script type="application/json" id="data">
  std::vector<PageSection> sections = {};
};

// Whether SVG markup from a file can do nothing but be seen: no scripts, no handlers, no links, only elements
// that our figures use.
bool is_passive_svg(std::string_view svg);

// Throws Error if page.data is neither empty nor JSON.
std::string render_html(const Page& page);

// Panels of cells over common axes, one colour scale from 0 (dark) to 1 (light, viridis) per row of panels. A
// value of exactly 0 is grey: "never" must not look like "rarely".
struct HeatmapFigure {
  struct Panel {
    std::string title;
    std::vector<double> values;      // y.size() × x.size(), each in [0, 1]
    std::vector<std::string> hints;  // text shown on hover, one per value, or none
    std::string where = {};  // "column=value": rows of the figure's CSV that hold the cells; without hints
                             // the page takes them from there
  };
  struct Row {
    std::string title, scale;  // scale: what the colours count, with its unit
    std::vector<Panel> panels;
  };
  std::string x_label, y_label;
  std::vector<std::size_t> x, y;
  std::vector<Row> rows;
  std::string caption;
  std::string x_column = {}, y_column = {};  // of the CSV
};
std::string heatmap_svg(const HeatmapFigure& figure);

// red, green, blue from 0 to 255 of the palette above; share in [0, 1].
struct Colour {
  int red, green, blue;
};
Colour viridis(double share);

// Curves over common kinds of axes, panels two per row under one legend. A name has the same colour (safe for
// the colour-blind) and the same dashes in every panel. What is not finite, and on a logarithmic axis what is
// not positive, is not drawn and breaks the line.
struct CurveFigure {
  struct Curve {
    std::string name;
    std::vector<double> x, y;
    std::vector<double> low, high;  // a band, e.g. the 95 % interval over seeds; empty: none
  };
  // A published value, a hollow diamond in the colour of the curve of the same name.
  struct Mark {
    std::string name;
    double x, y;
    std::string hint;  // added to what is shown on hover
  };
  struct Panel {
    std::string title, x_label, y_label;
    bool log_x = false, log_y = false;
    std::optional<double> y_low, y_high;  // ends of the axis; what lies beyond is cut off
    std::vector<Curve> curves;
    std::vector<Mark> marks;
  };
  std::vector<Panel> panels;
  std::string caption;
};
std::string curves_svg(const CurveFigure& figure);
// panel,curve,x,y,low,high; marks are the curve "published: name".
std::string curves_csv(const CurveFigure& figure);

// The same figure with at most `most` points per curve (at least 4): of each stretch the first, the least,
// the greatest and the last point stay, so that no peak is lost. Returns how many points were left out.
std::size_t thin(CurveFigure& figure, std::size_t most);

// Values over layers (down) and heads (across), in panels. What is not finite has no value: hatched, "n/a".
struct LayerHeadFigure {
  struct Panel {
    std::string title;
    std::vector<double> values;  // layers × heads
  };
  std::size_t layers = 0, heads = 0;
  std::string scale;                // what the colours count, with its unit
  std::optional<double> low, high;  // ends of the colours; none: those of all values
  bool percent = false;             // values are shares, shown in per cent
  std::vector<Panel> panels;
  std::string caption;
};
std::string layer_head_svg(const LayerHeadFigure& figure);
// panel,layer,head,value; an empty value: n/a
std::string layer_head_csv(const LayerHeadFigure& figure);

// A text, token by token, with what was measured of each. Spaces and line breaks are kept, characters that do
// not show are made visible, every token is isolated from the writing direction of its neighbours, and long
// ones are shortened.
struct TextFigure {
  struct Token {
    std::string text;
    std::optional<double> value = {};  // in [0, 1]: how strongly it is coloured
    std::string kind = {};             // its class, told by colour and by underline; empty: none
    std::string hint = {};

    static void describe(auto& visit, auto& self) {
      visit("text", self.text, "");
      visit("value", self.value, "how strongly it is coloured");
      visit("kind", self.kind, "its class");
      visit("hint", self.hint, "");
    }
  };
  static constexpr std::size_t most_tokens = 20'000;   // shown; the CSV has all
  static constexpr std::size_t most_characters = 200;  // of a token that is shown whole
  std::vector<Token> tokens;
  std::string value_name = "value";

  static void describe(auto& visit, auto& self) {
    visit("value_name", self.value_name, "what the colours mean");
    visit("tokens", self.tokens, "in order");
  }
};
std::string text_html(const TextFigure& figure);
// token,text,value,kind,hint
std::string text_csv(const TextFigure& figure);

// Points in three dimensions, seen from where the plane orthogonal to (1, 1, 1) is nearly a line: points of
// that plane, LayerNorm's, look flat at a glance. Each panel is scaled to its largest point; nearer points
// are larger and darker. What is not finite is not drawn.
struct ScatterFigure {
  struct Point {
    double x, y, z;
    std::string hint;  // shown on hover; empty: name and coordinates
  };
  struct Group {
    std::string name;
    std::vector<Point> points;
    bool arrows = false;  // drawn from the origin: queries
  };
  struct Panel {
    std::string title;
    std::vector<Group> groups;
    bool ones_plane = false;  // draw the plane orthogonal to (1, 1, 1), and the axis along it
  };
  std::vector<Panel> panels;
  std::string caption;
};
std::string scatter_svg(const ScatterFigure& figure);
// panel,group,x,y,z
std::string scatter_csv(const ScatterFigure& figure);

// Unselectable random keys, n × d, under one or more norms (Fig. 1c and 1d of Brody et al. 2023).
struct HeatmapRun {
  struct Grid {
    std::string norm;
    Heatmap heatmap;
  };
  std::vector<Grid> grids;  // over the same n and d
  KeyInit init = KeyInit::normal;
  Precision precision = Precision::float32;
  std::size_t draws = 0;
  Provenance provenance;
};
std::string heatmap_csv(const HeatmapRun& run);
HeatmapFigure heatmap_figure(const HeatmapRun& run);
// Sentences, with their numbers: the claim "after LayerNorm 0 everywhere", and how the two readings differ.
std::string heatmap_verdict(const HeatmapRun& run);
std::string heatmap_readings(const HeatmapRun& run);
Page heatmap_page(const HeatmapRun& run, std::string data);

// Share of allowed pairs in each cell of a coarser grid, rows × columns; cell (r, c) holds the tokens from
// r·n/rows to (r + 1)·n/rows, and likewise across. rows, columns ≤ n.
std::vector<double> mask_shares(const Mask& mask, std::size_t rows, std::size_t columns);

// Masks side by side: as matrices, down-sampled if large, and the small ones also as graphs.
struct MaskFigure {
  struct Panel {
    std::string name;
    Mask mask;
    MaskProperties properties;
  };
  static constexpr std::size_t most_cells = 128;  // of a matrix, across and down
  static constexpr std::size_t most_nodes = 24;   // of a graph
  std::vector<Panel> panels;
  std::string caption;
};
std::string mask_svg(const MaskFigure& figure);
// mask,first_row,last_row,first_column,last_column,share: the cells as drawn, equal neighbours as one, those
// without an edge left out.
std::string mask_csv(const MaskFigure& figure);
// One row per mask under a header: tokens, edges, …, radius, diameter.
std::vector<std::vector<std::string>> mask_table(const MaskFigure& figure);
// "0, 1, 2 …" up to `most` of them.
std::string centre_list(const MaskProperties& properties, std::size_t most);
Page mask_page(const MaskFigure& figure, const Provenance& provenance, std::string data);
// What a dynamical system does on and around the unit circle, in panels two per row, and maps over two angles
// after them. A name has the same colour everywhere. What is not finite is not drawn.
struct PhaseFigure {
  enum class MarkKind { attracting, repelling, singular };  // filled disc, filled diamond, hollow ring
  struct Mark {
    MarkKind kind;
    double x, y;
    std::string label, hint;
  };
  struct Arc {
    std::string name;
    double from, to;  // radians from the x axis, counter-clockwise
    std::string hint;
  };
  // One layer moves a point of the circle from the angle by the turn, radians; drawn outside the circle.
  struct Arrow {
    double angle, turn;
  };
  // A point step by step. Where it is (0, 0), a row that became zero, it has a hollow ring.
  struct Path {
    std::string name;
    std::vector<double> x, y;
    std::string hint;
  };
  struct Panel {
    std::string title;
    std::vector<Arc> arcs;
    std::vector<Arrow> arrows;
    std::vector<Mark> marks;
    std::vector<Path> paths;
    bool inwards =
        false;          // points of paths move towards the centre with every step, so that none hides another
    double extent = 1;  // largest |x| or |y| of the paths
  };
  // Angles from 0° to 360° on both axes.
  struct Map {
    std::string title, x_label, y_label;
    std::size_t cells = 0;            // per axis
    std::vector<std::size_t> values;  // cells × cells, from below; each an index of names
    std::vector<std::string> names;   // a name that contains "zero row" is drawn as hollow rings
    std::string note;                 // below the map
  };
  std::vector<Panel> panels;
  std::vector<Map> maps;
  std::vector<std::string> order;  // names that take the first colours, drawn or not
  std::string caption;
};
std::string phase_svg(const PhaseFigure& figure);
// panel,kind,name,step,x,y: marks, ends of arcs, paths; the cells of maps with their angles in degrees
std::string phase_csv(const PhaseFigure& figure);

// The system of Wu et al. 2024, Theorem 3: two tokens in the plane, and N tokens in d dimensions, at one or
// more w.
struct EquilibriaRun {
  struct Weight {
    double w = 0;
    ArcBasin arc;
    FinalRanks coupled;                // N = 2, d = 2
    std::vector<RankSummary> by_rank;  // N, d
    FinalRanks ranks;                  // N, d
    std::vector<Fate> map;             // cells × cells
    std::vector<TokenPath> paths;
  };
  std::size_t n = 2, d = 2, starts = 0, layers = 0, cells = 0;
  std::vector<Weight> weights;
  Provenance provenance;
};
// Colours mean the same in every figure of the system.
PhaseFigure phase_figure(const EquilibriaRun& run, const EquilibriaRun::Weight& weight);
std::string phase_name(Fate fate);
std::vector<std::string> phase_order();  // PhaseFigure::order
std::string equilibria_verdict(const EquilibriaRun& run);
// What happens to rows that cancel, and how many starts met one.
std::string zero_row_policy(const EquilibriaRun& run);
// w,trajectory,layer,x1,y1,x2,y2,zero_row
std::string trajectories_csv(const EquilibriaRun& run);
Page equilibria_page(const EquilibriaRun& run, std::string data);

}  // namespace normscope
