// Hostile and damaged tensor files are read or rejected with InputError, and a write that fails or is killed
// leaves the target as it was.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "normscope/error.h"
#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<double>;
using File = std::vector<std::byte>;

File content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// Opens the bytes and reads every tensor; false when they are rejected. Anything thrown but InputError
// escapes and fails the test.
bool reads(const File& file, std::set<Values>* seen = nullptr) {
  try {
    const TensorFile opened = TensorFile::from_bytes(file, "input", {.max_bytes = std::uint64_t{1} << 24});
    for (const TensorInfo& info : opened.tensors()) {
      std::size_t count = 1;
      for (const std::size_t extent : info.shape) count *= extent;
      const bool unnamed = info.name.empty() && opened.tensors().size() == 1;
      const Tensor tensor = unnamed ? opened.read() : opened.read(info.name);
      EXPECT_EQ(tensor.values.size(), count);
      if (seen != nullptr) seen->insert(tensor.values);
    }
    return true;
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return false;
  }
}

// The fuzzers' seeds, and those of them that are well formed.
std::map<std::string, File> corpus(bool readable_only) {
  std::map<std::string, File> files;
  for (const auto& entry : fs::recursive_directory_iterator(source_path() + "/tests/fuzz/corpus")) {
    if (!entry.is_regular_file()) continue;
    const std::string extension = entry.path().extension();
    if (extension != ".npy" && extension != ".npz" && extension != ".safetensors") continue;
    const File file = content_of(entry.path());
    if (!readable_only || reads(file)) files[entry.path().filename()] = file;
  }
  return files;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  File operator()(File file) {
    for (std::size_t edits = 1 + below(4); edits > 0 && !file.empty(); --edits) edit(file);
    return file;
  }

 private:
  std::size_t below(std::size_t bound) { return random_.bits64() % bound; }
  std::byte any_byte() {
    // Digits, brackets and extremes reach further into a header than uniform bytes.
    static constexpr char kTelling[] = "0129(){}[],:'\"<>|fiuVOL \n\xff\x00\x7f\x80";
    return static_cast<std::byte>(below(2) ? below(256) : kTelling[below(sizeof kTelling)]);
  }
  void edit(File& file) {
    const std::size_t at = below(file.size());
    const auto here = file.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t run = 1 + below(std::min<std::size_t>(16, file.size() - at));
    const auto run_end = here + static_cast<std::ptrdiff_t>(run);
    switch (below(7)) {
      case 0:
        *here ^= static_cast<std::byte>(1 << below(8));
        break;
      case 1:
        *here = any_byte();
        break;
      case 2:
        file.resize(at);
        break;
      case 3:
        file.erase(here, run_end);
        break;
      case 4:
        file.insert(here, any_byte());
        break;
      case 5:
        std::fill(here, run_end, any_byte());
        break;
      default: {
        const File copy(here, run_end);
        file.insert(file.begin() + static_cast<std::ptrdiff_t>(below(file.size() + 1)), copy.begin(),
                    copy.end());
      }
    }
  }
  Random random_;
};

TEST(HostileTensorFiles, SeedsAreThere) {
  EXPECT_GE(corpus(false).size(), 18u);
  EXPECT_GE(corpus(true).size(), 12u);
}

TEST(HostileTensorFiles, MutationsAreReadOrRejected) {
  Mutator mutate(20240611);
  const std::map<std::string, File> seeds = corpus(false);
  std::size_t accepted = 0, rejected = 0;
  for (std::size_t round = 0; accepted + rejected < 20000; ++round)
    for (const auto& [name, seed] : seeds) {
      SCOPED_TRACE(name + " round " + std::to_string(round));
      ++(reads(mutate(seed)) ? accepted : rejected);
    }
  EXPECT_GT(accepted, 200u);  // otherwise nothing behind the headers was exercised
  EXPECT_GT(rejected, 2000u);
}

TEST(HostileTensorFiles, EveryProperPrefixIsRejected) {
  for (const auto& [name, seed] : corpus(true))
    for (std::size_t length = 0; length < seed.size(); ++length)
      ASSERT_FALSE(reads(File(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(length))))
          << name << " cut to " << length;
}

// The checksum of a zip member covers header and data: one changed bit never gives other values.
TEST(HostileTensorFiles, NoBitOfAnNpzChangesAValueUnnoticed) {
  for (const auto& [name, seed] : corpus(true)) {
    if (!name.ends_with(".npz")) continue;
    std::set<Values> original;
    ASSERT_TRUE(reads(seed, &original));
    for (std::size_t bit = 0; bit < 8 * seed.size(); ++bit) {
      File changed = seed;
      changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      std::set<Values> got;
      if (!reads(changed, &got)) continue;
      for (const Values& values : got) ASSERT_TRUE(original.contains(values)) << name << " bit " << bit;
    }
  }
}

