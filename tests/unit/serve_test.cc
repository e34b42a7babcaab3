// The server's rooms: which addresses and hosts it takes, which files it opens, what it says of runs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "normscope/error.h"
#include "normscope/record.h"
#include "serve/answers.h"
#include "serve/files.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/pages.h"
#include "serve/request.h"
#include "serve/runs.h"
#include "serve/server.h"
#include "support/temporary_directory.h"

namespace normscope::serve {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

const char* const kConfig = R"({"program":"normscope","command":"train majority","seed":3,
  "options":{"settings":{"classes":5,"steps":40},"runs":[{"norm":"layernorm","seed":11},{"norm":"none","seed":11}]}})";

class ServeFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root());
    write(outside() / "results.json", "secret");
    write(outside() / "config.json", kConfig);
    write(root() / "run/config.json", kConfig);
    write(root() / "run/results.json", R"({"verdict":"It holds."})");
  }
  fs::path root() const { return folder_.path() / "root"; }
  fs::path outside() const { return folder_.path() / "outside"; }
  Answer get(const std::string& target, const std::string& host = "127.0.0.1:8000",
             const std::string& method = "GET") const {
    return answer({{root()}, std::nullopt}, 8000, {method, target, host});
  }
  int status(const std::string& target) const { return get(target).status; }

  TemporaryDirectory folder_;
};

TEST(ServeHost, OnlyTheLoopbackNamesWithTheRightPortAreKnown) {
  for (const char* host : {"127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"})
    EXPECT_TRUE(known_host(host, 8000)) << host;
  for (const char* host :
       {"", "127.0.0.1", "localhost", "127.0.0.1:80", "127.0.0.1:80000", "evil.example:8000",
        "127.0.0.1.evil.example:8000", "localhost.:8000", "localhost:8000.evil.example", "127.0.0.2:8000",
        "0.0.0.0:8000", "::1:8000", " localhost:8000", "localhost:8000 ", "user@localhost:8000",
        "localhost:08000", "2130706433:8000"})
    EXPECT_FALSE(known_host(host, 8000)) << host;
  EXPECT_TRUE(known_host("localhost", 80));
}

TEST(ServePath, IsDecodedOnceAndNameByName) {
  EXPECT_EQ(names_of_address("a/b%20c/")->names, (Strings{"a", "b c"}));
  EXPECT_TRUE(names_of_address("a/")->directory);
  EXPECT_FALSE(names_of_address("a")->directory);
  EXPECT_TRUE(names_of_address("")->names.empty());
  EXPECT_EQ(names_of_address("%252e%252e")->names,
            (Strings{"%2e%2e"}));  // a name with percent signs, no more
  EXPECT_EQ(names_of_address("%c0%ae%c0%ae")->names, (Strings{"\xC0\xAE\xC0\xAE"}));  // overlong: not dots
  EXPECT_EQ(names_of_path("a%20b")->names, (Strings{"a%20b"}));
}

TEST(ServePath, HasNoWayOut) {
  for (const char* path : {"..",
                           "../x",
                           "a/../b",
                           ".",
                           "./a",
                           "%2e%2e",
                           "%2E%2E/x",
                           ".%2e",
                           "%2e",
                           "a/%2e%2e/b",
                           "a%2fb",
                           "..%2f..%2fetc",
                           "%2fetc%2fpasswd",
                           "/etc/passwd",
                           "//etc",
                           "a//b",
                           "a%00b",
                           "%00",
                           "a%5cb",
                           "..%5c..",
                           "a\\b",
                           ".git/config",
                           "a/.hidden",
                           "%2ehidden",
                           "%",
                           "a%2",
                           "a%zz",
                           "%u002e"})
    EXPECT_FALSE(names_of_address(path)) << path;
  EXPECT_FALSE(names_of_address(std::string("a\0b", 3)));
  EXPECT_FALSE(names_of_address(std::string(256, 'a')));
  EXPECT_TRUE(names_of_address(std::string(255, 'a')));
  std::string deep;
  for (int i = 0; i < 33; ++i) deep += "a/";
  EXPECT_FALSE(names_of_address(deep));
}

