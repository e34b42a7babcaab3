#include "fetch/place.h"

#include <cstdlib>
#include <system_error>

#include "normscope/error.h"

namespace normscope::fetch {
namespace {

namespace fs = std::filesystem;

// An empty variable counts as none, as the XDG specification has it.
fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

}  // namespace

fs::path data_directory() {
  if (fs::path named = variable("NORMSCOPE_DATA"); !named.empty()) return named;
  if (const fs::path data = variable("XDG_DATA_HOME"); data.is_absolute()) return data / "normscope";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".local/share/normscope";
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
