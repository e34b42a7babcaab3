#include "normscope/keys.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "background.h"
#include "bindings.h"
#include "normscope/error.h"
#include "study/keys.h"

namespace py = pybind11;

namespace normscope::python {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// KeySet with one array per field instead of one struct per key. Built once, so that reading a field is free.
struct KeyArrays {
  std::size_t n, d, rank, matrix_rank;
  double rank_tolerance, left_out, unit_roundoff;
  py::object kept;  // indices of coordinates, or None if all are
  py::dict counts, robust_counts;
  py::array verdict;  // n words
  py::array_t<bool> robust, verified, exact_path;
  Doubles margin, margin_at_most, depth;    // n
  py::object witness;                       // n × d, NaN where there is none
  py::list exact_witnesses;                 // n × None or d fractions
  py::list covers, interiors;               // n × None or (indices, weights)
  py::list tied_with;                       // n × indices
  py::object max_weight, max_weight_bound;  // n, or None if no query norm was given
  py::object last_prefix;                   // n, or None if prefixes were not asked for
};

py::dict counts_of(const KeyCounts& counts) {
  py::dict result;
  result[name_of(Verdict::selectable)] = counts.selectable;
  result[name_of(Verdict::tied)] = counts.tied;
  result[name_of(Verdict::unselectable)] = counts.unselectable;
  if (counts.undecided > 0) result[name_of(Verdict::undecided)] = counts.undecided;
  return result;
}

// One entry per element, in NumPy's type for what the function returns.
template <class Container, class Function>
auto array_of(const Container& container, const Function& function) {
  using T = decltype(function(container.front()));
  py::array_t<T> result(static_cast<py::ssize_t>(container.size()));
  std::transform(container.begin(), container.end(), result.mutable_data(), function);
  return result;
}

py::object cover_of(const std::vector<CoverTerm>& cover) {
  if (cover.empty()) return py::none();
  return py::make_tuple(
      array_of(cover, [](const CoverTerm& term) { return static_cast<std::int64_t>(term.index); }),
      array_of(cover, [](const CoverTerm& term) { return term.weight; }));
}

// "3" and "-2/7" as fractions.Fraction.
py::object fractions_of(const std::vector<std::string>& numbers) {
  if (numbers.empty()) return py::none();
  const py::object fraction = py::module_::import("fractions").attr("Fraction");
  py::list result;
  for (const std::string& number : numbers) result.append(fraction(number));
  return result;
}

py::array words_of(const std::vector<KeyVerdict>& keys) {
  py::list names;
  for (const Verdict verdict :
       {Verdict::selectable, Verdict::tied, Verdict::unselectable, Verdict::undecided}) {
    names.append(name_of(verdict));
  }
  const auto position = [](const KeyVerdict& key) { return static_cast<std::int64_t>(key.verdict); };
  return py::array(names).attr("take")(array_of(keys, position)).cast<py::array>();
}

py::object witnesses_of(const KeySet& set, bool certificates) {
  if (!certificates) return py::none();
  Doubles result({set.n, set.d});
  double* row = result.mutable_data();
  for (const KeyVerdict& key : set.keys) {
    if (key.witness.size() == set.d) {
      std::copy(key.witness.begin(), key.witness.end(), row);
    } else {
      std::fill_n(row, set.d, kNone);
    }
    row += set.d;
  }
  return result;
}

KeyArrays arrays_of(const KeySet& set, const KeyOptions& options) {
  const auto& keys = set.keys;
  KeyArrays arrays{
      .n = set.n,
      .d = set.d,
      .rank = set.rank,
      .matrix_rank = set.matrix_rank,
      .rank_tolerance = set.rank_tolerance,
      .left_out = set.left_out,
      .unit_roundoff = options.unit_roundoff,
      .kept = py::none(),
      .counts = counts_of(set.counts),
      .robust_counts = counts_of(set.robust_counts),
      .verdict = words_of(keys),
      .robust = array_of(keys, [](const KeyVerdict& key) { return key.robust; }),
      .verified = array_of(keys, [](const KeyVerdict& key) { return key.verified; }),
      .exact_path = array_of(keys, [](const KeyVerdict& key) { return key.exact_path; }),
      .margin = array_of(keys, [](const KeyVerdict& key) { return key.margin; }),
      .margin_at_most =
          array_of(keys, [](const KeyVerdict& key) { return key.margin_at_most.value_or(kNone); }),
      .depth = array_of(keys, [](const KeyVerdict& key) { return key.depth; }),
      .witness = witnesses_of(set, options.certificates),
      .exact_witnesses = py::list(),
      .covers = py::list(),
      .interiors = py::list(),
      .tied_with = py::list(),
      .max_weight = py::none(),
      .max_weight_bound = py::none(),
      .last_prefix = py::none(),
  };
  if (set.rank < set.d)
    arrays.kept = array_of(set.kept, [](std::size_t index) { return static_cast<std::int64_t>(index); });
  for (const KeyVerdict& key : keys) {
    arrays.exact_witnesses.append(fractions_of(key.exact_witness));
    arrays.covers.append(cover_of(key.cover));
    arrays.interiors.append(cover_of(key.interior));
    arrays.tied_with.append(
        array_of(key.tied_with, [](std::size_t index) { return static_cast<std::int64_t>(index); }));
  }
  if (options.query_norm) {
    arrays.max_weight = array_of(keys, [](const KeyVerdict& key) { return key.max_weight.value_or(kNone); });
    arrays.max_weight_bound =
        array_of(keys, [](const KeyVerdict& key) { return key.max_weight_bound.value_or(kNone); });
  }
  if (options.prefix) {
    arrays.last_prefix = array_of(
        keys, [](const KeyVerdict& key) { return static_cast<std::int64_t>(key.last_prefix.value_or(0)); });
  }
  return arrays;
}

template <class Choice>
Choice choose(const std::string& word, const char* what,
              std::initializer_list<std::pair<const char*, Choice>> choices) {
  std::string known;
  for (const auto& [name, choice] : choices) {
    if (word == name) return choice;
    known += (known.empty() ? "'" : " or '") + std::string(name) + "'";
  }
  throw InputError(std::string(what) + " must be " + known + ", but is '" + word + "'");
}

std::string shape_of(const py::array& array) {
  return py::str(array.attr("shape")).cast<std::string>();
}

void require_non_negative(std::optional<double> number, const char* what) {
  if (number && !(*number >= 0 && std::isfinite(*number))) {
    throw InputError(std::string(what) + " must be a finite number of 0 or more, but is " +
                     std::to_string(*number));
  }
}

py::object decide(const py::object& keys, const py::object& offsets, const std::string& rank, bool exact,
                  bool prefix, std::optional<double> query_norm, std::optional<double> noise,
                  const std::string& margins, int threads, bool certificates,
                  std::optional<double> unit_roundoff, const py::object& errors,
                  std::optional<double> effort) {
  const Numbers numbers = numbers_from(keys, "keys");
  const Doubles& values = numbers.values;
  if (values.ndim() != 2 && values.ndim() != 3) {
    throw InputError("keys must have the shape (n, d) or (sets, n, d), but have " + shape_of(values));
  }
  if (threads < 0)
    throw InputError("threads must be 0 (all the machine has) or more, but is " + std::to_string(threads));
  require_non_negative(query_norm, "query_norm");
  require_non_negative(noise, "noise");
  require_non_negative(unit_roundoff, "unit_roundoff");
  require_non_negative(effort, "effort");
  const bool batch = values.ndim() == 3;
  const auto sets = batch ? static_cast<std::size_t>(values.shape(0)) : 1;
  const auto n = static_cast<std::size_t>(values.shape(values.ndim() - 2));
  const auto d = static_cast<std::size_t>(values.shape(values.ndim() - 1));

  KeyOptions options;
  Doubles shifts(0);
  if (!offsets.is_none()) {
    const Numbers given = numbers_from(offsets, "offsets");
    shifts = given.values;
    options.offset_roundoff = given.unit_roundoff;
    options.smallest_offset_rounding = given.smallest_rounding;
    const bool per_key = shifts.ndim() == 1 && shifts.shape(0) == values.shape(values.ndim() - 2);
    const bool per_set = batch && shifts.ndim() == 2 && shifts.shape(0) == values.shape(0) &&
                         shifts.shape(1) == values.shape(1);
    if (!per_key && !per_set) {
      throw InputError("offsets must be one number per key (" + std::to_string(n) + "), but have the shape " +
                       shape_of(shifts));
    }
  }

  options.rank =
      choose<RankPolicy>(rank, "rank", {{"numerical", RankPolicy::numerical}, {"full", RankPolicy::full}});
  options.margins =
      choose<Margins>(margins, "margins", {{"exact", Margins::exact}, {"bound", Margins::bound}});
  options.unit_roundoff = unit_roundoff.value_or(numbers.unit_roundoff);
  options.smallest_rounding = unit_roundoff ? 0 : numbers.smallest_rounding;
  options.noise = noise;
  options.certificates = certificates;
  options.exact = exact;
  options.prefix = prefix;
  options.query_norm = query_norm;
  options.exact_effort = effort.value_or(options.exact_effort);

  Doubles known_errors(0);
  if (!errors.is_none()) {
    known_errors = numbers_from(errors, "errors").values;
    if (static_cast<std::size_t>(known_errors.size()) != sets * n)
      throw InputError("errors must be one number per key (" + std::to_string(sets * n) +
                       "), but have the shape " + shape_of(known_errors));
    options.errors = {known_errors.data(), sets * n};
  }

  const KeyBatch given{
      {values.data(), sets * n * d}, {shifts.data(), static_cast<std::size_t>(shifts.size())}, sets, n, d};
  const auto results = std::make_shared<std::vector<KeySet>>();
  run_in_background([given, options, threads, results, held = keep_alive(values), also = keep_alive(shifts),
                     and_these = keep_alive(known_errors)](Watch& watch) {
    *results = decide_batch(given, options, Executor(threads, &watch.stop), "keys[{}]");
  });
  if (!batch) return py::cast(arrays_of(results->front(), options));
  py::list list;
  for (const KeySet& set : *results) list.append(arrays_of(set, options));
  return list;
}

std::string describe(const KeyArrays& set) {
  return "<normscope.KeySet: " + std::to_string(set.n) + " keys in " + std::to_string(set.d) +
         " dimensions (rank " + std::to_string(set.rank) + "), " + py::repr(set.counts).cast<std::string>() +
         ">";
}

constexpr const char* kDecideKeys = R"(Which keys can attention select?

keys: (n, d), or (sets, n, d) for many sets at once; anything NumPy can view (arrays of any layout, lists, tensors
through __array__ or __dlpack__). offsets: one number per key, added to its score.

Every key of a set gets a verdict, exact for the numbers given:
  'selectable'    some query gives it the strictly highest score
  'tied'          some query puts it on top, but never alone
  'unselectable'  every query that distinguishes the keys puts another key above it
or 'undecided', if rational arithmetic would need more than it may take.

rank           'numerical': decide inside the numerical affine hull; 'full': take every direction as it is
exact          check every certificate in rational arithmetic
prefix         also find the longest prefix of the keys in which each key is selectable
query_norm     also bound the softmax weight that a query of this norm can give each key
noise          call a verdict robust if no change of the keys by vectors of this norm alters it
margins        'exact', or 'bound' for certified lower bounds, which are faster
threads        0: as many as the machine has; the result does not depend on it
certificates   False: verdicts, margins and depths only
unit_roundoff  of the numbers; by default that of their dtype
errors         one number per key, where more is known of it: how far it is at most from the key that was meant;
               `robust` then is against that in the place of rounding
effort         products of 64-bit words that rational arithmetic may take for one key (default: 2**33, some seconds)

Returns a KeySet, or a list of them for many sets. Raises ValueError for NaN, infinities and wrong shapes.

Example:

>>> import normscope
>>> normscope.decide_keys([[1., 0], [-1, 0], [0, 0]]).verdict.tolist()
['selectable', 'selectable', 'unselectable']
)";

