// normscope paper: reruns the papers' figures, beside the published values, and says which claims hold.
#include "result/paper.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/interrupt.h"
#include "cli/paper_parts.h"
#include "normscope/error.h"
#include "record/json.h"
#include "report/page.h"
#include "report/text.h"
#include "result/json_reader.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kCommand = "paper";
struct PaperCall {
  std::string only, seeds, steps, text_steps, samples, models, text, corpus, reviews, resume;
  bool full = false;
};

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const PaperPart& part : paper_parts()) names.emplace_back(part.name);
  return names;
}

// The parts named, in the order in which they are run; all if none is.
std::vector<std::string> parse_parts(const std::string& only) {
  std::vector<std::string> known = part_names();
  if (only.empty()) return known;
  const auto wanted = split(only, ',');
  for (const std::string_view name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto meant = nearest_spelling(name, known);
    throw InputError(fmt::format("--only does not know '{}'{} It takes one or several of {}.", name,
                                 meant ? fmt::format("; did you mean '{}'?", *meant) : ".",
                                 fmt::join(known, ", ")));
  }
  std::vector<std::string> parts;
  for (const std::string& name : known) {
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) parts.push_back(name);
  }
  return parts;
}

// Which pretrained models are looked at, and what they read. Options that no part uses are refused rather
// than ignored.
void resolve_models(const PaperCall& call, const Common& common, PaperPlan& plan) {
  if (!needs_models(plan) && !call.models.empty())
    throw InputError("--models is for wu2, wu3, wu4, wu8 and wu9, none of which --only names.");
  if (!needs_models(plan) && !needs_sentences(plan) && !call.text.empty())
    throw InputError("--text is for table3, table4, wu2, wu3, wu4, wu8 and wu9, none of which --only names.");
  if (call.text == "-")
    throw InputError("--text: a run that can be resumed needs a file, not standard input.");
  const bool looks_at_models = needs_models(plan) && call.models != "none";
  if (looks_at_models || needs_sentences(plan)) plan.text = call.text;
  if (!looks_at_models) return;
  if (call.models.empty()) {
    for (const std::string& name : models_at_hand()) {
      PaperPlan alone = plan;
      alone.models = {name};
      try {
        open_models(alone);
        plan.models.push_back(name);
      } catch (const InputError& error) {
        note(common, fmt::format("Left out: {}: {}", name, error.what()));
      }
    }
    return;
  }
  for (const std::string_view name : split(call.models, ',')) {
    if (name.empty()) throw InputError("--models has an empty name.");
    if (std::find(plan.models.begin(), plan.models.end(), name) == plan.models.end())
      plan.models.emplace_back(name);
  }
  // What is wrong with a model or the text is better told before the first part than after an hour.
  open_models(plan);
}

