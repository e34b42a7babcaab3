#include <fmt/format.h>

#include <algorithm>

#include "normscope/error.h"
#include "normscope/text_windows.h"

namespace normscope {

std::size_t count_added(std::span<const Token> tokens) {
  return static_cast<std::size_t>(std::count_if(tokens.begin(), tokens.end(), is_added));
}

std::vector<std::uint32_t> TextWindow::ids() const {
  std::vector<std::uint32_t> result;
  for (const Token& token : tokens) result.push_back(token.id);
  return result;
}

std::vector<TextWindow> text_windows(std::span<const Token> tokens, std::size_t window, std::size_t stride,
                                     std::size_t most) {
  std::size_t front = 0, back = 0;
  while (front < tokens.size() && is_added(tokens[front])) ++front;
  while (back < tokens.size() - front && is_added(tokens[tokens.size() - 1 - back])) ++back;
  const std::size_t inner = tokens.size() - front - back;
  if (stride == 0) throw InputError("The stride must be at least 1.");
  if (window <= front + back) {
    throw InputError(
        fmt::format("A window of {} holds nothing of the text beside its {} special tokens; make it larger.",
                    window, front + back));
  }
  const std::size_t fits = std::min(window - front - back, inner);
  std::vector<TextWindow> result;
  for (std::size_t first = 0; first + fits <= inner && (most == 0 || result.size() < most); first += stride) {
    TextWindow each{first, {}};
    const auto append = [&](std::size_t from, std::size_t count) {
      each.tokens.insert(each.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(from),
                         tokens.begin() + static_cast<std::ptrdiff_t>(from + count));
    };
    append(0, front);
    append(front + first, fits);
    append(front + inner, back);
    result.push_back(std::move(each));
    if (fits == inner) break;
  }
  return result;
}

}  // namespace normscope
