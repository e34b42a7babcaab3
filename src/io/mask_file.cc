#include "io/mask_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/read_number.h"
#include "io/bytes.h"
#include "io/file_errors.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"

namespace normscope::io {
namespace {

using Run = Mask::Run;
constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;
constexpr std::string_view kBlank = " \t\r\v\f";
constexpr std::string_view kForms =
    "a mask is rows of 0 and 1, or `edges n` and then lines `i j`, or an n × n tensor";

// No text has a zero byte, and the length at the beginning of a .safetensors file has one.
bool is_tensor_file(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 8);
  return start.starts_with("\x93NUMPY") || start.starts_with("PK") ||
         start.find('\0') != std::string_view::npos;
}

struct Line {
  std::size_t number;  // from 1
  std::string_view text;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Lines that say something, without comments and blanks at their ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  std::optional<Line> next() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      const std::string_view whole = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      const std::string_view text = trimmed(whole.substr(0, whole.find('#')));
      if (!text.empty()) return Line{number_, text};
    }
    return std::nullopt;
  }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(kBlank); begin != std::string_view::npos;) {
    const std::size_t end = text.find_first_of(kBlank, begin);
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlank, end);
  }
  return words;
}

[[noreturn]] void reject_line(const std::string& label, std::size_t line, const std::string& what,
                              const std::string& advice) {
  reject(label, fmt::format("is no mask: line {} {}", line, what), advice);
}

void require_tokens(const std::string& label, std::uint64_t n, std::size_t most_tokens) {
  if (n > most_tokens)
    reject(label, fmt::format("has a mask of {} tokens, above the limit of {}", n, most_tokens),
           "take a part of it");
}

// One row of a dense mask: its runs, and how many tokens it has.
std::size_t read_row(const std::string& label, const Line& line, std::vector<Run>& runs) {
  std::size_t width = 0;
  const auto add = [&](char digit, std::string_view field) {
    if (field.size() != 1 || (digit != '0' && digit != '1'))
      reject_line(label, line.number, fmt::format("holds {} as its entry {}", quoted_name(field), width),
                  fmt::format("entries are 0 or 1: {}", kForms));
    if (digit == '1') {
      const auto token = static_cast<std::uint32_t>(width);
      if (!runs.empty() && runs.back().last == token) {
        ++runs.back().last;
      } else {
        runs.push_back({token, token + 1});
      }
    }
    ++width;
  };
  if (line.text.find_first_of(" \t,") == std::string_view::npos) {
    for (std::size_t k = 0; k < line.text.size(); ++k) add(line.text[k], line.text.substr(k, 1));
    return width;
  }
  const bool commas = line.text.find(',') != std::string_view::npos;
  for (std::size_t begin = 0;;) {
    const std::size_t end = line.text.find_first_of(commas ? "," : kBlank, begin);
    const std::string_view field = trimmed(line.text.substr(begin, end - begin));
    // Between commas an empty field is a missing entry; blanks may be as many as they like.
    if (commas || !field.empty()) add(field.empty() ? ' ' : field[0], field);
    if (end == std::string_view::npos) return width;
    begin = end + 1;
  }
}

Mask read_dense(Lines lines, const std::string& label, std::size_t most_tokens) {
  std::vector<std::vector<Run>> rows;
  std::size_t n = 0;
  while (const auto line = lines.next()) {
    std::vector<Run> runs;
    const std::size_t width = read_row(label, *line, runs);
    if (rows.empty()) {
      n = width;
      require_tokens(label, n, most_tokens);
    }
    if (width != n)
      reject_line(label, line->number, fmt::format("has {} entries, but the first row has {}", width, n),
                  "give every token one row and every row one entry per token");
    if (rows.size() == n)
      reject_line(label, line->number, fmt::format("is one row too many, since rows have {} entries", n),
                  "a mask has as many rows as columns");
    rows.push_back(std::move(runs));
  }
  if (rows.empty()) reject(label, "holds no mask", std::string(kForms));
  if (rows.size() < n)
    reject(label, fmt::format("is no mask: it has {} rows of {} entries", rows.size(), n),
           "a mask has as many rows as columns");
  return Mask(rows);
}

