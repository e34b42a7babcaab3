#include "cluster/place.h"

#include <charconv>
#include <cstring>

namespace normscope::cluster {
namespace {

std::optional<std::size_t> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr) return std::nullopt;
  std::size_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

// The variables in which a launcher tells rank, size and how many are on this machine; whether it is one that
// processes can be connected through; and whether it gives them a terminal of its own making.
struct Launcher {
  const char *name, *rank, *size, *here;
  bool connects, pretends;
};
constexpr Launcher kLaunchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", true,
     true},
    {"mpiexec of MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", true, false},
    // srun tells size and rank of its step whether or not it connects the tasks; --mpi=pmix adds PMIX_RANK,
    // --mpi=pmi2 the variables above. A batch script is no step of several tasks.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", false, false},
};

}  // namespace

std::optional<Place> place_in_job(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto size = number(environment, launcher.size);
    if (!size) continue;
    Place place;
    place.size = *size;
    place.rank = number(environment, launcher.rank).value_or(0);
    place.here = number(environment, launcher.here).value_or(1);  // "2(x3)" of srun: not told simply
    place.connected = launcher.connects || environment("PMIX_RANK") != nullptr;
    place.own_screen = !launcher.pretends;
    place.launcher = launcher.name;
    return place;
  }
  return std::nullopt;
}

}  // namespace normscope::cluster
