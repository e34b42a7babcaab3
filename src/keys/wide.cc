#include "keys/wide.h"

#include <cmath>

namespace normscope {
namespace {

Wide two_sum(double a, double b) {
  const double sum = a + b, shadow = sum - a;
  return {sum, (a - (sum - shadow)) + (b - shadow)};
}

// |a| ≥ |b|
Wide quick_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Wide two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

}  // namespace

Wide wide_difference(double a, double b) {
  return two_sum(a, -b);
}

Wide operator+(Wide a, Wide b) {
  const Wide high = two_sum(a.high, b.high), low = two_sum(a.low, b.low);
  const Wide sum = quick_two_sum(high.high, high.low + low.high);
  return quick_two_sum(sum.high, sum.low + low.low);
}

Wide operator-(Wide a, Wide b) {
  return a + -b;
}

Wide operator*(Wide a, Wide b) {
  const Wide product = two_product(a.high, b.high);
  const double cross = std::fma(a.high, b.low, std::fma(a.low, b.high, a.low * b.low));
  return quick_two_sum(product.high, product.low + cross);
}

Wide operator*(Wide a, double b) {
  const Wide product = two_product(a.high, b);
  return quick_two_sum(product.high, std::fma(a.low, b, product.low));
}

Wide dot(std::span<const Wide> a, std::span<const Wide> b) {
  Wide sum;
  for (std::size_t c = 0; c < a.size(); ++c) sum = sum + a[c] * b[c];
  return sum;
}

void add_multiple(Wide factor, std::span<const Wide> a, std::span<Wide> sum) {
  for (std::size_t c = 0; c < a.size(); ++c) sum[c] = sum[c] + factor * a[c];
}

}  // namespace normscope
