// What launchers put into the environment.
#include "cluster/place.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace normscope::cluster {
namespace {

std::optional<Place> place(const std::map<std::string, std::string>& variables) {
  return place_in_job([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Place, OfTheOrdinaryProgramIsNone) {
  EXPECT_FALSE(place({}));
  // A shell, or the one process of a batch script, in an allocation of several tasks.
  EXPECT_FALSE(place({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "5"}}));
}

TEST(Place, IsWhatTheLauncherSays) {
  const auto open_mpi = place({{"OMPI_COMM_WORLD_RANK", "2"},
                               {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                               {"PMIX_RANK", "2"}});
  ASSERT_TRUE(open_mpi);
  EXPECT_EQ(open_mpi->rank, 2u);
  EXPECT_EQ(open_mpi->size, 4u);
  EXPECT_EQ(open_mpi->here, 3u);
  EXPECT_TRUE(open_mpi->connected);
  EXPECT_FALSE(open_mpi->own_screen);
  const auto mpich = place({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  ASSERT_TRUE(mpich);
  EXPECT_EQ(mpich->rank, 1u);
  EXPECT_TRUE(mpich->connected);
  EXPECT_TRUE(mpich->own_screen);
  EXPECT_TRUE(place({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}})->alone());
}

TEST(Place, OfSrunTellsWhetherItConnectsProcesses) {
  std::map<std::string, std::string> variables = {
      {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  EXPECT_EQ(place(variables)->rank, 3u);
  EXPECT_FALSE(place(variables)->connected);
  variables["PMIX_RANK"] = "3";
  EXPECT_TRUE(place(variables)->connected);
}

TEST(Place, IsNotMisledByNonsense) {
  EXPECT_FALSE(place({{"OMPI_COMM_WORLD_SIZE", "many"}}));
  EXPECT_FALSE(place({{"PMI_SIZE", "-2"}}));
}

}  // namespace
}  // namespace normscope::cluster
