#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace normscope {

// Columns of feature-major matrices come in this multiple: one vector of float under AVX2; wider vectors are
// capped to it.
constexpr std::size_t kColumns = 8;
constexpr std::size_t padded_columns(std::size_t tokens) {
  return (tokens + kColumns - 1) / kColumns * kColumns;
}

// Numbers that begin with a line of the cache: of vectors that do not, every other lies across two lines.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <class U>
  explicit LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* values, std::size_t) { ::operator delete(values, kLine); }
  bool operator==(const LineAllocator&) const { return true; }
};
template <class T>
using Aligned = std::vector<T, LineAllocator<T>>;

}  // namespace normscope
