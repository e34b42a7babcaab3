#pragma once
// The job that a program was started in.
#include <atomic>
#include <memory>

#include "cluster/job.h"

namespace normscope::cluster {

// Thrown in the processes of a job that cannot be joined, but in one, which says why.
struct NotTheOneToSpeak {
  int code = 2;
};

// One process alone where there is no job. MPI is started only in a job of several processes. Throws
// InputError, in one of the processes, if they cannot be connected: the program was built without MPI, or the
// launcher is of another one.
std::unique_ptr<Job> join_job(std::atomic<bool>& stop);

}  // namespace normscope::cluster
