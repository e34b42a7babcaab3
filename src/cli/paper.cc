// normscope paper: reruns the papers' figures, beside the published values, and says which claims hold.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "normscope/error.h"
#include "normscope/heatmap.h"
#include "normscope/report.h"
#include "paper/majority_claims.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kCommand = "paper";
constexpr std::pair<const char*, const char*> kParts[] = {
    {"fig1ab", "keys and queries of the majority task in three dimensions"},
    {"fig1cd", "heat maps of unselectable random keys"},
    {"fig2", "majority: training loss and the angle of queries to 1"},
    {"fig3", "majority: test accuracy"},
    {"followups", "majority: learned normals instead of 1 (the paper's open questions)"},
};

struct PaperCall {
  std::string only, seeds, steps, resume;
  bool full = false;
};

// As config.json holds it.
struct PaperPlan {
  std::vector<std::string> parts;
  std::vector<std::uint64_t> seeds;
  std::uint64_t steps = 0;     // of the majority runs in 8 dimensions
  std::uint64_t steps_3d = 0;  // at most, of those in 3
  std::size_t draws = 100;     // of the heat maps
  std::uint64_t seed = 0;      // of the heat maps

  bool has(std::string_view part) const { return std::find(parts.begin(), parts.end(), part) != parts.end(); }
};

std::string part_names() {
  std::string names;
  for (const auto& [name, what] : kParts) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return names;
}

