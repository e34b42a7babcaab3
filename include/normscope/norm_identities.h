#pragma once
// How well LayerNorm as computed keeps the identities of Brody, Alon, Yahav 2023: §2 and appendices B and C,
// equation by equation.
#include <cstddef>
#include <cstdint>

namespace normscope {

// Largest residuals over random vectors in d dimensions, in float64, each over the length of what is compared: a
// few roundings, some 1e-16, if the equation holds.
struct NormIdentities {
  std::size_t dimension = 0, samples = 0;
  // x from N(0, 1) in every entry.
  double orthogonal = 0;  // eq. 4: (x − μ)·1 = 0
  double length = 0;      // eq. 5: ‖x − μ‖ = √d·σ
  double scaled = 0;      // §2: ‖LayerNorm(x)‖ = √d
  // x = αv + β1 with v a random unit vector orthogonal to 1.
  double projected = 0;   // eq. 13: x − μ = αv
  double direction = 0;   // eq. 14: LayerNorm(x) = √d·αv/‖αv‖
  double two_points = 0;  // eq. 15: LayerNorm(x) = √d·v for α > 0, −√d·v for α < 0
  double undefined = 0;   // α = 0, where it is undefined: largest entry of what is returned, 0 by convention
  // The projection matrix P, and M, which changes from the basis {u₁, …, u_{d−1}, 1}, uᵢ = 1 − d·eᵢ, to the standard
  // one.
  double action = 0;       // eq. 16: Px = x − μ
  double coordinates = 0;  // eq. 17–21: x = α1 + Σβᵢuᵢ with one choice of α, βᵢ, and Px = Σβᵢuᵢ
  double inverse = 0;          // eq. 22, 25–27: M⁻¹ as written there
  double change_of_basis = 0;  // eq. 23, 24: P = M A M⁻¹
  double formula = 0;          // eq. 28: P = I − 11ᵀ/d

  double largest() const;  // of all
  static void describe(auto& visit, auto& self) {
    visit("dimension", self.dimension, "d");
    visit("samples", self.samples, "random vectors");
    visit("orthogonal", self.orthogonal, "eq. 4: x − μ is orthogonal to 1");
    visit("length", self.length, "eq. 5: ‖x − μ‖ = √d·σ");
    visit("scaled", self.scaled, "§2: ‖LayerNorm(x)‖ = √d");
    visit("projected", self.projected, "eq. 13: of αv + β1 projection leaves αv");
    visit("direction", self.direction, "eq. 14: LayerNorm(x) = √d·αv/‖αv‖");
    visit("two_points", self.two_points, "eq. 15: each plane goes to two points, ±√d·v");
    visit("undefined", self.undefined, "α = 0: largest entry of what is returned where it is undefined");
    visit("action", self.action, "eq. 16: Px = x − μ");
    visit("coordinates", self.coordinates, "eq. 17 to 21: Px is x without its coordinate along 1");
    visit("inverse", self.inverse, "eq. 22, 25 to 27: the inverse of the change of basis");
    visit("change_of_basis", self.change_of_basis, "eq. 23, 24: P = M A M⁻¹");
    visit("formula", self.formula, "eq. 28: P = I − 11ᵀ/d");
  }
};
// Throws InputError unless d is from 2 to 2048 (in one dimension nothing is orthogonal to 1; P is d × d) and there
// is a sample.
NormIdentities norm_identities(std::size_t d, std::size_t samples = 100, std::uint64_t seed = 0);

}  // namespace normscope
