#pragma once
// The .npy header (numpy.lib.format): "\x93NUMPY", version, length, and a Python dict that names the dtype
// ('descr'), the order ('fortran_order') and the shape. The array follows at once.
#include <cstddef>
#include <string>
#include <vector>

#include "io/format.h"

namespace normscope::io {

// Consumes the header; the stream then stands at the first element, and holds exactly the elements announced.
// Throws UnsupportedDType for a well-formed header of an array that is not made of numbers we read.
Layout read_npy_header(const ByteStream& stream, const std::string& where);

// A version 1.0 header as NumPy writes it: little endian, C order, padded so that the data are aligned to 64.
std::string npy_header(DType dtype, const std::vector<std::size_t>& shape);

}  // namespace normscope::io
