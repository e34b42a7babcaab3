// The program under mpirun: the same bytes for any number of processes, whatever is killed or damaged on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <regex>

#include "normscope/tensor_file.h"
#include "support/program.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

class MpiTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (!fs::exists(mpirun_path())) GTEST_SKIP() << "there is no mpirun, or the build is without MPI";
    // As root, more processes than cores, and without a network: as tests are run.
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    ::setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    ::setenv("OMPI_MCA_orte_abort_print_stack", "0", 1);
    // Looking for networks takes as long as a test.
    ::setenv("OMPI_MCA_pml", "ob1", 1);
    ::setenv("OMPI_MCA_btl", "self,vader", 1);
    // Otherwise mpirun may wait for ever for a lock that a killed process holds (docs/cluster.md).
    ::setenv("PMIX_MCA_gds", "hash", 1);
  }

  pid_t start_command(const std::string& command) const {
    const std::string line =
        "cd " + folder_.string() + "; exec " + command + " >" + path(".out") + " 2>" + path(".err");
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }
  // MPI keeps memory until its processes end, which LeakSanitizer calls leaks of modules it no longer knows; what the
  // program itself keeps, it finds where the program runs alone.
  static std::string mpirun() { return "env ASAN_OPTIONS=detect_leaks=0 " + mpirun_path(); }
  static std::string job(std::size_t processes, const std::string& arguments) {
    return mpirun() + " -n " + std::to_string(processes) + " \"" + program_path() + "\" " + arguments;
  }
  Outcome run_job(std::size_t processes, const std::string& arguments) const {
    return wait(start_command(job(processes, arguments)));
  }
  Outcome run_alone(const std::string& arguments) const {
    return wait(start_command("\"" + program_path() + "\" " + arguments));
  }

  // Without what a clock says, and how many threads there were.
  static std::string timeless(const std::string& text) {
    static const std::regex times("\"(seconds|ms_per_step|tokens_per_second|threads)\": ?[-+.e0-9]+");
    static const std::regex threads("[0-9]+ threads?");
    return std::regex_replace(std::regex_replace(text, times, "\"$1\": 0"), threads, "threads");
  }
  static Files timeless_files(const fs::path& directory) {
    Files files = files_of(directory);
    std::erase_if(files, [](const auto& each) { return each.first.ends_with(".html"); });
    for (auto& [name, bytes] : files) bytes = timeless(bytes);
    return files;
  }

  void expect_same_for_any_number(const std::string& arguments,
                                  std::initializer_list<std::size_t> numbers) const {
    SCOPED_TRACE(arguments);
    const std::string all = arguments + " --json --quiet";
    const Outcome alone = run_alone(all + " --threads 1 --out alone");
    ASSERT_EQ(alone.code, 0) << alone.err;
    ASSERT_GT(alone.out.size(), 50u);
    for (const std::size_t processes : numbers) {
      const std::string out = "of" + std::to_string(processes);
      const std::string threads = processes == 3 ? " --threads 2" : " --threads 1";
      const Outcome outcome = run_job(processes, all + threads + " --out " + out);
      ASSERT_EQ(outcome.code, 0) << processes << ": " << outcome.err;
      EXPECT_TRUE(timeless(outcome.out) == timeless(alone.out)) << processes << " processes print otherwise";
      const Files files = timeless_files(folder_ / out), expected = timeless_files(folder_ / "alone");
      for (const auto& [name, bytes] : expected) {
        ASSERT_TRUE(files.contains(name)) << name;
        EXPECT_TRUE(files.at(name) == bytes) << name << " is another with " << processes << " processes";
      }
      EXPECT_EQ(files.size(), expected.size());
      fs::remove_all(folder_ / out);
    }
    fs::remove_all(folder_ / "alone");
  }

  void write_tensor(const std::string& name, std::vector<std::size_t> shape) const {
    std::size_t size = 1;
    for (const std::size_t extent : shape) size *= extent;
    std::mt19937_64 random(size);
    std::normal_distribution<double> normal;
    Tensor tensor{"x", DType::float32, std::move(shape), {}};
    for (std::size_t i = 0; i < size; ++i) tensor.values.push_back(static_cast<float>(normal(random)));
    write_safetensors(path(name), std::vector<Tensor>{tensor});
  }

  // Our own sentence, without what mpirun adds.
  static std::vector<std::string> sentences(const Outcome& outcome) {
    std::vector<std::string> found;
    for (std::size_t at = 0; (at = outcome.err.find("normscope: ", at)) != std::string::npos; ++at)
      found.push_back(outcome.err.substr(at, outcome.err.find('\n', at) - at));
    return found;
  }
  static void expect_one_sentence(const Outcome& outcome, int code, const std::vector<std::string>& facts) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    const auto said = sentences(outcome);
    ASSERT_EQ(said.size(), 1u) << outcome.err;
    for (const std::string& fact : facts) EXPECT_NE(said[0].find(fact), std::string::npos) << said[0];
  }

  // Processes of a job that works in that directory.
  static std::vector<pid_t> ranks_of(pid_t launcher) {
    std::vector<pid_t> ranks;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string status = read(entry.path() / "stat");
      const std::size_t after = status.rfind(')');
      if (after == std::string::npos) continue;
      int parent = 0;
      char state = 0;
      if (std::sscanf(status.c_str() + after + 1, " %c %d", &state, &parent) == 2 && parent == launcher)
        ranks.push_back(std::stoi(name));
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  // Starts a job and kills one of its processes once pieces, or a checkpoint, are kept; whether it had not ended.
  bool kill_one(std::size_t processes, const std::string& arguments, const fs::path& kept,
                std::size_t which) const {
    const pid_t launcher = start_command(job(processes, arguments));
    bool killed = false;
    for (int tries = 0; tries < 3000 && !killed; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      int status = 0;
      if (::waitpid(launcher, &status, WNOHANG) == launcher) return false;
      if (!fs::exists(folder_ / kept)) continue;
      const auto ranks = ranks_of(launcher);
      if (which < ranks.size()) killed = ::kill(ranks[which], SIGKILL) == 0;
    }
    wait(launcher);
    return killed;
  }
};

