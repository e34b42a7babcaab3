#include "study/vocab.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/printable.h"
#include "io/file_errors.h"
#include "normscope/checkpoint.h"
#include "normscope/error.h"
#include "study/keys.h"
#include "study/model_text.h"
#include "study/parse.h"

namespace normscope {
namespace {

bool holds_tensors(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".npz") || path.ends_with(".safetensors");
}

std::string source_of(const std::string& path, const Tensor& tensor) {
  return tensor.name.empty() ? printable(path)
                             : fmt::format("{}: tensor \"{}\"", printable(path), printable(tensor.name));
}

Tensor read_place(const std::string& text, std::string_view what) {
  const TensorPlace place = tensor_place(text);
  const TensorFile file = TensorFile::open(place.path);
  if (!place.tensor && file.tensors().size() > 1) {
    std::vector<std::string> names;
    for (const TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
    throw InputError(fmt::format("{} holds {} tensors: {}; name one of them: {} {}:NAME.",
                                 io::quoted_path(place.path), names.size(), io::quoted_names(names), what,
                                 printable(place.path)));
  }
  return file.read(place.tensor);
}

void check_finite(const Vocabulary& vocabulary) {
  for (std::size_t i = 0; i < vocabulary.rows.rows(); ++i)
    for (std::size_t c = 0; c < vocabulary.rows.cols(); ++c)
      if (!std::isfinite(vocabulary.rows(i, c)))
        throw InputError(fmt::format(
            "{} is {} at row {}, column {} (counted from 0): the rows of tokens must be finite numbers.",
            vocabulary.source, std::isnan(vocabulary.rows(i, c)) ? "NaN" : "infinite", i, c));
  for (std::size_t i = 0; i < vocabulary.offsets.size(); ++i)
    if (!std::isfinite(vocabulary.offsets[i]))
      throw InputError(fmt::format("The bias of {} is not a finite number at token {} (counted from 0).",
                                   vocabulary.source, i));
}

void take_bias(const Tensor& bias, const std::string& source, Vocabulary& vocabulary) {
  if (bias.values.size() != vocabulary.rows.rows())
    throw InputError(fmt::format("{} holds {} numbers, but there are {} tokens: --bias needs one for each.",
                                 source, bias.values.size(), vocabulary.rows.rows()));
  vocabulary.offsets = bias.values;
  vocabulary.offset_dtype = bias.dtype;
}

void read_bias(const VocabOptions& options, Vocabulary& vocabulary) {
  const Tensor bias = read_place(options.bias, "--bias");
  take_bias(bias, source_of(tensor_place(options.bias).path, bias), vocabulary);
}

Vocabulary take_rows(Tensor tensor, std::string source) {
  Vocabulary vocabulary;
  vocabulary.source = std::move(source);
  if (tensor.shape.size() != 2 || tensor.values.empty())
    throw InputError(fmt::format(
        "{} has {} axes and {} numbers: a vocabulary is a matrix, a row per token; name another tensor.",
        vocabulary.source, tensor.shape.size(), tensor.values.size()));
  vocabulary.dtype = tensor.dtype;
  vocabulary.rows = Matrix<double>(tensor.shape[0], tensor.shape[1], std::move(tensor.values));
  return vocabulary;
}

Vocabulary read_file(const VocabOptions& options, const Executor& executor) {
  Vocabulary vocabulary;
  SharedMatrix rows = once_per_machine(executor, [&] {
    Tensor tensor = read_place(options.source, "give");
    std::string source = source_of(tensor_place(options.source).path, tensor);
    vocabulary = take_rows(std::move(tensor), std::move(source));
    return vocabulary.rows;
  });
  std::tie(vocabulary.source, vocabulary.dtype) =
      told_on_machine(executor, [&] { return std::pair(vocabulary.source, vocabulary.dtype); });
  vocabulary.rows = std::move(rows);
  if (!options.bias.empty()) read_bias(options, vocabulary);
  return vocabulary;
}

// Models are read as float; what their files held before is told by the numbers, all of which it must hold.
DType narrowest(std::span<const double> values) {
  bool half = true, brain = true;
  for (const double wide : values) {
    const auto value = static_cast<float>(wide);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    brain = brain && (bits & 0xFFFFU) == 0;
    // 11 significant bits, and nothing below half's smallest step of 2⁻²⁴ or beyond 65504.
    const float size = std::abs(value);
    half = half && (bits & 0x1FFFU) == 0 && size <= 65504 &&
           std::ldexp(size, 24) == std::trunc(std::ldexp(size, 24));
    if (!half && !brain) return DType::float32;
  }
  return half ? DType::float16 : DType::bfloat16;
}

Matrix<double> widened(const Matrix<float>& narrow) {
  return {narrow.rows(), narrow.cols(), {narrow.values().begin(), narrow.values().end()}};
}

Vocabulary read_model(const VocabOptions& options, const Executor& executor) {
  Checkpoint checkpoint = open_checkpoint(options.source);
  const ModelSpec& spec = checkpoint.weights->spec();
  Vocabulary vocabulary;
  vocabulary.tokenizer = std::move(checkpoint.tokenizer);
  vocabulary.source = printable(options.source);
  if (options.embeddings) {
    vocabulary.source += ": word embeddings";
    vocabulary.rows = once_per_machine(executor, [&] { return widened(checkpoint.weights->words()); });
    vocabulary.dtype = narrowest(vocabulary.rows.values().values());
    return vocabulary;
  }
  if (spec.head == ModelSpec::Head::none)
    throw InputError(fmt::format(
        "{} ({}) has no output head, so it gives no token a score; --embeddings asks about its word "
        "embeddings instead.",
        printable(options.source), spec.family));
  std::vector<double> bias;
  vocabulary.rows = once_per_machine(executor, [&] {
    const HeadWeights head = checkpoint.weights->head();
    bias.assign(head.bias.begin(), head.bias.end());
    return widened(head.output);
  });
  vocabulary.notes = checkpoint.notes;
  vocabulary.source += spec.tied ? ": output head, tied to the word embeddings" : ": output head";
  vocabulary.dtype = narrowest(vocabulary.rows.values().values());
  vocabulary.offsets = told_on_machine(executor, [&] { return bias; });
  vocabulary.offset_dtype = narrowest(vocabulary.offsets);
  return vocabulary;
}

KeyOptions engine_options(const Vocabulary& vocabulary, const VocabOptions& options, const Context& context) {
  KeyOptions engine;
  engine.margins = options.margin;
  engine.unit_roundoff = unit_roundoff(vocabulary.dtype);
  engine.offset_roundoff = unit_roundoff(vocabulary.offset_dtype);
  engine.smallest_rounding = smallest_rounding(vocabulary.dtype);
  engine.exact = options.exact;
  engine.progress = context.progress;
  return engine;
}

// What would help the tokens that never win alone: into the result.
void add_advice(const VocabOptions& options, const Context& context, VocabStudy& study) {
  const Vocabulary& given = study.given;
  if (study.result.never_alone->empty()) return;
  SetAdvice advice = advise(given.rows.view(), given.offsets, study.set,
                            engine_options(given, options, context), context.executor);
  GivenKeys raw;
  raw.source = given.source;
  raw.dtype = given.dtype;
  raw.offset_dtype = given.offset_dtype;
  raw.n = given.rows.rows();
  raw.d = given.rows.cols();
  const auto values = given.rows.values().values();
  raw.values.assign(values.begin(), values.end());
  raw.offsets = given.offsets;
  auto norms = advise_norms(raw, {}, context);
  for (VocabToken& token : *study.result.never_alone) {
    token.advice = std::move(advice.keys[token.id]);
    if (token.advice) token.advice->norms = std::move(norms[0][token.id]);
  }
  study.result.for_all = std::move(advice.all);
}

// Ids of the tokens that can never win alone, and of the selectable ones by rising margin, at most `most`.
struct Notable {
  std::vector<std::size_t> lost, nearest;
};

Notable notable(const KeySet& set, std::size_t most) {
  Notable result;
  for (std::size_t i = 0; i < set.n; ++i) {
    const Verdict verdict = set.keys[i].verdict;
    if (verdict == Verdict::undecided) continue;
    (verdict == Verdict::selectable ? result.nearest : result.lost).push_back(i);
  }
  const std::size_t kept = std::min(most, result.nearest.size());
  std::partial_sort(
      result.nearest.begin(), result.nearest.begin() + static_cast<std::ptrdiff_t>(kept),
      result.nearest.end(), [&](std::size_t a, std::size_t b) {
        return set.keys[a].margin != set.keys[b].margin ? set.keys[a].margin < set.keys[b].margin : a < b;
      });
  result.nearest.resize(kept);
  return result;
}

std::vector<VocabTerm> terms(const Vocabulary& vocabulary, const std::vector<CoverTerm>& cover) {
  std::vector<VocabTerm> list;
  list.reserve(cover.size());
  for (const CoverTerm& term : cover) list.push_back({term.index, term.weight, vocabulary.text(term.index)});
  return list;
}

std::vector<VocabToken> tokens_of(const VocabStudy& study, const std::vector<std::size_t>& ids, bool exact) {
  std::vector<VocabToken> tokens;
  for (const std::size_t id : ids) {
    const KeyVerdict& key = study.set.keys[id];
    VocabToken& token = tokens.emplace_back();
    token.id = id;
    token.token = study.given.text(id);
    token.verdict = key.verdict;
    token.robust = key.robust;
    token.margin = key.margin;
    token.depth = key.depth;
    token.exact_witness = key.exact_witness;
    token.cover = terms(study.given, key.cover);
    token.interior = terms(study.given, key.interior);
    token.tied_with = key.tied_with;
    if (exact) token.verified = key.verified;
  }
  return tokens;
}

VocabResult::Settings settings_of(const VocabOptions& options, DType dtype) {
  VocabResult::Settings settings;
  settings.source = printable(options.source);
  settings.bias = printable(options.bias);
  settings.tokenizer = printable(options.tokenizer);
  settings.embeddings = options.embeddings;
  settings.margin = options.margin;
  settings.exact = options.exact;
  settings.advice = options.advice;
  settings.limit = options.limit;
  settings.dtype = dtype;
  return settings;
}

Vocabulary checked(Vocabulary vocabulary, const VocabOptions& options) {
  check_finite(vocabulary);
  if (!options.tokenizer.empty())
    vocabulary.tokenizer =
        Tokenizer::from_json(read_text_file(options.tokenizer, "--tokenizer"), printable(options.tokenizer));
  return vocabulary;
}

}  // namespace

std::string Vocabulary::text(std::size_t id) const {
  const auto token = tokenizer ? tokenizer->token(static_cast<std::uint32_t>(id)) : std::nullopt;
  return token ? printable(*token) : "";
}

Vocabulary read_vocabulary(const VocabOptions& options, const Executor& executor) {
  check_options(options);
  const bool file = holds_tensors(tensor_place(options.source).path);
  if (!file && !options.bias.empty())
    throw InputError("--bias is for a FILE; the head of a model brings its own bias.");
  if (file && options.embeddings)
    throw InputError("--embeddings is for a MODEL; of a file name the tensor, as in FILE:TENSOR.");
  Vocabulary vocabulary = file ? read_file(options, executor) : read_model(options, executor);
  return checked(std::move(vocabulary), options);
}

Vocabulary vocabulary_of(const VocabOptions& options, Tensor rows, const std::optional<Tensor>& bias) {
  check_options(options);
  if (options.embeddings)
    throw InputError("--embeddings is for a MODEL; of a file name the tensor, as in FILE:TENSOR.");
  std::string source = rows.name;
  Vocabulary vocabulary = take_rows(std::move(rows), std::move(source));
  if (bias)
    take_bias(*bias, bias->name, vocabulary);
  else if (!options.bias.empty())
    read_bias(options, vocabulary);
  return checked(std::move(vocabulary), options);
}

VocabStudy study_vocab(const VocabOptions& options, const Context& context) {
  return study_vocab(read_vocabulary(options, context.executor), options, context);
}

VocabStudy study_vocab(Vocabulary given, const VocabOptions& options, const Context& context) {
  VocabStudy study;
  study.given = std::move(given);
  VocabResult& result = study.result;
  const auto begin = std::chrono::steady_clock::now();
  study.set = decide_keys(study.given.rows.view(), study.given.offsets,
                          engine_options(study.given, options, context), context.executor);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const KeySet& set = study.set;
  result.made = provenance(context.seed, context.executor.threads());
  result.settings = settings_of(options, study.given.dtype);
  result.tokens = set.n;
  result.d = set.d;
  result.rank = set.rank;
  result.bias = !study.given.offsets.empty();
  result.counts = set.counts;
  result.robust_counts = set.robust_counts;
  result.exact_path = set.exact_path;
  if (options.exact)
    result.verified = static_cast<std::size_t>(
        std::count_if(set.keys.begin(), set.keys.end(), [](const KeyVerdict& key) { return key.verified; }));
  const Notable ids = notable(set, options.limit);
  result.never_alone = tokens_of(study, ids.lost, options.exact);
  result.smallest_margins = tokens_of(study, ids.nearest, options.exact);
  if (options.advice) add_advice(options, context, study);
  return study;
}

void write_certificates(const std::filesystem::path& path, const KeySet& set) {
  Tensor verdict{"verdict", DType::uint8, {set.n}, {}}, margin{"margin", DType::float64, {set.n}, {}},
      depth{"depth", DType::float64, {set.n}, {}}, robust{"robust", DType::boolean, {set.n}, {}},
      token{"witness.token", DType::int64, {}, {}}, witness{"witness", DType::float64, {}, {}},
      start{"cover.start", DType::int64, {set.n + 1}, {0.0}}, members{"cover.token", DType::int64, {}, {}},
      weights{"cover.weight", DType::float64, {}, {}};
  for (std::size_t i = 0; i < set.n; ++i) {
    const KeyVerdict& key = set.keys[i];
    verdict.values.push_back(static_cast<double>(key.verdict));
    margin.values.push_back(key.margin);
    depth.values.push_back(key.depth);
    robust.values.push_back(key.robust ? 1 : 0);
    if (!key.witness.empty()) {
      token.values.push_back(static_cast<double>(i));
      witness.values.insert(witness.values.end(), key.witness.begin(), key.witness.end());
    }
    for (const CoverTerm& term : key.cover) {
      members.values.push_back(static_cast<double>(term.index));
      weights.values.push_back(term.weight);
    }
    start.values.push_back(static_cast<double>(members.values.size()));
  }
  token.shape = {token.values.size()};
  witness.shape = {token.values.size(), set.d};
  members.shape = weights.shape = {members.values.size()};
  const std::vector<Tensor> tensors = {verdict, margin,  depth,  robust, token, std::move(witness),
                                       start,   members, weights};
  write_safetensors(path.string(), tensors,
                    {{"verdict", "0 selectable, 1 tied, 2 unselectable"},
                     {"witness", "row k is a query that puts token witness.token[k] on top"},
                     {"cover", "of token i: entries cover.start[i] to cover.start[i + 1]"}});
}

}  // namespace normscope
