// normscope scan: which tokens of a text the layers and heads of a trained model can select.
#include "normscope/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/options.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"
#include "record/json.h"
#include "report/scan_page.h"
#include "result/json_writer.h"
#include "study/model_text.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPrinted = 4000;  // characters of text on a terminal

struct ScanCall {
  TextOptions text;
  std::string layers, heads, mask, margin = "bound", highlight, trace;
  std::vector<std::string> spaces = {"before", "model", "head", "reachable"};
  bool no_weights = false;
};

struct Plan {
  Checkpoint checkpoint;
  ModelText text;
  ScanSettings settings;
  std::vector<TracePoint> trace;
  std::optional<KeySpace> highlight;
};

std::vector<std::size_t> parse_choice(const std::string& text, const char* option, std::size_t count) {
  if (text.empty()) return {};
  return parse_range(text, option, 0, count - 1, count);
}

// "key,query", or "all".
std::vector<TracePoint> parse_trace(const std::string& text) {
  std::vector<TracePoint> points;
  if (text.empty()) return points;
  if (text == "all") return {trace_points().begin(), trace_points().end()};
  for (const std::string_view piece : split(text, ',')) {
    const auto found = std::find_if(trace_points().begin(), trace_points().end(), [&](TracePoint point) {
      return name_of(point, 0) == fmt::format("layer.0.{}", piece);
    });
    if (found == trace_points().end()) {
      throw InputError(
          fmt::format("--trace: there is no point '{}'; there are attn.norm.in, attn.norm.out, "
                      "attn.query, attn.key, attn.value, attn.out, out, or all.",
                      printable(piece)));
    }
    points.push_back(*found);
  }
  return points;
}

bool prefixes_asked(const std::string& mask, const ModelSpec& spec) {
  if (mask.empty()) return spec.causal;
  if (mask == "full") return false;
  if (mask != "causal") {
    throw InputError(
        fmt::format("--mask {}: a scan takes full (every query sees all tokens of a window) or "
                    "causal (those up to itself).",
                    printable(mask)));
  }
  return true;
}

Plan resolve(const ScanCall& call, const Common& common) {
  Plan plan;
  plan.settings.spaces.clear();
  for (const std::string& space : call.spaces) {
    for (const std::string_view piece : split(space, ','))
      plan.settings.spaces.push_back(parse_key_space(piece));
  }
  if (call.margin != "bound" && call.margin != "exact")
    throw InputError(fmt::format("--margin {}: there are bound and exact.", printable(call.margin)));
  plan.settings.margins = call.margin == "exact" ? Margins::exact : Margins::bound;
  plan.settings.largest_weights = !call.no_weights;
  if (!call.highlight.empty()) {
    plan.highlight = parse_key_space(call.highlight);
    if (std::find(plan.settings.spaces.begin(), plan.settings.spaces.end(), *plan.highlight) ==
        plan.settings.spaces.end())
      throw InputError(
          fmt::format("--highlight {}: the space is not among those of --space.", call.highlight));
  }
  plan.trace = parse_trace(call.trace);
  if (!plan.trace.empty() && common.out.empty())
    throw InputError("--trace writes files: give their directory with --out DIR.");
  plan.checkpoint = open_checkpoint(call.text.model);
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  plan.settings.layers = parse_choice(call.layers, "--layers", spec.layers);
  plan.settings.heads = parse_choice(call.heads, "--heads", spec.block.heads);
  plan.settings.prefixes = prefixes_asked(call.mask, spec);
  plan.text = read_model_text(plan.checkpoint, call.text);
  return plan;
}

// Writes what a layer showed when the next one begins: one file per layer, never more than that in memory.
class TraceWriter {
 public:
  TraceWriter(const Plan& plan, std::filesystem::path directory)
      : plan_(plan), directory_(std::move(directory)) {}

