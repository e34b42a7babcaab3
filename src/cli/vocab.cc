// normscope vocab: which tokens of a vocabulary a model can put on top.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/model_text.h"
#include "io/sentence.h"
#include "normscope/checkpoint.h"
#include "normscope/error.h"
#include "normscope/keys.h"
#include "normscope/tensor_file.h"
#include "normscope/tokenizer.h"
#include "record/json.h"
#include "report/vocab_page.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

struct VocabCall {
  std::string source, bias, tokenizer, margin = "bound", limit = "20";
  bool embeddings = false, exact = false;
};

// The rows that score a hidden state, one per token.
struct Vocabulary {
  std::string source;
  DType dtype = DType::float32, offset_dtype = DType::float32;
  Matrix<double> rows;          // V × d
  std::vector<double> offsets;  // V, or none
  std::optional<Tokenizer> tokenizer;

  std::string text(std::size_t id) const {
    const auto token = tokenizer ? tokenizer->token(static_cast<std::uint32_t>(id)) : std::nullopt;
    return token ? printable(*token) : "";
  }
};

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

Vocabulary read_file(const VocabCall& call) {
  Vocabulary vocabulary;
  Tensor tensor = read_place(call.source, "give");
  vocabulary.source = source_of(tensor_place(call.source).path, tensor);
  if (tensor.shape.size() != 2 || tensor.values.empty())
    throw InputError(fmt::format(
        "{} has {} axes and {} numbers: a vocabulary is a matrix, a row per token; name another tensor.",
        vocabulary.source, tensor.shape.size(), tensor.values.size()));
  vocabulary.dtype = tensor.dtype;
  vocabulary.rows = Matrix<double>(tensor.shape[0], tensor.shape[1], std::move(tensor.values));
  if (!call.bias.empty()) {
    const Tensor bias = read_place(call.bias, "--bias");
    if (bias.values.size() != vocabulary.rows.rows())
      throw InputError(fmt::format("{} holds {} numbers, but there are {} tokens: --bias needs one for each.",
                                   source_of(tensor_place(call.bias).path, bias), bias.values.size(),
                                   vocabulary.rows.rows()));
    vocabulary.offsets = bias.values;
    vocabulary.offset_dtype = bias.dtype;
  }
  return vocabulary;
}

