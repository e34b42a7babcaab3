#include "study/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "core/printable.h"
#include "core/run_pieces.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"
#include "study/parse.h"
#include "study/trace.h"

namespace normscope {
namespace {

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

std::vector<KeySpace> parse_spaces(const std::vector<std::string>& names) {
  std::vector<KeySpace> spaces;
  for (const std::string& name : names)
    for (const std::string_view piece : split(name, ',')) spaces.push_back(parse_key_space(piece));
  return spaces;
}

bool prefixes_asked(const std::string& mask, bool causal) {
  if (mask.empty()) return causal;
  if (mask == "full") return false;
  if (mask != "causal") {
    throw InputError(
        fmt::format("--mask {}: a scan takes full (every query sees all tokens of a window) or "
                    "causal (those up to itself).",
                    printable(mask)));
  }
  return true;
}

std::string trace_file(std::size_t layer) {
  return fmt::format("trace.layer.{}.safetensors", layer);
}

// Writes what a layer showed when the next one begins: one file per layer, never more than that in memory.
class TraceWriter {
 public:
  explicit TraceWriter(const ScanPlan& plan) : plan_(plan) {}

  ForwardObserver observer() {
    ForwardObserver observer;
    observer.layer = [this](std::size_t layer, const BlockSpec& block, const BlockWeights<float>&) {
      finish();
      layer_ = layer;
      block_ = block;
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
      const bool query = point == TracePoint::query,
                 key = point == TracePoint::key || point == TracePoint::value;
      const std::lock_guard lock(mutex_);
      if (query || key)
        heads_[trace_heads(tensor.name)] = std::to_string(query ? block_.heads : block_.key_head_count());
      tensors_.push_back(std::move(tensor));
    };
    return observer;
  }

