#pragma once
// Which instruction sets kernels are compiled for; comes before every header of Highway. Each costs seconds
// per file of kernels: on x86 those with more than AVX2 or AVX-512 has calculate no faster here, and machines
// with less than AVX2 have one baseline (SSE2 where Highway knows it). SVE and RVV are out because kernels
// keep arrays of vectors, which need a fixed vector size.
#define HWY_DISABLED_TARGETS                                                                        \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | \
   HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2 | HWY_AVX10_2_512)
#include <hwy/detect_targets.h>
// Not every version of Highway knows all of them.
#ifndef HWY_AVX3_ZEN4
#define HWY_AVX3_ZEN4 0
#endif
#ifndef HWY_AVX3_SPR
#define HWY_AVX3_SPR 0
#endif
#ifndef HWY_AVX10_2
#define HWY_AVX10_2 0
#endif
#ifndef HWY_AVX10_2_512
#define HWY_AVX10_2_512 0
#endif
