// normscope serve under bad requests, on raw sockets: what a client library would not send.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>

#include "support/program.h"

namespace normscope {
namespace {

using std::chrono::milliseconds;

// A connection to a port of this machine.
class Socket {
 public:
  explicit Socket(int port) : number_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(number_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Socket() { ::close(number_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connected() const { return connected_; }
  // Whether all of it was taken.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t put = ::send(number_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }
  // All that comes until the other side closes, or nothing comes for so long.
  std::string receive(milliseconds patience = milliseconds(15'000)) const {
    std::string bytes;
    char piece[4096];
    pollfd asked{number_, POLLIN, 0};
    while (::poll(&asked, 1, static_cast<int>(patience.count())) > 0) {
      const ssize_t got = ::recv(number_, piece, sizeof piece, 0);
      if (got <= 0) break;
      bytes.append(piece, static_cast<std::size_t>(got));
    }
    return bytes;
  }

 private:
  int number_;
  bool connected_ = false;
};

class ServeCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write(path("runs/one/config.json"), R"({"program":"normscope","command":"mask","options":{"n":[8]}})");
    write(path("runs/one/results.json"), R"({"command":"mask"})");
    write(path("secret/config.json"), R"({"program":"normscope","command":"secret"})");
  }
  void TearDown() override {
    if (server_ > 0) {
      EXPECT_EQ(end(SIGTERM).code, 0);
    }
    ProgramTest::TearDown();
  }

  void serve(const std::string& more = "") {
    std::filesystem::remove(path(".out"));
    server_ = start("serve " + path("runs") + " --port 0 --json " + more);
    for (int i = 0; i < 1000 && read(path(".out")).find('\n') == std::string::npos; ++i)
      std::this_thread::sleep_for(milliseconds(20));
    const auto announced = nlohmann::json::parse(read(path(".out")), nullptr, false);
    ASSERT_TRUE(announced.is_object()) << read(path(".out")) << read(path(".err"));
    port_ = announced["port"];
    EXPECT_EQ(announced["address"], "http://127.0.0.1:" + std::to_string(port_) + "/");
  }
  Outcome end(int signal) {
    for (int hurried = 0; hurried < 3; ++hurried) ::kill(server_, signal);
    return wait(std::exchange(server_, 0));
  }

  std::string ask(const std::string& request) const {
    const Socket socket(port_);
    EXPECT_TRUE(socket.connected());
    socket.send(request);
    return socket.receive();
  }
  std::string host() const { return "Host: 127.0.0.1:" + std::to_string(port_) + "\r\n"; }
  std::string get(const std::string& target, const std::string& headers = "") const {
    return ask("GET " + target + " HTTP/1.1\r\n" + host() + headers + "\r\n");
  }
  static std::string status(const std::string& answer) {
    return answer.substr(0, answer.find("\r\n")).substr(0, 12);
  }
  bool alive() const { return status(get("/")) == "HTTP/1.1 200"; }

  pid_t server_ = 0;
  int port_ = 0;
};

TEST_F(ServeCommand, WrongCallsGetOneSentence) {
  expect_refused("serve " + path("missing"), {"missing", "not a directory"});
  expect_refused("serve " + path("runs/one/config.json"), {"not a directory"});
  expect_refused("serve --port 65536", {"--port", "65535"});
  expect_refused("serve --port x", {"--port"});
  expect_refused("serve --port -1", {"--port"});
  expect_refused("serve --page " + path("runs"), {"index.html", "make web"});
  expect_refused("serve --out " + path("x"), {"--out"});
}

TEST_F(ServeCommand, ABusyPortIsASentence) {
  serve();
  const std::string port = std::to_string(port_);
  expect_sentence(run("serve " + path("runs") + " --port " + port), 2,
                  {"Port " + port + " is taken", "--port 0"});
  EXPECT_TRUE(alive());
}

TEST_F(ServeCommand, BothSignalsEndItWithZeroAtOnce) {
  for (const int signal : {SIGTERM, SIGINT}) {
    serve();
    const Socket idle(port_), half(port_);
    half.send("GET / HT");
    ASSERT_TRUE(alive());
    const auto begun = std::chrono::steady_clock::now();
    const Outcome outcome = end(signal);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(3000));
    EXPECT_FALSE(Socket(port_).connected());
  }
}

TEST_F(ServeCommand, LostOutputIsAFailedRun) {
  expect_sentence(run("serve " + path("runs") + " --port 0", 0, "/dev/full"), 1, {});
}

TEST_F(ServeCommand, AnswersCarryTheirGuards) {
  write(path("runs/one/big.npy"), std::string(8 << 20, 'x'));
  serve();
  for (const char* target : {"/", "/run/0/one/", "/run/0/one/big.npy", "/nothing", "/assets/live.js"}) {
    const std::string answer = get(target);
    const std::string head = answer.substr(0, answer.find("\r\n\r\n"));
    for (const char* guard :
         {"X-Content-Type-Options: nosniff", "Content-Security-Policy: ", "frame-ancestors 'none'",
          "Referrer-Policy: no-referrer", "Cross-Origin-Resource-Policy: same-origin"})
      EXPECT_NE(head.find(guard), std::string::npos) << target << ": " << guard;
    EXPECT_EQ(head.find("Access-Control"), std::string::npos) << target;
  }
  const std::string big = get("/run/0/one/big.npy", "Range: bytes=0-1,0-1,0-1\r\n");
  EXPECT_EQ(status(big), "HTTP/1.1 200");
  EXPECT_EQ(big.size() - big.find("\r\n\r\n") - 4, 8u << 20);
  EXPECT_EQ(get("/", "Accept-Encoding: gzip, br\r\n").find("Content-Encoding"), std::string::npos);
  const std::string head = ask("HEAD /run/0/one/big.npy HTTP/1.1\r\n" + host() + "\r\n");
  EXPECT_NE(head.find("Content-Length: 8388608\r\n"), std::string::npos);
  EXPECT_EQ(head.find("\r\n\r\n") + 4, head.size());
}

TEST_F(ServeCommand, OtherHostsMethodsAndPathsAreRefused) {
  serve();
  const std::string port = std::to_string(port_);
  for (const std::string& host :
       {std::string("evil.example"), "evil.example:" + port, "127.0.0.1.evil.example:" + port,
        std::string("localhost"), std::string("127.0.0.1:1"), std::string()})
    EXPECT_EQ(status(ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")), "HTTP/1.1 421") << host;
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\n\r\n")), "HTTP/1.1 421");
  EXPECT_EQ(status(ask("GET / HTTP/1.0\r\n\r\n")), "HTTP/1.1 421");
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\n" + host() + host() + "\r\n")), "HTTP/1.1 421");
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\nHost: LOCALHOST:" + port + "\r\n\r\n")), "HTTP/1.1 200");
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string answer =
        ask(std::string(method) + " / HTTP/1.1\r\n" + host() + "Content-Length: 5\r\n\r\nhello");
    EXPECT_EQ(status(answer), "HTTP/1.1 405") << method;
    EXPECT_NE(answer.find("Allow: GET, HEAD"), std::string::npos) << method;
  }
  for (const char* target :
       {"/run/0/../../secret/config.json", "/run/0/%2e%2e/%2e%2e/secret/config.json",
        "/run/0/..%2f..%2fsecret/config.json", "/run/0/one/config.json%00", "/run/0/%252e%252e/secret/",
        "/../secret/config.json", "/run/0//../secret/config.json", "/page/../runs/one/config.json"}) {
    const std::string answer = get(target);
    EXPECT_EQ(status(answer), "HTTP/1.1 404") << target;
    EXPECT_EQ(answer.find("\"secret\""), std::string::npos) << target;
  }
}

TEST_F(ServeCommand, BrokenRequestsDoNotEndIt) {
  serve();
  std::string many = "GET / HTTP/1.1\r\n" + host();
  for (int i = 0; i < 5000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  std::string noise;
  for (int i = 0; i < 20'000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  for (const std::string& request :
       {std::string("\r\n\r\n"), std::string("BOGUS\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("GET / HTTP/9.9\r\n\r\n"), std::string(40, '\0') + "\r\n\r\n",
        "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n" + host() + "\r\n",
        "GET / HTTP/1.1\r\n" + host() + "X: " + std::string(100'000, 'a') + "\r\n\r\n", many + "\r\n", noise,
        std::string(3'000'000, 'a'), "GET / HTTP/1.1\r\n" + host() + "Range: bytes=9-1\r\n\r\n",
        "GET / HTTP/1.1\r\n" + host() + "Range: bytes=" + std::string(8000, '1') + "\r\n\r\n",
        "GET / HTTP/1.1\r\n" + host() +
            "Expect: 100-continue\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\n" + host() + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "GET /%ff%fe?run=%&from=%zz HTTP/1.1\r\n" + host() + "\r\n"}) {
    const Socket socket(port_);
    ASSERT_TRUE(socket.connected());
    socket.send(request);
    socket.receive();
    EXPECT_TRUE(alive()) << request.substr(0, 60);
  }
  EXPECT_EQ(read(path(".err")), "");
}

TEST_F(ServeCommand, AHundredIdleConnectionsKeepNobodyWaiting) {
  serve();
  std::vector<std::unique_ptr<Socket>> idle;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(std::make_unique<Socket>(port_));
    ASSERT_TRUE(idle.back()->connected());
    if (i % 2 == 0) idle.back()->send("GET / HTTP/1.1\r\nX:");
  }
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(alive());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(2500));
  // Each is ended in its turn, those that began a request too, however slowly they go on.
  const auto slow_until = std::chrono::steady_clock::now() + milliseconds(12'000);
  while (std::chrono::steady_clock::now() < slow_until && idle[0]->send("y"))
    std::this_thread::sleep_for(milliseconds(500));
  for (const auto& socket : idle) {
    const auto asked = std::chrono::steady_clock::now();
    socket->receive();
    EXPECT_LT(std::chrono::steady_clock::now() - asked, milliseconds(8000));
  }
}

TEST_F(ServeCommand, NothingIsWritten) {
  const Files before = files_of(path("runs"));
  std::filesystem::permissions(path("runs/one"),
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  serve();
  for (const char* target :
       {"/", "/run/0/one/", "/run/0/one/results.json", "/api/curves?run=0/one", "/page/"})
    get(target);
  std::filesystem::permissions(path("runs/one"), std::filesystem::perms::owner_all);
  EXPECT_TRUE(files_of(path("runs")) == before);
}

TEST_F(ServeCommand, ThePageComesFromItsFolder) {
  write(path("web/index.html"), "<p>page</p>");
  write(path("web/core.wasm"), std::string("\0asm", 4));
  write(path("web/assets/main.js"), "1");
  write(path("web/.secret.js"), "1");
  serve("--page " + path("web"));
  EXPECT_NE(get("/page/").find("Content-Type: text/html"), std::string::npos);
  EXPECT_NE(get("/page/core.wasm").find("Content-Type: application/wasm"), std::string::npos);
  EXPECT_NE(get("/page/assets/main.js").find("Content-Type: text/javascript"), std::string::npos);
  EXPECT_NE(get("/page").find("Location: /page/"), std::string::npos);
  for (const char* target : {"/page/.secret.js", "/page/../runs/one/config.json", "/page/assets/", "/page/x"})
    EXPECT_EQ(status(get(target)), "HTTP/1.1 404") << target;
}

TEST_F(ServeCommand, AnAddressThatIsTooLongGetsAnAnswer) {
  serve();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(status(get("/" + std::string(60'000, 'a'))), "HTTP/1.1 414");
    EXPECT_EQ(status(get("/", "X: " + std::string(60'000, 'a') + "\r\n")), "HTTP/1.1 431");
  }
}

}  // namespace
}  // namespace normscope
