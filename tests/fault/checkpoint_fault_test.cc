// A model's directory is whole or as it was: on a full disk, and after a kill at any moment.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "normscope/checkpoint.h"
#include "normscope/error.h"
#include "support/filled_model.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

class ReplacingACheckpoint : public ::testing::Test {
 protected:
  ReplacingACheckpoint() { write_checkpoint(place_, old_); }
  std::vector<float> words() const { return open_checkpoint(place_.string()).weights->words().values(); }

  const FilledModel old_{small_gpt2(norm_for_model("layernorm")), 1};
  const FilledModel new_{small_gpt2(norm_for_model("center")), 2};
  const TemporaryDirectory temporary_;
  const fs::path place_ = temporary_.path() / "model";
};

// A file size limit stops the write in the middle, as a full disk does.
TEST_F(ReplacingACheckpoint, SurvivesAFullDisk) {
  struct rlimit saved {};
  ::getrlimit(RLIMIT_FSIZE, &saved);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 5000, saved.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<Error>([&] { write_checkpoint(place_, new_); });
  ::setrlimit(RLIMIT_FSIZE, &saved);
  ::signal(SIGXFSZ, handler);
  expect_mentions(message, {"could not be written", "free some space"});
  EXPECT_EQ(words(), old_.words().values());
  EXPECT_EQ(temporary_.entries(), 1u) << "a temporary was left behind";
}

TEST_F(ReplacingACheckpoint, IsWholeWhenKilledAnywhere) {
  Random random(7);
  for (int round = 0; round < 25; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        write_checkpoint(place_, new_);
        write_checkpoint(place_, old_);
      }
    }
    ::usleep(static_cast<useconds_t>(random.uniform() * 30000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::vector<float> found = words();
    ASSERT_TRUE(found == old_.words().values() || found == new_.words().values());
  }
  write_checkpoint(place_, new_);
  EXPECT_EQ(temporary_.entries(), 1u) << "what the killed left is removed by the next";
}

TEST_F(ReplacingACheckpoint, LeavesTheTemporariesOfStrangersAlone) {
  const fs::path folder = temporary_.path() / ".normscope-1-2.tmp";
  fs::create_directories(folder / "inside");
  write_checkpoint(place_, new_);
  EXPECT_TRUE(fs::exists(folder / "inside"));
  EXPECT_EQ(words(), new_.words().values());
}

}  // namespace
}  // namespace normscope
