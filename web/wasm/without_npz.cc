// The page reads .npy and .safetensors: there is no libzip for WebAssembly.
#include "io/file_errors.h"
#include "io/format.h"

namespace normscope::io {

std::unique_ptr<TensorFile::Format> open_npz(std::unique_ptr<Bytes> /*bytes*/, const std::string& label) {
  reject(label, "is a .npz archive, which the page does not read", "save the array with numpy.save");
}

}  // namespace normscope::io