TEST(ServePath, EncodingComesBack) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const std::string encoded = percent_encoded(all);
  EXPECT_EQ(percent_decoded(encoded), all);
  EXPECT_EQ(encoded.find_first_of("\"'<>&/\\?#+ "), std::string::npos);
  EXPECT_EQ(query_value("/x?a=1&b=%26&a=2", "a"), "1");
  EXPECT_EQ(query_value("/x?a=1&b=%26", "b"), "&");
  EXPECT_EQ(query_value("/x?a", "a"), "");
  EXPECT_EQ(query_value("/x?ab=1", "a"), std::nullopt);
  EXPECT_EQ(query_value("/x?a=%0", "a"), std::nullopt);
}

TEST(ServeRequest, IsReadStrictly) {
  const auto request = parsed_request("GET /a?b HTTP/1.1\r\nAccept: */*\r\nhOsT:\t localhost:80 \r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->target, "/a?b");
  EXPECT_EQ(request->host, "localhost:80");
  EXPECT_EQ(parsed_request("GET / HTTP/1.0\r\n\r\n")->host, "");
  EXPECT_EQ(parsed_request("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")->host, "");
  EXPECT_EQ(parsed_request("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nHost: c\r\n\r\n")->host, "");
  EXPECT_EQ(parsed_request("GET / HTTP/1.1\r\nX-Host: a\r\n\r\n")->host, "");
  for (const char* head : {"", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
                           " GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
                           "GET / http/1.1\r\n\r\n", "G(T / HTTP/1.1\r\n\r\n", "GET /\n HTTP/1.1\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n Host: x\r\n\r\n",
                           "GET / HTTP/1.1\r\nA: b\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nA: \x01\r\n\r\n"})
    EXPECT_FALSE(parsed_request(head)) << head;
}

TEST(ServeAnswer, TellsItsLengthUnlessItHasNone) {
  Answer given;
  given.body = "four";
  given.type = "text/plain";
  EXPECT_TRUE(
      answer_head(given).starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n"));
  EXPECT_TRUE(answer_head(given).ends_with("\r\nConnection: close\r\n\r\n"));
  given.body.clear();
  EXPECT_NE(answer_head(given).find("Content-Length: 0\r\n"), std::string::npos);
  given.status = 204;
  EXPECT_EQ(answer_head(given).find("Content-Length"), std::string::npos);
}

TEST_F(ServeFiles, LinksAreNotFollowed) {
  fs::create_directory_symlink(outside(), root() / "linked");
  fs::create_directory_symlink(root() / "run", root() / "inside");
  fs::create_symlink(outside() / "results.json", root() / "run/link.csv");
  const Strings none, linked = {"linked"}, inside = {"inside"}, run = {"run"};
  EXPECT_FALSE(Folder::open(root(), linked));
  EXPECT_FALSE(Folder::open(root(), inside));
  const auto folder = Folder::open(root(), run);
  ASSERT_TRUE(folder);
  EXPECT_FALSE(folder->file("link.csv"));
  EXPECT_TRUE(folder->file("results.json"));
  for (const char* target :
       {"/run/0/linked/", "/run/0/linked/results.json", "/run/0/inside/", "/run/0/run/link.csv"})
    EXPECT_EQ(status(target), 404) << target;
  EXPECT_EQ(find_runs(std::vector{root()}).runs.size(), 1u);
  // The directory that the user named may be one.
  fs::create_directory_symlink(root(), folder_.path() / "alias");
  EXPECT_TRUE(Folder::open(folder_.path() / "alias", run));
}

TEST_F(ServeFiles, PipesAndFoldersAreNoFiles) {
  ASSERT_EQ(::mkfifo((root() / "run/metrics.jsonl").c_str(), 0600), 0);
  fs::create_directory(root() / "run/report.html");
  EXPECT_EQ(status("/run/0/run/metrics.jsonl"), 404);
  EXPECT_EQ(status("/run/0/run/report.html"), 404);
  EXPECT_EQ(status("/api/curves?run=0/run"), 404);
  EXPECT_EQ(status("/run/0/run/"), 200);
}

TEST_F(ServeFiles, OnlyFilesOfRunsAreGivenOut) {
  write(root() / "run/notes.txt", "x");
  write(root() / "run/other.json", "{}");
  write(root() / "run/other.html", "x");
  write(root() / "run/.hidden.csv", "x");
  write(root() / "run/keys.npy", "x");
  write(root() / "elsewhere/table.csv", "not of a run");
  for (const char* target : {"/run/0/run/notes.txt",
                             "/run/0/run/other.json",
                             "/run/0/run/other.html",
                             "/run/0/run/.hidden.csv",
                             "/run/0/run/.csv",
                             "/run/0/elsewhere/table.csv",
                             "/run/0/elsewhere/",
                             "/run/0/",
                             "/run/0",
                             "/run/1/run/",
                             "/run/00/run/",
                             "/run/-1/run/",
                             "/run/",
                             "/run",
                             "/run/0/../../outside/results.json",
                             "/run/0/run/../../../outside/results.json",
                             "/run/0/%2e%2e/outside/results.json",
                             "/run/0//etc/passwd",
                             "/run/0/run/results.json%00.csv",
                             "/run/0/run/results.json/",
                             "/etc/passwd",
                             "/assets/",
                             "/assets/../x",
                             "/nonsense",
                             "/page/x.js",
                             "/api",
                             "/api/metrics",
                             "/api/metrics?run=0/../outside",
                             "/api/metrics?run=0%2F..%2Foutside",
                             "/api/metrics?run=5/run"})
    EXPECT_EQ(status(target), 404) << target;
  EXPECT_EQ(status("/run/0/run/keys.npy"), 200);
  EXPECT_EQ(get("/run/0/run/results.json").type, "application/json");
  EXPECT_EQ(get("/run/0/run").location, "/run/0/run/");
  EXPECT_EQ(status("http://127.0.0.1:8000/"), 400);
  EXPECT_EQ(status("*"), 400);
  EXPECT_EQ(status(""), 400);
}

TEST_F(ServeFiles, StrangersAndWritersAreRefused) {
  EXPECT_EQ(get("/", "evil.example").status, 421);
  EXPECT_EQ(get("/run/0/run/results.json", "").status, 421);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get", ""}) {
    const Answer given = get("/", "localhost:8000", method);
    EXPECT_EQ(given.status, 405) << method;
    EXPECT_EQ(given.allow, "GET, HEAD");
  }
  EXPECT_EQ(get("/", "localhost:8000", "HEAD").status, 200);
}

TEST_F(ServeFiles, AReportHasASandboxAndOwnPagesRunNothingInline) {
  write(root() / "run/report.html", "<script>alert(1)</script>");
  EXPECT_NE(get("/run/0/run/report.html").policy.find("sandbox allow-scripts allow-downloads"),
            std::string::npos);
  EXPECT_EQ(get("/run/0/run/report.html").policy.find("allow-same-origin"), std::string::npos);
  for (const char* target : {"/", "/run/0/run/", "/nothing"}) {
    const Answer given = get(target);
    EXPECT_NE(given.policy.find("frame-ancestors 'none'"), std::string::npos) << target;
    EXPECT_EQ(given.policy.find("unsafe"), std::string::npos) << target;
    EXPECT_EQ(given.body.find("<script>"), std::string::npos) << target;
  }
}

TEST_F(ServeFiles, NamesAndContentsAreText) {
  const std::string evil = "<script>alert(1)<";  // and a directory "script>" inside: a path that is a tag
  write(
      root() / evil / "script>" / "config.json",
      R"({"program":"normscope","command":"<b>x</b>","<i>":"<u>","options":{"masks":["<img src=x onerror=alert(1)>"]}})");
  write(root() / evil / "script>" / "results.json",
        R"({"verdict":"<b>no</b>","claims":[{"claim":"<b>a</b>","<b>measured":"\u0007\"'"}]})");
  write(root() / evil / "script>" / "metrics.jsonl",
        "{\"step\":1,\"norm\":\"<b>\",\"seed\":\"<s>\",\"<i>loss\":1}\n");
  write(root() / evil / "script>" / "\"><b>.svg", "<svg/>");
  const std::string list = get("/").body;
  EXPECT_NE(list.find("&lt;script&gt;alert(1)&lt;/script&gt;"), std::string::npos) << list;
  const std::string page = get("/run/0/%3Cscript%3Ealert(1)%3C/script%3E/").body;
  EXPECT_NE(page.find("&lt;b&gt;no&lt;/b&gt;"), std::string::npos) << page;
  const auto curves = nlohmann::json::parse(get("/api/curves?run=0/%3Cscript%3Ealert(1)%3C/script%3E").body);
  for (const std::string& html : {list, page, curves["svg"].get<std::string>()}) {
    for (const char* tag : {"<script>", "<b>", "<i>", "<u>", "<img src=x", "<s>"})
      EXPECT_EQ(html.find(tag), std::string::npos) << tag;
    EXPECT_FALSE(html.empty());
  }
}

