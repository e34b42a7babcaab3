#pragma once
// How a file of kernels offers them: `kernels<T>()`, made once per instruction set, becomes `name<T>()` for the set of
// this machine, T float or double. Two steps, as Highway's tables hold functions, not templates: the first within
// HWY_NAMESPACE, the second where HWY_ONCE.
#define NORMSCOPE_KERNELS(Kernels)   \
  Kernels<float> float_kernels() {   \
    return kernels<float>();         \
  }                                  \
  Kernels<double> double_kernels() { \
    return kernels<double>();        \
  }                                  \
  static_assert(true, "ends with a ;")

#define NORMSCOPE_EXPORT_KERNELS(Kernels, name)      \
  HWY_EXPORT(float_kernels);                         \
  HWY_EXPORT(double_kernels);                        \
  template <class T>                                 \
  Kernels<T> name() {                                \
    if constexpr (sizeof(T) == 4) {                  \
      return HWY_DYNAMIC_DISPATCH(float_kernels)();  \
    } else {                                         \
      return HWY_DYNAMIC_DISPATCH(double_kernels)(); \
    }                                                \
  }                                                  \
  template Kernels<float> name();                    \
  template Kernels<double> name()
