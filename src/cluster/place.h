#pragma once
// Whether this process was started as one of several, by mpirun, mpiexec or srun; told by what launchers put
// into the environment, so that the ordinary program does not start MPI to find out.
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace normscope::cluster {

struct Place {
  // As the launcher says. One process of one is the ordinary program.
  std::size_t rank = 0, size = 1;
  std::size_t here = 1;    // processes of the job on this machine
  bool connected = false;  // the launcher offers what MPI connects processes with
  bool own_screen = true;  // else a terminal is one that the launcher pretends, wherever output goes
  std::string launcher;    // for people: "mpirun", "srun"

  bool alone() const { return size <= 1; }
};

using Environment = std::function<const char*(const char* name)>;
// None: not started in a job.
std::optional<Place> place_in_job(const Environment& environment);

}  // namespace normscope::cluster
