#include "study/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "core/printable.h"
#include "io/file_errors.h"
#include "normscope/error.h"
#include "study/trace.h"

namespace normscope {
namespace {

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
Tensor read_named(const TensorFile& opened, const std::string& file, const std::string& name,
                  std::string_view option) {
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

void check_finite(const GivenKeys& input) {
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

// How many heads a row of the tensor holds, side by side: as asked, or as a trace says of it (trace_heads). 0:
// nobody says.
std::size_t heads_side_by_side(const KeysOptions& options, const std::string* told, const Tensor& tensor,
                               const std::string& source) {
  const std::size_t columns = tensor.shape.back();
  std::size_t heads = options.heads.value_or(0);
  if (!options.heads) {
    if (told == nullptr) return 0;
    const char* end = told->data() + told->size();
    const auto read = std::from_chars(told->data(), end, heads);
    if (read.ec != std::errc() || read.ptr != end || heads == 0)
      throw InputError(
          fmt::format("{}: its file says that it holds '{}' heads, which is no number of heads; "
                      "say how many there are with --heads.",
                      source, printable(*told)));
  }
  if (columns % heads != 0)
    throw InputError(fmt::format(
        "{} is {}: rows of {} numbers cannot hold the keys of {} heads, {}; give a number that divides them.",
        source, shape_text(tensor.shape), columns, heads,
        options.heads ? "as --heads says" : "as its file says"));
  return heads;
}

// rows × (heads · d) as heads × rows × d, for each of `batches`.
std::vector<double> heads_apart(const std::vector<double>& values, std::size_t batches, std::size_t rows,
                                std::size_t heads, std::size_t d) {
  std::vector<double> apart(values.size());
  for (std::size_t b = 0; b < batches; ++b)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t h = 0; h < heads; ++h)
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(((b * rows + i) * heads + h) * d), d,
                    apart.begin() + static_cast<std::ptrdiff_t>(((b * heads + h) * rows + i) * d));
  return apart;
}

void take_offsets(const Tensor& tensor, const std::string& source, GivenKeys& input) {
  const bool fits =
      (tensor.shape.size() == 1 && tensor.shape[0] == input.n) ||
      (tensor.shape.size() == 2 && tensor.shape[0] == input.sets && tensor.shape[1] == input.n) ||
      (input.heads > 0 &&
       tensor.shape == std::vector<std::size_t>{input.sets / input.heads, input.heads, input.n}) ||
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

void read_offsets(const KeysOptions& options, GivenKeys& input) {
  const Tensor tensor =
      read_named(TensorFile::open(options.bias), options.bias, options.bias_tensor, "--bias-tensor");
  take_offsets(tensor, source_of(options.bias, tensor), input);
}

KeyOptions engine_options(const GivenKeys& keys, const KeysOptions& options) {
  KeyOptions engine;
  engine.rank = options.rank;
  engine.margins = options.margin;
  engine.unit_roundoff = unit_roundoff(keys.dtype);
  engine.offset_roundoff = unit_roundoff(keys.offset_dtype);
  engine.smallest_rounding = smallest_rounding(keys.dtype);
  engine.exact = options.exact;
  engine.prefix = options.prefix;
  engine.certificates = !options.summary || options.exact;
  engine.query_norm = options.query_norm;
  engine.noise = options.noise;
  engine.errors = keys.errors;
  engine.projected_out = keys.projected_out;
  engine.smallest_offset_rounding = keys.offsets.empty() ? 0 : smallest_rounding(keys.offset_dtype);
  engine.exact_effort = options.effort.value_or(engine.exact_effort);
  return engine;
}

KeysSettings settings_of(const GivenKeys& keys, const KeysOptions& options, double effort) {
  KeysSettings settings;
  settings.file = printable(options.file);
  settings.tensor = printable(options.tensor);
  settings.heads = keys.heads;
  settings.dtype = keys.dtype;
  settings.norm = name_of(norm_without_normals(options.norm));
  settings.bias = printable(options.bias);
  settings.bias_tensor = printable(options.bias_tensor);
  settings.rank = options.rank;
  settings.margin = options.margin;
  settings.exact = options.exact;
  settings.prefix = options.prefix;
  settings.advice = options.advice;
  settings.query_norm = options.query_norm;
  settings.noise = options.noise;
  settings.effort = effort;
  return settings;
}

std::span<const double> offsets_of(const GivenKeys& keys, std::size_t set) {
  if (keys.offsets.empty()) return {};
  return std::span(keys.offsets).subspan(keys.offsets.size() == keys.n ? 0 : set * keys.n, keys.n);
}

SetAdvice advice_for(const GivenKeys& keys, std::size_t s, const KeySet& set, KeyOptions engine,
                     const Context& context) {
  if (!engine.errors.empty()) engine.errors = engine.errors.subspan(s * keys.n, keys.n);
  return advise({keys.values.data() + s * keys.n * keys.d, keys.n, keys.d}, offsets_of(keys, s), set, engine,
                context.executor);
}

KeySetResult result_of(KeySet set, bool exact) {
  KeySetResult result;
  result.keys.emplace();
  for (std::size_t i = 0; i < set.keys.size(); ++i) {
    const auto verified = exact ? std::optional(set.keys[i].verified) : std::nullopt;
    result.keys->push_back({i, std::move(set.keys[i]), verified, {}});
  }
  set.keys.clear();
  result.set = std::move(set);
  return result;
}

void check(const KeysOptions& options) {
  check_options(options);
  norm_without_normals(options.norm);
  if (options.bias.empty() && !options.bias_tensor.empty())
    throw InputError("--bias-tensor names a tensor, but there is no --bias file to read it from.");
  if (options.file == "-" && options.bias == "-")
    throw InputError("both the keys and --bias are read from standard input (-): put one of them in a file.");
}

}  // namespace

NormSpec norm_without_normals(const std::string& name) {
  const NormSpec spec = parse_norm(name, norm_names_without_normals());
  if (spec.projection == Projection::normals)
    throw InputError(
        fmt::format("--norm {} needs learned normals, which a file of keys does not bring: use center or "
                    "layernorm, whose normal is the vector of ones.",
                    printable(name)));
  return spec;
}

void apply_norm(const std::string& norm, GivenKeys& given) {
  const NormSpec spec = norm_without_normals(norm);
  if (spec == parse_norm("none")) return;
  const std::size_t rows = given.sets * given.n;
  const MatrixView<double> keys(given.values.data(), rows, given.d);
  given.projected_out = directions_projected_out(spec);
  const bool wide = unit_roundoff(given.dtype) < 0x1p-24;
  given.errors = norm_errors(spec, keys, unit_roundoff(given.dtype), smallest_rounding(given.dtype),
                             wide ? 0x1p-53 : 0x1p-24);
  given.norm_counts = norm_as_in_models(spec, {}, keys, keys, unit_roundoff(given.dtype));
  for (const double value : given.values)
    if (!std::isfinite(value))
      throw InputError(
          fmt::format("{}: --norm {} overflows on these keys; scale them down first.", given.source, norm));
}

namespace {

// told: how many heads a row holds, as the file of the tensor says; null: it does not.
GivenKeys take_keys(const KeysOptions& options, Tensor tensor, std::string source, const std::string* told) {
  GivenKeys input;
  input.source = std::move(source);
  input.dtype = tensor.dtype;
  const std::size_t axes = tensor.shape.size();
  if (axes < 2 || axes > 4)
    throw InputError(fmt::format(
        "{} is {}: keys are a matrix (keys × dimensions), a batch of them (sets × keys × dimensions) or of "
        "heads (batch × heads × keys × dimensions); reshape it, or name another tensor with --tensor.",
        input.source,
        axes == 1 ? fmt::format("a list of {} numbers", tensor.shape[0]) : shape_text(tensor.shape)));
  if (axes == 4 && options.heads && *options.heads != tensor.shape[1])
    throw InputError(fmt::format("{} is {}: it has {} heads, not {}; leave --heads out.", input.source,
                                 shape_text(tensor.shape), tensor.shape[1], *options.heads));
  if (tensor.values.empty())
    throw InputError(
        fmt::format("{} is {}: there is no key in it; at least one key with one coordinate is needed.",
                    input.source, shape_text(tensor.shape)));
  input.n = tensor.shape[axes - 2];
  input.d = tensor.shape[axes - 1];
  const std::size_t batches = axes == 2 ? 1 : tensor.shape[0];
  const std::size_t side_by_side = axes == 4 ? 0 : heads_side_by_side(options, told, tensor, input.source);
  input.heads = axes == 4 ? tensor.shape[1] : side_by_side;
  input.sets = batches * std::max<std::size_t>(1, input.heads);
  if (side_by_side > 0) {
    input.d /= side_by_side;
    tensor.values = heads_apart(tensor.values, batches, input.n, side_by_side, input.d);
  }
  input.values = std::move(tensor.values);
  check_finite(input);
  return input;
}

}  // namespace

GivenKeys read_keys(const KeysOptions& options) {
  check(options);
  // As `vocab` takes it.
  if (const std::size_t colon = options.file.rfind(':'); colon != std::string::npos) {
    const std::string path = options.file.substr(0, colon), tensor = options.file.substr(colon + 1);
    std::error_code ignored;
    if (!std::filesystem::exists(options.file, ignored) && std::filesystem::is_regular_file(path, ignored))
      throw InputError(
          fmt::format("There is no file '{}'; --tensor names a tensor: normscope keys {} --tensor {}.",
                      printable(options.file), printable(path), printable(tensor)));
  }
  const TensorFile file = TensorFile::open(options.file);
  Tensor tensor = read_named(file, options.file, options.tensor, "--tensor");
  const auto told = file.metadata().find(trace_heads(tensor.name));
  std::string source = source_of(options.file, tensor);
  GivenKeys input = take_keys(options, std::move(tensor), std::move(source),
                              told == file.metadata().end() ? nullptr : &told->second);
  if (!options.bias.empty()) read_offsets(options, input);
  return input;
}

GivenKeys keys_of(const KeysOptions& options, Tensor keys, const std::optional<Tensor>& offsets) {
  check(options);
  std::string source = keys.name;
  GivenKeys input = take_keys(options, std::move(keys), std::move(source), nullptr);
  if (offsets)
    take_offsets(*offsets, offsets->name, input);
  else if (!options.bias.empty())
    read_offsets(options, input);
  return input;
}

std::vector<KeySet> decide_batch(const KeyBatch& batch, const KeyOptions& options, const Executor& executor,
                                 const std::string& set_name) {
  std::vector<MatrixView<const double>> views;
  std::vector<std::span<const double>> offsets;
  for (std::size_t s = 0; s < batch.sets; ++s) {
    views.emplace_back(batch.values.data() + s * batch.n * batch.d, batch.n, batch.d);
    const std::size_t start = batch.offsets.size() == batch.n ? 0 : s * batch.n;
    if (!batch.offsets.empty()) offsets.push_back(batch.offsets.subspan(start, batch.n));
  }
  return decide_key_sets(views, offsets, options, executor, set_name);
}

KeysResult decide(const GivenKeys& keys, const KeysOptions& options, const Context& context) {
  KeyOptions engine = engine_options(keys, options);
  engine.progress = context.progress;
  KeysResult result;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<KeySet> sets =
      decide_batch({keys.values, keys.offsets, keys.sets, keys.n, keys.d}, engine, context.executor);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.made = provenance(context.seed, context.executor.threads());
  result.settings = settings_of(keys, options, engine.exact_effort);
  result.undefined_rows = keys.norm_counts.undefined_rows();
  std::vector<SetAdvice> advice;
  if (options.advice)
    for (std::size_t s = 0; s < sets.size(); ++s)
      advice.push_back(advice_for(keys, s, sets[s], engine, context));
  for (std::size_t s = 0; s < sets.size(); ++s) {
    KeySetResult& set = result.sets.emplace_back(result_of(std::move(sets[s]), options.exact));
    if (options.advice) {
      for (KeyResult& key : *set.keys) key.advice = std::move(advice[s].keys[key.index]);
      set.for_all = std::move(advice[s].all);
    }
    if (keys.heads == 0) continue;
    set.head = s % keys.heads;
    if (keys.sets > keys.heads) set.batch = s / keys.heads;
  }
  return result;
}

std::span<const char* const> advised_norms() {
  // Those that differ by more than a factor of all keys.
  static constexpr const char* norms[] = {"layernorm", "rmsnorm", "center", "xsigma", "dyt"};
  return norms;
}

std::vector<std::vector<std::vector<NormAdvice>>> advise_norms(const GivenKeys& raw,
                                                               const KeysOptions& options,
                                                               const Context& context) {
  std::vector<std::vector<std::vector<NormAdvice>>> advice(raw.sets,
                                                           std::vector<std::vector<NormAdvice>>(raw.n));
  for (const char* norm : advised_norms()) {
    GivenKeys keys = raw;
    apply_norm(norm, keys);
    KeyOptions engine = engine_options(keys, options);
    engine.certificates = true;
    engine.margins = Margins::bound;
    engine.prefix = false;
    engine.query_norm.reset();
    std::vector<KeySet> sets =
        decide_batch({keys.values, keys.offsets, keys.sets, keys.n, keys.d}, engine, context.executor);
    for (std::size_t s = 0; s < sets.size(); ++s)
      for (std::size_t i = 0; i < keys.n; ++i)
        // Without rounding, a linear norm makes no key a corner, and keys that scaling makes equal tie.
        if (sets[s].keys[i].verdict == Verdict::selectable && sets[s].keys[i].robust)
          advice[s][i].push_back({norm, std::move(sets[s].keys[i].witness)});
  }
  return advice;
}

KeysResult without_keys(const KeysResult& result) {
  KeysResult head{result.made, result.seconds, result.settings, result.undefined_rows, {}};
  for (const KeySetResult& set : result.sets)
    head.sets.push_back({set.set, std::nullopt, set.batch, set.head, set.for_all});
  return head;
}

KeysStudy study_keys(const KeysOptions& options, const Context& context) {
  return study_keys(read_keys(options), options, context);
}

KeysStudy study_keys(GivenKeys given, const KeysOptions& options, const Context& context) {
  KeysStudy study;
  study.given = std::move(given);
  const std::optional<GivenKeys> raw = options.advice ? std::optional(study.given) : std::nullopt;
  apply_norm(options.norm, study.given);
  study.result = decide(study.given, options, context);
  if (!raw) return study;
  const bool needed = std::any_of(study.result.sets.begin(), study.result.sets.end(), [](const auto& set) {
    return set.set.counts.tied + set.set.counts.unselectable > 0;
  });
  if (!needed) return study;
  auto norms = advise_norms(*raw, options, context);
  for (std::size_t s = 0; s < norms.size(); ++s)
    for (KeyResult& key : *study.result.sets[s].keys)
      if (key.advice) key.advice->norms = std::move(norms[s][key.index]);
  return study;
}

}  // namespace normscope
