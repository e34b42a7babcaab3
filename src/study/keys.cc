#include "study/keys.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "core/printable.h"
#include "io/file_errors.h"
#include "normscope/error.h"

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

void read_offsets(const KeysOptions& options, GivenKeys& input) {
  const Tensor tensor = read_named(options.bias, options.bias_tensor, "--bias-tensor");
  const std::string source = source_of(options.bias, tensor);
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
  settings.dtype = keys.dtype;
  settings.norm = name_of(norm_without_normals(options.norm));
  settings.bias = printable(options.bias);
  settings.bias_tensor = printable(options.bias_tensor);
  settings.rank = options.rank;
  settings.margin = options.margin;
  settings.exact = options.exact;
  settings.prefix = options.prefix;
  settings.query_norm = options.query_norm;
  settings.noise = options.noise;
  settings.effort = effort;
  return settings;
}

KeySetResult result_of(KeySet set, bool exact) {
  KeySetResult result;
  result.keys.emplace();
  for (std::size_t i = 0; i < set.keys.size(); ++i) {
    const auto verified = exact ? std::optional(set.keys[i].verified) : std::nullopt;
    result.keys->push_back({i, std::move(set.keys[i]), verified});
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

GivenKeys read_keys(const KeysOptions& options) {
  check(options);
  GivenKeys input;
  Tensor tensor = read_named(options.file, options.tensor, "--tensor");
  input.source = source_of(options.file, tensor);
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
  if (!options.bias.empty()) read_offsets(options, input);
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
  for (KeySet& set : sets) result.sets.push_back(result_of(std::move(set), options.exact));
  return result;
}

KeysStudy study_keys(const KeysOptions& options, const Context& context) {
  KeysStudy study;
  study.given = read_keys(options);
  apply_norm(options.norm, study.given);
  study.result = decide(study.given, options, context);
  return study;
}

}  // namespace normscope
