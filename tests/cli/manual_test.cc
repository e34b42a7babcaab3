// normscope alone, doctor, manual, completion and tour: what a newcomer meets first.
#include "support/program.h"

namespace normscope {
namespace {

class FirstSteps : public ProgramTest {
 protected:
  std::string shell(const std::string& command) const {
    write(path("script"), command);
    EXPECT_EQ(std::system(("bash " + path("script") + " >" + path("said") + " 2>&1").c_str()), 0)
        << read(path("said"));
    return read(path("said"));
  }
};

TEST_F(FirstSteps, WithoutACommandFiveThingsToTryAreShown) {
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.code, 2);
  for (const char* command : {"tour", "keys", "heatmap", "collapse", "paper", "doctor", "--help"})
    EXPECT_NE(outcome.err.find(command), std::string::npos) << command;
}

TEST_F(FirstSteps, TheDoctorTellsWhatIsThereAndHowToGetTheRest) {
  const Outcome said = run("doctor");
  EXPECT_EQ(said.code, 0);
  for (const char* part :
       {"program", "processor", "memory", "products", "MPI", "Python", "data", "disk here"})
    EXPECT_NE(said.out.find(part), std::string::npos) << part;
  const auto result = nlohmann::json::parse(run("doctor --json").out);
  EXPECT_EQ(result["command"], "doctor");
  for (const auto& part : result["parts"]) EXPECT_NE(part["found"], "") << part["name"];
  // Nothing is found where no program is.
  const std::string lacking = shell("PATH=/nonexistent exec \"" + program_path() + "\" doctor");
  EXPECT_NE(lacking.find("What is missing"), std::string::npos);
  EXPECT_NE(lacking.find("apt-get install npm"), std::string::npos);
}

TEST_F(FirstSteps, EveryCommandHasAManualPageWithItsOptions) {
  ASSERT_EQ(run("manual --install " + path("share")).code, 0);
  const auto pages = files_of(path("share"));
  for (const char* page :
       {"normscope.1", "normscope-keys.1", "normscope-train-majority.1", "normscope-data-get.1"})
    EXPECT_TRUE(pages.count(std::string("man/man1/") + page)) << page;
  EXPECT_NE(pages.at("man/man1/normscope-keys.1").find("\\-\\-query\\-norm"), std::string::npos);
  EXPECT_EQ(pages.at("man/man1/normscope-keys.1"), run("manual keys").out);
  EXPECT_EQ(pages.at("bash-completion/completions/normscope"), run("completion bash").out);
  for (const auto& [name, text] : pages) {
    if (!name.ends_with(".1")) continue;
    EXPECT_TRUE(text.starts_with(".TH normscope")) << name;
    EXPECT_NE(text.find(".SH SYNOPSIS"), std::string::npos) << name;
  }
  expect_refused("manual nonsense", {"no command 'nonsense'"});
}

TEST_F(FirstSteps, BashCompletesCommandsOptionsAndChoices) {
  ASSERT_EQ(run("completion bash").code, 0);
  write(path("completion"), run("completion bash").out);
  const auto completed = [&](const std::string& words, int at) {
    return shell("source " + path("completion") + "; COMP_WORDS=(" + words +
                 "); COMP_CWORD=" + std::to_string(at) + "; _normscope; echo \"${COMPREPLY[*]}\"");
  };
  EXPECT_EQ(completed("normscope equi", 1), "equilibria\n");
  EXPECT_EQ(completed("normscope train maj", 2), "majority\n");
  EXPECT_EQ(completed("normscope keys --query-n", 2), "--query-norm\n");
  EXPECT_EQ(completed("normscope keys --margin b", 3), "bound\n");
  EXPECT_EQ(completed("normscope train majority --learning", 3), "--learning-rate\n");
  expect_refused("completion tcsh", {"bash, zsh or fish"});
}

TEST_F(FirstSteps, ATourAnswersWithCommandsThatCanBeRepeatedAndAPage) {
  const Outcome outcome = run("tour --out " + path("tour"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = path("tour/tour.html");
  EXPECT_TRUE(outcome.out.ends_with(page + "\n"));
  EXPECT_NE(read(page).find("majority"), std::string::npos);
  // What it says it ran gives what it printed.
  const std::string said = outcome.out;
  const std::string again = run("mask window:1 --n 12").out;
  EXPECT_NE(said.find(again), std::string::npos);
  EXPECT_EQ(run("tour --out " + path("tour")).code, 0);  // an earlier tour is replaced
  write(path("mine/notes.txt"), "not a tour");
  expect_refused("tour --out " + path("mine"), {"other than an earlier tour"});
  EXPECT_EQ(read(path("mine/notes.txt")), "not a tour");
}

}  // namespace
}  // namespace normscope
