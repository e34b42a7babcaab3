#pragma once
// What `normscope serve` is asked for, and what it says when it listens.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "normscope/provenance.h"
#include "result/options.h"
#include "serve/server.h"

namespace normscope::serve {

struct ServeOptions {
  std::vector<std::string> directories = {};
  std::uint16_t port = 8000;
  std::string page = {};
  bool json = false;

  static void describe(auto& visit, auto& self) {
    visit.input("DIR", self.directories, "Directories whose runs are shown, at any depth up to 8",
                OptionFacts{.type = "", .otherwise = "."});
    visit("port", self.port, "Port of 127.0.0.1; 0: any free one", OptionFacts{.low = 0, .high = 65535});
    visit("page", self.page, "Folder of the interactive page",
          OptionFacts{.type = "FOLDER", .otherwise = "where it was installed or built"});
    visit("json", self.json, "Print the address as one JSON object instead of text");
  }
};

// The directories and the page that are asked for; without one, the page beside this program, if it is there. Throws
// InputError if a directory cannot be read.
Site site_of(const ServeOptions& options);

struct ServeResult {
  Provenance made;
  std::string address;
  int port = 0;
  std::int64_t process = 0;
  std::vector<std::string> directories;
  std::optional<std::string> page;

  static void describe(auto& visit, auto& self) {
    std::string command = "serve";
    visit("command", command, "the command this answers", {.always = "serve"});
    Provenance::describe_program(visit, self.made);
    visit("address", self.address, "to open in a browser on this machine");
    visit("port", self.port, "of 127.0.0.1", {.low = 1});
    visit("process", self.process, "that answers");
    visit("directories", self.directories, "whose runs are shown", {.least = 1});
    visit("page", self.page, "folder of the interactive page; null: there is none");
  }
};
// port: that the server listens on.
ServeResult serve_result(const Site& site, int port);

}  // namespace normscope::serve
