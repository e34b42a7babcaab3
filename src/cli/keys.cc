// normscope keys: which keys of a file attention can select.
#include "normscope/keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/common.h"
#include "io/sentence.h"
#include "normscope/error.h"
#include "normscope/norm.h"
#include "normscope/tensor_file.h"
#include "record/json.h"
#include "report/keys_page.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

struct KeysCall {
  std::string file, tensor, norm = "none", bias, bias_tensor, rank = "numerical", margin = "exact";
  bool exact = false, prefix = false, summary = false;
  std::optional<double> query_norm, noise, effort;
};

// The sets of keys of a file: one (n × d) or a batch (sets × n × d), one after the other in memory.
struct KeysInput {
  std::string source;  // "file.npz: tensor "k""
  DType dtype = DType::float64, offset_dtype = DType::float64;
  std::size_t sets = 1, n = 0, d = 0;
  std::vector<double> values, offsets;
  std::vector<double> errors;  // of keys after a norm: what the rounding of the file may have done to them
  std::size_t projected_out = 0;
  NormCounts norm_counts;

  MatrixView<const double> set(std::size_t s) const { return {values.data() + s * n * d, n, d}; }
};

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text;
  for (std::size_t size : shape) text += (text.empty() ? "" : " × ") + std::to_string(size);
  return text.empty() ? "a single number" : text;
}

std::string source_of(const std::string& file, const Tensor& tensor) {
  const std::string name = file == "-" ? "standard input" : printable(file);
  return tensor.name.empty() ? name : fmt::format("{}: tensor \"{}\"", name, printable(tensor.name));
}

// option: how the call names a tensor of this file.
Tensor read_named(const std::string& file, const std::string& name, std::string_view option) {
  const TensorFile opened = TensorFile::open(file);
  if (!name.empty()) return opened.read(name);
  std::vector<std::string> names;
  for (const TensorInfo& tensor : opened.tensors()) names.push_back(tensor.name);
  for (const UnreadableTensor& tensor : opened.unreadable()) names.push_back(tensor.name);
  if (names.size() > 1)
    throw InputError(fmt::format("{} holds {} tensors: {}; name one of them with {}.",
                                 file == "-" ? "standard input" : io::quoted_path(file), names.size(),
                                 io::quoted_names(names), option));
  return opened.read();
}

void check_finite(const KeysInput& input) {
  for (std::size_t s = 0; s < input.sets; ++s)
    for (std::size_t i = 0; i < input.n; ++i)
      for (std::size_t c = 0; c < input.d; ++c) {
        const double value = input.values[(s * input.n + i) * input.d + c];
        if (std::isfinite(value)) continue;
        throw InputError(fmt::format(
            "{} is {} at {}row {}, column {} (counted from 0): keys must be finite numbers.", input.source,
            std::isnan(value) ? "NaN" : "infinite", input.sets > 1 ? fmt::format("set {}, ", s) : "", i, c));
      }
}

void read_offsets(const KeysCall& call, KeysInput& input) {
  const Tensor tensor = read_named(call.bias, call.bias_tensor, "--bias-tensor");
  const std::string source = source_of(call.bias, tensor);
  const bool fits =
      (tensor.shape.size() == 1 && tensor.shape[0] == input.n) ||
      (tensor.shape.size() == 2 && tensor.shape[0] == input.sets && tensor.shape[1] == input.n) ||
      (input.sets == 1 && tensor.shape == std::vector<std::size_t>{input.n, 1});
  if (!fits)
    throw InputError(fmt::format(
        "{} is {}, but the keys are {} × {}: --bias needs one score offset per key ({} numbers{}).", source,
        shape_text(tensor.shape), input.n, input.d, input.n,
        input.sets > 1 ? fmt::format(", or {} × {}", input.sets, input.n) : ""));
  for (std::size_t i = 0; i < tensor.values.size(); ++i)
    if (!std::isfinite(tensor.values[i]))
      throw InputError(
          fmt::format("{} is {} at position {} (counted from 0): score offsets must be finite numbers.",
                      source, std::isnan(tensor.values[i]) ? "NaN" : "infinite", i));
  input.offsets = tensor.values;
  input.offset_dtype = tensor.dtype;
}