  void finish() {
    if (tensors_.empty()) return;
    std::sort(tensors_.begin(), tensors_.end(),
              [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
    write_safetensors((plan_.trace_directory / trace_file(layer_)).string(), tensors_, heads_);
    tensors_.clear();
    heads_.clear();
  }

 private:
  const ScanPlan& plan_;
  std::mutex mutex_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> heads_;
  std::size_t layer_ = 0;
  BlockSpec block_;
};

// Of the model, where some window of the text is longer than it; else 0.
std::size_t sliding_window(const ScanPlan& plan) {
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  if (!plan.settings.prefixes || !spec.causal || spec.window == 0) return 0;
  const bool slides =
      std::any_of(plan.text.windows.begin(), plan.text.windows.end(),
                  [&](const TextWindow& window) { return window.tokens.size() > spec.window; });
  return slides ? spec.window : 0;
}

// What the places of a window see, as `normscope mask` names it.
std::string mask_name(const ScanPlan& plan) {
  if (const std::size_t window = sliding_window(plan); window > 0)
    return fmt::format("onesided:{}", window - 1);
  return plan.settings.prefixes ? "causal" : "full";
}

// The tokens as the text has them, with what the tokenizer left out before each. A character that several tokens
// share, such as its bytes, is told with the first; what is left of the others may be nothing.
std::vector<std::string> spelled(const ScanPlan& plan, const TextWindow& window) {
  std::vector<std::string> spelled;
  for (std::size_t i = 0; i < window.tokens.size(); ++i) {
    const Token& token = window.tokens[i];
    const std::size_t told = i > 0 ? window.tokens[i - 1].end : 0;
    if (token.end > token.begin && token.begin < told && token.end <= plan.text.text.size()) {
      spelled.push_back(plan.text.text.substr(told, token.end - std::min(told, token.end)));
      continue;
    }
    // What the tokenizer left out between two tokens (spaces, mostly) belongs to the second.
    std::string text = plan.text.spelled(plan.checkpoint, token);
    if (i > 0 && plan.text.text.empty() && !plan.checkpoint.tokenizer) text.insert(0, " ");
    if (i > 0 && token.end > token.begin && window.tokens[i - 1].end <= token.begin &&
        window.tokens[i - 1].end > 0)
      text.insert(0, plan.text.text, window.tokens[i - 1].end, token.begin - window.tokens[i - 1].end);
    spelled.push_back(std::move(text));
  }
  return spelled;
}

std::optional<ScanSetResult> result_of(const ScanSet& set) {
  if (set.verdicts.empty()) return std::nullopt;  // not asked for
  ScanSetResult result;
  result.selectable = set.count(Verdict::selectable);
  result.tied = set.count(Verdict::tied);
  result.unselectable = set.count(Verdict::unselectable);
  result.undecided = set.verdicts.size() - result.selectable - result.tied - result.unselectable;
  result.robust_unselectable = set.robust_unselectable;
  result.rank = set.rank;
  for (const auto& verdict : set.verdicts)
    result.verdicts += verdict == Verdict::selectable     ? 's'
                       : verdict == Verdict::tied         ? 't'
                       : verdict == Verdict::unselectable ? 'u'
                                                          : '?';
  result.places = set.places;
  result.margins = set.margins;
  for (const bool each : set.robust) result.robust += each ? 'u' : '-';
  result.largest_weights = set.largest_weights;
  result.weight_places = set.weight_places;
  return result;
}

ScanLayerResult result_of(const ScanLayer& layer) {
  ScanLayerResult result;
  result.layer = layer.layer;
  result.norm_in = layer.norm_in;
  result.norm_out = layer.norm_out;
  result.before = result_of(layer.before);
  result.model = result_of(layer.model);
  for (const ScanHead& head : layer.heads) {
    const QueryShare& queries = head.queries;
    result.heads.push_back({head.head, head.key_head, queries.wins, queries.entropy, queries.largest_weight,
                            result_of(head.keys), result_of(head.reachable)});
  }
  return result;
}

std::vector<ScanWindowResult> windows_of(const ScanPlan& plan, const std::vector<ScanWindow>& scanned) {
  std::vector<ScanWindowResult> windows;
  for (std::size_t w = 0; w < scanned.size(); ++w) {
    ScanWindowResult& window = windows.emplace_back();
    window.first = plan.text.windows[w].first;
    window.ids = scanned[w].ids;
    window.tokens = spelled(plan, plan.text.windows[w]);
    for (const ScanLayer& layer : scanned[w].layers) window.layers.push_back(result_of(layer));
    window.losses = scanned[w].losses;
  }
  return windows;
}

// What follows from the windows of a result.
void conclude(const ScanPlan& plan, ScanStudy& study) {
  ScanResult& result = study.result;
  study.summary = summarize(*result.windows);
  result.verdict = scan_verdict(result, study.summary);
  for (const KeySpace space : plan.settings.spaces) {
    const bool named_twice = std::any_of(result.spaces.begin(), result.spaces.end(),
                                         [&](const auto& other) { return other.first == name_of(space); });
    if (!named_twice) result.spaces.emplace_back(name_of(space), unselectable_tokens(*result.windows, space));
  }
}

void require_live(const ScanOptions& options) {
  if (!options.trace.empty() || options.highlight)
    throw InputError("A live model is looked at in memory: trace and highlight are for models in files.");
}

ScanSettings live_settings(const LiveTrace& trace, const ScanOptions& options) {
  ScanSettings settings;
  settings.spaces = parse_spaces(options.spaces);
  const bool asked = options.spaces != ScanOptions().spaces;
  if (asked && std::ranges::find(settings.spaces, KeySpace::reachable) != settings.spaces.end())
    throw InputError(
        "Which keys the queries of a layer can reach follows from its weights, of which a live model shows none; save "
        "the model and scan its directory.");
  std::erase(settings.spaces, KeySpace::reachable);
  const auto seen = [&](Matrix<float> LiveLayer::*points) {
    return std::ranges::any_of(trace.windows, [&](const LiveWindow& window) {
      return std::ranges::any_of(window.layers,
                                 [&](const LiveLayer& layer) { return (layer.*points).rows() > 0; });
    });
  };
  if (!asked && !seen(&LiveLayer::norm_in)) std::erase(settings.spaces, KeySpace::before);
  if (!asked && !seen(&LiveLayer::norm_out)) std::erase(settings.spaces, KeySpace::model);
  std::size_t layers = 0, heads = 0;
  for (const LiveWindow& window : trace.windows)
    for (const LiveLayer& layer : window.layers)
      layers = std::max(layers, layer.layer + 1), heads = std::max(heads, layer.heads);
  settings.layers = parse_choice(options.layers, "--layers", layers);
  settings.heads = parse_choice(options.heads, "--heads", heads);
  settings.prefixes = prefixes_asked(options.mask, trace.mask.causal);
  settings.margins = options.margin;
  settings.largest_weights = false;
  return settings;
}

ScanResult::Settings told(const ScanPlan& plan, const ScanOptions& options) {
  ScanResult::Settings result;
  result.text = text_settings(options.text, plan.text);
  result.layers = plan.settings.layers;
  result.heads = plan.settings.heads;
  result.spaces = plan.settings.spaces;
  result.mask = mask_name(plan);
  result.margin = plan.settings.margins;
  result.largest_weights = plan.settings.largest_weights;
  result.trace = options.trace;
  return result;
}

}  // namespace

ScanPlan plan_scan(const ScanOptions& options, std::filesystem::path trace_directory) {
  check_options(options);
  ScanPlan plan;
  plan.settings.spaces = parse_spaces(options.spaces);
  plan.settings.margins = options.margin;
  plan.settings.largest_weights = !options.no_weights;
  const auto& spaces = plan.settings.spaces;
  if (options.highlight && std::find(spaces.begin(), spaces.end(), *options.highlight) == spaces.end()) {
    throw InputError(
        fmt::format("--highlight {}: the space is not among those of --space.", name_of(*options.highlight)));
  }
  plan.trace = parse_trace(options.trace);
  plan.trace_directory = std::move(trace_directory);
  if (!plan.trace.empty() && plan.trace_directory.empty())
    throw InputError("--trace writes files: give their directory with --out DIR.");
  plan.checkpoint = open_checkpoint(options.text.model);
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  plan.settings.layers = parse_choice(options.layers, "--layers", spec.layers);
  plan.settings.heads = parse_choice(options.heads, "--heads", spec.block.heads);
  plan.settings.prefixes = prefixes_asked(options.mask, spec.causal);
  plan.text = read_model_text(plan.checkpoint, options.text);
  plan.about = model_on_text(plan.checkpoint, options.text, plan.text);
  plan.as_model = plan.settings.prefixes == spec.causal;
  plan.told = told(plan, options);
  return plan;
}

std::vector<std::string> trace_files(const ScanPlan& plan) {
  std::vector<std::string> files;
  if (plan.trace.empty()) return files;
  for (const std::size_t layer : plan.settings.layers) files.push_back(trace_file(layer));
  for (std::size_t layer = 0; plan.settings.layers.empty() && layer < plan.checkpoint.weights->spec().layers;
       ++layer)
    files.push_back(trace_file(layer));
  return files;
}

ScanStudy run_scan(const ScanPlan& plan, const Context& context) {
  const auto start = std::chrono::steady_clock::now();
  TraceWriter writer(plan);
  ScanSettings settings = plan.settings;
  // Where the scan is cut into pieces, each with a pass of its own, the pass that is written is one more.
  if (!plan.trace.empty() && context.executor.pieces() == nullptr) {
    settings.observer = writer.observer();
  } else if (!plan.trace.empty() && is_first_process(context.executor)) {
    const auto ids = plan.text.ids();
    forward(*plan.checkpoint.weights, ids, context.executor, writer.observer());
  }
  const std::vector<ScanWindow> windows =
      scan(*plan.checkpoint.weights, plan.text.ids(), settings, context.executor, context.progress);
  if (is_first_process(context.executor)) writer.finish();
  ScanStudy study;
  ScanResult& result = study.result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.made = provenance(context.seed, context.executor.threads());
  result.settings = plan.told;
  result.family = plan.about.family;
  result.windows = windows_of(plan, windows);
  conclude(plan, study);
  return study;
}

LiveStudy study_live(const LiveTrace& trace, const ScanOptions& options, const Context& context) {
  check_options(options);
  require_live(options);
  LiveStudy live;
  ScanPlan& plan = live.plan;
  plan.settings = live_settings(trace, options);
  plan.as_model = plan.settings.prefixes == trace.mask.causal;
  plan.about = {.model = trace.model,
                .family = trace.family,
                .text = trace.text,
                .windows = trace.windows.size(),
                .notes = {}};
  plan.about.width = trace.width;
  if (!trace.windows.empty() && !trace.windows.front().layers.empty()) {
    const LiveLayer& first = trace.windows.front().layers.front();
    plan.about.layers = trace.windows.front().layers.size();
    plan.about.heads = first.heads;
    plan.about.head_width = first.heads == 0 ? 0 : first.query.cols() / first.heads;
  }
  ScanResult::Settings& told = plan.told;
  told.text = {trace.model, trace.text, 0, 0, trace.windows.size()};
  told.layers = plan.settings.layers;
  told.heads = plan.settings.heads;
  told.spaces = plan.settings.spaces;
  told.margin = plan.settings.margins;
  told.largest_weights = false;
  std::size_t longest = 0;
  for (const LiveWindow& window : trace.windows) longest = std::max(longest, window.ids.size());
  told.text.window = told.text.stride = longest;
  const bool slides =
      plan.settings.prefixes && trace.mask.causal && trace.mask.window > 0 && longest > trace.mask.window;
  told.mask = slides                   ? fmt::format("onesided:{}", trace.mask.window - 1)
              : plan.settings.prefixes ? "causal"
                                       : "full";
  const auto start = std::chrono::steady_clock::now();
  const std::vector<ScanWindow> windows =
      scan_live(trace.windows, trace.mask, plan.settings, context.executor, context.progress);
  ScanResult& result = live.study.result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.made = provenance(context.seed, context.executor.threads());
  result.settings = told;
  result.family = trace.family;
  result.windows.emplace();
  for (std::size_t w = 0; w < windows.size(); ++w) {
    ScanWindowResult& window = result.windows->emplace_back();
    window.ids = windows[w].ids;
    plan.about.tokens += window.ids.size();
    for (std::size_t i = 0; i < window.ids.size(); ++i)
      window.tokens.push_back(w < trace.tokens.size() && i < trace.tokens[w].size()
                                  ? trace.tokens[w][i]
                                  : fmt::format("{}#{}", i > 0 ? " " : "", window.ids[i]));
    for (const ScanLayer& layer : windows[w].layers) window.layers.push_back(result_of(layer));
  }
  conclude(plan, live.study);
  return live;
}

ScanStudy study_scan(const ScanOptions& options, const Context& context,
                     std::filesystem::path trace_directory) {
  return run_scan(plan_scan(options, std::move(trace_directory)), context);
}

}  // namespace normscope
