#include "cluster/join.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cluster/place.h"
#include "normscope/error.h"

namespace normscope::cluster {
namespace {

[[noreturn]] void refuse(const Place& place, const std::string& sentence) {
  if (place.rank > 0) throw NotTheOneToSpeak{};
  throw InputError(sentence);
}

}  // namespace

std::unique_ptr<Job> join_job(std::atomic<bool>& stop) {
  const auto place = place_in_job([](const char* name) { return std::getenv(name); });
  if (!place || place->alone()) return std::make_unique<Job>(nullptr, stop);
  if (!built_with_mpi())
    refuse(*place,
           fmt::format("{} started this {} times, but it was built without MPI; start it once, or build it "
                       "with MPI (Debian: libopenmpi-dev).",
                       place->launcher, place->size));
  if (!place->connected)
    refuse(*place,
           fmt::format("{} started this {} times without connecting the processes; give srun --mpi=pmix "
                       "(MPICH: pmi2; srun --mpi=list tells which there are), or use mpirun.",
                       place->launcher, place->size));
  auto job = std::make_unique<Job>(join_by_mpi, stop);
  if (job->processes() != place->size)
    refuse(*place, fmt::format("{} started this {} times, but its MPI ({}) sees {}: the launcher belongs to "
                               "another MPI; use the one of the same make.",
                               place->launcher, place->size, mpi_name(), job->processes()));
  job->set_processes_here(place->here);
  return job;
}

}  // namespace normscope::cluster