PaperPlan resolve(const PaperCall& call, const Common& common) {
  // All parts at once are a first look of some minutes; who names parts wants to know.
  constexpr std::uint64_t published_steps = 17'000, default_steps = 6'000, short_steps = 4'000;
  constexpr std::size_t short_seeds = 3, short_samples = 2;
  const bool is_short = call.only.empty() && !call.full;
  PaperPlan plan;
  plan.parts = parse_parts(call.only);
  const auto ten = paper_seeds();
  const auto count = call.seeds.empty() ? (is_short ? short_seeds : ten.size())
                                        : parse_count(call.seeds, "--seeds", 1, ten.size());
  plan.seeds.assign(ten.begin(), ten.begin() + static_cast<std::ptrdiff_t>(count));
  if (call.full && !call.steps.empty()) {
    throw InputError("--full is the published number of steps; give it or --steps, not both.");
  }
  plan.steps = call.full ? published_steps : is_short ? short_steps : default_steps;
  if (is_short) plan.samples = short_samples;
  plan.steps_3d = majority_in_3d().steps;
  if (call.full) {
    plan.samples = 200;
    plan.deep_samples = 4;
  }
  if (!call.samples.empty()) {
    plan.samples = parse_count(call.samples, "--samples", 1, 100'000);
    plan.deep_samples = std::min(plan.deep_samples, plan.samples);
  }
  if (!call.steps.empty()) {
    plan.steps = parse_count(call.steps, "--steps", 1, 1'000'000'000);
    plan.steps_3d = std::min(plan.steps, plan.steps_3d);
  }
  plan.seed = common.seed;
  resolve_models(call, common, plan);
  if (!call.text_steps.empty() && !needs_text(plan)) {
    throw InputError(
        "--text-steps is for fig4, table1, table2, table3 and table4, none of which --only names.");
  }
  if (call.full && !call.text_steps.empty()) {
    throw InputError("--full is the published number of steps; give it or --text-steps, not both.");
  }
  TextWishes wishes;
  wishes.scale = call.full ? TextScale::published : is_short ? TextScale::brief : TextScale::reduced;
  if (!call.text_steps.empty()) wishes.steps = parse_count(call.text_steps, "--text-steps", 1, 1'000'000'000);
  if (!call.seeds.empty()) wishes.seeds = count;
  wishes.corpus = call.corpus;
  wishes.reviews = call.reviews;
  resolve_text(plan, wishes);
  return plan;
}

PaperPlan read_plan(const fs::path& directory) {
  const Json config = read_config(directory, kCommand);
  PaperPlan plan;
  try {
    JsonReader::read(config.at("options"), "options", plan);
    config.at("seed").get_to(plan.seed);
  } catch (const nlohmann::json::exception&) {
    throw InputError(
        fmt::format("'{}' cannot be resumed: its config.json has no options or no seed; start anew.",
                    directory.string()));
  } catch (const InputError& error) {
    throw InputError(fmt::format("'{}' cannot be resumed: in its config.json {} Start anew.",
                                 directory.string(), error.what()));
  }
  return plan;
}

PaperResult result_of(const PaperPlan& plan, const Findings& found, const Provenance& origin) {
  PaperResult result{origin, plan, {}};
  for (const Claim& claim : found.claims)
    result.claims.push_back(
        {claim.where, claim.claim, claim.published, claim.measured, verdict_of(claim), claim.why});
  return result;
}

std::string counts(const Findings& found) {
  const auto count = [&](Holds holds) {
    return std::count_if(found.claims.begin(), found.claims.end(),
                         [&](const Claim& claim) { return claim.holds == holds; });
  };
  const auto answered = count(Holds::answered);
  std::string text =
      fmt::format("Claims: {} in all, {} hold, {} hold only under a condition, {} do not hold, {} open",
                  static_cast<std::ptrdiff_t>(found.claims.size()) - answered, count(Holds::yes),
                  count(Holds::conditionally), count(Holds::no), count(Holds::open));
  if (answered > 0) text += fmt::format("; questions answered: {}", answered);
  return text;
}

std::string screen(const Findings& found) {
  std::string text;
  for (const Claim& claim : found.claims) {
    text += fmt::format("{}: {}\n  published  {}\n  measured   {}\n  verdict    {}\n", claim.where,
                        claim.claim, claim.published, claim.measured, verdict_of(claim));
    if (!claim.why.empty()) text += fmt::format("  why        {}\n", claim.why);
    text += "\n";
  }
  return text + counts(found) + "\n";
}

std::string models_paragraph(const PaperPlan& plan) {
  if (plan.models.empty()) {
    return "The halves of its figures on pretrained models are left out: none is on this machine. normscope "
           "data get minilm (42 MB) and normscope data get stories15m (112 MB) bring two that stand in for "
           "bert-base-uncased and gpt2; --models names others, such as those of the local Hugging Face "
           "cache.";
  }
  return fmt::format(
      "Its halves on pretrained models, in eval mode, with {}, which read {} in place of 3000 excerpts of "
      "Wikipedia; which model stands in for which of the paper's is in the table \"Pretrained models\".",
      fmt::join(plan.models, ", "), text_source(plan));
}

Page page_of(const Findings& found, const PaperPlan& plan, const Provenance& origin,
             const std::string& data) {
  Page page;
  page.title = "Two papers on what normalization and masks do to attention: what holds";
  page.verdict = counts(found) + ".";
  const auto any = [&](std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return plan.has(part); });
  };
  if (any({"fig1ab", "fig1cd", "fig2", "fig3", "followups"})) {
    page.paragraphs.push_back(
        fmt::format("Brody, Alon and Yahav 2023, On the Expressivity Role of LayerNorm in Transformers' "
                    "Attention, rerun with {} "
                    "seed{} and {} training steps of the majority task. Published values are read off the "
                    "paper's figures; ± is "
                    "the 95 % interval of the mean over seeds. \"published\" is the norm without projection "
                    "as the paper's code "
                    "computes it (norm 1/√d), \"rmsnorm\" the one at LayerNorm's scale (√d), \"xsigma\" the "
                    "paper's formula read "
                    "literally (x/σ).",
                    plan.seeds.size(), plan.seeds.size() == 1 ? "" : "s", plan.steps));
  }
  if (any({"wu1", "wu2", "wu3", "wu4", "wu5", "wu6", "wu7", "wu8", "wu9", "beyond"})) {
    page.paragraphs.push_back(
        fmt::format("Wu, Ajorlou, Wang, Jegelka and Jadbabaie 2024, On the Role of Attention Masks and "
                    "LayerNorm in Transformers, "
                    "with {} sample{} at random init (128 layers: {}). μ is the distance of the "
                    "tokens from all being equal; "
                    "it is not free of scale, so μ/‖X‖ stands beside it. No code was published; what the "
                    "paper leaves open (eval mode "
                    "or dropout) is run both ways.",
                    plan.samples, plan.samples == 1 ? "" : "s", plan.deep_samples));
  }
  if (needs_models(plan)) page.paragraphs.push_back(models_paragraph(plan));
  if (needs_text(plan)) page.paragraphs.push_back(text_paragraph(plan));
  page.claims = claims_table(found.claims);
  page.figures = found.figures;
  for (const TextFinding& text : found.texts) {
    Figure figure{text.name, text.title, text.caption};
    figure.html = text_html(text.text);
    figure.csv = text_csv(text.text);
    figure.settings = text.settings;
    page.figures.push_back(std::move(figure));
  }
  for (Figure& figure : page.figures) {
    figure.settings = settings_text(origin, figure.settings);
  }
  page.tables = found.tables;
  page.footer = fmt::format("normscope {} (commit {}, {}), {} threads", origin.version, origin.commit,
                            origin.isa, origin.threads);
  page.data = data;
  return page;
}

// A part that has ended, as it is kept beside the runs, so that --resume need not do it again.
std::string part_file(const PaperPart& part) {
  return fmt::format("part-{}.json", part.name);
}

// The same things under names.
struct KeptClaim {
  Claim claim;
  int holds = 0;
  static void describe(auto& visit, auto& self) {
    visit("where", self.claim.where, "figure, table or section");
    visit("claim", self.claim.claim, "in the paper's words, shortened");
    visit("published", self.claim.published, "value, with its unit");
    visit("measured", self.claim.measured, "mean and interval");
    visit("holds", self.holds, "0 yes, 1 conditionally, 2 no, 3 open, 4 answered");
    visit("condition", self.claim.condition, "what must be granted, or the answer");
    visit("why", self.claim.why, "the evidence");
  }
};
struct KeptFigure {
  Figure figure;
  static void describe(auto& visit, auto& self) {
    visit("name", self.figure.name, "of its files");
    visit("title", self.figure.title, "");
    visit("caption", self.figure.caption, "");
    visit("svg", self.figure.svg, "markup");
    visit("csv", self.figure.csv, "what is drawn");
    visit("settings", self.figure.settings, "what it takes to make it again");
  }
};
struct KeptToken {
  TextFigure::Token token;
  static void describe(auto& visit, auto& self) {
    visit("text", self.token.text, "");
    visit("value", self.token.value, "how strongly it is coloured");
    visit("kind", self.token.kind, "its class");
    visit("hint", self.token.hint, "");
  }
};
struct KeptText {
  TextFinding text;
  std::vector<KeptToken> tokens;
  static void describe(auto& visit, auto& self) {
    visit("name", self.text.name, "of its files");
    visit("title", self.text.title, "");
    visit("caption", self.text.caption, "");
    visit("settings", self.text.settings, "what it takes to make it again");
    visit("value_name", self.text.text.value_name, "what the colours mean");
    visit("tokens", self.tokens, "in order");
  }
};
struct KeptTable {
  ReportTable table;
  static void describe(auto& visit, auto& self) {
    visit("title", self.table.title, "");
    visit("rows", self.table.rows, "the first is the header");
  }
};
struct KeptPart {
  PaperPlan plan;
  std::vector<KeptClaim> claims;
  std::vector<KeptFigure> figures;
  std::vector<KeptText> texts;
  std::vector<KeptTable> tables;
  static void describe(auto& visit, auto& self) {
    visit("plan", self.plan, "of the audit it is a part of");
    visit("seed", self.plan.seed, "");
    visit("claims", self.claims, "");
    visit("figures", self.figures, "");
    visit("texts", self.texts, "");
    visit("tables", self.tables, "");
  }
};

std::string part_json(const PaperPlan& plan, const Findings& found) {
  KeptPart part{plan, {}, {}, {}, {}};
  for (const Claim& claim : found.claims) part.claims.push_back({claim, static_cast<int>(claim.holds)});
  for (const Figure& figure : found.figures) part.figures.push_back({figure});
  for (const TextFinding& text : found.texts) {
    KeptText& kept = part.texts.emplace_back(KeptText{text, {}});
    for (const TextFigure::Token& token : text.text.tokens) kept.tokens.push_back({token});
    kept.text.text.tokens.clear();
  }
  for (const ReportTable& table : found.tables) part.tables.push_back({table});
  return json_of(part);
}

// False if there is no such file, or if it is of other settings or cannot be ours; the part is then run
// again.
bool read_part(const fs::path& file, const PaperPlan& plan, Findings& found) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  KeptPart part;
  try {
    part = from_json<KeptPart>(text, file.string());
  } catch (const InputError&) {
    return false;
  }
  if (json_of(part.plan) != json_of(plan) || part.plan.seed != plan.seed) return false;
  for (KeptClaim& kept : part.claims) {
    if (kept.holds < 0 || kept.holds > static_cast<int>(Holds::answered)) return false;
    kept.claim.holds = static_cast<Holds>(kept.holds);
    found.claims.push_back(std::move(kept.claim));
  }
  for (KeptFigure& kept : part.figures) {
    if (!is_passive_svg(kept.figure.svg)) return false;
    found.figures.push_back(std::move(kept.figure));
  }
  for (KeptText& kept : part.texts) {
    for (KeptToken& token : kept.tokens) kept.text.text.tokens.push_back(std::move(token.token));
    found.texts.push_back(std::move(kept.text));
  }
  for (KeptTable& kept : part.tables) found.tables.push_back(std::move(kept.table));
  return true;
}

