#include "fetch/place.h"

#include <system_error>

#include "core/fetched.h"
#include "normscope/error.h"

namespace normscope::fetch {

namespace fs = std::filesystem;

fs::path data_directory() {
  if (const auto directory = normscope::data_directory()) return *directory;
  throw InputError(
      "Neither NORMSCOPE_DATA nor HOME is set; set NORMSCOPE_DATA to a directory for fetched data.");
}

fs::path place_of(const std::string& name) {
  return data_directory() / name;
}

bool is_fetched(const std::string& name) {
  std::error_code unreadable;
  return fs::is_directory(place_of(name), unreadable);
}

}  // namespace normscope::fetch
