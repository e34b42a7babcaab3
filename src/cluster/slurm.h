#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace normscope {

// Work for Slurm: a command that keeps what is finished in a directory, and goes on with it.
struct SlurmJob {
  std::vector<std::string> words = {};  // the command and its options, without --out and --threads
  std::string out = {};
  std::size_t nodes = 1, tasks = 1, threads = 1;  // machines, processes on each, threads of each
  std::string memory = {};                        // of the processes of a machine, as Slurm writes it
  double seconds = 0, limit = 0;                  // of the whole run, and the longest that one job may take
  std::string launcher = {};                      // what starts the processes
  std::string why = {};                           // where the time is from, for who reads the script
};
std::string slurm_script(const SlurmJob& job);

// "26:10:00", "1-02:10:00" or "90": minutes, as Slurm takes them; in seconds. Throws InputError.
double parse_slurm_time(const std::string& text, const char* option);

// "4G" of each process, for those of a machine. Throws InputError.
std::string slurm_memory(const std::string& text, std::size_t tasks);

}  // namespace normscope