template <class T>
void append(std::vector<T>& all, std::vector<T>& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

// What all parts together found.
Findings run_parts(const PaperPlan& plan, const RunDirectory& directory, const Common& common,
                   const Executor& executor) {
  Whole whole;
  whole.total = 0;
  for (const PaperPart& part : paper_parts()) whole.total += plan.has(part.name) ? part.seconds(plan) : 0;
  Audit audit{{}, plan, directory.path(), common, executor, whole, {}, {}, {}};
  Findings all;
  for (const PaperPart& part : paper_parts()) {
    if (!plan.has(part.name)) continue;
    whole.part = part.seconds(plan);
    Findings found;
    if (read_part(directory.path() / part_file(part), plan, found)) {
      whole.total -= whole.part;
    } else {
      part.run(audit);
      found = std::exchange(static_cast<Findings&>(audit), {});
      for (Figure& figure : found.figures) figure.settings = part.settings(plan);
      for (TextFinding& text : found.texts) text.settings = part.settings(plan);
      directory.write(part_file(part), part_json(plan, found));
      whole.before += whole.part;
    }
    append(all.claims, found.claims);
    append(all.figures, found.figures);
    append(all.texts, found.texts);
    append(all.tables, found.tables);
  }
  return all;
}

void run_paper(const PaperCall& call, const Common& common, const CLI::App& command) {
  const bool resume = resumes(command);
  const fs::path out = resume ? call.resume : common.out.empty() ? "paper" : common.out;
  const PaperPlan plan = resume ? read_plan(out) : resolve(call, common);
  const Executor executor(common.threads, common.stop);
  const RunDirectory directory(out);
  const Provenance origin = provenance(plan.seed, executor.threads());
  if (resume) {
    directory.remove_leftovers();
  } else {
    const std::string held = command_of(out);
    if (!held.empty() && held != kCommand) {
      throw InputError(fmt::format("'{}' holds a run of 'normscope {}'; name a new directory with --out.",
                                   out.string(), held));
    }
    if (directory.holds_run()) {
      throw InputError(fmt::format(
          "'{}' holds an earlier run; go on with it by --resume {}, or name a new directory with --out.",
          out.string(), out.string()));
    }
    directory.write_config(kCommand, origin, json_of(plan, -1));
  }
  set_kept(kept_of(directory, kCommand));
  const Findings found = run_parts(plan, directory, common, executor);
  const PaperResult result = result_of(plan, found, origin);
  directory.write("results.json", json_of(result));
  std::string data = json_of(result, -1);
  data.pop_back();  // its newline
  directory.write("report.html", render_html(page_of(found, plan, origin, data)));
  note(common, "Wrote " + (out / "report.html").string());
  print(common.json ? json_of(result, -1) : screen(found));
}

}  // namespace

