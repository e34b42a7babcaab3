#pragma once
#include <cstdint>
#include <string>

namespace normscope {

// What every number that leaves the program carries.
struct Provenance {
  std::string version, commit, isa;
  std::uint64_t seed = 0;
  int threads = 1;

  // Which program, where nothing is random or parallel.
  static void describe_program(auto& visit, auto& self) {
    visit("version", self.version, "of the program", {.pattern = "^[0-9]+\\.[0-9]+\\.[0-9]+"});
    visit("commit", self.commit, "it was built from");
    visit("isa", self.isa, "instruction set the kernels ran with");
  }
  static void describe(auto& visit, auto& self) {
    describe_program(visit, self);
    visit("seed", self.seed, "of every random number");
    visit("threads", self.threads, "used; results do not depend on it", {.low = 1});
  }
};
Provenance provenance(std::uint64_t seed, int threads);

}  // namespace normscope
