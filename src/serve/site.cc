#include "serve/site.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "normscope/error.h"

namespace normscope::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRoots = 100;

fs::path existing_directory(const std::string& name, std::string_view what) {
  std::error_code failed;
  fs::path path = fs::canonical(name, failed);
  if (failed || !fs::is_directory(path, failed))
    throw InputError(fmt::format("'{}' is not a directory; {}.", name, what));
  if (::access(path.c_str(), R_OK | X_OK) != 0)
    throw InputError(fmt::format("The directory '{}' cannot be read.", name));
  return path;
}

// Where `make web` and `make install` put the page.
std::optional<fs::path> find_page(const std::string& named) {
  std::error_code failed;
  if (!named.empty()) {
    fs::path folder = existing_directory(named, "--page names the folder of the interactive page");
    if (!fs::is_regular_file(folder / "index.html", failed))
      throw InputError(
          fmt::format("'{}' holds no index.html; --page names the folder that `make web` makes.", named));
    return folder;
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  for (const fs::path& folder :
       {program.parent_path().parent_path() / "share/normscope/web", program.parent_path() / "web"}) {
    if (fs::is_regular_file(folder / "index.html", failed)) return fs::canonical(folder, failed);
  }
  return std::nullopt;
}

}  // namespace

Site site_of(const ServeOptions& options) {
  check_options(options);
  if (options.directories.size() > kMostRoots)
    throw InputError(fmt::format("{} directories were named; at most {} are served.",
                                 options.directories.size(), kMostRoots));
  Site site;
  for (const std::string& directory : options.directories)
    site.roots.push_back(existing_directory(directory, "serve shows the runs below directories"));
  if (site.roots.empty()) site.roots.push_back(existing_directory(".", "it is gone"));
  site.page = find_page(options.page);
  return site;
}

ServeResult serve_result(const Site& site, int port) {
  ServeResult result{.made = provenance(0, 0),
                     .address = fmt::format("http://127.0.0.1:{}/", port),
                     .port = port,
                     .process = ::getpid(),
                     .directories = {},
                     .page = {}};
  for (const fs::path& root : site.roots) result.directories.push_back(root.string());
  if (site.page) result.page = site.page->string();
  return result;
}

}  // namespace normscope::serve