// Norms run in the precision models run them in: float32 for keys of at most that precision, else float64.
void apply_norm(const NormSpec& spec, KeysInput& input) {
  const std::size_t rows = input.sets * input.n;
  const MatrixView<double> keys(input.values.data(), rows, input.d);
  input.projected_out = spec.projection == Projection::ones ? 1 : 0;
  const bool wide = unit_roundoff(input.dtype) < 0x1p-24;
  input.errors = norm_errors(spec, keys, unit_roundoff(input.dtype), smallest_rounding(input.dtype),
                             wide ? 0x1p-53 : 0x1p-24);
  if (wide) {
    input.norm_counts = norm_forward<double>(spec, NormParameters<double>{}, keys, keys);
    return;
  }
  std::vector<float> narrow(input.values.begin(), input.values.end());
  const MatrixView<float> narrow_keys(narrow.data(), rows, input.d);
  input.norm_counts = norm_forward<float>(spec, NormParameters<float>{}, narrow_keys, narrow_keys);
  std::copy(narrow.begin(), narrow.end(), input.values.begin());
}

KeysInput read_keys(const KeysCall& call, const NormSpec& spec) {
  KeysInput input;
  Tensor tensor = read_named(call.file, call.tensor, "--tensor");
  input.source = source_of(call.file, tensor);
  input.dtype = tensor.dtype;
  const std::size_t axes = tensor.shape.size();
  if (axes != 2 && axes != 3)
    throw InputError(fmt::format(
        "{} is {}: keys are a matrix (keys × dimensions) or a batch of them (sets × keys × "
        "dimensions); reshape it, or name another tensor with --tensor.",
        input.source,
        axes == 1 ? fmt::format("a list of {} numbers", tensor.shape[0]) : shape_text(tensor.shape)));
  input.sets = axes == 3 ? tensor.shape[0] : 1;
  input.n = tensor.shape[axes - 2];
  input.d = tensor.shape[axes - 1];
  if (tensor.values.empty())
    throw InputError(
        fmt::format("{} is {}: there is no key in it; at least one key with one coordinate is needed.",
                    input.source, shape_text(tensor.shape)));
  input.values = std::move(tensor.values);
  check_finite(input);
  if (spec != parse_norm("none")) {
    apply_norm(spec, input);
    for (double value : input.values)
      if (!std::isfinite(value))
        throw InputError(fmt::format("{}: --norm {} overflows on these keys; scale them down first.",
                                     input.source, call.norm));
  }
  if (!call.bias.empty()) read_offsets(call, input);
  return input;
}

KeyOptions resolve(const KeysCall& call, const KeysInput& input) {
  KeyOptions options;
  options.rank = call.rank == "full" ? RankPolicy::full : RankPolicy::numerical;
  options.margins = call.margin == "bound" ? Margins::bound : Margins::exact;
  options.unit_roundoff = unit_roundoff(input.dtype);
  options.offset_roundoff = unit_roundoff(input.offset_dtype);
  options.smallest_rounding = smallest_rounding(input.dtype);
  options.exact = call.exact;
  options.prefix = call.prefix;
  options.certificates = !call.summary || call.exact;
  options.query_norm = call.query_norm;
  options.noise = call.noise;
  options.errors = input.errors;
  options.projected_out = input.projected_out;
  options.smallest_offset_rounding = call.bias.empty() ? 0 : smallest_rounding(input.offset_dtype);
  options.exact_effort = call.effort.value_or(options.exact_effort);
  return options;
}

