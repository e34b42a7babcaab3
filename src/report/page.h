#pragma once
// Figures and pages: one self-contained HTML file per report (opens from disk, no network, data inside),
// figures as SVG that also stand alone.
#include <string>
#include <string_view>
#include <vector>

#include "normscope/provenance.h"

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
  std::string note = {};                       // below the title; empty: none

  static void describe(auto& visit, auto& self) {
    visit("title", self.title, "");
    visit.when(!self.note.empty(), "note", self.note, "below the title");
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
  std::vector<ReportTable> tables;  // after the figures
  std::string footer;
  std::string data;  // JSON; embedded as <script type="application/json" id="data">
  std::vector<PageSection> sections = {};
  std::vector<ReportTable> above = {};  // after the claims, before the figures
};

// Whether SVG markup from a file can do nothing but be seen: no scripts, no handlers, no links, only elements
// that our figures use.
bool is_passive_svg(std::string_view svg);

// Whether a file begins as our pages do.
bool is_report_of_ours(std::string_view html);
// Throws Error if page.data is neither empty nor JSON.
std::string render_html(const Page& page);

}  // namespace normscope
