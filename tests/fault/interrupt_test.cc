// Ctrl-C and SIGTERM: within a second, with one sentence, and nothing half-written.
#include "support/program.h"

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