class ReplacingATensorFile : public testing::Test {
 protected:
  ReplacingATensorFile() { write_npy(target_, old_); }
  std::size_t entries() const { return temporary_.entries(); }
  void expect_untouched() const {
    EXPECT_EQ(read_tensor(target_).values, old_.values);
    EXPECT_EQ(entries(), 1u) << "a temporary was left behind";
  }
  static std::string message_of(const std::string& path, const Tensor& tensor) {
    try {
      write_npy(path, tensor);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const Tensor old_{"", DType::float64, {3}, {1, 2, 3}};
  const Tensor new_{"", DType::float64, {100000}, Values(100000, 0.5)};
  const TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path(), target_ = directory_ / "keys.npy";
};

TEST_F(ReplacingATensorFile, WritesTheNewOne) {
  write_npy(target_, new_);
  EXPECT_EQ(read_tensor(target_).values, new_.values);
  EXPECT_EQ(entries(), 1u);
}

// A file size limit stops the write in the middle, as a full disk does.
TEST_F(ReplacingATensorFile, SurvivesAFullDisk) {
  struct rlimit saved {};
  ::getrlimit(RLIMIT_FSIZE, &saved);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 5000, saved.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_npy(target_, new_), Error);
  const std::string message = message_of(target_, new_);
  try {
    write_safetensors(directory_ / "other.safetensors", std::vector<Tensor>{new_});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InputError&) {
    ADD_FAILURE() << "a full disk is not the caller's mistake";
  } catch (const Error&) {
  }
  ::setrlimit(RLIMIT_FSIZE, &saved);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("could not be written"), std::string::npos) << message;
  expect_untouched();
}

TEST_F(ReplacingATensorFile, SurvivesAValueThatDoesNotFit) {
  Tensor tensor = new_;
  tensor.dtype = DType::float16;
  tensor.values[90000] = 1e6;  // in the second chunk, when the first is written already
  EXPECT_NE(message_of(target_, tensor).find("(element 90000) as float16"), std::string::npos);
  expect_untouched();
}

TEST_F(ReplacingATensorFile, NeedsAWritableDirectory) {
  fs::permissions(directory_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                  fs::perms::others_exec);
  const bool root = ::geteuid() == 0;  // root may write anywhere
  ASSERT_TRUE(!root || ::seteuid(65534) == 0);
  EXPECT_THROW(write_npy(target_, new_), InputError);
  const std::string message = message_of(target_, new_);
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
  EXPECT_NE(message.find("not writable"), std::string::npos) << message;
  expect_untouched();
}

TEST_F(ReplacingATensorFile, NeedsAPlaceForAFile) {
  const auto expect_rejected = [&](const std::string& path, const char* fact) {
    EXPECT_THROW(write_npy(path, new_), InputError);
    EXPECT_NE(message_of(path, new_).find(fact), std::string::npos) << message_of(path, new_);
  };
  expect_rejected(directory_, "is a directory");
  expect_rejected(directory_ / "none" / "a.npy", "directory does not exist");
  expect_rejected(target_ / "a.npy", "directory does not exist");
  expect_rejected(directory_ / std::string(300, 'a'), "too long");
  expect_rejected("/dev/null", "not a regular file");
  expect_rejected("-", "name a file");
  expect_rejected("", "name a file");
  expect_rejected(std::string("a\0b", 3), "'a\\x00b'");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  expect_untouched();
}

TEST_F(ReplacingATensorFile, KeepsLinksAndPermissions) {
  const fs::path link = directory_ / "link.npy";
  fs::create_symlink("keys.npy", link);
  fs::permissions(target_, fs::perms::owner_read | fs::perms::owner_write);
  write_npy(link, new_);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_tensor(target_).values, new_.values);
  EXPECT_EQ(fs::status(target_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ReplacingATensorFile, IsWholeWhenKilledAnywhere) {
  Random random(7);
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        write_npy(target_, new_);
        write_npy(target_, old_);
      }
    }
    ::usleep(static_cast<useconds_t>(random.uniform() * 20000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Values values = read_tensor(target_).values;
    ASSERT_TRUE(values == old_.values || values == new_.values);
  }
}

TEST_F(ReplacingATensorFile, IsWholeWhenTwoWriteIt) {
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) write_npy(target_, new_);
  });
  for (int i = 0; i < 20; ++i) {
    write_npy(target_, old_);
    const Values values = read_tensor(target_).values;
    EXPECT_TRUE(values == old_.values || values == new_.values);
  }
  other.join();
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace normscope
