// One run at a time in a directory.
#include "record/run_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "normscope/error.h"
#include "normscope/record.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

class RunLockTest : public ::testing::Test {
 protected:
  fs::path file() const { return fs::path(folder_.path()) / kLockFile; }
  std::string held() const {
    std::ifstream stream(file());
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  // Whether another process could take it.
  bool free_for_others() const {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        const RunLock lock(folder_.path());
        ::_exit(0);
      } catch (const InputError&) {
        ::_exit(1);
      }
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 0;
  }
  TemporaryDirectory folder_;
};

TEST_F(RunLockTest, NamesHostAndProcessWhileItLives) {
  {
    const RunLock lock(folder_.path());
    EXPECT_NE(held().find(" " + std::to_string(::getpid()) + "\n"), std::string::npos) << held();
    EXPECT_FALSE(free_for_others());
    const RunLock again(folder_.path());  // a part of the same run
  }
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_TRUE(free_for_others());
}

TEST_F(RunLockTest, AChildThatLetsGoOfItLeavesItLocked) {
  auto lock = std::make_unique<RunLock>(folder_.path());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    lock.reset();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_FALSE(free_for_others());
  lock.reset();
  EXPECT_TRUE(free_for_others());
}

TEST_F(RunLockTest, OfADeadProcessOfThisMachineIsTakenOver) {
  // The child of the last call of free_for_others has left its file behind and is dead.
  ASSERT_TRUE(free_for_others());
  ASSERT_TRUE(fs::exists(file()));
  const RunLock lock(folder_.path());
  EXPECT_NE(held().find(" " + std::to_string(::getpid()) + "\n"), std::string::npos) << held();
}

TEST_F(RunLockTest, OfAnotherMachineHoldsUntilItIsNoLongerRenewed) {
  std::ofstream(file()) << "somewhere-else 4711\n";
  const std::string said = message_of<InputError>([&] { const RunLock lock(folder_.path()); });
  EXPECT_NE(said.find("process 4711 on somewhere-else"), std::string::npos) << said;
  fs::last_write_time(file(), fs::file_time_type::clock::now() - std::chrono::minutes(6));
  const RunLock lock(folder_.path());
  EXPECT_EQ(held().find("somewhere-else"), std::string::npos);
}

TEST_F(RunLockTest, DoesNotFollowALink) {
  const fs::path elsewhere = fs::path(folder_.path()) / "elsewhere";
  std::ofstream(elsewhere) << "precious";
  fs::create_symlink(elsewhere, file());
  const RunLock lock(folder_.path());
  std::ifstream stream(elsewhere);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "precious");
}

}  // namespace
}  // namespace normscope
