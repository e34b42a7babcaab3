// Bindings of the view Select: files, norms, verdicts, attention weights, and what its pictures show.
#include <algorithm>

#include "answers.h"
#include "bridge.h"
#include "keys/picture.h"
#include "normscope/keys.h"
#include "normscope/norm.h"
#include "normscope/tensor_file.h"
#include "normscope/version.h"

namespace normscope::web {
namespace {

// keys: n × d. unit_roundoff: of the dtype the keys came in.
val decide(const val& keys, std::size_t n, std::size_t d, double unit_roundoff) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d);
    KeyOptions options;
    options.unit_roundoff = unit_roundoff;
    return set_of(decide_keys(rows.view(), {}, options, Executor(1)));
  });
}

// The norm of keys as they came, of that dtype, and the verdicts on what it makes of them: `robust` then is
// against what the rounding of the keys may have done to it.
val decide_normed(const val& keys, std::size_t n, std::size_t d, const std::string& name,
                  double unit_roundoff, double smallest_rounding) {
  return answer([&] {
    Matrix<double> rows = matrix(keys, n, d);
    const NormSpec spec = parse_norm(name, norm_names_without_normals());
    KeyOptions options;
    options.unit_roundoff = unit_roundoff;
    options.smallest_rounding = smallest_rounding;
    std::vector<double> errors;
    NormCounts count;
    if (spec != parse_norm("none")) {
      errors =
          norm_errors(spec, rows.view(), unit_roundoff, smallest_rounding, std::min(unit_roundoff, 0x1p-24));
      options.errors = errors;
      options.projected_out = directions_projected_out(spec);
      count = norm_as_in_models(spec, {}, rows.view(), rows.view(), unit_roundoff);
    }
    val result = val::object();
    result.set("values", numbers(rows.values()));
    result.set("undefinedRows", count.undefined_rows());
    result.set("set", set_of(decide_keys(rows.view(), {}, options, Executor(1))));
    return result;
  });
}

// bytes: a Uint8Array with a .npy or .safetensors file; label names it in messages.
val read_array(const val& bytes, const std::string& label) {
  return answer([&] {
    const auto values = emscripten::convertJSArrayToNumberVector<unsigned char>(bytes);
    const auto* first = reinterpret_cast<const std::byte*>(values.data());
    ReadLimits limits;
    limits.max_bytes = std::uint64_t{256} << 20;
    const Tensor tensor = TensorFile::from_bytes({first, first + values.size()}, label, limits).read();
    val result = val::object();
    result.set("shape", indices(tensor.shape));
    result.set("dtype", std::string(name_of(tensor.dtype)));
    result.set("unitRoundoff", unit_roundoff(tensor.dtype));
    result.set("smallestRounding", smallest_rounding(tensor.dtype));
    result.set("values", numbers(tensor.values));
    return result;
  });
}

val normalize(const val& keys, std::size_t n, std::size_t d, const std::string& name) {
  return answer([&] {
    Matrix<double> rows = matrix(keys, n, d);
    const NormCounts count =
        norm_forward<double>(parse_norm(name, norm_names_without_normals()), {}, rows.view(), rows.view());
    val result = val::object();
    result.set("values", numbers(rows.values()));
    result.set("zeroRows", count.zero_rows);
    result.set("constantRows", count.constant_rows);
    return result;
  });
}

val attention(const val& keys, std::size_t n, std::size_t d, const val& query, double temperature) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d), q = matrix(query, 1, d);
    const Attention found = attention_to(rows.view(), q[0], temperature);
    val result = val::object();
    result.set("scores", numbers(found.scores));
    result.set("weights", numbers(found.weights));
    return result;
  });
}

val principal(const val& keys, std::size_t n, std::size_t d, std::size_t shown) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d);
    const PrincipalPicture found = principal_picture(rows.view(), shown);
    val result = val::object();
    result.set("coordinates", numbers(found.coordinates.values()));
    result.set("share", found.share);
    return result;
  });
}

// verdicts: 0 selectable, 1 tied, 2 unselectable, one per key.
val fan(const val& keys, std::size_t n, const val& verdicts) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, 2);
    std::vector<Verdict> kinds;
    for (const double kind : doubles(verdicts)) kinds.push_back(static_cast<Verdict>(static_cast<int>(kind)));
    if (kinds.size() != n) throw InputError("The page passed a verdict for another number of keys.");
    return fan_of(winner_fan(rows.view(), kinds));
  });
}

val edges_of_hull(const val& keys, std::size_t n) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, 3);
    return pairs(hull_edges(rows.view()));
  });
}

// -1 where several keys share the highest score.
val winners_in(const val& keys, std::size_t n, std::size_t d, const val& directions, std::size_t m) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d), q = matrix(directions, m, d);
    std::vector<double> result;
    for (const std::size_t key : winners(rows.view(), q.view()))
      result.push_back(key == kShared ? -1 : static_cast<double>(key));
    return numbers(result);
  });
}

std::string about() {
  return "normscope " + version() + " (" + commit() + "), " + instruction_set();
}

}  // namespace

EMSCRIPTEN_BINDINGS(select) {
  emscripten::function("decideKeys", &decide);
  emscripten::function("decideNormed", &decide_normed);
  emscripten::function("readArray", &read_array);
  emscripten::function("normalize", &normalize);
  emscripten::function("attention", &attention);
  emscripten::function("principal", &principal);
  emscripten::function("fan", &fan);
  emscripten::function("hullEdges", &edges_of_hull);
  emscripten::function("winners", &winners_in);
  emscripten::function("about", &about);
}

}  // namespace normscope::web