  ForwardObserver observer() {
    ForwardObserver observer;
    observer.layer = [this](std::size_t layer, const BlockSpec&, const BlockWeights<float>&) {
      finish();
      layer_ = layer;
    };
    observer.point = [this](std::size_t text, std::size_t layer, TracePoint point,
                            MatrixView<const float> values) {
      if (std::find(plan_.trace.begin(), plan_.trace.end(), point) == plan_.trace.end()) return;
      const auto& layers = plan_.settings.layers;
      if (!layers.empty() && std::find(layers.begin(), layers.end(), layer) == layers.end()) return;
      Tensor tensor{fmt::format("window.{}.{}", text, name_of(point, layer)),
                    DType::float32,
                    {values.rows, values.cols},
                    {}};
      for (std::size_t i = 0; i < values.rows; ++i)
        tensor.values.insert(tensor.values.end(), values[i].begin(), values[i].end());
      const std::lock_guard lock(mutex_);
      tensors_.push_back(std::move(tensor));
    };
    return observer;
  }

  void finish() {
    if (tensors_.empty()) return;
    std::sort(tensors_.begin(), tensors_.end(),
              [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
    write_safetensors((directory_ / fmt::format("trace.layer.{}.safetensors", layer_)).string(), tensors_);
    tensors_.clear();
  }

 private:
  const Plan& plan_;
  std::filesystem::path directory_;
  std::mutex mutex_;
  std::vector<Tensor> tensors_;
  std::size_t layer_ = 0;
};

// Of the model, where some window of the text is longer than it; else 0.
std::size_t sliding_window(const Plan& plan) {
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  if (!plan.settings.prefixes || !spec.causal || spec.window == 0) return 0;
  const bool slides =
      std::any_of(plan.text.windows.begin(), plan.text.windows.end(),
                  [&](const TextWindow& window) { return window.tokens.size() > spec.window; });
  return slides ? spec.window : 0;
}

// What the places of a window see, as `normscope mask` names it.
std::string mask_name(const Plan& plan) {
  if (const std::size_t window = sliding_window(plan); window > 0)
    return fmt::format("onesided:{}", window - 1);
  return plan.settings.prefixes ? "causal" : "full";
}

ScanRun run_of(const Plan& plan, const ScanCall& call, std::vector<ScanWindow> windows) {
  ScanRun run;
  static_cast<ModelOnText&>(run) = model_on_text(plan.checkpoint, call.text, plan.text);
  run.prefixes = plan.settings.prefixes;
  run.sliding_window = sliding_window(plan);
  run.as_model = plan.settings.prefixes == plan.checkpoint.weights->spec().causal;
  run.lower_bounds = plan.settings.margins == Margins::bound;
  run.scanned = std::move(windows);
  run.spaces = plan.settings.spaces;
  for (const TextWindow& window : plan.text.windows) {
    std::vector<std::string>& spelled = run.spelled.emplace_back();
    for (std::size_t i = 0; i < window.tokens.size(); ++i) {
      const Token& token = window.tokens[i];
      // What the tokenizer left out between two tokens (spaces, mostly) belongs to the second.
      std::string text = plan.text.spelled(plan.checkpoint, token);
      if (i > 0 && plan.text.text.empty() && !plan.checkpoint.tokenizer) text.insert(0, " ");
      if (i > 0 && token.end > token.begin && window.tokens[i - 1].end <= token.begin &&
          window.tokens[i - 1].end > 0)
        text.insert(0, plan.text.text, window.tokens[i - 1].end, token.begin - window.tokens[i - 1].end);
      spelled.push_back(std::move(text));
    }
  }
  return run;
}

Json set_json(const ScanSet& set) {
  std::string verdicts;
  for (const auto& verdict : set.verdicts)
    verdicts += verdict == Verdict::selectable     ? 's'
                : verdict == Verdict::tied         ? 't'
                : verdict == Verdict::unselectable ? 'u'
                                                   : '?';
  Json places = Json::array();  // null: from every place that sees the token
  for (const auto& place : set.places) places.push_back(place ? Json(*place) : Json(nullptr));
  Json json = {
      {"selectable", set.count(Verdict::selectable)},
      {"tied", set.count(Verdict::tied)},
      {"unselectable", set.count(Verdict::unselectable)},
      {"undecided", set.verdicts.size() - set.count(Verdict::selectable) - set.count(Verdict::tied) -
                        set.count(Verdict::unselectable)},
      {"robust_unselectable", set.robust_unselectable ? Json(*set.robust_unselectable) : Json(nullptr)},
      {"rank", set.rank},
      {"verdicts", verdicts},
      {"places", places},
      {"margins", set.margins}};
  if (!set.robust.empty()) {
    std::string robust;
    for (const bool each : set.robust) robust += each ? 'u' : '-';
    json["robust"] = robust;
  }
  if (!set.largest_weights.empty()) {
    json["largest_weights"] = set.largest_weights;
    json["weight_places"] = set.weight_places;
  }
  return json;
}

Json norm_json(const NormShare& share) {
  return {
      {"along_ones", share.along_ones}, {"norm_mean", share.norm_mean}, {"norm_spread", share.norm_spread}};
}

Json window_json(const ScanWindow& window, const TextWindow& text, const std::vector<std::string>& spelled) {
  Json layers = Json::array();
  for (const ScanLayer& layer : window.layers) {
    Json json = {{"layer", layer.layer},
                 {"norm_in", norm_json(layer.norm_in)},
                 {"norm_out", norm_json(layer.norm_out)}};
    if (!layer.before.verdicts.empty()) json["before"] = set_json(layer.before);
    if (!layer.model.verdicts.empty()) json["model"] = set_json(layer.model);
    json["heads"] = Json::array();
    for (const ScanHead& head : layer.heads) {
      Json each = {{"head", head.head},
                   {"key_head", head.key_head},
                   {"wins", head.queries.wins},
                   {"entropy", head.queries.entropy},
                   {"largest_weight", head.queries.largest_weight}};
      if (!head.keys.verdicts.empty()) each["keys"] = set_json(head.keys);
      if (!head.reachable.verdicts.empty()) each["reachable"] = set_json(head.reachable);
      json["heads"].push_back(std::move(each));
    }
    layers.push_back(std::move(json));
  }
  Json json = {{"first", text.first}, {"ids", window.ids}, {"tokens", spelled}, {"layers", layers}};
  if (!window.losses.empty()) json["losses"] = window.losses;
  return json;
}

Json options_json(const Plan& plan, const ScanCall& call) {
  Json spaces = Json::array();
  for (const KeySpace space : plan.settings.spaces) spaces.push_back(name_of(space));
  Json options = Json::parse(json_of(text_settings(call.text, plan.text)));
  options.update(Json{{"layers", plan.settings.layers},
                      {"heads", plan.settings.heads},
                      {"spaces", spaces},
                      {"mask", mask_name(plan)},
                      {"margin", call.margin},
                      {"largest_weights", plan.settings.largest_weights},
                      {"trace", call.trace}});
  return options;
}

Json results_json(const Plan& plan, const ScanCall& call, const ScanRun& run, const ScanSummary& summary,
                  const Provenance& made, double seconds) {
  Json results = {{"command", "scan"}};
  results.update(normscope::to_json(made));
  results["seconds"] = seconds;
  results["settings"] = options_json(plan, call);
  results["family"] = run.family;
  results["verdict"] = scan_verdict(run, summary);
  Json spaces = Json::object();
  for (const KeySpace space : run.spaces) {
    const UnselectableTokens found = unselectable_tokens(run, space);
    spaces[name_of(space)] = {{"tokens", found.tokens},
                              {"sets", found.sets},
                              {"unselectable_in_some", found.in_some},
                              {"unselectable_in_all", found.in_all}};
  }
  results["spaces"] = spaces;
  results["windows"] = Json::array();
  for (std::size_t w = 0; w < run.scanned.size(); ++w)
    results["windows"].push_back(window_json(run.scanned[w], plan.text.windows[w], run.spelled[w]));
  return results;
}

// The text with the unselectable tokens marked: by colour, or by brackets where there is none.
std::string marked_text(const ScanRun& run, KeySpace space) {
  const bool colours = colour_output();
  std::string text;
  std::size_t characters = 0;
  for (std::size_t w = 0; w < run.scanned.size() && characters < kMostPrinted; ++w) {
    const TextFigure figure = scan_text(run, w, space);
    for (const TextFigure::Token& token : figure.tokens) {
      if (characters >= kMostPrinted) break;
      // Line breaks stay; whatever else could move the cursor does not.
      std::string shown;
      for (const std::string_view line : split(token.text, '\n')) {
        if (!shown.empty() || line.data() != token.text.data()) shown += '\n';
        shown += printable(line);
      }
      characters += shown.size();
      const std::size_t begin = std::min(shown.find_first_not_of(" \n"), shown.size());
      const std::string space_before = shown.substr(0, begin), word = shown.substr(begin);
      if (!token.value) {
        text += shown;
      } else if (colours) {
        text +=
            fmt::format("{}\033[{}m{}\033[0m", space_before, *token.value >= 1 ? "1;97;41" : "30;43", word);
      } else {
        const bool in_all = *token.value >= 1;
        text += fmt::format("{}{}{}{}", space_before, in_all ? "[[" : "[", word, in_all ? "]]" : "]");
      }
    }
    text += "\n";
  }
  return text + (characters >= kMostPrinted ? "…\n" : "");
}

std::string highlighted(const Plan& plan, const ScanRun& run) {
  std::optional<KeySpace> space = plan.highlight;
  for (const KeySpace each : run.spaces) {
    if (!space && unselectable_tokens(run, each).in_some > 0) space = each;
  }
  if (!space || unselectable_tokens(run, *space).in_some == 0) return "";
  return fmt::format("\nUnselectable in some {0}{1}, in all {2} ({3}):\n{4}", set_name(*space),
                     colour_output() ? " (yellow)" : " [so]", colour_output() ? "(red)" : "[[so]]",
                     name_of(*space), marked_text(run, *space));
}

void run_scan(const ScanCall& call, const Common& common) {
  Plan plan = resolve(call, common);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<TraceWriter> writer;
  if (directory && !plan.trace.empty()) {
    writer = std::make_unique<TraceWriter>(plan, directory->path());
    plan.settings.observer = writer->observer();
  }
  const Provenance made = provenance(common.seed, executor.threads());
  if (directory) directory->write_config("scan", made, options_json(plan, call).dump());
  const std::vector<std::vector<std::uint32_t>> ids = plan.text.ids();
  std::vector<ScanWindow> windows;
  {
    Progress progress(common, "scan:", "sets");
    windows = scan(*plan.checkpoint.weights, ids, plan.settings, executor,
                   [&](std::size_t done, std::size_t total) { progress.update(done, total); });
  }
  if (writer) writer->finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ScanRun run = run_of(plan, call, std::move(windows));
  const ScanSummary summary = summarize(run);
  for (const std::string& sentence : run.notes) note(common, sentence);
  const Json results = results_json(plan, call, run, summary, made, seconds);
  if (directory) {
    directory->write("results.json", json_text(results));
    // The page holds the figures' data; all verdicts of all tokens are in results.json.
    Json brief = results;
    brief.erase("windows");
    directory->write("report.html", render_html(scan_page(run, summary, made, brief.dump())));
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (common.json) return print(json_text(results, -1));
  print(fmt::format("{}\n{}{}\n{}\n", table(scan_table(run, summary).rows), scan_readings(run),
                    scan_verdict(run, summary), highlighted(plan, run)));
}

}  // namespace

void add_scan(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "scan", "Which tokens of a text the layers and heads of a trained model can select",
      {"scan minilm --text article.txt --out runs/minilm",
       "scan stories15m --text story.txt --space head reachable --layers 0:2 --heads 0,3",
       "scan path/to/model --ids tokens.txt --window 512 --stride 256 --samples 8 --json"});
  auto call = std::make_shared<ScanCall>();
  add_options(*command, call->text);
  const auto option = [&](const char* name, std::string& value, const char* type, const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  option("--layers", call->layers, "LIST", "Layers, such as 0,3 or 0:5 [all]");
  option("--heads", call->heads, "LIST", "Heads [all]");
  command
      ->add_option("--space", call->spaces,
                   "Key spaces: before and model (before and after the norm), head, reachable [all]")
      ->type_name("NAME…");
  option("--mask", call->mask, "NAME",
         "full: every query sees all tokens of a window; causal: those up to itself, within the model's "
         "sliding window [the model's]");
  option("--margin", call->margin, "NAME", "bound (fast, lower bounds) or exact")->capture_default_str();
  option("--highlight", call->highlight, "SPACE", "Whose unselectable tokens are marked in the text");
  option("--trace", call->trace, "POINTS",
         "Write activations to DIR, a file per layer: attn.norm.in, attn.norm.out, attn.query, attn.key, "
         "attn.value, attn.out, out, or all");
  command->add_flag("--no-weights", call->no_weights,
                    "Without the largest weights reachable queries can give, which take time");
  command->callback([call, &common] { run_scan(*call, common); });
}

}  // namespace normscope::cli
