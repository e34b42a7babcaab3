// Ctrl-C and SIGTERM: within a second, with one sentence, and nothing half-written.
#include <fcntl.h>
#include <sys/stat.h>

#include "support/program.h"
#include "support/tensor_bytes.h"

namespace normscope {
namespace {

class Interrupt : public ProgramTest {
 protected:
  struct Stopped {
    Outcome outcome;
    double seconds = 0;  // from the signal to the end
  };
  // Sends the signal once `begun` says so.
  template <class Begun>
  Stopped stopped(const std::string& call, int signal, Begun begun) const {
    const pid_t child = start(call);
    for (int i = 0; i < 3000 && !begun(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto sent = std::chrono::steady_clock::now();
    ::kill(child, signal);
    Stopped result{wait(child)};
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - sent).count();
    return result;
  }
  static auto after(int milliseconds) {
    return [milliseconds, times = 0]() mutable { return ++times > milliseconds / 10; };
  }
};

constexpr const char* kTraining =
    "train majority --norm layernorm --classes 5 --length 20 --samples 2000 --steps 100000000 "
    "--evaluate-every 25 "
    "--checkpoint-every 25 --quiet ";

TEST_F(Interrupt, EndsAnyCommandWithOneSentence) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Stopped run =
        stopped("heatmap --n 50:400 --d 20:60 --draws 100000 --out " + path("run"), signal, after(300));
    EXPECT_EQ(run.outcome.code, 128 + signal);
    EXPECT_EQ(run.outcome.out, "");
    EXPECT_EQ(run.outcome.err, "normscope: Stopped; '" + path("run") + "' has no results of this run.\n");
    EXPECT_LT(run.seconds, 5);                           // a second, on a machine that has time
    EXPECT_FALSE(std::filesystem::exists(path("run")));  // not even an empty directory
  }
  const Stopped bare = stopped("collapse --layers 10000 --tokens 64 --samples 64", SIGINT, after(300));
  EXPECT_EQ(bare.outcome.code, 130);
  EXPECT_EQ(bare.outcome.err, "normscope: Stopped; nothing was written.\n");
}

TEST_F(Interrupt, OfADryRunLeavesNothingRunningAndNothingBehind) {
  ::setenv("TMPDIR", path("tmp").c_str(), 1);
  std::filesystem::create_directories(path("tmp"));
  const Stopped run =
      stopped("submit --dry-run 60 -- heatmap --n 50:400 --d 20:60 --draws 100000 --out " + path("job"),
              SIGTERM, after(500));
  ::unsetenv("TMPDIR");
  EXPECT_EQ(run.outcome.code, 143);
  EXPECT_TRUE(std::filesystem::is_empty(path("tmp")));
  EXPECT_NE(std::system(("pgrep -f -- '--ou[t] " + path("job") + "' >/dev/null").c_str()), 0);
}

// One that computes, reads what never comes, or waits for another program. (`serve` ends with 0: tests/cli.)
TEST_F(Interrupt, EndsEveryCommand) {
  const std::string models = source_path() + "/tests/golden/models/";
  std::vector<float> numbers(100000 * 24);
  std::uint32_t state = 1;
  for (float& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = static_cast<float>(state >> 8) / 0x1p24F;
  }
  write(path("keys.npy"),
        npy_of("<f4", "(100000, 24)", {reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size()}));
  std::string ids;
  for (int i = 0; i < 20000; ++i) ids += std::to_string(i * 7 % 40) + (i % 20 == 19 ? "\n" : " ");
  write(path("ids.txt"), ids);
  write(path("tools/npm"), "#!/bin/sh\nexec sleep 5\n");
  write(path("tools/curl"), "#!/bin/sh\nexec sleep 5\n");
  for (const char* tool : {"tools/npm", "tools/curl"})
    std::filesystem::permissions(path(tool), std::filesystem::perms::owner_all);
  ASSERT_EQ(::mkfifo(path("never").c_str(), 0600), 0);
  const int held = ::open(path("never").c_str(), O_RDWR | O_CLOEXEC);  // so that who opens it is let in
  ASSERT_GE(held, 0);

  const std::string tools = std::getenv("PATH");
  ::setenv("PATH", (path("tools") + ":" + tools).c_str(), 1);
  ::setenv("NORMSCOPE_DATA", path("data").c_str(), 1);

  const std::string on_ids = models + "gpt2 --ids " + path("ids.txt");
  const std::string calls[] = {
      "keys " + path("keys.npy"),
      "keys - <" + path("never"),
      "vocab " + path("keys.npy"),
      "scan " + on_ids + " --samples 20000 --stride 1",
      "scan " + models + "gpt2 --ids - <" + path("never"),
      "ablate " + on_ids + " --samples 20000 --prompts 10000",
      "heatmap --n 50:400 --d 20:60 --draws 100000",
      "mask random:0.001 --n 100000",
      "mask - <" + path("never"),
      "collapse --layers 10000 --tokens 64 --samples 64",
      "equilibria --starts 100000000",
      kTraining,
      "train lm --corpus grammar --steps 10000000 --quiet",
      "train sentiment --corpus grammar --steps 10000000 --quiet",
      "paper --only fig1cd --out " + path("paper"),
      "submit --dry-run 60 -- heatmap --n 50:400 --d 20:60 --draws 100000 --out " + path("job"),
      "data get gpt2-bpe",
  };
  for (const std::string& call : calls) {
    SCOPED_TRACE(call);
    const int signal = call.size() % 2 == 0 ? SIGINT : SIGTERM;
    const Stopped run = stopped(call, signal, after(500));
    EXPECT_EQ(run.outcome.code, 128 + signal);
    EXPECT_EQ(run.outcome.err.rfind("normscope: Stopped", 0), 0u) << run.outcome.err;
    EXPECT_EQ(run.outcome.err.find('\n'), run.outcome.err.size() - 1) << run.outcome.err;
    RecordProperty(call.substr(0, call.find(' ')), std::to_string(run.seconds));
  }
  ::close(held);
  ::setenv("PATH", tools.c_str(), 1);
  ::unsetenv("NORMSCOPE_DATA");
}

constexpr const char* kEarly =
    "train majority --norm layernorm --classes 5 --length 20 --samples 2000 --steps 100000000 "
    "--evaluate-every 25 --checkpoint-every 100000000 --quiet ";

TEST_F(Interrupt, OfATrainingBeforeItsFirstCheckpointSaysSo) {
  const Stopped run = stopped(kEarly + ("--out " + path("early")), SIGINT,
                              [&] { return read(path("early/metrics.jsonl")).size() > 100; });
  EXPECT_EQ(run.outcome.code, 130);
  EXPECT_EQ(run.outcome.err,
            "normscope: Stopped before the first checkpoint: normscope train majority --resume " +
                path("early") + " begins at step 0.\n");
}

TEST_F(Interrupt, OfATrainingSaysHowToGoOnAndKeepsWhatWasFinished) {
  const Stopped run = stopped(kTraining + ("--out " + path("run")), SIGINT,
                              [&] { return std::filesystem::exists(path("run/checkpoint.safetensors")); });
  EXPECT_EQ(run.outcome.code, 130);
  EXPECT_EQ(run.outcome.err, "normscope: Stopped. What was finished is kept in '" + path("run") +
                                 "'; normscope train majority --resume " + path("run") +
                                 " goes on with it.\n");
  EXPECT_FALSE(std::filesystem::exists(path("run/results.json")));
  const std::string before = read(path("run/metrics.jsonl"));
  const Stopped again = stopped("train majority --quiet --resume " + path("run"), SIGTERM,
                                [&] { return read(path("run/metrics.jsonl")).size() > before.size() + 100; });
  EXPECT_EQ(again.outcome.code, 143);
  EXPECT_EQ(read(path("run/metrics.jsonl")).substr(0, before.rfind('\n', before.size() - 2)),
            before.substr(0, before.rfind('\n', before.size() - 2)));
}

}  // namespace
}  // namespace normscope