TEST_F(MpiTest, HeatmapIsTheSame) {
  expect_same_for_any_number("heatmap --n 3:20:4 --d 3:6 --draws 20", {1, 2, 3, 4});
  // Text, too, neither coloured nor cut into the lines of a screen that mpirun only pretends.
  const std::string text = "heatmap --n 3:20:4 --d 3:6 --draws 3 --quiet --threads 1";
  EXPECT_EQ(run_job(2, text).out, run_alone(text).out);
}
TEST_F(MpiTest, KeysAreTheSame) {
  write_tensor("keys.safetensors", {260, 28});
  expect_same_for_any_number("keys keys.safetensors --margin bound", {1, 2, 3, 4});
}
TEST_F(MpiTest, KeysOfFewDimensionsInRoundsAreTheSame) {
  write_tensor("keys.safetensors", {500, 5});
  expect_same_for_any_number("keys keys.safetensors --query-norm 3 --prefix --advice --margin bound", {3});
}
TEST_F(MpiTest, SetsOfKeysAreTheSame) {
  write_tensor("keys.safetensors", {12, 30, 4});
  expect_same_for_any_number("keys keys.safetensors --norm layernorm", {2});
}
TEST_F(MpiTest, VocabIsTheSame) {
  write_tensor("head.safetensors", {400, 26});
  expect_same_for_any_number("vocab head.safetensors", {1, 2, 3, 4});
}
TEST_F(MpiTest, VocabInSharedMemoryIsTheSame) {
  write_tensor("head.safetensors", {1500, 90});
  expect_same_for_any_number("vocab head.safetensors", {3});
}
TEST_F(MpiTest, CollapseIsTheSame) {
  expect_same_for_any_number("collapse --dim 16 --heads 2 --tokens 12 --layers 3 --samples 3", {1, 2, 3, 4});
  expect_same_for_any_number("collapse --dim 16 --heads 2 --tokens 12 --layers 2 --samples 2 --fresh-weights",
                             {3});
}
TEST_F(MpiTest, EquilibriaAreTheSame) {
  expect_same_for_any_number("equilibria --starts 130 --angles 300 --steps 300 --tokens 3 --dim 3 --w 3",
                             {1, 2, 3, 4});
}
TEST_F(MpiTest, TrainingsAreTheSame) {
  expect_same_for_any_number(
      "train majority --steps 60 --norm layernorm,none --seeds 2 --samples 1000 --length 20", {1, 2, 3, 4});
  const std::string lm =
      "train lm --corpus grammar --tokenizer bytes --context 32 --batch 2 --layers 1 --steps 8 ";
  expect_same_for_any_number(lm + "--norm layernorm,center --seeds 2", {3});
  expect_same_for_any_number(lm, {2});  // one run, too small to share its steps
  // Three runs of steps that are: of two processes each has one, and both do the third.
  expect_same_for_any_number(
      "train lm --corpus grammar --tokenizer bytes --context 128 --batch 8 --layers 1 --dimension 32 --steps 4 "
      "--evaluate-every 2 --norm layernorm,center,none",
      {1, 2, 3, 4});
  std::string rows = "label\tsentence\n";
  for (int i = 0; i < 60; ++i)
    rows += i % 2 == 0 ? "0\tA dull film, number " + std::to_string(i) + "\n"
                       : "1\tA fine film, number " + std::to_string(i) + "\n";
  write(path("rows.tsv"), rows);
  expect_same_for_any_number(
      "train sentiment --data rows.tsv --tokenizer words --steps 6 --batch 4 --norm none,layernorm",
      {1, 2, 3, 4});
}
TEST_F(MpiTest, ScanIsTheSame) {
  ASSERT_EQ(
      run_alone(
          "train lm --corpus grammar --tokenizer bytes --context 32 --batch 2 --layers 2 --steps 4 --out lm")
          .code,
      0);
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Word " + std::to_string(i * i) + " follows word. ";
  write(path("text.txt"), text);
  const std::string scan = "scan lm/models/layernorm-seed11 --window 20 --samples 2 ";
  expect_same_for_any_number(scan + "--text text.txt", {1, 2, 3, 4});
  expect_same_for_any_number(scan + "--text text.txt --trace attn.key --space head", {2});
  // So many windows that none is cut.
  expect_same_for_any_number("scan lm/models/layernorm-seed11 --window 6 --samples 90 --text text.txt",
                             {1, 3});
  // Standard input reaches the first process only, and is told to all.
  const Outcome alone = run_alone(scan + "--text - --threads 1 --json <text.txt");
  const Outcome both = run_job(3, scan + "--text - --threads 1 --json <text.txt");
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_TRUE(timeless(both.out) == timeless(alone.out));
}
TEST_F(MpiTest, PaperIsTheSame) {
  expect_same_for_any_number("paper --only fig2,wu9 --models none --seeds 2 --steps 10 --samples 1",
                             {1, 2, 3, 4});
  expect_same_for_any_number("paper --only wu9 --models none --budget 5m", {2});
}

