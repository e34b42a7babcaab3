// Tokenizers and trained models: text to ids, ids to activations.
#include "normscope/model.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "arrays.h"
#include "background.h"
#include "bindings.h"
#include "normscope/checkpoint.h"
#include "normscope/error.h"
#include "study/model_text.h"

namespace py = pybind11;

namespace normscope::python {
namespace {

using Ids = std::vector<std::uint32_t>;

py::array_t<float> array_of(const Matrix<float>& matrix) {
  py::array_t<float> array({matrix.rows(), matrix.cols()});
  std::copy(matrix.values().begin(), matrix.values().end(), array.mutable_data());
  return array;
}

py::bytes bytes_of(const std::string& text) {
  return py::bytes(text);
}

// A tokenizer.json, or that of a model as open_checkpoint names it.
Tokenizer tokenizer_of(const std::string& place) {
  std::error_code unknown;
  if (place.ends_with(".json") && std::filesystem::is_regular_file(place, unknown))
    return Tokenizer::from_json(read_text_file(place, "Tokenizer"), label_of_source(place));
  Checkpoint checkpoint = open_checkpoint(place);
  if (!checkpoint.tokenizer) throw InputError(checkpoint.no_tokenizer);
  return *checkpoint.tokenizer;
}

Tokenizer opened_tokenizer(const std::string& place) {
  const auto made = std::make_shared<std::optional<Tokenizer>>();
  run_in_background([made, place](Watch&) { *made = tokenizer_of(place); });
  return **made;
}

py::array ids_array(const std::vector<Token>& tokens) {
  py::array_t<std::uint32_t> ids(static_cast<py::ssize_t>(tokens.size()));
  std::transform(tokens.begin(), tokens.end(), ids.mutable_data(),
                 [](const Token& token) { return token.id; });
  return ids;
}

std::vector<Token> encode(const Tokenizer& tokenizer, const std::string& text, bool special) {
  const auto tokens = std::make_shared<std::vector<Token>>();
  run_in_background([tokens, tokenizer, text, special](Watch&) {
    *tokens = tokenizer.encode(text, special ? SpecialTokens::add : SpecialTokens::omit);
  });
  return std::move(*tokens);
}

Ids ids_of(const py::object& object, const char* what) {
  const Numbers numbers = numbers_from(object, what);
  if (numbers.values.ndim() != 1)
    throw InputError(fmt::format("{} must be one text: a list of token ids.", what));
  Ids ids;
  for (py::ssize_t i = 0; i < numbers.values.size(); ++i) {
    const double value = numbers.values.data()[i];
    if (!(value >= 0 && value < 0x1p32 && value == std::floor(value)))
      throw InputError(fmt::format("{} holds {} at position {}, which is no token id.", what, value, i));
    ids.push_back(static_cast<std::uint32_t>(value));
  }
  return ids;
}

struct Passed {
  Matrix<float> tokens, logits;
  std::map<std::string, Matrix<float>> points;
};

// names: of points of layers, "layer.3.attn.key".
Passed pass(const ModelWeights& weights, const Ids& ids, const std::set<std::string>& names, bool with_logits,
            int threads, Watch& watch) {
  Passed passed;
  std::mutex mutex;
  ForwardObserver observer;
  const std::size_t layers = weights.spec().layers;
  watch.total = layers;
  observer.layer = [&](std::size_t layer, const BlockSpec&, const BlockWeights<float>&) {
    watch.done = layer;
  };
  observer.point = [&](std::size_t, std::size_t layer, TracePoint point, MatrixView<const float> values) {
    const std::string name = name_of(point, layer);
    if (!names.contains(name)) return;
    std::vector<float> copy;
    for (std::size_t i = 0; i < values.rows; ++i) copy.insert(copy.end(), values[i].begin(), values[i].end());
    const std::lock_guard lock(mutex);
    passed.points.insert_or_assign(name, Matrix<float>(values.rows, values.cols, std::move(copy)));
  };
  const Executor executor(threads, &watch.stop);
  const std::vector<Ids> texts = {ids};
  passed.tokens = std::move(forward(weights, texts, executor, observer).front());
  if (with_logits) passed.logits = logits(weights.spec(), weights.head(), passed.tokens.view());
  return passed;
}

py::tuple forward_of(const Checkpoint& checkpoint, const py::object& ids, const std::set<std::string>& names,
                     bool with_logits, int threads, const Tell& tell) {
  const auto passed = std::make_shared<Passed>();
  run_in_background(
      [passed, weights = checkpoint.weights, given = ids_of(ids, "ids"), names, with_logits,
       threads](Watch& watch) { *passed = pass(*weights, given, names, with_logits, threads, watch); },
      tell);
  py::dict points;
  for (const auto& [name, values] : passed->points) points[py::str(name)] = array_of(values);
  const py::object logits = with_logits ? py::object(array_of(passed->logits)) : py::object(py::none());
  return py::make_tuple(array_of(passed->tokens), logits, points);
}

Checkpoint opened(const std::string& name) {
  const auto checkpoint = std::make_shared<Checkpoint>();
  run_in_background([checkpoint, name](Watch&) { *checkpoint = open_checkpoint(name); });
  return std::move(*checkpoint);
}

py::dict facts_of(const Checkpoint& checkpoint) {
  const ModelSpec& spec = checkpoint.weights->spec();
  py::dict facts;
  facts["path"] = checkpoint.path;
  facts["family"] = spec.family;
  facts["vocabulary"] = spec.vocabulary;
  facts["layers"] = spec.layers;
  facts["positions"] = spec.positions;
  facts["width"] = spec.block.width;
  facts["heads"] = spec.block.heads;
  facts["key_heads"] = spec.block.key_head_count();
  facts["head_width"] = spec.block.width_of_head();
  facts["causal"] = spec.causal;
  facts["rotary"] = !spec.block.rotary.frequencies.empty();
  facts["has_head"] = spec.head != ModelSpec::Head::none;
  facts["notes"] = checkpoint.notes;
  return facts;
}

std::vector<std::string> point_names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (std::size_t layer = 0; layer < checkpoint.weights->spec().layers; ++layer)
    for (const TracePoint point : trace_points()) names.push_back(name_of(point, layer));
  return names;
}

}  // namespace