void add_paper(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "paper",
      "Rerun the figures of Brody et al. 2023 and Wu et al. 2024 and say which claims hold",
      {"paper --only fig2,fig3 --seeds 3 --out runs/fig2", "paper --full --out runs/paper",
       "paper --only wu2,wu7 --samples 4 --out runs/wu",
       "paper --only fig4,table1,table2,table3,table4 --out runs/text", "paper --resume runs/paper"});
  command->get_option("--seed")->description(
      "Seed of the heat maps and the collapse runs; the trainings have the paper's seeds");
  auto call = std::make_shared<PaperCall>();
  command->add_option("--only", call->only, "Parts, with commas [all]")->type_name("LIST");
  command->add_option("--seeds", call->seeds, "How many of the paper's ten seeds [10; all parts at once: 3]")
      ->type_name("N");
  command
      ->add_option("--steps", call->steps,
                   "Training steps of the majority runs [6000; all parts at once: 4000; with --full 17000; "
                   "in 3-D until "
                   "solved, at most 10000]")
      ->type_name("N");
  command
      ->add_option("--text-steps", call->text_steps,
                   "Training steps of the language and the sentiment model [800 and 1200; all parts at once: "
                   "in small; with --full 50000]")
      ->type_name("N");
  command
      ->add_option(
          "--samples", call->samples,
          "Samples of the collapse runs [8; all parts at once: 2; with --full 200; over 128 layers 1 and 4]")
      ->type_name("N");
  command
      ->add_option(
          "--models", call->models,
          "Pretrained models of wu2, wu3, wu4, wu8, wu9, with commas, or none [those of the paper in the "
          "Hugging Face cache, and those fetched by `normscope data get`]")
      ->type_name("LIST");
  command
      ->add_option(
          "--text", call->text,
          "What they read, and where the sentences of table3 and table4 come from [a built-in text; reviews]")
      ->type_name("FILE");
  command
      ->add_option("--corpus", call->corpus,
                   "What the language model is trained on: imdb, gutenberg, grammar, or a text file, such as "
                   "the paper's Wikipedia [the first that was fetched]")
      ->type_name("NAME");
  command
      ->add_option(
          "--reviews", call->reviews,
          "What the sentiment model is trained on, and sentences come from: imdb, grammar, or a file "
          "as of `train sentiment --data`, such as the paper's SST-2 [imdb if it was fetched]")
      ->type_name("NAME");
  command->add_flag("--full", call->full,
                    "The published number of training steps, and 200 samples; the text parts then take days");
  command->add_option("--resume", call->resume, "Go on with the run in this directory")->type_name("DIR");
  std::string parts = "\n\nParts:";
  for (const PaperPart& part : paper_parts())
    parts += fmt::format("\n  {:<10} {}", part.name, part.description);
  command->footer(command->get_footer() + parts + "\n\nWithout --out the directory is ./paper.");
  command->callback([call, &common, command] { run_paper(*call, common, *command); });
}

}  // namespace normscope::cli