TEST_F(ServeFiles, HostileJsonIsNoRunAndNoCrash) {
  for (const std::string& config :
       {std::string(200'000, '['), std::string("{"), std::string(), std::string("[]"), std::string("null"),
        std::string(R"({"program":1})"), std::string(R"({"program":"other"})"), std::string(2 << 20, ' ')}) {
    write(root() / "bad/config.json", config);
    EXPECT_EQ(status("/run/0/bad/"), 404);
  }
  write(root() / "run/results.json", std::string(500'000, '['));
  EXPECT_NE(get("/run/0/run/").body.find("cannot be read"), std::string::npos);
  write(root() / "run/results.json", std::string(5 << 20, ' '));
  EXPECT_NE(get("/run/0/run/").body.find("too much to be shown"), std::string::npos);
  write(root() / "run/config.json",
        R"({"program":"normscope","command":7,"options":{"runs":[1,{"norm":{}}],"settings":3}})");
  EXPECT_EQ(status("/run/0/run/"), 200);
  EXPECT_EQ(status("/"), 200);
}

TEST_F(ServeFiles, StatesFollowTheLockOfTheLog) {
  const Strings run = {"run"};
  const auto state = [&] { return state_of(*Folder::open(root(), run)); };
  EXPECT_EQ(state(), State::finished);
  fs::remove(root() / "run/results.json");
  EXPECT_EQ(state(), State::unfinished);
  {
    LineLog log(root() / "run/metrics.jsonl");
    log.append("{\"step\":0}\n");
    EXPECT_EQ(state(), State::running);
  }
  EXPECT_EQ(state(), State::stopped);
  LineLog again(root() / "run/metrics.jsonl");  // asking has left no lock behind
  EXPECT_EQ(state(), State::running);
  // What holds a running training is running itself.
  write(root() / "config.json", R"({"program":"normscope","command":"paper"})");
  for (const auto& found : find_runs(std::vector{root()}).runs) EXPECT_EQ(found.state, State::running);
}

TEST_F(ServeFiles, TheListTellsWhatWasRun) {
  const auto told = [&](const std::string& options) {
    write(root() / "run/config.json", R"({"program":"normscope","command":"x","options":)" + options + "}");
    std::string text;
    const RunList list = find_runs(std::vector{root()});
    for (const auto& [name, value] : list.runs.at(0).settings) text += name + " " + value + "; ";
    return text;
  };
  EXPECT_EQ(told(R"({"model":"minilm","text":"a.txt","mask":"full","layers":[],"heads":[0,3]})"),
            "model minilm; text a.txt; mask full; layers all; heads 0, 3; ");
  EXPECT_EQ(told(R"({"parts":["wu1"],"steps":5000,"draws":100,"budget":20.0,"asked":{"budget":"20s"}})"),
            "parts wu1; budget 20s; ");
  EXPECT_EQ(told(R"({"settings":{"corpus":"grammar","text":"","classes":0,"steps":60},
                     "runs":[{"norm":"none","seed":11}]})"),
            "norm none; seed 11; corpus grammar; steps 60; ");
  EXPECT_EQ(told(R"({"norm":"none","file":"keys.npy","variants":[]})"), "norm none; file keys.npy; ");
}

TEST_F(ServeFiles, RunsComeNewestFirstWithTheirSettings) {
  write(root() / "a/b/config.json",
        R"({"program":"normscope","command":"mask","options":{"masks":["full","causal"],"n":[8,8]}})");
  fs::last_write_time(root() / "a/b/config.json", fs::file_time_type::clock::now() + std::chrono::hours(1));
  write(root() / "foreign/config.json", R"({"name":"x"})");
  const RunList list = find_runs(std::vector{root()});
  ASSERT_EQ(list.runs.size(), 2u);
  EXPECT_EQ(list.runs[0].names, (Strings{"a", "b"}));
  EXPECT_EQ(list.runs[0].settings[0], (std::pair<std::string, std::string>("masks", "full, causal")));
  EXPECT_EQ(list.runs[1].settings[0], (std::pair<std::string, std::string>("norms", "layernorm, none")));
  EXPECT_TRUE(list.complete);
  EXPECT_FALSE(find_runs(std::vector{root()}, {.depth = 8, .folders = 2, .runs = 9}).complete);
  EXPECT_EQ(find_runs(std::vector{root()}, {.depth = 1, .folders = 9, .runs = 9}).runs.size(), 1u);
}

TEST_F(ServeFiles, ATornLastLineIsLeftOut) {
  const std::string first = R"({"step":0,"norm":"a","seed":1,"loss":2})"
                            "\n",
                    second = R"({"step":5,"norm":"a","seed":1,"loss":1})"
                             "\n";
  write(root() / "run/metrics.jsonl", first + second + R"({"step":10,"nor)");
  const std::string metrics = "/api/metrics?run=0/run&from=";
  EXPECT_EQ(get(metrics + "0").body, first + second);
  EXPECT_EQ(get(metrics + std::to_string(first.size())).body, second);
  EXPECT_EQ(get(metrics + std::to_string(first.size() + second.size())).body, "");
  for (const char* from : {"1", "-1", "x", "", "99999", "18446744073709551616"})
    EXPECT_EQ(status(metrics + from), 416) << from;
  const auto curves = nlohmann::json::parse(get("/api/curves?run=0/run").body);
  EXPECT_EQ(curves["lines"], 2);
  EXPECT_EQ(curves["step"], 5);
  EXPECT_EQ(curves["state"], "finished");
  EXPECT_EQ(status("/api/curves?run=0/run&state=finished&from=" + curves["next"].get<std::string>()), 204);
  EXPECT_EQ(status("/api/curves?run=0/run&state=running&from=" + curves["next"].get<std::string>()), 200);
}

TEST(ServeCurves, AreOnePerNormAndSeedOrTheirMean) {
  const Metrics metrics = read_metrics(
      "{\"step\":0,\"norm\":\"a\",\"seed\":1,\"loss\":null,\"accuracy\":0.5}\n"
      "{\"step\":0,\"norm\":\"a\",\"seed\":2,\"loss\":3,\"accuracy\":0.7}\n"
      "nonsense\n[1]\n{\"norm\":\"a\"}\n\n"
      "{\"step\":0,\"norm\":\"b\",\"seed\":1,\"loss\":4}\n");
  EXPECT_EQ(metrics.lines, 3u);
  EXPECT_EQ(metrics.measures, (Strings{"loss", "accuracy"}));
  const auto mean = metrics_figure(metrics, {"", "mean"});
  ASSERT_EQ(mean.panels.size(), 2u);
  ASSERT_EQ(mean.panels[1].curves.size(), 2u);
  EXPECT_DOUBLE_EQ(mean.panels[1].curves[0].y[0], 0.6);
  EXPECT_DOUBLE_EQ(mean.panels[1].curves[0].low[0], 0.5);
  EXPECT_DOUBLE_EQ(mean.panels[0].curves[0].y[0], 3);  // of the seed that tells it
  EXPECT_EQ(metrics_figure(metrics, {"", "each"}).panels[0].curves.size(), 3u);
  EXPECT_EQ(metrics_figure(metrics, {"", "2"}).panels[0].curves.size(), 1u);
  const auto chosen = metrics_figure(metrics, {"b", "mean"});
  EXPECT_EQ(chosen.panels[0].curves[1].y.size(), 1u);
  EXPECT_TRUE(chosen.panels[0].curves[0].y.empty());
}

TEST_F(ServeFiles, ServingInAThreadStopsBeforeAndAfterItBegan) {
  const Site site{{root()}, std::nullopt};
  for (int round = 0; round < 5; ++round) {
    Server server(site, 0);
    EXPECT_GT(server.port(), 0);
    EXPECT_THROW(Server(site, server.port()), InputError);
    std::thread answering([&] { server.run(); });
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    server.stop();
    answering.join();
  }
  Server never(site, 0);
  never.stop();
  never.run();
}

}  // namespace
}  // namespace normscope::serve