void add_model(py::module_& module) {
  py::class_<Tokenizer>(module, "Tokenizer")
      .def(py::init(&opened_tokenizer), py::arg("place"))
      .def(
          "encode",
          [](const Tokenizer& self, const std::string& text, bool special) {
            return ids_array(encode(self, text, special));
          },
          py::arg("text"), py::kw_only(), py::arg("special") = true)
      .def(
          "offsets",
          [](const Tokenizer& self, const std::string& text, bool special) {
            const auto tokens = encode(self, text, special);
            py::array_t<std::int64_t> offsets({tokens.size(), std::size_t{2}});
            std::int64_t* next = offsets.mutable_data();
            for (const Token& token : tokens) {
              *next++ = static_cast<std::int64_t>(token.begin);
              *next++ = static_cast<std::int64_t>(token.end);
            }
            return offsets;
          },
          py::arg("text"), py::kw_only(), py::arg("special") = true)
      .def(
          "decode",
          [](const Tokenizer& self, const py::object& ids, bool special) {
            return bytes_of(
                       self.decode(ids_of(ids, "ids"), special ? SpecialTokens::add : SpecialTokens::omit))
                .attr("decode")("utf-8", "replace");
          },
          py::arg("ids"), py::kw_only(), py::arg("special") = false)
      .def(
          "token",
          [](const Tokenizer& self, std::uint32_t id) -> py::object {
            const auto token = self.token(id);
            if (!token) return py::none();
            return bytes_of(*token).attr("decode")("utf-8", "replace");
          },
          py::arg("id"))
      .def(
          "id", [](const Tokenizer& self, const std::string& token) { return self.id(token); },
          py::arg("token"))
      .def("__len__", &Tokenizer::size);
  py::class_<Checkpoint>(module, "Checkpoint")
      .def(py::init(&opened), py::arg("name"))
      .def_property_readonly("facts", &facts_of)
      .def_property_readonly("points", &point_names)
      .def_property_readonly("tokenizer",
                             [](const Checkpoint& self) {
                               if (!self.tokenizer) throw InputError(self.no_tokenizer);
                               return *self.tokenizer;
                             })
      .def("forward", &forward_of, py::arg("ids"), py::arg("names"), py::arg("logits"), py::arg("threads"),
           py::arg("tell"));
}

}  // namespace normscope::python
