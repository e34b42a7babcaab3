#pragma once
// HTTP/1.1 as far as a server needs it that answers one GET or HEAD per connection and reads no bodies. Knows
// nothing of sockets.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/answers.h"

namespace normscope::serve {

// The request of a head: its lines up to and with the empty one, each ended by CR LF. None if they are no
// request of HTTP/1.0 or 1.1: a missing part, a control character, a folded line. The views are into `head`.
std::optional<Request> parsed_request(std::string_view head);

// What goes before the body of an answer, the empty line included: its length, its type, and what keeps other
// pages out. The connection is closed afterwards, which it says too.
std::string answer_head(const Answer& given);

}  // namespace normscope::serve
