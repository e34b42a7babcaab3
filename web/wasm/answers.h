#pragma once
// What several views are told of keys: verdicts with their certificates, fans, edges.
#include <string>
#include <utility>
#include <vector>

#include "bridge.h"
#include "keys/picture.h"
#include "normscope/keys.h"

namespace normscope::web {

template <class Index>
inline val indices(const std::vector<Index>& list) {
  val result = val::array();
  for (std::size_t i = 0; i < list.size(); ++i) result.set(i, list[i]);
  return result;
}

inline val terms(const std::vector<CoverTerm>& cover) {
  val list = val::array();
  for (std::size_t i = 0; i < cover.size(); ++i) {
    val term = val::object();
    term.set("index", cover[i].index);
    term.set("weight", cover[i].weight);
    list.set(i, term);
  }
  return list;
}

inline val counts(const KeyCounts& count) {
  val result = val::object();
  result.set("selectable", count.selectable);
  result.set("tied", count.tied);
  result.set("unselectable", count.unselectable);
  result.set("undecided", count.undecided);
  return result;
}

inline val verdict(const KeyVerdict& key) {
  val result = val::object();
  result.set("verdict", std::string(name_of(key.verdict)));
  result.set("robust", key.robust);
  result.set("margin", key.margin);
  result.set("depth", key.depth);
  result.set("witness", numbers(key.witness));
  result.set("exactWitness", indices(key.exact_witness));
  result.set("cover", terms(key.cover));
  result.set("tiedWith", indices(key.tied_with));
  result.set("exactPath", key.exact_path);
  return result;
}

inline val set_of(const KeySet& set) {
  val result = val::object();
  result.set("rank", set.rank);
  result.set("counts", counts(set.counts));
  result.set("robustCounts", counts(set.robust_counts));
  val list = val::array();
  for (std::size_t i = 0; i < set.keys.size(); ++i) list.set(i, verdict(set.keys[i]));
  result.set("keys", list);
  return result;
}

inline val fan_of(const std::vector<WinnerArc>& fan) {
  val arcs = val::array(), polygon = val::array();
  for (std::size_t i = 0; i < fan.size(); ++i) {
    val arc = val::object();
    arc.set("keys", indices(fan[i].keys));
    arc.set("from", fan[i].from);
    arc.set("to", fan[i].to);
    arcs.set(i, arc);
    polygon.set(i, fan[i].keys.front());
  }
  val result = val::object();
  result.set("arcs", arcs);
  result.set("polygon", polygon);
  return result;
}

inline val pairs(const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  val list = val::array();
  for (std::size_t i = 0; i < edges.size(); ++i)
    list.set(i, indices(std::vector<std::size_t>{edges[i].first, edges[i].second}));
  return list;
}

}  // namespace normscope::web