// Models are read as float; what their files held before is told by the numbers, all of which it must hold.
DType narrowest(std::span<const float> values) {
  bool half = true, brain = true;
  for (const float value : values) {
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

Vocabulary read_model(const VocabCall& call) {
  Checkpoint checkpoint = open_checkpoint(call.source);
  const ModelSpec& spec = checkpoint.weights->spec();
  Vocabulary vocabulary;
  vocabulary.tokenizer = std::move(checkpoint.tokenizer);
  vocabulary.source = printable(call.source);
  if (call.embeddings) {
    const Matrix<float> words = checkpoint.weights->words();
    vocabulary.source += ": word embeddings";
    vocabulary.dtype = narrowest(words.values());
    vocabulary.rows = widened(words);
    return vocabulary;
  }
  if (spec.head == ModelSpec::Head::none)
    throw InputError(fmt::format(
        "{} ({}) has no output head, so it gives no token a score; --embeddings asks about its word "
        "embeddings instead.",
        printable(call.source), spec.family));
  const HeadWeights head = checkpoint.weights->head();
  vocabulary.source += spec.tied ? ": output head, tied to the word embeddings" : ": output head";
  vocabulary.dtype = narrowest(head.output.values());
  vocabulary.rows = widened(head.output);
  vocabulary.offsets.assign(head.bias.begin(), head.bias.end());
  vocabulary.offset_dtype = narrowest(head.bias);
  return vocabulary;
}

Vocabulary read_vocabulary(const VocabCall& call) {
  const bool file = holds_tensors(tensor_place(call.source).path);
  if (!file && !call.bias.empty())
    throw InputError("--bias is for a FILE; the head of a model brings its own bias.");
  if (file && call.embeddings)
    throw InputError("--embeddings is for a MODEL; of a file name the tensor, as in FILE:TENSOR.");
  Vocabulary vocabulary = file ? read_file(call) : read_model(call);
  check_finite(vocabulary);
  if (!call.tokenizer.empty())
    vocabulary.tokenizer =
        Tokenizer::from_json(read_text_file(call.tokenizer, "--tokenizer"), printable(call.tokenizer));
  return vocabulary;
}

Json terms(const Vocabulary& vocabulary, const std::vector<CoverTerm>& cover) {
  Json list = Json::array();
  for (const CoverTerm& term : cover) {
    list.push_back({{"id", term.index}, {"weight", term.weight}});
    if (const std::string text = vocabulary.text(term.index); !text.empty()) list.back()["token"] = text;
  }
  return list;
}

Json token_json(const Vocabulary& vocabulary, const KeyVerdict& key, std::size_t id, bool exact) {
  Json json = {{"id", id}};
  if (const std::string text = vocabulary.text(id); !text.empty()) json["token"] = text;
  json["verdict"] = name_of(key.verdict);
  json["robust"] = key.robust;
  if (key.verdict == Verdict::selectable) json["margin"] = number_or_null(key.margin);
  if (key.verdict == Verdict::unselectable) json["depth"] = key.depth;
  if (!key.exact_witness.empty()) json["exact_witness"] = key.exact_witness;
  if (!key.cover.empty()) json["cover"] = terms(vocabulary, key.cover);
  if (!key.interior.empty()) json["interior"] = terms(vocabulary, key.interior);
  if (key.verdict == Verdict::tied) json["tied_with"] = key.tied_with;
  if (exact) json["verified"] = key.verified;
  return json;
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

VocabRun::Token page_token(const Vocabulary& vocabulary, const KeyVerdict& key, std::size_t id) {
  constexpr std::size_t kMostCovers = 4;
  VocabRun::Token token{id, vocabulary.text(id), key.verdict, key.robust, 0, ""};
  token.size = key.verdict == Verdict::unselectable ? key.depth : key.margin;
  std::vector<CoverTerm> cover = key.cover;
  std::sort(cover.begin(), cover.end(), [](const CoverTerm& a, const CoverTerm& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.index < b.index;
  });
  for (std::size_t k = 0; k < std::min(kMostCovers, cover.size()); ++k) {
    const std::string text = vocabulary.text(cover[k].index);
    token.covers += fmt::format(
        "{}{}", k > 0 ? ", " : "",
        text.empty() ? fmt::format("{}", cover[k].index) : fmt::format("{} ({})", text, cover[k].index));
  }
  if (cover.size() > kMostCovers) token.covers += fmt::format(", … ({} in all)", cover.size());
  return token;
}

// Everything a verdict rests on, of every token: witness rows where there is one, covers as lists.
void write_certificates(const RunDirectory& directory, const KeySet& set) {
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
  write_safetensors((directory.path() / "certificates.safetensors").string(), tensors,
                    {{"verdict", "0 selectable, 1 tied, 2 unselectable"},
                     {"witness", "row k is a query that puts token witness.token[k] on top"},
                     {"cover", "of token i: entries cover.start[i] to cover.start[i + 1]"}});
}

KeySet decide(const Vocabulary& vocabulary, const VocabCall& call, const Common& common,
              const Executor& executor) {
  KeyOptions options;
  options.margins = call.margin == "exact" ? Margins::exact : Margins::bound;
  options.unit_roundoff = unit_roundoff(vocabulary.dtype);
  options.offset_roundoff = unit_roundoff(vocabulary.offset_dtype);
  options.smallest_rounding = smallest_rounding(vocabulary.dtype);
  options.exact = call.exact;
  Progress progress(common, "vocab", "tokens");
  options.progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); };
  return decide_keys(vocabulary.rows.view(), vocabulary.offsets, options, executor);
}

std::string screen(const Vocabulary& vocabulary, const KeySet& set, const VocabRun& run,
                   const VocabCall& call, double seconds) {
  std::string text = fmt::format("{}, {}, {} × {}{}\n", vocabulary.source, name_of(vocabulary.dtype), set.n,
                                 set.d, vocabulary.offsets.empty() ? "" : ", with bias");
  std::vector<std::vector<std::string>> rows = {{"verdict", "tokens", "share", "robust"}};
  const auto row = [&](const char* name, std::size_t all, std::size_t robust) {
    rows.push_back({name, std::to_string(all),
                    fmt::format("{:.2f} %", 100.0 * static_cast<double>(all) / static_cast<double>(set.n)),
                    std::to_string(robust)});
  };
  row("selectable", set.counts.selectable, set.robust_counts.selectable);
  row("tied", set.counts.tied, set.robust_counts.tied);
  row("unselectable", set.counts.unselectable, set.robust_counts.unselectable);
  if (set.counts.undecided > 0) row("undecided", set.counts.undecided, 0);
  text += table(rows) + vocab_verdict(run) + "\n";
  const auto list = [&](const char* title, const std::vector<VocabRun::Token>& tokens, std::size_t whole) {
    if (tokens.empty()) return;
    const ReportTable shown = vocab_table(title, tokens, whole);
    text += fmt::format("\n{}\n{}", shown.title, table(shown.rows));
  };
  list("Never on top alone", run.lost, set.counts.tied + set.counts.unselectable);
  list(call.margin == "bound" ? "Smallest margins (lower bounds)" : "Smallest margins", run.nearest,
       set.counts.selectable);
  const auto verified =
      std::count_if(set.keys.begin(), set.keys.end(), [](const KeyVerdict& key) { return key.verified; });
  return text + fmt::format(
                    "\nrank {} of {}; {} tokens decided by error bounds, {} by rational arithmetic{}\n"
                    "{:.3g} s\n",
                    set.rank, set.d, set.n - set.exact_path - set.counts.undecided, set.exact_path,
                    call.exact ? fmt::format("; {} verified in rational arithmetic", verified) : "", seconds);
}

void run(const VocabCall& call, const Common& common) {
  if (call.margin != "exact" && call.margin != "bound")
    throw InputError(fmt::format("--margin is \"{}\": it takes bound (certified lower bounds) or exact.",
                                 printable(call.margin)));
  const std::size_t limit = parse_count(call.limit, "--limit", 0, 1'000'000);
  const auto directory = replaceable_directory(common);
  const Vocabulary vocabulary = read_vocabulary(call);
  const Executor executor(common.threads, common.stop);
  const auto begin = std::chrono::steady_clock::now();
  const KeySet set = decide(vocabulary, call, common, executor);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const Provenance made = provenance(common.seed, executor.threads());
  const Notable ids = notable(set, limit);
  VocabRun run;
  run.keys.source =
      fmt::format("{}, {}, {} × {}", vocabulary.source, name_of(vocabulary.dtype), set.n, set.d);
  run.keys.norm = "none";
  run.keys.lower_bounds = call.margin == "bound";
  run.keys.sets = {summary_of(set)};
  run.biased = !vocabulary.offsets.empty();
  for (std::size_t k = 0; k < std::min(limit, ids.lost.size()); ++k)
    run.lost.push_back(page_token(vocabulary, set.keys[ids.lost[k]], ids.lost[k]));
  for (const std::size_t id : ids.nearest) run.nearest.push_back(page_token(vocabulary, set.keys[id], id));

  const Json settings = {{"source", printable(call.source)},
                         {"bias", printable(call.bias)},
                         {"tokenizer", printable(call.tokenizer)},
                         {"embeddings", call.embeddings},
                         {"margin", call.margin},
                         {"exact", call.exact},
                         {"limit", limit},
                         {"dtype", name_of(vocabulary.dtype)}};
  const auto counts = [](const KeyCounts& each) {
    Json json = {{"selectable", each.selectable}, {"tied", each.tied}, {"unselectable", each.unselectable}};
    if (each.undecided > 0) json["undecided"] = each.undecided;
    return json;
  };
  Json results = {{"version", made.version},
                  {"commit", made.commit},
                  {"seconds", seconds},
                  {"threads", made.threads},
                  {"isa", made.isa},
                  {"settings", settings},
                  {"tokens", set.n},
                  {"d", set.d},
                  {"rank", set.rank},
                  {"bias", run.biased},
                  {"counts", counts(set.counts)},
                  {"robust_counts", counts(set.robust_counts)},
                  {"exact_path", set.exact_path}};
  if (call.exact)
    results["verified"] =
        std::count_if(set.keys.begin(), set.keys.end(), [](const KeyVerdict& key) { return key.verified; });
  const Json brief = results;
  results["never_alone"] = results["smallest_margins"] = Json::array();
  for (const std::size_t id : ids.lost)
    results["never_alone"].push_back(token_json(vocabulary, set.keys[id], id, call.exact));
  for (const std::size_t id : ids.nearest)
    results["smallest_margins"].push_back(token_json(vocabulary, set.keys[id], id, call.exact));
  if (directory) {
    directory->write_config("vocab", made, json_text(settings));
    write_certificates(*directory, set);
    directory->write("results.json", json_text(results));
    directory->write("report.html", render_html(vocab_page(run, made, json_text(brief, -1))));
    note(common, fmt::format("Wrote {}", (directory->path() / "report.html").string()));
  }
  if (common.json) return print(json_text(results, -1) + "\n");
  print(screen(vocabulary, set, run, call, seconds));
}

}  // namespace