PaperPlan resolve(const PaperCall& call, std::uint64_t seed) {
  constexpr std::uint64_t published_steps = 17'000, default_steps = 6'000;
  PaperPlan plan;
  for (const auto& [name, what] : kParts) {
    const auto wanted = split(call.only, ',');
    if (call.only.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      plan.parts.emplace_back(name);
  }
  for (const std::string_view name :
       call.only.empty() ? std::vector<std::string_view>() : split(call.only, ',')) {
    if (!plan.has(name)) {
      std::vector<std::string> known;
      for (const auto& part : kParts) known.emplace_back(part.first);
      const auto meant = nearest(name, known);
      throw InputError(fmt::format("--only does not know '{}'{} It takes one or several of {}.", name,
                                   meant ? fmt::format("; did you mean '{}'?", *meant) : ".", part_names()));
    }
  }
  const auto ten = paper_seeds();
  const auto count = call.seeds.empty() ? ten.size() : parse_count(call.seeds, "--seeds", 1, ten.size());
  plan.seeds.assign(ten.begin(), ten.begin() + static_cast<std::ptrdiff_t>(count));
  if (call.full && !call.steps.empty()) {
    throw InputError("--full is the published number of steps; give it or --steps, not both.");
  }
  plan.steps = call.full ? published_steps : default_steps;
  plan.steps_3d = majority_in_3d().steps;
  if (!call.steps.empty()) {
    plan.steps = parse_count(call.steps, "--steps", 1, 1'000'000'000);
    plan.steps_3d = std::min(plan.steps, plan.steps_3d);
  }
  plan.seed = seed;
  return plan;
}

Json to_json(const PaperPlan& plan) {
  return {{"parts", plan.parts},
          {"seeds", plan.seeds},
          {"steps", plan.steps},
          {"steps_3d", plan.steps_3d},
          {"draws", plan.draws}};
}

PaperPlan read_plan(const fs::path& directory) {
  const Json config = read_config(directory, kCommand);
  try {
    const Json& options = config.at("options");
    PaperPlan plan;
    options.at("parts").get_to(plan.parts);
    options.at("seeds").get_to(plan.seeds);
    options.at("steps").get_to(plan.steps);
    options.at("steps_3d").get_to(plan.steps_3d);
    options.at("draws").get_to(plan.draws);
    config.at("seed").get_to(plan.seed);
    return plan;
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("'{}' cannot be gone on with: its config.json lacks an option; start anew.",
                                 directory.string()));
  }
}

// One training of the audit, in its own run directory inside, begun or gone on with.
MajorityTraining run_training(const fs::path& directory, const std::string& label, const MajorityPlan& plan,
                              const Common& common, const Executor& executor) {
  constexpr const char* command = "train majority";
  const bool begun = fs::exists(directory / "config.json");
  MajorityRecord record = begun ? MajorityRecord::open(directory, command)
                                : MajorityRecord(directory, command, provenance(0, executor.threads()), plan);
  if (begun && normscope::to_json(record.plan()) != normscope::to_json(plan)) {
    throw InputError(
        fmt::format("'{}' holds a training with other settings; name a new directory.", directory.string()));
  }
  MajorityTraining training(plan.settings, plan.runs, executor);
  if (begun) record.restore(training);
  train(training, &record, label, common, executor);
  write_geometry(record.directory(), training.runs());
  return training;
}

MajorityPlan plan_of(const MajoritySettings& settings, const std::vector<std::string>& norms,
                     const PaperPlan& plan) {
  MajorityPlan result{settings, {}};
  for (const std::string& norm : norms) {
    for (const std::uint64_t seed : plan.seeds) result.runs.push_back({norm, seed});
  }
  return result;
}

// The report as it grows.
struct Audit {
  std::vector<Claim> claims;
  std::vector<Figure> figures;

  void add(std::vector<Claim> more) { std::move(more.begin(), more.end(), std::back_inserter(claims)); }
};

void run_figure1ab(const PaperPlan& plan, const fs::path& directory, const Common& common,
                   const Executor& executor, Audit& audit) {
  MajoritySettings settings = majority_in_3d();
  settings.steps = plan.steps_3d;
  const auto training =
      run_training(directory / "majority-3d", "Fig. 1a/b",
                   plan_of(settings, {"layernorm", "rmsnorm", "published"}, plan), common, executor);
  audit.add(claims_of_figure1ab(training.runs()));
  audit.figures.push_back(figure1ab(training.runs()));
}

void run_figure1cd(const PaperPlan& plan, const Common& common, const Executor& executor, Audit& audit) {
  HeatmapRun run;
  run.draws = plan.draws;
  run.provenance = provenance(plan.seed, executor.threads());
  for (const char* norm : {"none", "layernorm"}) {
    HeatmapOptions options;
    for (std::size_t n = 3; n <= 60; ++n) options.n.push_back(n);
    for (std::size_t d = 3; d <= 15; ++d) options.d.push_back(d);
    options.draws = plan.draws;
    options.norm = parse_norm(norm);
    options.seed = plan.seed;
    Progress progress(common, fmt::format("Fig. 1c/d, {}", norm), "cells");
    run.grids.push_back({norm, key_heatmap(options, executor, [&](std::size_t done, std::size_t total) {
                           progress.update(done, total);
                         })});
  }
  const HeatmapSummary before = summarise(run.grids[0].heatmap), after = summarise(run.grids[1].heatmap);
  Claim claim;
  claim.where = "Fig. 1c/d";
  claim.claim = "Random keys are often unselectable; after LayerNorm none is";
  claim.published = "heat map, 0 everywhere after LayerNorm";
  claim.measured = fmt::format(
      "up to {:.0f} % of keys and {:.0f} % of draws before; after LayerNorm {} of {} keys, {} of them "
      "beyond what float32 rounding can do",
      100 * before.most_fraction.fraction, 100 * before.most_any.any, after.unselectable, after.keys,
      after.robust_unselectable);
  claim.holds = before.unselectable > 0 && after.robust_unselectable == 0 ? Holds::yes : Holds::no;
  claim.why = heatmap_readings(run);
  audit.claims.push_back(std::move(claim));
  const HeatmapFigure figure = heatmap_figure(run);
  audit.figures.push_back({"fig1cd", "Unselectable random keys", "", heatmap_svg(figure), heatmap_csv(run)});
}

void run_majority_figures(const PaperPlan& plan, const fs::path& directory, const Common& common,
                          const Executor& executor, Audit& audit) {
  std::vector<std::string> norms = {"layernorm", "rmsnorm", "xsigma", "published"};
  if (!plan.has("fig2") && !plan.has("fig3")) norms = {"layernorm", "rmsnorm"};
  const std::size_t own = norms.size();
  if (plan.has("followups")) norms.insert(norms.end(), {"project:1", "project:2", "project:4"});
  MajoritySettings settings;
  settings.steps = plan.steps;
  const auto training =
      run_training(directory / "majority", "Majority", plan_of(settings, norms, plan), common, executor);
  const auto paper_runs = training.runs().first(own * plan.seeds.size());
  if (plan.has("fig2")) {
    audit.add(claims_of_figure2(paper_runs));
    audit.figures.push_back(figure2(paper_runs));
  }
  if (plan.has("fig3")) {
    audit.add(claims_of_figure3(paper_runs));
    audit.figures.push_back(figure3(paper_runs));
  }
  if (plan.has("followups")) {
    audit.add(answers_to_followups(training.runs()));
    audit.figures.push_back(followup_figure(training.runs()));
  }
}

Json results_json(const PaperPlan& plan, const Audit& audit, const Provenance& origin) {
  Json json = {{"command", kCommand}};
  json.update(normscope::to_json(origin));
  json.update(to_json(plan));
  json["claims"] = Json::array();
  for (const Claim& claim : audit.claims) {
    json["claims"].push_back({{"where", claim.where},
                              {"claim", claim.claim},
                              {"published", claim.published},
                              {"measured", claim.measured},
                              {"verdict", verdict_of(claim)},
                              {"why", claim.why}});
  }
  return json;
}

std::string counts(const Audit& audit) {
  const auto count = [&](Holds holds) {
    return std::count_if(audit.claims.begin(), audit.claims.end(),
                         [&](const Claim& claim) { return claim.holds == holds; });
  };
  const auto answered = count(Holds::answered);
  std::string text =
      fmt::format("Claims: {} in all, {} hold, {} hold only under a condition, {} do not hold, {} open",
                  static_cast<std::ptrdiff_t>(audit.claims.size()) - answered, count(Holds::yes),
                  count(Holds::conditionally), count(Holds::no), count(Holds::open));
  if (answered > 0) text += fmt::format("; questions answered: {}", answered);
  return text;
}

std::string screen(const Audit& audit) {
  std::string text;
  for (const Claim& claim : audit.claims) {
    text += fmt::format("{}: {}\n  published  {}\n  measured   {}\n  verdict    {}\n", claim.where,
                        claim.claim, claim.published, claim.measured, verdict_of(claim));
    if (!claim.why.empty()) text += fmt::format("  why        {}\n", claim.why);
    text += "\n";
  }
  return text + counts(audit) + "\n";
}

Page page_of(const Audit& audit, const PaperPlan& plan, const Provenance& origin, const Json& results) {
  Page page;
  page.title = "On the Expressivity Role of LayerNorm in Transformers' Attention: what holds";
  page.verdict = counts(audit) + ".";
  page.paragraphs = {
      fmt::format("Brody, Alon and Yahav 2023, rerun with {} seed{} and {} training steps of the majority "
                  "task. Published values are read "
                  "off the paper's figures; ± is the 95 % interval of the mean over seeds. \"published\" is "
                  "the norm without projection as "
                  "the paper's code computes it (norm 1/√d), \"rmsnorm\" the one at LayerNorm's scale (√d), "
                  "\"xsigma\" the paper's formula "
                  "read literally (x/σ).",
                  plan.seeds.size(), plan.seeds.size() == 1 ? "" : "s", plan.steps)};
  page.claims = claims_table(audit.claims);
  page.figures = audit.figures;
  page.footer = fmt::format("normscope {} (commit {}, {}), {} threads", origin.version, origin.commit,
                            origin.isa, origin.threads);
  page.data = results.dump();
  return page;
}

void run_paper(const PaperCall& call, const Common& common, const CLI::App& command) {
  const bool resume = resumes(command);
  const fs::path out = resume ? call.resume : common.out.empty() ? "paper" : common.out;
  const PaperPlan plan = resume ? read_plan(out) : resolve(call, common.seed);
  const Executor executor(common.threads);
  const RunDirectory directory(out);
  const Provenance origin = provenance(plan.seed, executor.threads());
  if (!resume) {
    if (directory.holds_run()) {
      throw InputError(fmt::format(
          "'{}' holds an earlier run; go on with it by --resume {}, or name a new directory with --out.",
          out.string(), out.string()));
    }
    directory.write_config(kCommand, origin, to_json(plan).dump());
  }
  Audit audit;
  if (plan.has("fig1ab")) run_figure1ab(plan, out, common, executor, audit);
  if (plan.has("fig1cd")) run_figure1cd(plan, common, executor, audit);
  if (plan.has("fig2") || plan.has("fig3") || plan.has("followups")) {
    run_majority_figures(plan, out, common, executor, audit);
  }
  const Json results = results_json(plan, audit, origin);
  directory.write("results.json", json_text(results));
  directory.write("report.html", render_html(page_of(audit, plan, origin, results)));
  note(common, "Wrote " + (out / "report.html").string());
  print(common.json ? json_text(results, -1) : screen(audit));
}

}  // namespace

void add_paper(CLI::App& app, Common& common) {
  CLI::App* command =
      add_command(app, common, "paper", "Rerun the figures of Brody et al. 2023 and say which claims hold",
                  {"paper --only fig2,fig3 --seeds 3 --out runs/fig2", "paper --full --out runs/paper",
                   "paper --resume runs/paper"});
  auto call = std::make_shared<PaperCall>();
  command->add_option("--only", call->only, "Parts, with commas [all]")->type_name("LIST");
  command->add_option("--seeds", call->seeds, "How many of the paper's ten seeds [10]")->type_name("N");
  command
      ->add_option(
          "--steps", call->steps,
          "Training steps of the majority runs [6000, with --full 17000; in 3-D until solved, at most 10000]")
      ->type_name("N");
  command->add_flag("--full", call->full, "The published number of training steps");
  command->add_option("--resume", call->resume, "Go on with the run in this directory")->type_name("DIR");
  std::string parts = "\n\nParts:";
  for (const auto& [name, what] : kParts) parts += fmt::format("\n  {:<10} {}", name, what);
  command->footer(command->get_footer() + parts + "\n\nWithout --out the directory is ./paper.");
  command->callback([call, &common, command] { run_paper(*call, common, *command); });
}

}  // namespace normscope::cli
