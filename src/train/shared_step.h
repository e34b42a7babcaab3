#pragma once
// A step of a training that the processes of a job share: when, and the columns that they tell each other.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace normscope {

// Whether several gain by sharing a step of so many parameters and tokens: one of some hundredths of a second and
// more.
inline bool is_worth_sharing(std::size_t parameters, std::size_t tokens) {
  return parameters * tokens >= 10'000'000;
}

// Columns [begin, end) of a matrix of so many columns, row after row, and back.
template <class T>
std::vector<T> columns_of(const T* from, std::size_t rows, std::size_t columns, std::size_t begin,
                          std::size_t end) {
  std::vector<T> part;
  part.reserve(rows * (end - begin));
  for (std::size_t r = 0; r < rows; ++r)
    part.insert(part.end(), from + r * columns + begin, from + r * columns + end);
  return part;
}
template <class T>
void put_columns(const std::vector<T>& part, T* to, std::size_t rows, std::size_t columns, std::size_t begin,
                 std::size_t end) {
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(part.data() + r * (end - begin), end - begin, to + r * columns + begin);
}

}  // namespace normscope