TEST_F(MpiTest, TheCampaignIsTheSame) {
  const std::string campaign = "\"" + campaign_path() + "\" --keys 1000 --flat 32 --largest 16 --threads 1";
  const Outcome alone = wait(start_command(campaign));
  ASSERT_EQ(alone.code, 0) << alone.err;
  for (const char* processes : {"1", "2", "3", "4"}) {
    const Outcome job = wait(start_command(mpirun() + " -n " + processes + " " + campaign));
    EXPECT_EQ(job.code, 0) << job.err;
    EXPECT_EQ(job.out, alone.out) << processes;
  }
}

TEST_F(MpiTest, AKilledProcessLosesOnlyWhatWasUnderWay) {
  const std::string arguments = "heatmap --n 3:40:2 --d 3:12 --draws 160 ";
  const Outcome alone = run_alone(arguments + "--threads 1 --json --quiet --out alone");
  ASSERT_EQ(alone.code, 0);
  ASSERT_TRUE(kill_one(2, arguments + "--threads 1 --json --out run", "run/pieces/plan.json", 1))
      << "it ended before it could be killed";
  ASSERT_TRUE(fs::exists(folder_ / "run/pieces/plan.json"));
  // A bit of one file is flipped.
  for (const auto& entry : fs::directory_iterator(folder_ / "run/pieces")) {
    if (entry.path().extension() != ".pieces") continue;
    std::string bytes = read(entry.path());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write(entry.path(), bytes);
    break;
  }
  // A digit of the plan would begin another run.
  const std::string plan = read(folder_ / "run/pieces/plan.json"), seed = "\"seed\": ";
  ASSERT_NE(plan.find(seed), std::string::npos);
  std::string changed = plan;
  changed[plan.find(seed) + seed.size()] = '7';
  write(folder_ / "run/pieces/plan.json", changed);
  expect_one_sentence(run_job(2, "heatmap --resume run"), 2, {"plan.json", "not as it was written"});
  write(folder_ / "run/pieces/plan.json", plan);
  const Outcome resumed = run_job(3, "heatmap --resume run --threads 1 --json");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("damaged"), std::string::npos) << resumed.err;
  EXPECT_TRUE(timeless(resumed.out) == timeless(alone.out));
  EXPECT_EQ(timeless_files(folder_ / "run").at("cells.csv"),
            timeless_files(folder_ / "alone").at("cells.csv"));
  EXPECT_FALSE(fs::exists(folder_ / "run/pieces"));
}

