#include "serve/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace normscope::serve {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_host(std::string_view name) {
  constexpr std::string_view host = "host";
  return std::equal(name.begin(), name.end(), host.begin(), host.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

// Up to the next CR LF, which is taken away too.
std::string_view take_line(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find(kLineEnd));
  rest.remove_prefix(std::min(rest.size(), line.size() + kLineEnd.size()));
  return line;
}

std::string_view phrase_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 416:
      return "Range Not Satisfiable";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    default:
      return "Status";
  }
}

}  // namespace

std::optional<Request> parsed_request(std::string_view head) {
  std::string_view first = take_line(head);
  Request request;
  request.method = first.substr(0, first.find(' '));
  first.remove_prefix(std::min(first.size(), request.method.size() + 1));
  request.target = first.substr(0, first.find(' '));
  first.remove_prefix(std::min(first.size(), request.target.size() + 1));
  if (!is_token(request.method) || request.target.empty() || has_control(request.target) ||
      (first != "HTTP/1.1" && first != "HTTP/1.0"))
    return std::nullopt;

  int hosts = 0;
  for (std::string_view line = take_line(head); !line.empty(); line = take_line(head)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || has_control(line))
      return std::nullopt;
    if (!is_host(line.substr(0, colon))) continue;
    request.host = ++hosts == 1 ? trimmed(line.substr(colon + 1)) : std::string_view();
  }
  return request;
}

std::string answer_head(const Answer& given) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", given.status, phrase_of(given.status));
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
  };
  add("Content-Type", given.type);
  if (given.status != 204)
    add("Content-Length", std::to_string(given.file ? given.file->size : given.body.size()));
  add("Location", given.location);
  add("Allow", given.allow);
  add("Content-Security-Policy", given.policy);
  add("X-Content-Type-Options", "nosniff");
  add("X-Frame-Options", "DENY");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("Cross-Origin-Opener-Policy", "same-origin");
  add("Cache-Control", "no-store");
  add("Connection", "close");
  return head + "\r\n";
}

}  // namespace normscope::serve
