// Questions asked from Python: options from keywords, answers as objects.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <chrono>

#include "arrays.h"
#include "background.h"
#include "bindings.h"
#include "normscope/collapse.h"
#include "normscope/error.h"
#include "normscope/record.h"
#include "questions.h"

namespace py = pybind11;

namespace normscope::python {
namespace {

py::str text_of(std::string_view text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

// Objects of the classes that normscope/results.py makes.
class PythonObjects : public ObjectSink {
 public:
  explicit PythonObjects(py::object make) : make_(std::move(make)) {}
  py::object taken() { return std::move(root_); }

  void null() override { put(py::none()); }
  void boolean(bool value) override { put(py::bool_(value)); }
  void number(double value) override { put(py::float_(value)); }
  void whole(std::int64_t value) override { put(py::int_(value)); }
  void whole(std::uint64_t value) override { put(py::int_(value)); }
  void text(std::string_view value) override { put(text_of(value)); }
  void json(std::string_view value) override {
    put(py::module_::import("json").attr("loads")(text_of(value)));
  }
  void numbers(std::span<const double> values) override { put(array(values)); }
  void wholes(std::span<const std::int64_t> values) override { put(array(values)); }
  void begin_list() override { open_.push_back({py::list(), {}, {}}); }
  void begin_object(const std::string& class_name) override { open_.push_back({py::dict(), class_name, {}}); }
  void member(std::string_view name) override { open_.back().member = py::str(name.data(), name.size()); }
  void end() override {
    Level level = std::move(open_.back());
    open_.pop_back();
    if (level.class_name.empty()) return put(std::move(level.object));
    put(make_(level.class_name, level.object));
  }

 private:
  struct Level {
    py::object object;
    std::string class_name;
    py::str member;
  };
  template <class Number>
  static py::array array(std::span<const Number> values) {
    return py::array_t<Number>(static_cast<py::ssize_t>(values.size()), values.data());
  }
  void put(py::object value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (py::isinstance<py::list>(open_.back().object)) {
      PyList_Append(open_.back().object.ptr(), value.ptr());
    } else {
      PyDict_SetItem(open_.back().object.ptr(), open_.back().member.ptr(), value.ptr());
    }
  }

  py::object make_, root_;
  std::vector<Level> open_;
};

const Question& question_named(const std::string& name) {
  const auto all = questions();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Question& each) { return each.name == name; });
  if (found == all.end()) throw py::key_error(name);
  return *found;
}

const char* name_of(OptionKind kind) {
  switch (kind) {
    case OptionKind::text:
      return "text";
    case OptionKind::whole:
      return "whole";
    case OptionKind::number:
      return "number";
    case OptionKind::flag:
      return "flag";
    case OptionKind::choice:
      return "choice";
    case OptionKind::list:
      return "list";
  }
  return "";
}

py::list options_of(const std::string& name) {
  py::list list;
  for (const OptionNote& note : question_named(name).options()) {
    py::dict each;
    each["keyword"] = note.keyword;
    each["kind"] = name_of(note.kind);
    each["input"] = note.input;
    each["required"] = note.required;
    each["sentence"] = note.sentence;
    each["fallback"] = note.fallback;
    each["otherwise"] = note.otherwise;
    each["choices"] = note.choices;
    each["several"] = note.several;
    each["low"] = note.low;
    each["high"] = note.high;
    list.append(each);
  }
  return list;
}

py::list classes() {
  py::list list;
  for (const auto& [name, note] : answer_classes()) {
    py::list fields;
    for (const FieldNote& field : note.fields)
      fields.append(py::make_tuple(field.name, field.type, field.sentence, field.sometimes));
    list.append(py::make_tuple(name, fields));
  }
  return list;
}

std::optional<Tensor> tensor_from(const py::object& object, const std::string& name) {
  if (object.is_none()) return std::nullopt;
  const Numbers numbers = numbers_from(object, name);
  Tensor tensor{name, numbers.rounding, {}, {}};
  for (py::ssize_t axis = 0; axis < numbers.values.ndim(); ++axis)
    tensor.shape.push_back(static_cast<std::size_t>(numbers.values.shape(axis)));
  tensor.values.assign(numbers.values.data(), numbers.values.data() + numbers.values.size());
  return tensor;
}

std::optional<std::vector<std::uint32_t>> ids_from(const py::object& object) {
  if (object.is_none()) return std::nullopt;
  const Numbers numbers = numbers_from(object, "ids");
  std::vector<std::uint32_t> ids;
  for (py::ssize_t i = 0; i < numbers.values.size(); ++i) {
    const double value = numbers.values.data()[i];
    if (!(value >= 0 && value < 0x1p32 && value == std::floor(value)))
      throw InputError(fmt::format("ids holds {} at position {}, which is no token id.", value, i));
    ids.push_back(static_cast<std::uint32_t>(value));
  }
  return ids;
}

// Shared, so that what is done with it in the background owns it.
struct Held {
  std::shared_ptr<const Answer> answer;
};

Held ask(const std::string& name, const OptionValues& values, std::optional<std::uint64_t> seed, int threads,
         const std::string& out, const py::object& array, const std::string& array_name,
         const py::object& bias, const std::optional<std::string>& text, const py::object& ids,
         const Tell& tell) {
  const Question& question = question_named(name);
  const auto call = std::make_shared<Call>();
  call->seed = seed;
  call->threads = threads;
  call->out = out;
  call->array = tensor_from(array, array_name);
  call->bias = tensor_from(bias, "bias");
  call->held = {text, ids_from(ids)};
  const auto answer = std::make_shared<Answer>();
  run_in_background(
      [&question, values, call, answer](Watch& watch) {
        const auto start = std::chrono::steady_clock::now();
        *answer = question.ask(values, *call, watch);
        answer->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      },
      tell);
  return {answer};
}

Matrix<float> matrix_from(const py::object& object, const std::string& what) {
  if (object.is_none()) return {};
  const Numbers numbers = numbers_from(object, what);
  if (numbers.values.ndim() != 2)
    throw InputError(
        fmt::format("{} must be tokens × numbers, but has {} axes.", what, numbers.values.ndim()));
  const double* values = numbers.values.data();
  return {static_cast<std::size_t>(numbers.values.shape(0)),
          static_cast<std::size_t>(numbers.values.shape(1)),
          std::vector<float>(values, values + numbers.values.size())};
}

// As normscope/_watch.py makes it.
LiveWindow window_from(const py::dict& given) {
  LiveWindow window;
  window.ids = *ids_from(given["ids"]);
  for (const py::handle each : given["layers"]) {
    const auto from = py::reinterpret_borrow<py::dict>(each);
    LiveLayer& layer = window.layers.emplace_back();
    layer.layer = from["layer"].cast<std::size_t>();
    layer.heads = from["heads"].cast<std::size_t>();
    layer.key_heads = from["key_heads"].cast<std::size_t>();
    layer.scale = from["scale"].cast<double>();
    layer.unit_roundoff = from["unit_roundoff"].cast<double>();
    layer.norm_in = matrix_from(from["norm_in"], "norm_in");
    layer.norm_out = matrix_from(from["norm_out"], "norm_out");
    layer.query = matrix_from(from["query"], "query");
    layer.key = matrix_from(from["key"], "key");
    layer.offsets = matrix_from(from["offsets"], "offsets");
  }
  return window;
}

Held scan_live_trace(const py::dict& given, const OptionValues& values, int threads, const std::string& out,
                     const Tell& tell) {
  const auto trace = std::make_shared<LiveTrace>();
  trace->model = given["model"].cast<std::string>();
  trace->family = given["family"].cast<std::string>();
  trace->text = given["text"].cast<std::string>();
  trace->width = given["width"].cast<std::size_t>();
  trace->mask = {given["causal"].cast<bool>(), given["window"].cast<std::size_t>()};
  trace->tokens = given["tokens"].cast<std::vector<std::vector<std::string>>>();
  for (const py::handle each : given["windows"])
    trace->windows.push_back(window_from(py::reinterpret_borrow<py::dict>(each)));
  Call call;
  call.threads = threads;
  call.out = out;
  const auto answer = std::make_shared<Answer>();
  run_in_background(
      [trace, values, call, answer](Watch& watch) { *answer = scan_trace(*trace, values, call, watch); },
      tell);
  return {answer};
}

// What collapse measures of tokens, by name.
py::dict token_measures(const py::object& tokens) {
  const auto given = std::make_shared<const Matrix<float>>(matrix_from(tokens, "tokens"));
  if (given->rows() == 0 || given->cols() == 0)
    throw InputError("tokens are none: there is nothing to measure.");
  const auto found = std::make_shared<TokenMeasures>();
  run_in_background([given, found](Watch&) { *found = measure_tokens<float>(given->view(), Spectrum::yes); });
  py::dict measures;
  const auto values = found->values();
  for (std::size_t i = 0; i < values.size(); ++i)
    measures[py::str(std::string(TokenMeasures::names()[i]))] = values[i];
  return measures;
}

Held load(const std::filesystem::path& directory) {
  const auto answer = std::make_shared<Answer>();
  run_in_background([answer, directory](Watch&) { *answer = load_answer(directory); });
  return {answer};
}

Held doctor(const std::string& json) {
  return {std::make_shared<const Answer>(read_doctor(json))};
}

CardedPage page_of(const Held& held) {
  const auto page = std::make_shared<CardedPage>();
  run_in_background([page, answer = held.answer](Watch&) { *page = answer->page(); });
  return std::move(*page);
}

void add_table(py::list& tables, const ReportTable& table) {
  if (table.rows.size() < 2) return;  // a header alone
  py::list rows;
  for (const auto& each : table.rows) {
    py::list row;
    for (const std::string& cell : each) row.append(text_of(cell));
    rows.append(row);
  }
  tables.append(py::make_tuple(text_of(table.title), text_of(table.note), rows));
}

void add_cards(py::list& tables, const std::vector<Card>& cards) {
  ReportTable table;
  table.rows = {{"", "what was asked", "verdict"}};
  for (const Card& card : cards)
    table.rows.push_back(
        {card.where, card.sentence, card.verdict.empty() ? word_of(card.badge) : card.verdict});
  add_table(tables, table);
}

// (verdict, paragraphs, tables before the figures, [(title, caption, markup)], tables after them), a table being (title, note, rows), the
// header first; of a page over runs those of its sections, too.
py::tuple shown(const Held& held) {
  const CardedPage page = page_of(held);
  py::list paragraphs, before, figures, after;
  add_cards(before, page.score.cards);
  for (const auto& cards : page.section_cards) add_cards(before, cards);
  for (const ReportTable& table : page.above) add_table(before, table);
  const auto add = [&](const auto& part) {
    add_table(before, part.claims);
    for (const ReportTable& table : part.tables) add_table(after, table);
    for (const std::string& each : part.paragraphs) paragraphs.append(text_of(each));
    for (const Figure& each : part.figures)
      figures.append(py::make_tuple(text_of(each.title), text_of(each.caption),
                                    text_of(each.html.empty() ? each.svg : each.html)));
  };
  add(page);
  std::string verdict = page.verdict;
  for (const PageSection& section : page.sections) {
    add(section);
    if (verdict.empty()) verdict = section.verdict;
  }
  return py::make_tuple(text_of(verdict), paragraphs, before, figures, after);
}

void report(const Held& held, const std::filesystem::path& path) {
  run_in_background([answer = held.answer, path](Watch&) {
    require_place_for_file(path);
    write_file_atomically(path, render_html(answer->page()));
  });
}

bool save(const Held& held, const std::filesystem::path& path) {
  if (!held.answer->save) return false;
  run_in_background([answer = held.answer, path](Watch&) { answer->save(path); });
  return true;
}

std::string json(const Held& held, int indent) {
  const auto text = std::make_shared<std::string>();
  run_in_background([text, answer = held.answer, indent](Watch&) { *text = answer->json(indent); });
  return std::move(*text);
}

}  // namespace