void check_call(const KeysCall& call) {
  if (call.rank != "numerical" && call.rank != "full")
    throw InputError(
        fmt::format("--rank is \"{}\": it takes numerical (decide inside the numerical affine hull) or full.",
                    printable(call.rank)));
  if (call.margin != "exact" && call.margin != "bound")
    throw InputError(
        fmt::format("--margin is \"{}\": it takes exact, or bound (a certified lower bound, much faster in "
                    "high dimension).",
                    printable(call.margin)));
  if (call.bias.empty() && !call.bias_tensor.empty())
    throw InputError("--bias-tensor names a tensor, but there is no --bias file to read it from.");
  if (call.file == "-" && call.bias == "-")
    throw InputError("both the keys and --bias are read from standard input (-): put one of them in a file.");
}

Json terms(const std::vector<CoverTerm>& cover) {
  Json list = Json::array();
  for (const CoverTerm& term : cover) list.push_back({{"index", term.index}, {"weight", term.weight}});
  return list;
}

Json to_json(std::size_t index, const KeyVerdict& key, bool exact) {
  Json json = {{"index", index}, {"verdict", name_of(key.verdict)}, {"robust", key.robust}};
  if (key.verdict == Verdict::selectable) json["margin"] = number_or_null(key.margin);
  if (key.margin_at_most) json["margin_at_most"] = number_or_null(*key.margin_at_most);
  if (key.verdict == Verdict::unselectable) json["depth"] = number_or_null(key.depth);
  if (key.max_weight) json["max_weight"] = *key.max_weight, json["max_weight_bound"] = *key.max_weight_bound;
  if (!key.witness.empty()) json["witness"] = key.witness;
  if (!key.exact_witness.empty()) json["exact_witness"] = key.exact_witness;
  if (!key.cover.empty()) json["cover"] = terms(key.cover);
  if (!key.interior.empty()) json["interior"] = terms(key.interior);
  if (key.verdict == Verdict::tied) json["tied_with"] = key.tied_with;
  if (key.last_prefix) json["last_prefix"] = *key.last_prefix;
  if (exact) json["verified"] = key.verified;
  return json;
}

Json to_json(const KeyCounts& counts) {
  Json json = {
      {"selectable", counts.selectable}, {"tied", counts.tied}, {"unselectable", counts.unselectable}};
  if (counts.undecided > 0) json["undecided"] = counts.undecided;
  return json;
}

// Written piece by piece: the keys of a large set would not fit twice.
template <class Write>
void write_json(const Json& head, const std::vector<KeySet>& sets, const KeysCall& call, const Write& write) {
  std::string text = json_text(head, -1);
  text.resize(text.rfind('}'));
  write(text + R"(,"sets":[)");
  for (std::size_t s = 0; s < sets.size(); ++s) {
    const KeySet& set = sets[s];
    Json json = {{"n", set.n},
                 {"d", set.d},
                 {"rank", set.rank},
                 {"rank_tolerance", set.rank_tolerance},
                 {"matrix_rank", set.matrix_rank},
                 {"counts", to_json(set.counts)},
                 {"robust_counts", to_json(set.robust_counts)},
                 {"exact_path", set.exact_path}};
    if (set.rank < set.d) json["kept"] = set.kept, json["left_out"] = set.left_out;
    text = (s > 0 ? "," : "") + json.dump();
    if (!call.summary) {
      text.pop_back();
      text += R"(,"keys":[)";
      for (std::size_t i = 0; i < set.keys.size(); ++i) {
        text += (i > 0 ? "," : "") + to_json(i, set.keys[i], call.exact).dump();
        if (text.size() > (1U << 20)) write(text), text.clear();
      }
      text += "]}";
    }
    write(text);
  }
  write("]}\n");
}

std::string share(std::size_t part, std::size_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string indices_with_smallest(const KeySet& set, std::size_t most) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < set.keys.size(); ++i)
    if (set.keys[i].verdict == Verdict::selectable && std::isfinite(set.keys[i].margin)) order.push_back(i);
  const std::size_t shown = std::min(most, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
      [&](std::size_t a, std::size_t b) {
        return set.keys[a].margin != set.keys[b].margin ? set.keys[a].margin < set.keys[b].margin : a < b;
      });
  std::string text;
  for (std::size_t k = 0; k < shown; ++k)
    text += fmt::format("{}{:.4g} (key {})", k > 0 ? ", " : "", set.keys[order[k]].margin, order[k]);
  return text.empty() ? "none" : text;
}

