// Bindings of the view Select: norms, verdicts, softmax, hull and the fan of winners.
#include "bridge.h"
#include "normscope/keys.h"
#include "normscope/norm.h"
#include "normscope/version.h"

namespace normscope::web {
namespace {

val terms(const std::vector<CoverTerm>& cover) {
  val list = val::array();
  for (std::size_t i = 0; i < cover.size(); ++i) {
    val term = val::object();
    term.set("index", cover[i].index);
    term.set("weight", cover[i].weight);
    list.set(i, term);
  }
  return list;
}

val counts(const KeyCounts& count) {
  val result = val::object();
  result.set("selectable", count.selectable);
  result.set("tied", count.tied);
  result.set("unselectable", count.unselectable);
  return result;
}

val verdict(const KeyVerdict& key) {
  val result = val::object();
  result.set("verdict", std::string(name_of(key.verdict)));
  result.set("robust", key.robust);
  result.set("margin", key.margin);
  result.set("depth", key.depth);
  result.set("witness", numbers(key.witness));
  result.set("cover", terms(key.cover));
  val tied = val::array();
  for (std::size_t i = 0; i < key.tied_with.size(); ++i) tied.set(i, key.tied_with[i]);
  result.set("tiedWith", tied);
  result.set("exactPath", key.exact_path);
  return result;
}

// keys: n × d. Certificates are left out for large sets, whose table would not show them.
val decide(const val& keys, std::size_t n, std::size_t d, double unit_roundoff, bool certificates) {
  return answer([&] {
    const Matrix<double> rows = matrix(keys, n, d);
    KeyOptions options;
    options.unit_roundoff = unit_roundoff;
    options.certificates = certificates;
    const KeySet set = decide_keys(rows.view(), {}, options, Executor(1));
    val result = val::object();
    result.set("rank", set.rank);
    result.set("counts", counts(set.counts));
    result.set("robustCounts", counts(set.robust_counts));
    val list = val::array();
    for (std::size_t i = 0; i < set.keys.size(); ++i) list.set(i, verdict(set.keys[i]));
    result.set("keys", list);
    return result;
  });
}

std::string about() {
  return "normscope " + version() + " (" + commit() + "), " + instruction_set();
}

}  // namespace

EMSCRIPTEN_BINDINGS(select) {
  emscripten::function("decideKeys", &decide);
  emscripten::function("about", &about);
}

}  // namespace normscope::web