void add_questions(py::module_& module) {
  py::class_<Held>(module, "Answer", "An answer of a study, held until it is looked at.")
      .def_property_readonly("command", [](const Held& held) { return held.answer->command; })
      .def_property_readonly("seconds", [](const Held& held) { return held.answer->seconds; })
      .def_property_readonly("directory",
                             [](const Held& held) -> py::object {
                               if (held.answer->directory.empty()) return py::none();
                               return py::str(held.answer->directory.string());
                             })
      .def(
          "json", [](const Held& held, int indent) { return text_of(json(held, indent)); }, py::arg("indent"))
      .def("fields",
           [](const Held& held, const py::object& make) {
             PythonObjects objects(make);
             held.answer->object(objects);
             return objects.taken();
           })
      .def("shown", &shown)
      .def("report", &report)
      .def("save", &save);
  module.def("questions", [] {
    py::list list;
    for (const Question& each : questions())
      list.append(py::make_tuple(each.name, each.sentence, each.result));
    return list;
  });
  module.def("options", &options_of);
  module.def("classes", &classes);
  module.def("ask", &ask);
  module.def("load", &load);
  module.def("doctor", &doctor);
  module.def("scan_trace", &scan_live_trace);
  module.def("token_measures", &token_measures);
  module.def("_wait_for_abandoned_work", &wait_for_abandoned_work);
  prepare_for_forks();
}

}  // namespace normscope::python
