#pragma once
// From a request to its answer; knows nothing of sockets.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/files.h"
#include "serve/server.h"

namespace normscope::serve {

struct Request {
  std::string_view method, target;  // as they stand in the request, the target still encoded
  std::string_view host;            // of the Host header; empty if there is none, or more than one
};

struct Answer {
  int status = 200;
  std::string type, body;
  std::optional<File> file;  // instead of the body, if it is to be sent piece by piece
  std::string policy;        // Content-Security-Policy
  std::string location;      // of a redirection
  std::string allow;         // methods, of status 405
};

Answer answer(const Site& site, int port, const Request& request);
// For what is wrong before there is a request to answer, too.
Answer refusal(int status, std::string_view sentence);

}  // namespace normscope::serve