Mask read_edges(Lines lines, const std::string& label, std::size_t most_tokens) {
  const Line header = *lines.next();
  const auto words = words_of(header.text);
  const auto given = words.size() == 2 ? read_number<std::uint64_t>(words[1]) : std::nullopt;
  if (words.size() > 2 || (words.size() == 2 && (!given || *given == 0)))
    reject_line(label, header.number, fmt::format("is {}", quoted_name(header.text)),
                "write `edges n` with the number of tokens, at least 1");
  require_tokens(label, given.value_or(1), most_tokens);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::uint64_t n = given.value_or(0);
  while (const auto line = lines.next()) {
    const auto tokens = words_of(line->text);
    if (tokens.size() != 2 || !read_number<std::uint64_t>(tokens[0]) ||
        !read_number<std::uint64_t>(tokens[1]))
      reject_line(label, line->number, fmt::format("is {}", quoted_name(line->text)),
                  "write `i j`, two whole numbers: token i attends to token j");
    const std::uint64_t i = *read_number<std::uint64_t>(tokens[0]),
                        j = *read_number<std::uint64_t>(tokens[1]);
    const std::uint64_t greatest = std::max(i, j);
    if (greatest >= (given ? *given : most_tokens))
      reject_line(label, line->number, fmt::format("names token {}", greatest),
                  given ? fmt::format("there are {}, counted from 0", *given)
                        : fmt::format("at most {} are possible, counted from 0", most_tokens));
    n = std::max(n, greatest + 1);
    edges.emplace_back(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j));
  }
  if (n == 0)
    reject(label, "has an edge list without edges", "write `edges n` to say how many tokens there are");
  std::sort(edges.begin(), edges.end());
  auto next = edges.cbegin();
  return Mask::from_rows(n, [&](std::size_t i, std::vector<Run>& runs) {
    for (; next != edges.cend() && next->first == i; ++next) runs.push_back({next->second, next->second + 1});
  });
}

Mask mask_of(const Tensor& tensor, const std::string& where, std::size_t most_tokens) {
  if (tensor.shape.size() != 2 || tensor.shape[0] != tensor.shape[1] || tensor.shape[0] == 0) {
    std::string shape;
    for (const std::size_t extent : tensor.shape)
      shape += fmt::format("{}{}", shape.empty() ? "" : " × ", extent);
    reject(where, fmt::format("is no mask: its shape is {}", shape.empty() ? "that of a scalar" : shape),
           "give one row and one column per token");
  }
  const std::size_t n = tensor.shape[0];
  require_tokens(where, n, most_tokens);
  std::vector<std::uint8_t> allowed(tensor.values.size());
  for (std::size_t k = 0; k < allowed.size(); ++k) {
    const double value = tensor.values[k];
    if (value != 0 && value != 1)
      reject(where,
             fmt::format("is no mask: it is {} at row {}, column {} (counted from 0)", value, k / n, k % n),
             "entries are 0 or 1, where 1 allows to attend");
    allowed[k] = value == 1 ? 1 : 0;
  }
  return Mask::from_dense({allowed.data(), n, n});
}

Mask read_tensor_mask(const TensorFile& file, const std::string& label,
                      const std::optional<std::string>& name, std::size_t most_tokens) {
  const Tensor tensor = file.read(name);
  return mask_of(tensor,
                 tensor.name.empty() ? label : fmt::format("{} of {}", quoted_name(tensor.name), label),
                 most_tokens);
}

Mask read_text(std::string_view bytes, const std::string& label, std::size_t most_tokens) {
  const std::size_t zero = bytes.find('\0');
  if (zero != std::string_view::npos)
    reject(label, fmt::format("is no mask: it has a zero byte at {}", zero), std::string(kForms));
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  const auto first = Lines(bytes).next();
  const bool edges = first && words_of(first->text).front() == "edges";
  return edges ? read_edges(Lines(bytes), label, most_tokens) : read_dense(Lines(bytes), label, most_tokens);
}

}  // namespace

Mask mask_from_bytes(std::string_view bytes, const std::string& label,
                     const std::optional<std::string>& tensor, std::size_t most_tokens) {
  if (is_tensor_file(bytes)) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    // A mask of most_tokens would not fit anyway; what is read is bounded by the bytes that are there.
    return read_tensor_mask(TensorFile::from_bytes({begin, begin + bytes.size()}, label), label, tensor,
                            most_tokens);
  }
  if (tensor)
    reject(label, fmt::format("is text, which has no tensor {}", quoted_name(*tensor)), "leave the name out");
  return read_text(bytes, label, most_tokens);
}

Mask read_mask_file(const std::string& path, const std::optional<std::string>& tensor) {
  const std::string label = label_of(path);
  const auto bytes = open_bytes(path, kMostBytes);
  if (bytes->size() > kMostBytes)
    reject(label, fmt::format("has {} bytes, more than any mask that can be read", bytes->size()),
           "save the mask as an edge list");
  std::string start(std::min<std::uint64_t>(bytes->size(), 8), '\0');
  bytes->read(0, std::as_writable_bytes(std::span(start)));
  if (is_tensor_file(start) && path != "-")
    return read_tensor_mask(TensorFile::open(path), label, tensor, Mask::most_tokens);
  std::string text(bytes->size(), '\0');
  bytes->read(0, std::as_writable_bytes(std::span(text)));
  return mask_from_bytes(text, label, tensor);
}

Mask mask_from_tensor(const Tensor& tensor, const std::string& label) {
  return mask_of(tensor, label, Mask::most_tokens);
}

std::string edge_list(const Mask& mask) {
  std::string text = fmt::format("edges {}\n", mask.n());
  for (std::size_t i = 0; i < mask.n(); ++i) {
    for (const Run& run : mask.row(i)) {
      for (std::uint32_t j = run.first; j < run.last; ++j)
        fmt::format_to(std::back_inserter(text), "{} {}\n", i, j);
    }
  }
  return text;
}

}  // namespace normscope::io
