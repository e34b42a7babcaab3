#pragma once
// What every door has besides the options of a study: what to go on with, which model to open.
#include <string>

#include "result/options.h"
#include "study/collapse.h"
#include "study/paper.h"

namespace normscope {

struct CollapseCall {
  std::string model = {};  // empty: weights are drawn
  CollapseOptions study = {};

  static void describe(auto& visit, auto& self) {
    visit.input("model", self.model,
                "A trained model in place of weights drawn: a Hugging Face directory, an id in its local "
                "cache, a llama2.c file, or a model fetched by `normscope data get`; before all options",
                OptionFacts{.type = "MODEL", .otherwise = ""});
    CollapseOptions::describe(visit, self.study);
  }
};

template <class Options>
struct TrainingCall {
  Options study = {};
  std::string resume = {};

  static void describe(auto& visit, auto& self) {
    Options::describe(visit, self.study);
    visit("resume", self.resume,
          "Go on with the training in this directory; with --steps N beyond its last step, if its learning "
          "rate does not end there",
          OptionFacts{.type = "DIR"});
  }
};

struct PaperCall {
  PaperOptions study = {};
  std::string resume = {};

  static void describe(auto& visit, auto& self) {
    PaperOptions::describe(visit, self.study);
    visit("resume", self.resume, "Go on with the run in this directory; with --only, parts are added to it",
          OptionFacts{.type = "DIR"});
  }
};

}  // namespace normscope
