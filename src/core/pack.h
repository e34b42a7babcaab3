#pragma once
// Values as bytes and back, for results that come from another process of a job or from a file of finished
// pieces (pieces.h). A struct without constructors is packed member by member, in order, without a list of
// them: a member that is added cannot be forgotten. Bytes are those of this machine; who reads them has seen
// to it that the same program wrote them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "normscope/error.h"

namespace normscope {
namespace pack_detail {

struct Anything {
  template <class T>
  operator T&() const;  // NOLINT(google-explicit-constructor): what it is for
};
template <std::size_t>
using AnythingAt = Anything;

template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires {
    T{AnythingAt<I>()...};
  };
}
// The most members that T can be begun with. Nested aggregates take one each: nothing converts to their parts
// before it converts to them.
template <class T, std::size_t N = 24>
constexpr std::size_t members() {
  if constexpr (takes<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    static_assert(N > 0, "not a struct that can be taken apart");
    return members<T, N - 1>();
  }
}

// Calls visit with every member of x.
template <class T, class Visit>
void for_members(T& x, const Visit& visit) {
  constexpr std::size_t n = members<std::remove_const_t<T>>();
  const auto all = [&](auto&... each) { (visit(each), ...); };
  static_assert(n <= 23, "more members than for_members knows; add a line");
  if constexpr (n == 1) {
    auto& [a] = x;
    all(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = x;
    all(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = x;
    all(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = x;
    all(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = x;
    all(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = x;
    all(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = x;
    all(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = x;
    all(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = x;
    all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = x;
    all(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = x;
    all(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o);
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p);
  } else if constexpr (n == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q);
  } else if constexpr (n == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r);
  } else if constexpr (n == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s);
  } else if constexpr (n == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t);
  } else if constexpr (n == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u);
  } else if constexpr (n == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v);
  } else if constexpr (n == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y] = x;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y);
  }
}

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept Optional = requires(T x) {
  x.has_value();
  x.reset();
};
template <class T>
concept List = requires(T x) {
  x.size();
  x.resize(1);
  typename T::value_type;
};
template <class T>
concept Resizable = requires(T x) {  // a matrix of Eigen
  x.rows();
  x.cols();
  x.data();
  x.resize(1, 1);
};
template <class T>
concept MatrixLike = requires(T x) {
  x.rows();
  x.cols();
  x.values();
};
template <class T>
concept Pair = requires(T x) {
  typename T::first_type;
  typename T::second_type;
};
template <class T>
concept Array = requires(T x) {
  std::tuple_size<T>::value;
  x.begin();
};

}  // namespace pack_detail

inline void pack_bytes(std::string& to, const void* from, std::size_t size) {
  if (size > 0) to.append(static_cast<const char*>(from), size);
}

template <class T>
void pack(std::string& to, const T& value) {
  using namespace pack_detail;
  if constexpr (Number<T>) {
    pack_bytes(to, &value, sizeof value);
  } else if constexpr (Resizable<T>) {
    pack(to, static_cast<std::uint64_t>(value.rows()));
    pack(to, static_cast<std::uint64_t>(value.cols()));
    pack_bytes(to, value.data(), static_cast<std::size_t>(value.size()) * sizeof(*value.data()));
  } else if constexpr (MatrixLike<T>) {
    pack(to, std::uint64_t{value.rows()});
    pack(to, std::uint64_t{value.cols()});
    pack(to, value.values());
  } else if constexpr (List<T>) {
    using Element = typename T::value_type;
    pack(to, std::uint64_t{value.size()});
    if constexpr (Number<Element> && !std::is_same_v<Element, bool>) {
      pack_bytes(to, value.data(), value.size() * sizeof(Element));
    } else {
      for (const Element& each : value) pack(to, each);
    }
  } else if constexpr (Array<T>) {
    for (const auto& each : value) pack(to, each);
  } else if constexpr (Optional<T>) {
    pack(to, value.has_value());
    if (value) pack(to, *value);
  } else if constexpr (Pair<T>) {
    pack(to, value.first);
    pack(to, value.second);
  } else {
    for_members(value, [&](const auto& each) { pack(to, each); });
  }
}

// Bytes that are read from the front. Sizes are held against what is left before they are believed.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}

  template <class T>
  void take(T& value) {
    using namespace pack_detail;
    if constexpr (std::is_same_v<T, bool>) {
      value = *bytes(1) != 0;
    } else if constexpr (Number<T>) {
      std::memcpy(&value, bytes(sizeof value), sizeof value);
    } else if constexpr (Resizable<T>) {
      const auto rows = take<std::uint64_t>(), cols = take<std::uint64_t>();
      const std::size_t most = left_.size() / sizeof(*value.data());
      if (rows > 0 && cols > most / rows) damaged();
      value.resize(static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(cols));
      const std::size_t size = rows * cols * sizeof(*value.data());
      if (size > 0) std::memcpy(value.data(), bytes(size), size);
    } else if constexpr (MatrixLike<T>) {
      const auto rows = take<std::uint64_t>(), cols = take<std::uint64_t>();
      auto values = take<std::remove_cvref_t<decltype(value.values())>>();
      if (cols == 0 ? !values.empty() : values.size() / cols != rows || values.size() % cols != 0) damaged();
      value = T(rows, cols, std::move(values));
    } else if constexpr (List<T>) {
      using Element = typename T::value_type;
      const auto size = take<std::uint64_t>();
      if (size > left_.size()) damaged();  // no element has less than a byte
      if constexpr (Number<Element> && !std::is_same_v<Element, bool>) {
        if (size > left_.size() / sizeof(Element)) damaged();
        value.resize(size);
        if (size > 0) std::memcpy(value.data(), bytes(size * sizeof(Element)), size * sizeof(Element));
      } else {
        value.clear();
        for (std::uint64_t i = 0; i < size; ++i) value.push_back(take<Element>());
      }
    } else if constexpr (Array<T>) {
      for (auto& each : value) take(each);
    } else if constexpr (Optional<T>) {
      if (!take<bool>()) return value.reset();
      take(value.emplace());
    } else if constexpr (Pair<T>) {
      take(value.first);
      take(value.second);
    } else {
      for_members(value, [&](auto& each) { take(each); });
    }
  }
  template <class T>
  T take() {
    T value{};
    take(value);
    return value;
  }
  // A string, as part of what is read.
  std::string_view take_view() {
    const auto size = take<std::uint64_t>();
    return {bytes(size), static_cast<std::size_t>(size)};
  }
  bool empty() const { return left_.empty(); }

 private:
  [[noreturn]] static void damaged() { throw Error("The result of a piece of work is damaged."); }
  const char* bytes(std::size_t size) {
    if (size > left_.size()) damaged();
    const char* begin = left_.data();
    left_.remove_prefix(size);
    return begin;
  }

  std::string_view left_;
};

template <class T>
std::string packed(const T& value) {
  std::string bytes;
  pack(bytes, value);
  return bytes;
}
// Throws Error if the bytes are not those of one T.
template <class T>
T unpacked(std::string_view bytes) {
  Unpacker from(bytes);
  T value = from.take<T>();
  if (!from.empty()) throw Error("The result of a piece of work is longer than it should be.");
  return value;
}

}  // namespace normscope
