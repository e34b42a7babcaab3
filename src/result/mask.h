#pragma once
// What `mask` answers.
#include <optional>
#include <string>
#include <vector>

#include "normscope/mask.h"
#include "normscope/provenance.h"
#include "result/describe.h"

namespace normscope {

struct MaskCentres {
  std::size_t count = 0;
  std::vector<std::vector<std::uint32_t>> ranges;

  static void describe(auto& visit, auto& self) {
    visit("count", self.count, "tokens that reach every token");
    visit("ranges", self.ranges, "which: first and last of each run of neighbours");
  }
};

struct MaskResult {
  std::string mask;
  std::size_t tokens = 0;
  std::uint64_t edges = 0;
  double density = 0, sparsity = 0;
  std::size_t self_loops = 0, empty_rows = 0, components = 0;
  bool strongly_connected = false, quasi_strongly_connected = false;
  MaskCentres centres;
  std::optional<std::size_t> radius, diameter;

  static void describe(auto& visit, auto& self) {
    visit("mask", self.mask, "as given");
    visit("tokens", self.tokens, "n", {.low = 1});
    visit("edges", self.edges, "pairs of a token and one that it attends to");
    visit("density", self.density, "edges / n²", {.low = 0, .high = 1});
    visit("sparsity", self.sparsity, "1 − density", {.low = 0, .high = 1});
    visit("self_loops", self.self_loops, "tokens that attend to themselves");
    visit("empty_rows", self.empty_rows, "tokens that attend to nothing: their attention is defined as 0");
    visit("components", self.components, "strongly connected ones", {.low = 1});
    visit("strongly_connected", self.strongly_connected, "every token reaches every token");
    visit("quasi_strongly_connected", self.quasi_strongly_connected, "some token reaches every token");
    visit("centres", self.centres, "tokens that reach every token");
    visit("radius", self.radius,
          "layers after which some token has reached all; null: there is no such token");
    visit("diameter", self.diameter,
          "layers after which every token has reached all; null: not strongly connected");
  }
};

struct MaskSettings {
  std::vector<std::string> masks;
  std::vector<std::size_t> n;
  std::string tensor;

  static void describe(auto& visit, auto& self) {
    visit("masks", self.masks, "as given");
    visit("n", self.n, "the tokens of each");
    visit.when(!self.tensor.empty(), "tensor", self.tensor, "taken from files that hold several");
  }
};

struct MasksResult {
  std::string command = "mask";
  Provenance made;
  double seconds = 0;
  std::vector<MaskResult> masks;

  static void describe(auto& visit, auto& self) {
    visit("command", self.command, "the command this answers", {.always = "mask"});
    Provenance::describe(visit, self.made);
    visit("seconds", self.seconds, "time to tell the properties, without reading and writing", {.low = 0});
    visit("masks", self.masks, "one entry per mask, in the order given", {.least = 1});
  }
};

// What figures are made of.
struct NamedMask {
  std::string name;
  Mask mask;
  MaskProperties properties;
};
MaskResult result_of(const NamedMask& mask);

}  // namespace normscope
