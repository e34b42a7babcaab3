#include "cluster/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace normscope::cluster {
namespace {

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::optional<HeldBytes> mapped(int descriptor, std::size_t size) {
  if (size == 0) return std::nullopt;
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return std::nullopt;
  const std::shared_ptr<const void> held(at, [size](const void* begin) {
    ::munmap(const_cast<void*>(begin), size);  // NOLINT: as it was given
  });
  return HeldBytes{held, {static_cast<const char*>(at), size}};
}

}  // namespace

std::string this_machine() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[64] = {};
  if (boot.empty() || ::readlink("/proc/self/ns/pid", space, sizeof space - 1) <= 0) return "";
  return fmt::format("{} {}", boot, space);
}

OfferedMemory::OfferedMemory(std::string_view bytes)
    : place_{static_cast<std::uint64_t>(::getpid()), -1, bytes.size()} {
  const int descriptor = bytes.empty() ? -1 : ::memfd_create("normscope", MFD_CLOEXEC);
  if (descriptor < 0) return;
  if (write_all(descriptor, bytes))
    place_.descriptor = descriptor;
  else
    ::close(descriptor);
}

OfferedMemory::~OfferedMemory() {
  if (place_.descriptor >= 0) ::close(place_.descriptor);
}

std::optional<HeldBytes> OfferedMemory::bytes() const {
  return place_.descriptor < 0 ? std::nullopt : mapped(place_.descriptor, place_.size);
}

std::optional<HeldBytes> open_memory(const MemoryPlace& place) {
  if (place.descriptor < 0) return std::nullopt;
  const std::string path = fmt::format("/proc/{}/fd/{}", place.pid, place.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  const bool whole = ::fstat(descriptor, &status) == 0 && status.st_size == static_cast<off_t>(place.size);
  auto bytes = whole ? mapped(descriptor, place.size) : std::nullopt;
  ::close(descriptor);
  return bytes;
}

}  // namespace normscope::cluster