void add_vocab(CLI::App& app, Common& common) {
  auto call = std::make_shared<VocabCall>();
  CLI::App* command = add_command(
      app, common, "vocab", "Which tokens a language model can never put on top, with certificates",
      {"vocab stories15m", "vocab minilm --embeddings --out runs/minilm-words",
       "vocab model.safetensors:lm_head.weight --bias model.safetensors:lm_head.bias",
       "vocab head.npy --tokenizer tokenizer.json --exact --json"});
  command
      ->add_option("SOURCE", call->source,
                   "A model (directory, name or id), or a matrix with a row per token: FILE or FILE:TENSOR")
      ->required();
  command->add_flag("--embeddings", call->embeddings, "The word embeddings of a model instead of its head");
  command->add_option("--bias", call->bias, "One number per token, added to its scores: FILE or FILE:TENSOR");
  command->add_option("--tokenizer", call->tokenizer, "A tokenizer.json that names the rows of a FILE");
  command
      ->add_option("--margin", call->margin,
                   "bound (certified lower bounds), or exact, which takes much longer in many dimensions")
      ->capture_default_str();
  command->add_option("--limit", call->limit, "Tokens to list, of each kind")->capture_default_str();
  command->add_flag("--exact", call->exact, "Verify every certificate in rational arithmetic");
  command->callback([call, &common] { run(*call, common); });
}

}  // namespace normscope::cli
