#pragma once
// Where models lie on this machine.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace normscope::checkpoint {

// The directory of an id ("org/name", "name") in the local Hugging Face cache, which is $HF_HUB_CACHE, else
// $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub: the snapshot that
// refs/main names, or the only one there is. Nothing if the model is not in it.
std::optional<std::filesystem::path> in_hugging_face_cache(std::string_view id);

// Whether a name has the form of an id: one or two parts of letters, digits, '-', '_' and '.'.
bool is_model_id(std::string_view name);

}  // namespace normscope::checkpoint
