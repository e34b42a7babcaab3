#pragma once
// What the bindings share: numbers between JavaScript and the core, and errors as sentences.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <cmath>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "normscope/error.h"
#include "normscope/matrix.h"

namespace normscope::web {

using emscripten::val;

// Runs work() and returns its val. An exception becomes {error: sentence}, which call() of core.ts throws: an
// exception of C++ means nothing to JavaScript.
template <class Work>
val answer(const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    val result = val::object();
    result.set("error", std::string(error.what()));
    return result;
  }
}

// A Float64Array that JavaScript owns. A view into the heap would be lost when the heap grows.
inline val numbers(std::span<const double> values) {
  return val::global("Float64Array").new_(emscripten::typed_memory_view(values.size(), values.data()));
}

// From an Array or a typed array of numbers.
inline std::vector<double> doubles(const val& array) {
  return emscripten::convertJSArrayToNumberVector<double>(array);
}

inline Matrix<double> matrix(const val& array, std::size_t rows, std::size_t cols) {
  std::vector<double> values = doubles(array);
  if (values.size() != rows * cols)
    throw InputError("The page passed " + std::to_string(values.size()) + " numbers for a matrix of " +
                     std::to_string(rows) + " by " + std::to_string(cols) + ".");
  return {rows, cols, std::move(values)};
}

// A whole number from the page; words: what it counts.
inline std::size_t count_of(double value, const char* words, std::size_t low, std::size_t high) {
  if (!(value >= static_cast<double>(low) && value <= static_cast<double>(high)) ||
      value != std::floor(value)) {
    throw InputError("The number of " + std::string(words) + " is a whole number from " +
                     std::to_string(low) + " to " + std::to_string(high) + " here.");
  }
  return static_cast<std::size_t>(value);
}
inline std::size_t count_of(const val& options, const char* name, const char* words, std::size_t low,
                            std::size_t high) {
  return count_of(options[name].as<double>(), words, low, high);
}

inline std::uint64_t checked_seed(double seed) {
  if (!(seed >= 0 && seed <= 0x1p53) || seed != std::floor(seed))
    throw InputError("The seed is a whole number from 0 to 2^53.");
  return static_cast<std::uint64_t>(seed);
}
inline std::uint64_t seed_of(const val& options) {
  return checked_seed(options["seed"].as<double>());
}

}  // namespace normscope::web
