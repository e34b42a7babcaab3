#pragma once
// Masks in files, told apart by their first bytes:
//
//   dense text   one line per token: 0 or 1 per token it attends to, separated by spaces or commas or by
//   nothing edge list    first line `edges n` (or `edges`: n is then the greatest token + 1), then a line `i
//   j` per edge:
//                token i attends to token j; tokens count from 0
//   tensors      .npy, .npz or .safetensors: n × n of any dtype, 0 or 1
//
// In text, # begins a comment and empty lines mean nothing. Files are treated as hostile: whatever is wrong
// is an InputError of one sentence that names the file and the line.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "normscope/mask.h"
#include "normscope/tensor_file.h"

namespace normscope::io {

// "-" is standard input. tensor: its name, if the file holds several.
Mask read_mask_file(const std::string& path, const std::optional<std::string>& tensor = std::nullopt);
// The same from bytes; `label` names them in messages, as it is.
Mask mask_from_bytes(std::string_view bytes, const std::string& label,
                     const std::optional<std::string>& tensor = std::nullopt,
                     std::size_t most_tokens = Mask::most_tokens);

// The same from an n × n tensor in memory.
Mask mask_from_tensor(const Tensor& tensor, const std::string& label);

// The mask as an edge list, which reads back as the same mask.
std::string edge_list(const Mask& mask);

}  // namespace normscope::io
