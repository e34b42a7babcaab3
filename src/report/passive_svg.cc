// A reader of just enough markup to refuse what is not ours.
#include <algorithm>
#include <array>

#include "report/page.h"

namespace normscope {
namespace {

constexpr std::array<std::string_view, 18> kElements = {
    "svg",   "g",    "path", "circle", "ellipse", "rect",     "line",           "polyline", "polygon",
    "title", "text", "desc", "tspan",  "defs",    "clipPath", "linearGradient", "stop",     "pattern"};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == ':';
}

std::string_view take_name(std::string_view& rest) {
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_name);
  const std::string_view name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(name.size());
  return name;
}

void skip_space(std::string_view& rest) {
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\t')) rest.remove_prefix(1);
}

bool is_passive(std::string_view attribute, std::string_view value) {
  if (attribute.starts_with("on") || attribute == "style" || attribute.ends_with("href")) return false;
  for (std::size_t at = value.find("url("); at != std::string_view::npos; at = value.find("url(", at + 1)) {
    if (!value.substr(at + 4).starts_with('#')) return false;
  }
  return value.find('<') == std::string_view::npos;
}

// A tag after its "<", up to and with its ">".
bool take_tag(std::string_view& rest) {
  const bool closing = rest.starts_with('/');
  if (closing) rest.remove_prefix(1);
  if (std::find(kElements.begin(), kElements.end(), take_name(rest)) == kElements.end()) return false;
  while (true) {
    skip_space(rest);
    if (rest.starts_with("/>")) return rest.remove_prefix(2), !closing;
    if (rest.starts_with('>')) return rest.remove_prefix(1), true;
    const std::string_view name = take_name(rest);
    if (name.empty() || !rest.starts_with("=\"")) return false;
    rest.remove_prefix(2);
    const std::size_t end = rest.find('"');
    if (end == std::string_view::npos || !is_passive(name, rest.substr(0, end))) return false;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

bool is_passive_svg(std::string_view svg) {
  while (true) {
    const std::size_t at = svg.find('<');
    if (at == std::string_view::npos) return true;
    svg.remove_prefix(at + 1);
    if (!take_tag(svg)) return false;
  }
}

}  // namespace normscope
