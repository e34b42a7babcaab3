#pragma once
#include <memory>

#include "normscope/train.h"

namespace normscope {

template <class T>
std::unique_ptr<EncoderGradient<T>> make_generic_path(const EncoderSpec& spec);
template <class T>
std::unique_ptr<EncoderGradient<T>> make_bag_path(const EncoderSpec& spec);

}  // namespace normscope