std::string some_indices(const KeySet& set, Verdict verdict) {
  constexpr std::size_t kMost = 12;
  std::string text;
  std::size_t shown = 0, all = 0;
  for (std::size_t i = 0; i < set.keys.size(); ++i)
    if (set.keys[i].verdict == verdict && ++all <= kMost)
      text += fmt::format("{}{}", shown++ > 0 ? ", " : "", i);
  if (all > kMost) text += fmt::format(", … ({} in all)", all);
  return text;
}

// Fewer than d + 1 keys never fill the space; what is left out beyond that was judged to be rounding, and is
// said so.
std::string rank_line(const KeySet& set, bool full) {
  const std::size_t most = std::min(set.d, set.n - 1);
  std::string text = fmt::format("rank              {} of {}", set.rank, set.d);
  if (set.rank >= most) {
    text += fmt::format(" (directions with spread below {:.3g} are rounding{})\n", set.rank_tolerance,
                        full ? "; --rank full keeps them" : "");
  } else {
    const bool one = most - set.rank == 1;
    text += fmt::format(": {} left out as rounding (spread below {:.3g}); --rank full keeps {}\n",
                        one ? "1 direction" : fmt::format("{} directions", most - set.rank),
                        set.rank_tolerance, one ? "it" : "them");
  }
  if (!full && set.matrix_rank < set.rank)
    text += fmt::format(
        "                  NumPy's matrix_rank would say {}: it holds every direction against the strongest; "
        "here "
        "each\n                  coordinate is held against its own rounding, and {} more {} out of that\n",
        set.matrix_rank, set.rank - set.matrix_rank, set.rank - set.matrix_rank == 1 ? "stands" : "stand");
  return text;
}

std::string screen(const KeysCall& call, const KeysInput& input, const std::vector<KeySet>& sets,
                   double seconds) {
  constexpr std::size_t kMostSets = 16;
  std::string text = fmt::format("{}, {}, {} × {}{}{}\n", input.source, name_of(input.dtype), input.n,
                                 input.d, input.sets > 1 ? fmt::format(", {} sets", input.sets) : "",
                                 call.norm == "none" ? "" : fmt::format(", after {}", call.norm));
  if (input.norm_counts.undefined_rows() > 0)
    text += fmt::format("{} rows with nothing to scale (zero rows, or σ = 0) became 0\n",
                        input.norm_counts.undefined_rows());
  for (std::size_t s = 0; s < std::min(kMostSets, sets.size()); ++s) {
    const KeySet& set = sets[s];
    if (sets.size() > 1) text += fmt::format("\nset {}\n", s);
    std::vector<std::vector<std::string>> rows = {{"verdict", "keys", "share", "robust"}};
    const auto row = [&](const char* name, std::size_t all, std::size_t robust) {
      rows.push_back({name, std::to_string(all), share(all, set.n), std::to_string(robust)});
    };
    row("selectable", set.counts.selectable, set.robust_counts.selectable);
    row("tied", set.counts.tied, set.robust_counts.tied);
    row("unselectable", set.counts.unselectable, set.robust_counts.unselectable);
    if (set.counts.undecided > 0) row("undecided", set.counts.undecided, 0);
    text += table(rows);
    text += fmt::format("smallest margins  {}{}\n", indices_with_smallest(set, 3),
                        call.margin == "bound" ? " (lower bounds)" : "");
    if (set.counts.unselectable > 0)
      text += fmt::format("unselectable      {}\n", some_indices(set, Verdict::unselectable));
    if (set.counts.tied > 0) text += fmt::format("tied              {}\n", some_indices(set, Verdict::tied));
    if (set.counts.undecided > 0)
      text += fmt::format("undecided         {}: rational arithmetic would need more than --effort allows\n",
                          some_indices(set, Verdict::undecided));
    const auto bounded = std::count_if(set.keys.begin(), set.keys.end(), [](const KeyVerdict& key) {
      return key.verdict == Verdict::selectable && key.margin_at_most;
    });
    if (bounded > 0)
      text += fmt::format(
          "margins           of {} keys are lower bounds: the exact ones are beyond rational "
          "arithmetic's effort\n",
          bounded);
    if (call.query_norm) {
      double least = 1, most = 0;
      for (const KeyVerdict& key : set.keys)
        least = std::min(least, *key.max_weight), most = std::max(most, *key.max_weight);
      text +=
          fmt::format("largest weight    from {:.4g} to {:.4g} over the keys, for queries of norm ≤ {:g}\n",
                      least, most, *call.query_norm);
    }
    if (call.prefix) {
      std::size_t lost = 0;
      for (const KeyVerdict& key : set.keys) {
        const std::size_t last = key.last_prefix.value_or(0);
        lost += last > 0 && last < set.n ? 1 : 0;
      }
      text += fmt::format("prefixes          {} of {} keys stop being selectable before the last key\n", lost,
                          set.n);
    }
    text += rank_line(set, call.rank == "full");
    const std::size_t verified = static_cast<std::size_t>(
        std::count_if(set.keys.begin(), set.keys.end(), [](const KeyVerdict& key) { return key.verified; }));
    text += fmt::format("certificates      {} decided by error bounds, {} by rational arithmetic{}\n",
                        set.n - set.exact_path - set.counts.undecided, set.exact_path,
                        call.exact ? fmt::format("; {} verified in rational arithmetic", verified) : "");
  }
  if (sets.size() > kMostSets) {
    KeyCounts all;
    for (const KeySet& set : sets)
      all.selectable += set.counts.selectable, all.tied += set.counts.tied,
          all.unselectable += set.counts.unselectable, all.undecided += set.counts.undecided;
    text += fmt::format("\n… and {} more sets. All sets: {} selectable, {} tied, {} unselectable{}\n",
                        sets.size() - kMostSets, all.selectable, all.tied, all.unselectable,
                        all.undecided > 0 ? fmt::format(", {} undecided", all.undecided) : "");
  }
  return text + fmt::format("{:.3g} s\n", seconds);
}

