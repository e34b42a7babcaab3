#pragma once
#include <memory>

#include "normscope/mask.h"
#include "normscope/train.h"

namespace normscope {

// Throws InputError if a token attends to nothing.
Mask encoder_mask(const std::string& name, std::size_t length);

template <class T>
std::unique_ptr<EncoderGradient<T>> make_generic_path(const EncoderSpec& spec);
template <class T>
std::unique_ptr<EncoderGradient<T>> make_bag_path(const EncoderSpec& spec);

}  // namespace normscope