TEST_F(MpiTest, AKilledTrainingGoesOnToTheSameBytes) {
  const std::string arguments =
      "train majority --steps 600 --norm layernorm,none --seeds 2 --samples 1000 --length 20 --checkpoint-every 50 ";
  const Outcome alone = run_alone(arguments + "--threads 1 --json --quiet --out alone");
  ASSERT_EQ(alone.code, 0) << alone.err;
  ASSERT_TRUE(
      kill_one(2, arguments + "--threads 1 --json --quiet --out run", "run/checkpoint.safetensors", 0))
      << "it ended before it could be killed";
  const Outcome resumed = run_job(3, "train majority --resume run --threads 1 --json --quiet");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(timeless_files(folder_ / "run").at("metrics.jsonl") ==
              timeless_files(folder_ / "alone").at("metrics.jsonl"));
  EXPECT_TRUE(files_of(folder_ / "run").at("checkpoint.safetensors") ==
              files_of(folder_ / "alone").at("checkpoint.safetensors"));
}

TEST_F(MpiTest, WrongUseIsSaidOnceByOneProcess) {
  expect_one_sentence(run_job(3, "heatmap --draws 0"), 2, {"--draws takes a whole number"});
  expect_one_sentence(run_job(3, "keys missing.npy"), 2, {"missing.npy"});
  expect_one_sentence(run_job(2, "mask causal --tokens 4"), 2, {"not work for 2 processes"});
  const std::string other = mpirun() + " -n 1 \"" + program_path() + "\" heatmap --n 3 --d 3 : -n 1 \"" +
                            program_path() + "\" heatmap --n 4 --d 3";
  expect_one_sentence(wait(start_command(other)), 2, {"'heatmap --n 4 --d 3'", "process 1"});
  write(path("used/.normscope-lock"), "elsewhere 4711\n");
  write(path("used/pieces/plan.json"), "{}");
  expect_one_sentence(run_job(2, "heatmap --n 3 --d 3 --out used"), 2, {"process 4711 on elsewhere"});
}

TEST_F(MpiTest, ARunAnotherJobIsAtIsLeftAlone) {
  fs::create_directories(folder_ / "run");
  const pid_t job_at_work = start_command(job(2, "heatmap --draws 100000 --threads 1 --quiet --out run"));
  std::string holder;
  while (holder.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    holder = read(folder_ / "run/.normscope-lock");
    ASSERT_EQ(::waitpid(job_at_work, nullptr, WNOHANG), 0) << read(path(".err"));
  }
  const auto ranks = ranks_of(job_at_work);
  const std::string pid = holder.substr(holder.find(' ') + 1, holder.size() - holder.find(' ') - 2);
  EXPECT_NE(std::find(ranks.begin(), ranks.end(), std::stoi(pid)), ranks.end()) << holder;
  expect_one_sentence(run_job(2, "heatmap --n 3 --d 3 --out run"), 2,
                      {"'run' is in use by process " + pid + " on " + holder.substr(0, holder.find(' '))});
  EXPECT_EQ(read(folder_ / "run/.normscope-lock"), holder);
  ::kill(job_at_work, SIGTERM);
  int status = 0;
  ::waitpid(job_at_work, &status, 0);
}

TEST_F(MpiTest, AFullDiskOfOneThatDoesNotWriteIsSaidByTheFirst) {
  // What standard input held is kept in a file by each.
  write_tensor("keys.safetensors", {260, 28});
  const std::string keys = "\"" + program_path() + "\" keys - --threads 1 ";
  const Outcome outcome =
      wait(start_command("env -u OMPI_MCA_pml -u OMPI_MCA_btl " + mpirun() + " -n 2 " + keys +
                         ": -n 1 sh -c 'ulimit -f 8; exec " + keys + "' <keys.safetensors"));
  expect_one_sentence(outcome, 1, {"is the disk full?", "process 2 on"});
}

TEST_F(MpiTest, AFullDiskEndsAllProcesses) {
  // Files of the first process, which writes, may not grow beyond a few blocks.
  // MPI's own shared memory is a file, too: the processes talk in another way.
  const std::string limited = "env -u OMPI_MCA_pml -u OMPI_MCA_btl " + mpirun() +
                              " -n 2 sh -c 'ulimit -f 8; exec \"" + program_path() +
                              "\" heatmap --n 3:40:2 --d 3:12 --draws 60 --out run'";
  const Outcome outcome = wait(start_command(limited));
  expect_one_sentence(outcome, 1, {"could not be written"});
}

TEST_F(MpiTest, WithoutConnectionIsSaidOnce) {
  const std::string as_srun = "env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=";
  expect_one_sentence(wait(start_command(as_srun + "0 \"" + program_path() + "\" heatmap --n 3 --d 3")), 2,
                      {"srun", "--mpi=pmix"});
  const Outcome other = wait(start_command(as_srun + "1 \"" + program_path() + "\" heatmap --n 3 --d 3"));
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err + other.out, "");
}

}  // namespace
}  // namespace normscope