// Verdicts and certificates of single keys stay in results.json, which may be large.
std::string report(const KeysCall& call, const KeysInput& input, const std::vector<KeySet>& sets,
                   const Provenance& made, const Json& head) {
  KeysRun keys;
  keys.source = fmt::format("{}, {}, {} × {}", input.source, name_of(input.dtype), input.n, input.d);
  keys.norm = call.norm;
  keys.lower_bounds = call.margin == "bound";
  for (const KeySet& set : sets) keys.sets.push_back(summary_of(set));
  return render_html(keys_page(keys, made, json_text(head, -1)));
}

void run(const KeysCall& call, const Common& common) {
  check_call(call);
  const NormSpec spec = parse_norm(call.norm, norm_names_without_normals());
  if (spec.projection == Projection::normals)
    throw InputError(
        fmt::format("--norm {} needs learned normals, which a file of keys does not bring: use center or "
                    "layernorm, whose normal is the vector of ones.",
                    printable(call.norm)));
  const auto directory = replaceable_directory(common);
  const KeysInput input = read_keys(call, spec);
  const KeyOptions options = resolve(call, input);
  const Executor executor(common.threads);

  std::vector<MatrixView<const double>> views;
  std::vector<std::span<const double>> offsets;
  for (std::size_t s = 0; s < input.sets; ++s) {
    views.push_back(input.set(s));
    if (input.offsets.empty()) continue;
    const std::size_t start = input.offsets.size() == input.n ? 0 : s * input.n;
    offsets.push_back(std::span(input.offsets).subspan(start, input.n));
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<KeySet> sets = decide_key_sets(views, offsets, options, executor);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const Provenance made = provenance(common.seed, executor.threads());
  Json settings = {{"file", printable(call.file)},
                   {"tensor", printable(call.tensor)},
                   {"dtype", name_of(input.dtype)},
                   {"norm", name_of(spec)},
                   {"bias", printable(call.bias)},
                   {"bias_tensor", printable(call.bias_tensor)},
                   {"rank_policy", call.rank},
                   {"margin", call.margin},
                   {"exact", call.exact},
                   {"prefix", call.prefix},
                   {"query_norm", call.query_norm ? Json(*call.query_norm) : Json(nullptr)},
                   {"noise", call.noise ? Json(*call.noise) : Json(nullptr)},
                   {"effort", options.exact_effort}};
  Json head = {{"version", made.version}, {"commit", made.commit}, {"seconds", seconds},
               {"threads", made.threads}, {"isa", made.isa},       {"settings", settings}};
  if (input.norm_counts.undefined_rows() > 0) head["undefined_rows"] = input.norm_counts.undefined_rows();
  if (directory) {
    directory->write_config("keys", made, json_text(settings));
    std::string results;
    write_json(head, sets, call, [&](std::string_view text) { results += text; });
    directory->write("results.json", results);
    directory->write("report.html", report(call, input, sets, made, head));
    note(common, fmt::format("Wrote {}", (directory->path() / "results.json").string()));
  }
  if (common.json) {
    write_json(head, sets, call, [](std::string_view text) { print(text); });
  } else {
    print(screen(call, input, sets, seconds));
  }
}

}  // namespace

