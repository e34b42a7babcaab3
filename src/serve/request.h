#pragma once
// What a request may name: which hosts, which paths. Nothing here touches a file.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::serve {

// Whether a Host header names this server: 127.0.0.1, localhost or [::1], with its port. Any other name leads
// here only if somebody else's name server says so (DNS rebinding), and then a stranger's page is asking.
bool known_host(std::string_view host, int port);

// %41 is A; once, so that %2541 is the text "%41". None if a % is not followed by two digits.
std::optional<std::string> percent_decoded(std::string_view text);
// Everything but letters, digits, "-", "_", "~" and "." is encoded, so that the result is safe in any part of
// an address and in a quoted attribute.
std::string percent_encoded(std::string_view text);

// A name of a file or directory that may be asked for: not empty, not hidden (so neither "." nor ".."),
// without slash, backslash or zero byte, at most 255 bytes.
bool plain_name(std::string_view name);

struct Names {
  std::vector<std::string> names;
  bool directory = true;  // it ended with a slash, or is empty
};
// The names of a path, all of them plain; none if one is not, or if there are more than 32.
std::optional<Names> names_of_path(std::string_view path);
// The same of a path as it stands in an address; each name is decoded by itself, so that %2f separates
// nothing.
std::optional<Names> names_of_address(std::string_view path);

// The first value of a name in the query of a target ("/a?x=1&y=2"), decoded.
std::optional<std::string> query_value(std::string_view target, std::string_view name);

}  // namespace normscope::serve
