#pragma once
// What `normscope data` is asked for, and what it answers.
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fetch/fetch.h"
#include "normscope/provenance.h"
#include "result/options.h"

namespace normscope::fetch {

struct DataGetOptions {
  std::vector<std::string> names = {};

  static void describe(auto& visit, auto& self) {
    visit.input("NAME", self.names, "What to fetch, by the names of `data list`", OptionFacts{.type = ""});
  }
};

struct DataPathOptions {
  std::string name = {};

  static void describe(auto& visit, auto& self) {
    visit.input("NAME", self.name, "Of what was fetched", OptionFacts{.type = ""});
  }
};

// One that can be fetched.
struct DataEntry {
  std::string name;
  bool fetched = false;
  std::string path;
  std::uint64_t bytes = 0;
  std::string what, terms, package, version, integrity;

  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "to fetch it by");
    visit("fetched", self.fetched, "it is there");
    visit("path", self.path, "where it is, or would be");
    visit("bytes", self.bytes, "of its package");
    visit("what", self.what, "in a line");
    visit("terms", self.terms, "of use");
    visit("package", self.package, "of the npm registry that holds it");
    visit("version", self.version, "of the package");
    visit("integrity", self.integrity, "checksum of the package");
  }
};

struct DataListResult {
  Provenance made;
  std::string directory;
  std::vector<DataEntry> data;

  static void describe(auto& visit, auto& self) {
    std::string command = "data list";
    visit("command", command, "the command this answers", {.always = "data list"});
    Provenance::describe_program(visit, self.made);
    visit("directory", self.directory, "where data are kept");
    visit("data", self.data, "what can be fetched");
  }
};
DataListResult list_data();

// One that was asked for.
struct DataGot {
  std::string name, path;
  bool was_there = false;
  std::uint64_t resumed_bytes = 0;
  std::string terms;

  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "as asked for");
    visit("path", self.path, "where it is");
    visit("was_there", self.was_there, "nothing was fetched");
    visit("resumed_bytes", self.resumed_bytes, "of the package that an earlier attempt had brought");
    visit("terms", self.terms, "of use");
  }
};

struct DataGetResult {
  Provenance made;
  std::vector<DataGot> data;

  static void describe(auto& visit, auto& self) {
    std::string command = "data get";
    visit("command", command, "the command this answers", {.always = "data get"});
    Provenance::describe_program(visit, self.made);
    visit("data", self.data, "one entry per name, in the order given");
  }
};
struct DataGetEvents {
  std::function<FetchProgress(const DataSet&)> begins;  // how far it is goes there
  std::function<void(const DataGot&)> ends;
  const std::atomic<bool>* stop = nullptr;  // as of `fetch`
};
// All names are known before anything is fetched. Throws InputError if one is not, and as `fetch` does.
DataGetResult get_data(const DataGetOptions& options, const DataGetEvents& events);

struct DataPathResult {
  Provenance made;
  std::string name, path;

  static void describe(auto& visit, auto& self) {
    std::string command = "data path";
    visit("command", command, "the command this answers", {.always = "data path"});
    Provenance::describe_program(visit, self.made);
    visit("name", self.name, "as asked for");
    visit("path", self.path, "where it is");
  }
};
// Throws InputError if it has not been fetched.
DataPathResult data_path(const DataPathOptions& options);

// "42.1"
std::string megabytes(std::uint64_t bytes);

}  // namespace normscope::fetch
