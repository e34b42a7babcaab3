#include "serve/request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace normscope::serve {
namespace {

constexpr std::size_t kMostNames = 32, kLongestName = 255;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool kept_in_address(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '~' || c == '.';
}

template <class Decode>
std::optional<Names> split_names(std::string_view path, const Decode& decode) {
  Names found;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    const std::optional<std::string> name = decode(path.substr(0, end));
    if (!name || !plain_name(*name) || found.names.size() == kMostNames) return std::nullopt;
    found.names.push_back(*name);
    found.directory = end != std::string_view::npos;
    path.remove_prefix(found.directory ? end + 1 : path.size());
  }
  return found;
}

}  // namespace

bool known_host(std::string_view host, int port) {
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* known : {"127.0.0.1", "localhost", "[::1]"}) {
    if (name == fmt::format("{}:{}", known, port) || (port == 80 && name == known)) return true;
  }
  return false;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(16 * high + low);
    i += 2;
  }
  return decoded;
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    encoded += kept_in_address(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

bool plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= kLongestName &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

std::optional<Names> names_of_path(std::string_view path) {
  return split_names(path, [](std::string_view name) { return std::optional<std::string>(name); });
}

std::optional<Names> names_of_address(std::string_view path) {
  return split_names(path, percent_decoded);
}

std::optional<std::string> query_value(std::string_view target, std::string_view name) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return std::nullopt;
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    return equals == std::string_view::npos ? "" : percent_decoded(pair.substr(equals + 1));
  }
  return std::nullopt;
}

}  // namespace normscope::serve
