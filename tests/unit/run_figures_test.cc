// Figures of trainings and of keys, and the report over several runs.
#include <gtest/gtest.h>

#include <cmath>

#include "normscope/error.h"
#include "report/keys_page.h"
#include "report/runs_page.h"
#include "unit/markup.h"

namespace normscope {
namespace {

TrainingSeries series(const std::string& norm, std::uint64_t seed, double offset, std::size_t rows = 3) {
  TrainingSeries each{norm, seed, {}};
  for (std::size_t i = 0; i < rows; ++i) {
    const double step = 10 * static_cast<double>(i);
    each.rows.push_back(
        {step, {i == 0 ? std::nan("") : 1 + offset, 0.5 + offset / 10, 45, 0.1, std::nan("")}});
  }
  return each;
}

TEST(TrainingFigure, BandsAreIntervalsOverSeeds) {
  const std::vector<TrainingSeries> all = {series("a", 1, 0), series("a", 2, 0.5), series("a", 3, 1),
                                           series("b", 1, 0)};
  TrainingMarks marks;
  marks[0] = {{"a", 10, 1.5, "read"}, {"a", 1000, 1, "beyond"}};
  const CurveFigure figure = training_curves(all, marks);
  ASSERT_EQ(figure.panels.size(), 4u);
  ASSERT_EQ(figure.panels[0].curves.size(), 2u);
  const auto& a = figure.panels[0].curves[0];
  EXPECT_EQ(a.x, (std::vector<double>{10, 20}));  // at step 0 there is no training loss
  EXPECT_EQ(a.y[0], 1.5);
  EXPECT_LT(a.low[0], 1.5);
  EXPECT_TRUE(figure.panels[0].curves[1].low.empty());
  EXPECT_EQ(figure.panels[0].marks.size(), 1u);
  EXPECT_NE(training_verdict(all).find("b: 50.0 %"), std::string::npos);
  EXPECT_EQ(training_table(all).rows.size(), 3u);
  EXPECT_EQ(count(training_figure(all, marks, "").svg, "class=\"band\""), 4u);
}

TEST(TrainingFigure, OfTwoSeedsBothCurvesAreDrawn) {
  const std::vector<TrainingSeries> all = {series("a", 1, 0), series("a", 2, 1), series("b", 1, 0)};
  const CurveFigure figure = training_curves(all, {});
  const auto& curves = figure.panels[0].curves;
  ASSERT_EQ(curves.size(), 3u);
  EXPECT_EQ(curves[0].y, (std::vector<double>{1, 1}));
  EXPECT_EQ(curves[1].y, (std::vector<double>{2, 2}));
  EXPECT_EQ(curves[0].name, curves[1].name);  // one colour, one entry of the legend
  const Figure drawn = training_figure(all, {}, "");
  EXPECT_EQ(count(drawn.svg, "class=\"band\""), 0u);
  EXPECT_EQ(count(drawn.svg, "data-toggle=\"a\""), 1u);
  EXPECT_EQ(count(drawn.svg, "class=\"line\" data-name=\"a\" data-curve=\"a, seed 2\""), 4u);
  EXPECT_NE(drawn.csv.find("Training loss,\"a, seed 2\",10,2,,"), std::string::npos) << drawn.csv;
  EXPECT_NE(drawn.caption.find("Of two seeds both curves are drawn."), std::string::npos) << drawn.caption;
}

TEST(TrainingFigure, WhereTwoOfThreeSeedsAreLeftThereIsNoBand) {
  const std::vector<TrainingSeries> all = {series("a", 1, 0, 5), series("a", 2, 0.5, 5),
                                           series("a", 3, 1, 3)};
  const CurveFigure::Curve curve = training_curves(all, {}).panels[0].curves[0];
  ASSERT_EQ(curve.x.back(), 40);
  EXPECT_EQ(curve.y.back(), 1.25);
  EXPECT_TRUE(std::isnan(curve.low.back()));
  EXPECT_LT(curve.low.front(), curve.y.front());
}

TEST(TrainingTable, OfTwoSeedsShowsBothValues) {
  const std::vector<TrainingSeries> two = {series("a", 1, 0), series("a", 2, 1)};
  const ReportTable table = training_table(two);
  EXPECT_EQ(table.rows[1][3], "1.000, 2.000");
  EXPECT_EQ(table.title, "Where the trainings are (of two seeds both values are shown)");
  EXPECT_NE(training_verdict(two).find("a: 50.0, 60.0 %"), std::string::npos) << training_verdict(two);
  const ReportTable three =
      training_table(std::vector{series("a", 1, 0), series("a", 2, 1), series("a", 3, 2)});
  EXPECT_NE(three.rows[1][3].find("2.000 ± "), std::string::npos) << three.rows[1][3];
  EXPECT_NE(three.title.find("± is the 95 % interval over seeds"), std::string::npos);
  EXPECT_EQ(training_table(std::vector{series("a", 1, 0)}).title,
            "Where the trainings are (one seed has no interval)");
}

TEST(TrainingFigure, ShowsOnlyWhatWasMeasured) {
  const double none = std::nan("");
  const std::vector<TrainingSeries> all = {{"a", 1, {{10, {2, none, none, none, 2.5}}}}};
  const CurveFigure figure = training_curves(all, {});
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(figure.panels[0].title, "Training loss");
  EXPECT_EQ(figure.panels[1].title, "Held-out loss");
  EXPECT_EQ(training_verdict(all), "Held-out loss at the last step: a: 2.500.");
  EXPECT_EQ(training_table(all).rows[0].size(), 5u);
}

TEST(TrainingFigure, LongTrainingsAreThinnedAndItIsSaid) {
  const Figure figure = training_figure(std::vector{series("a", 1, 0, 20'000)}, {}, "");
  EXPECT_NE(figure.caption.find("points that pixels cannot show were left out"), std::string::npos);
  EXPECT_LT(figure.csv.size() + figure.svg.size(), 600'000u);
}

TEST(KeysFigure, CountsEveryKeyOnce) {
  KeysRun run;
  run.source = "keys.npy";
  run.norm = "none";
  run.sets = {{5, 2, 2, {3, 1, 1}, {2, 0, 1}, {1e-9, 1, INFINITY}, {0.5}}};
  EXPECT_EQ(keys_verdict(run),
            "Of 5 keys, 3 (60.0 %) are selectable, 1 (20.0 %) tied and 1 (20.0 %) unselectable.");
  const auto figures = keys_figures(run, "s");
  ASSERT_EQ(figures.size(), 1u);
  double keys = 0;
  for (std::size_t at = figures[0].csv.find("\nMargins"); at != std::string::npos;
       at = figures[0].csv.find("\nMargins", at + 1)) {
    const std::string row = figures[0].csv.substr(at + 1, figures[0].csv.find('\n', at + 1) - at - 1);
    const std::size_t y = row.find(',', row.find(',', row.find(',') + 1) + 1) + 1;
    keys += std::stod(row.substr(y));
  }
  EXPECT_EQ(keys, 2 * 2);  // both ends of a bin hold its count; an infinite margin has no place
  run.sets[0].margins.clear();
  run.sets[0].depths.clear();
  EXPECT_TRUE(keys_figures(run, "").empty());
}

RunFiles run_of(const char* command, nlohmann::ordered_json results) {
  RunFiles run;
  run.directory = run.name = "runs/x";
  run.command = command;
  run.config = {{"program", "normscope"},
                {"command", command},
                {"seed", 3},
                {"version", "0.1.0"},
                {"options", {{"a", 1}}}};
  run.results = std::move(results);
  return run;
}

TEST(RunsReport, RefusesResultsOfAnotherKind) {
  for (const char* command :
       {"heatmap", "collapse", "equilibria", "mask", "keys", "paper", "scan", "vocab", "ablate"}) {
    for (const char* text :
         {"{}", R"({"grids":[1],"curves":3,"weights":[{"w":"x"}],"masks":[4],"sets":{},"claims":0})",
          R"({"init":"normal","precision":"float32","n":[3],"d":[2],"grids":[{"cells":[]}]})"}) {
      RunsReport report({});
      EXPECT_THROW(report.add(run_of(command, nlohmann::ordered_json::parse(text))), InputError)
          << command << text;
    }
  }
}

TEST(RunsReport, NamesWhatDiffersAndOverlaysTrainings) {
  RunsReport report({.folder = ".", .marks = {}, .runs = 2});
  for (const char* norm : {"a", "b"}) {
    RunFiles run = run_of("train majority", nullptr);
    run.name = std::string("runs/<") + norm + ">";
    run.config["options"] = {{"settings", {{"dim", 8}, {"steps", norm[0] == 'a' ? 20u : 30u}}}};
    run.log.series = {series(norm, 1, 0), series(norm, 2, 0)};
    report.add(std::move(run));
  }
  const Page page = report.page({"1", "c", "isa", 0, 1});
  ASSERT_EQ(page.figures.size(), 1u);
  EXPECT_EQ(count(page.figures[0].csv, "Training loss,\"a, seed 2\","), 2u);
  EXPECT_EQ(count(page.figures[0].csv, "Training loss,\"b, seed 1\","), 2u);
  EXPECT_EQ(page.claims.rows[1][2], "at step 20 of 20");
  EXPECT_EQ(page.above[0].rows[0], (std::vector<std::string>{"run", "main result"}));
  EXPECT_EQ(page.above[1].rows[0], (std::vector<std::string>{"run", "norms", "steps"}));
  EXPECT_EQ(page.sections.size(), 2u);
  EXPECT_EQ(count(render_html(page), "runs/<"), 0u);
}

TEST(RunsReport, LeavesOutFiguresThatDoNotFitAndSaysSo) {
  RunsReport report({.folder = ".", .marks = {}, .runs = 1, .most_bytes = 1000});
  RunFiles run = run_of("train majority", nullptr);
  run.log.series = {series("a", 1, 0)};
  report.add(std::move(run));
  const Page page = report.page({});
  EXPECT_TRUE(page.sections[0].figures.empty());
  EXPECT_NE(page.sections[0].paragraphs.back().find("Left out"), std::string::npos);
}

}  // namespace
}  // namespace normscope