void add_keys(CLI::App& app, Common& common) {
  auto call = std::make_shared<KeysCall>();
  CLI::App* command = add_command(
      app, common, "keys", "Which keys can attention select? Verdict, margin and certificate for each",
      {"keys keys.npy", "keys layer3.safetensors --tensor k_proj --norm layernorm",
       "keys keys.npy --json --exact | jq '.sets[0].counts'",
       "keys head.npz --tensor weight --bias bias.npy --summary", "keys keys.npy --query-norm 10 --prefix"});
  command
      ->add_option(
          "FILE", call->file,
          "A .npy, .npz or .safetensors file with n × d keys or a batch of them; - is standard input")
      ->required();
  command->add_option("--tensor", call->tensor, "Which tensor of the file");
  command->add_option("--norm", call->norm, "Norm applied to the keys first, see below")
      ->capture_default_str();
  command->add_option("--bias", call->bias, "File with one score offset per key: scores are q·k + b");
  command->add_option("--bias-tensor", call->bias_tensor, "Which tensor of the --bias file");
  command
      ->add_option("--rank", call->rank,
                   "numerical: decide in the numerical affine hull; full: take every digit at face value")
      ->capture_default_str();
  command
      ->add_option("--margin", call->margin,
                   "exact, or bound: a certified lower bound, much faster in high dimension")
      ->capture_default_str();
  const auto number = [&](const char* name, std::optional<double>& value, const char* type,
                          const char* description) {
    command
        ->add_option_function<std::string>(
            name, [&value, name, call](const std::string& text) { value = parse_non_negative(text, name); },
            description)
        ->type_name(type);
  };
  number("--noise", call->noise, "EPS",
         "Robust means: against any change of each key of this norm (default: rounding of the dtype)");
  number("--query-norm", call->query_norm, "R",
         "Also the largest softmax weight a query of norm at most R can give each key");
  number(
      "--effort", call->effort, "N",
      "How many products of 64-bit words rational arithmetic may take for one key that floating point cannot "
      "decide (default: 2^33, some seconds); what lies beyond is undecided");
  command->add_flag("--prefix", call->prefix,
                    "Also the longest prefix (causal mask) in which each key is selectable");
  command->add_flag("--exact", call->exact, "Verify every certificate in rational arithmetic");
  command->add_flag("--summary", call->summary, "Leave the single keys out of the JSON");
  std::string norms;
  for (const std::string_view name : norm_names_without_normals())
    norms += fmt::format("{}{}", norms.empty() ? "" : " ", name);
  command->footer(command->get_footer() + "\n\nNorms: " + norms);
  command->callback([call, &common] { run(*call, common); });
}

}  // namespace normscope::cli
