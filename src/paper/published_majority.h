#pragma once
// What Brody, Alon, Yahav 2023 published of the majority task, read off their figures; "with projection" is LayerNorm,
// "without" what the published code computes.
#include <cstdint>

namespace normscope {

struct PublishedValue {
  const char* norm;
  std::uint64_t step;
  double value;
};
// Fig. 2a, training loss.
inline constexpr PublishedValue kPublishedLosses[] = {{"layernorm", 1000, 0.75}, {"layernorm", 2000, 0.40},
                                                      {"layernorm", 3000, 0.30}, {"layernorm", 5000, 0.20},
                                                      {"published", 1000, 1.5},  {"published", 2000, 0.87},
                                                      {"published", 3000, 0.60}, {"published", 5000, 0.43}};
// Fig. 2b, degrees.
inline constexpr PublishedValue kPublishedAngles[] = {{"layernorm", 100, 70},
                                                      {"layernorm", 6000, 20},
                                                      {"layernorm", 17000, 11},
                                                      {"published", 100, 72.5},
                                                      {"published", 17000, 83}};
// Fig. 3, per position.
inline constexpr PublishedValue kPublishedAccuracies[] = {{"layernorm", 1000, 0.74},
                                                          {"layernorm", 5000, 0.93},
                                                          {"published", 1000, 0.52},
                                                          {"published", 5000, 0.85}};

}  // namespace normscope
