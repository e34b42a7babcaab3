#pragma once
// A server for one person on one machine: the runs below some directories, and the page. It listens on
// 127.0.0.1 only, answers GET and HEAD only, and changes nothing.
//
//   /                            the runs, the newest first
//   /run/ROOT/PATH/              one run: settings, results, curves, pictures, files
//   /run/ROOT/PATH/FILE          a file of it
//   /api/metrics?run=ROOT/PATH&from=BYTES    whole lines of its log from there on; the next BYTES is the sum
//   /api/curves?run=ROOT/PATH&seed=…&name=…  the log as a drawing, with &from=BYTES only if there is more
//   /page/                       the interactive page
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace normscope::serve {

struct Site {
  std::vector<std::filesystem::path> roots;   // absolute
  std::optional<std::filesystem::path> page;  // folder of the interactive page
};

class Server {
 public:
  // Listens from now on, on this port of 127.0.0.1, or on any free one if it is 0; answers once run() is
  // called. Throws Error if it cannot.
  Server(Site site, int port);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Answers until stop() is called, from any thread, before or after. Throws Error if the socket fails.
  void run();
  void stop();

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace normscope::serve
