// Processes of a job at pieces of work.
#include "cluster/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/run_pieces.h"
#include "core/shared_array.h"
#include "normscope/error.h"
#include "support/memory_job.h"
#include "support/temporary_directory.h"

namespace normscope::cluster {
namespace {

PieceWork squares(std::size_t count) {
  PieceWork work{"squares", std::vector<double>(count, 1), true, {}, {}};
  for (std::size_t piece = 0; piece < count; ++piece) work.costs[piece] = static_cast<double>(piece % 7);
  return work;
}

TEST(JobThreads, ResultsComeInOrderInEveryProcess) {
  for (const std::size_t size : {1, 2, 3, 5}) {
    for (const int threads : {1, 3}) {
      std::vector<std::vector<std::size_t>> found(size);
      std::atomic<std::size_t> done = 0;
      const auto ended = run_job(size, threads, [&](Job& job, const Executor& executor) {
        for (const std::size_t count : {1, 4, 200}) {
          const auto part =
              run_pieces<std::size_t>(executor, squares(count), [&](std::size_t i, const Executor&) {
                ++done;
                return i * i;
              });
          found[job.rank()].insert(found[job.rank()].end(), part.begin(), part.end());
        }
      });
      std::vector<std::size_t> expected;
      for (const std::size_t count : {1, 4, 200})
        for (std::size_t i = 0; i < count; ++i) expected.push_back(i * i);
      EXPECT_EQ(done, 205u) << "each piece is done once";
      for (std::size_t rank = 0; rank < size; ++rank) {
        EXPECT_EQ(found[rank], expected) << rank << " of " << size;
        EXPECT_EQ(ended[rank].code, 0);
        EXPECT_EQ(ended[rank].said, "");
      }
    }
  }
}

TEST(JobThreads, AllProcessesWork) {
  std::vector<std::atomic<std::size_t>> done(3);
  run_job(3, 1, [&](Job& job, const Executor& executor) {
    run_pieces<int>(executor, squares(60), [&](std::size_t, const Executor&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++done[job.rank()];
      return 1;
    });
  });
  for (const auto& each : done) EXPECT_GT(each, 5u);
}

TEST(JobThreads, WorkInsideAPieceIsDoneThere) {
  run_job(2, 2, [&](Job&, const Executor& executor) {
    const auto sums =
        run_pieces<std::size_t>(executor, squares(40), [&](std::size_t i, const Executor& inside) {
          EXPECT_EQ(inside.pieces(), nullptr);
          const auto part =
              run_pieces<std::size_t>(inside, squares(i), [](std::size_t k, const Executor&) { return k; });
          return std::accumulate(part.begin(), part.end(), std::size_t{0});
        });
    EXPECT_EQ(sums.at(5), 10u);
  });
}

TEST(JobThreads, WhatTheFirstMakesAllHave) {
  run_job(4, 1, [](Job& job, const Executor& executor) {
    const std::string told = from_first(executor, [&] { return "from " + std::to_string(job.rank()); });
    EXPECT_EQ(told, "from 0");
  });
}

TEST(JobThreads, ProcessesOnOneMachineHoldBytesOnce) {
  std::mutex mutex;
  std::vector<std::string> made;
  std::vector<double> sums(5);
  run_job(5, 1, [&](Job& job, const Executor& executor) {
    Sameness mine = sameness({"same"});
    ASSERT_NE(mine.machine, "");
    if (job.rank() >= 3) mine.machine = "another";
    job.require_same(mine);
    for (const std::size_t size : {1000, 300'000}) {
      const auto numbers = once_per_machine<double>(executor, [&] {
        const std::lock_guard lock(mutex);
        made.push_back(std::to_string(job.rank()));
        return std::vector<double>(size, 0.5);
      });
      EXPECT_EQ(numbers.size(), size);
      sums[job.rank()] += std::accumulate(numbers.values().begin(), numbers.values().end(), 0.0);
    }
    const SharedMatrix matrix = once_per_machine(executor, [&] {
      return Matrix<double>(2, 3, {1, 2, 3, 4, 5, 6});
    });
    EXPECT_EQ(matrix.rows(), 2u);
    EXPECT_EQ(matrix(1, 2), 6);
    EXPECT_EQ(told_on_machine(executor, [] { return std::string("told"); }), "told");
  });
  std::sort(made.begin(), made.end());
  EXPECT_EQ(made, (std::vector<std::string>{"0", "0", "3", "3"})) << "one of each machine";
  for (const double sum : sums) EXPECT_EQ(sum, 150'500);
}

TEST(JobThreads, WhereMemoryCannotBeSharedEachMakesItsOwn) {
  std::atomic<std::size_t> made = 0;
  run_job(3, 1, [&](Job& job, const Executor& executor) {
    job.require_same(sameness({"same"}));
    const auto none = once_per_machine<double>(executor, [&] {  // nothing to map
      ++made;
      return std::vector<double>();
    });
    EXPECT_EQ(none.size(), 0u);
  });
  EXPECT_EQ(made, 3u);
}

TEST(SharedMemory, IsNotOpenedWhereItIsNotOffered) {
  const OfferedMemory offer("some bytes");
  ASSERT_TRUE(offer.bytes().has_value());
  EXPECT_EQ(open_memory(offer.place())->bytes, "some bytes");
  MemoryPlace wrong = offer.place();
  wrong.size += 1;
  EXPECT_FALSE(open_memory(wrong).has_value());
  wrong = offer.place();
  wrong.descriptor = -1;
  EXPECT_FALSE(open_memory(wrong).has_value());
}

TEST(JobThreads, AFailureOfOneThatMakesWhatAllHoldEndsAll) {
  const auto ended = run_job(3, 1, [](Job& job, const Executor& executor) {
    job.require_same(sameness({"same"}));
    once_per_machine<double>(executor, []() -> std::vector<double> { throw Error("The file is damaged."); });
  });
  EXPECT_EQ(ended[0].said, "The file is damaged.");
  for (const Ended& each : ended) EXPECT_EQ(each.code, 1);
}

TEST(JobThreads, AFailureOfOneIsSaidOnceAndEndsAll) {
  for (const std::size_t failing : {0, 1, 2}) {
    const auto ended = run_job(3, 1, [&](Job& job, const Executor& executor) {
      job.require_same(sameness({"same"}));
      run_pieces<int>(executor, squares(300), [&](std::size_t, const Executor&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (job.rank() == failing) throw Error("The disk of this machine is full.");
        return 1;
      });
    });
    EXPECT_NE(ended[0].said.find("The disk of this machine is full"), std::string::npos) << ended[0].said;
    if (failing > 0) {
      EXPECT_NE(ended[0].said.find("process " + std::to_string(failing)), std::string::npos) << ended[0].said;
    }
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(ended[rank].code, 1) << rank;
      if (rank > 0) {
        EXPECT_EQ(ended[rank].said, "");
      }
    }
  }
}

TEST(JobThreads, AFailureOfAllIsSaidInTheWordsOfTheFirst) {
  const auto ended = run_job(3, 1, [](Job&, const Executor&) { throw InputError("There is no such file."); });
  EXPECT_EQ(ended[0].said, "There is no such file.");
  for (const Ended& each : ended) EXPECT_EQ(each.code, 2);
}

TEST(JobThreads, ProcessesThatAreNotAlikeAreRefused) {
  const auto said = [](const auto& change) {
    const auto ended = run_job(3, 1, [&](Job& job, const Executor& executor) {
      Sameness mine = sameness({"heatmap", "--n", "3"});
      if (job.rank() == 2) change(mine);
      job.require_same(mine);
      run_pieces<int>(executor, squares(3), [](std::size_t, const Executor&) { return 1; });
    });
    for (const Ended& each : ended) EXPECT_EQ(each.code, 2);
    return ended[0].said;
  };
  EXPECT_NE(said([](Sameness& x) { x.arguments = {"heatmap"}; })
                .find("was called with 'heatmap', and the first "
                      "with 'heatmap --n 3'"),
            std::string::npos);
  EXPECT_NE(said([](Sameness& x) { x.version = "9.9.9"; }).find("is normscope 9.9.9"), std::string::npos);
  EXPECT_NE(said([](Sameness& x) { x.instruction_set = "sse4"; }).find("computes with sse4"),
            std::string::npos);
}

// As of files that are not the same on all machines.
TEST(JobThreads, AProcessThatComesToOtherWorkEndsAll) {
  const auto one = [](std::size_t, const Executor&) { return 1; };
  const auto said = [&](const auto& body) {
    const auto ended = run_job(3, 1, [&](Job& job, const Executor& executor) {
      job.require_same(sameness({"same"}));
      body(job.rank() == 2, executor);
    });
    for (const Ended& each : ended) EXPECT_EQ(each.code, 2);
    EXPECT_NE(ended[0].said.find("has come to other work than the first"), std::string::npos)
        << ended[0].said;
    EXPECT_NE(ended[0].said.find("(process 2 on "), std::string::npos) << ended[0].said;
  };
  said([&](bool other, const Executor& executor) {
    run_pieces<int>(executor, squares(other ? 31 : 30), one);
  });
  said([&](bool other, const Executor& executor) {
    PieceWork work = squares(30);
    if (other) work.costs[7] += 1;
    run_pieces<int>(executor, work, one);
  });
  said([&](bool other, const Executor& executor) {
    for (int works = other ? 3 : 2; works > 0; --works) run_pieces<int>(executor, squares(5), one);
  });
}

TEST(JobThreads, KeptPiecesAreNotDoneAgainByAnyNumberOfProcesses) {
  const TemporaryDirectory folder;
  std::atomic<std::size_t> done = 0;
  const auto run = [&](std::size_t size, std::size_t fail_after) {
    done = 0;
    return run_job(size, 1, [&](Job& job, const Executor& executor) {
      std::optional<PieceStore> store;
      if (job.first()) job.keep_in(&store.emplace(folder.path(), 1));
      struct Leave {
        Job& job;
        ~Leave() { job.keep_in(nullptr); }
      } leave{job};
      const auto found = run_pieces<std::size_t>(executor, squares(50), [&](std::size_t i, const Executor&) {
        if (++done > fail_after) throw Error("killed");
        return 3 * i;
      });
      for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(found.at(i), 3 * i);
    });
  };
  EXPECT_EQ(run(1, 20)[0].code, 1);
  EXPECT_EQ(run(3, 1000)[0].code, 0);
  EXPECT_EQ(done, 30u);
  EXPECT_EQ(run(2, 1000)[0].code, 0);
  EXPECT_EQ(done, 0u);
}

TEST(JobThreads, ScopesTellWorksOfOneNameApart) {
  const TemporaryDirectory folder;
  const auto run = [&](bool leave_out) {
    std::size_t result = 0;
    run_job(1, 1, [&](Job& job, const Executor& executor) {
      PieceStore store(folder.path(), 1);
      job.keep_in(&store);
      for (const std::size_t part : {1, 2}) {
        if (part == 1 && leave_out) continue;
        const PieceScope scope(executor, "part " + std::to_string(part));
        result = run_pieces<std::size_t>(executor, squares(1),
                                         [&](std::size_t, const Executor&) { return part; })[0];
      }
      store.flush();
      job.keep_in(nullptr);
    });
    return result;
  };
  EXPECT_EQ(run(false), 2u);
  EXPECT_EQ(run(true), 2u) << "the second part was given what the first had kept";
}

}  // namespace
}  // namespace normscope::cluster