constexpr const char* kKeySet = R"(The verdicts over one set of keys; arrays have one entry per key.

Example:

>>> import normscope
>>> found = normscope.decide_keys([[1., 0], [-1, 0], [0, 0]])
>>> found.counts["selectable"], found.margin.round(9).tolist()
(2, [1.0, 1.0, 0.0])
>>> indices, weights = found.covers[2]
>>> indices.tolist(), weights.tolist()
([0, 1], [0.5, 0.5])
)";

}  // namespace

void add_keys(py::module_& module) {
  py::class_<KeyArrays>(module, "KeySet", kKeySet)
      .def_readonly("n", &KeyArrays::n, "number of keys")
      .def_readonly("d", &KeyArrays::d, "their dimension")
      .def_readonly("rank", &KeyArrays::rank, "dimension of the affine hull the verdicts were decided in")
      .def_readonly("rank_tolerance", &KeyArrays::rank_tolerance,
                    "a direction in which the keys spread less than this (rms) holds only rounding")
      .def_readonly("matrix_rank", &KeyArrays::matrix_rank,
                    "what numpy.linalg.matrix_rank makes of the centred keys")
      .def_readonly(
          "kept", &KeyArrays::kept,
          "if rank < d: the coordinates the keys were decided on and certificates hold on; else None")
      .def_readonly("left_out", &KeyArrays::left_out,
                    "if rank < d: the largest distance of a key from the flat it was decided in; else 0")
      .def_readonly("unit_roundoff", &KeyArrays::unit_roundoff, "of the numbers given")
      .def_readonly("counts", &KeyArrays::counts, "keys by verdict")
      .def_readonly("robust_counts", &KeyArrays::robust_counts, "keys by verdict, robust ones only")
      .def_readonly("verdict", &KeyArrays::verdict, "'selectable', 'tied', 'unselectable' or 'undecided'")
      .def_readonly("robust", &KeyArrays::robust,
                    "no change within the rounding of the dtype (or noise) alters it")
      .def_readonly("verified", &KeyArrays::verified, "the certificate was checked in rational arithmetic")
      .def_readonly("exact_path", &KeyArrays::exact_path,
                    "floating point could not decide; rational arithmetic did")
      .def_readonly("margin", &KeyArrays::margin,
                    "of a selectable key: its distance to the hull of the others")
      .def_readonly(
          "margin_at_most", &KeyArrays::margin_at_most,
          "where an exact margin was beyond rational arithmetic's effort, or the verdict was: an upper "
          "bound; NaN elsewhere")
      .def_readonly(
          "depth", &KeyArrays::depth,
          "of an unselectable key: a lower bound of its distance to the boundary of the others' hull")
      .def_readonly(
          "witness", &KeyArrays::witness,
          "(n, d): a query that puts the key on top, alone if it is selectable; NaN for unselectable keys")
      .def_readonly("exact_witnesses", &KeyArrays::exact_witnesses,
                    "where no float64 query passes the exact test: the witness as fractions, of which "
                    "`witness` is the rounding; None for others")
      .def_readonly(
          "covers", &KeyArrays::covers,
          "of a tied or unselectable key: (indices, weights), a convex combination of other keys that "
          "reproduces it; None for others")
      .def_readonly(
          "interiors", &KeyArrays::interiors,
          "of an unselectable key whose cover spans less than the hull: (indices, weights) that span it")
      .def_readonly("tied_with", &KeyArrays::tied_with,
                    "of a tied key: who shares the top score under its witness")
      .def_readonly("max_weight", &KeyArrays::max_weight,
                    "softmax weight a query of the given norm attains, or None")
      .def_readonly("max_weight_bound", &KeyArrays::max_weight_bound, "what no such query exceeds, or None")
      .def_readonly("last_prefix", &KeyArrays::last_prefix,
                    "length of the longest prefix in which the key is selectable (0: none), or None")
      .def("__len__", [](const KeyArrays& set) { return set.n; })
      .def("__repr__", &describe);

  module.def("decide_keys", &decide, kDecideKeys, py::arg("keys"), py::arg("offsets") = py::none(),
             py::kw_only(), py::arg("rank") = "numerical", py::arg("exact") = false,
             py::arg("prefix") = false, py::arg("query_norm") = py::none(), py::arg("noise") = py::none(),
             py::arg("margins") = "exact", py::arg("threads") = 0, py::arg("certificates") = true,
             py::arg("unit_roundoff") = py::none(), py::arg("errors") = py::none(),
             py::arg("effort") = py::none());
}

}  // namespace normscope::python
