#pragma once
// What `doctor` answers.
#include <string>
#include <vector>

#include "normscope/provenance.h"
#include "result/describe.h"

namespace normscope {

// Something the program uses.
struct DoctorPart {
  std::string name, found, advice = {};

  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "what is looked at");
    visit("found", self.found, "what is there");
    visit("advice", self.advice, "how to get what is missing; empty: nothing is");
  }
};

struct DoctorResult {
  Provenance made;
  std::vector<DoctorPart> parts;

  static void describe(auto& visit, auto& self) {
    std::string command = "doctor";
    visit("command", command, "the command this answers", {.always = "doctor"});
    Provenance::describe_program(visit, self.made);
    visit("parts", self.parts, "what the program uses, one by one");
  }
};

}  // namespace normscope
