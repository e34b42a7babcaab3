// The only file that knows MPI, and of it the C functions that every MPI has.
#include "cluster/transport.h"
#include "normscope/error.h"

#ifdef NORMSCOPE_MPI
#define OMPI_SKIP_MPICXX 1   // NOLINT: the names are MPI's
#define MPICH_SKIP_MPICXX 1  // NOLINT
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <string_view>
#include <utility>
#include <vector>

namespace normscope::cluster {
namespace {

// Short messages go with a byte that says that nothing follows and one that says what they are, under this tag of MPI,
// in every version; others without a copy, and what they are, and whether parts follow, is said by the tag.
constexpr int kShort = 18, kLong = 32;
constexpr std::size_t kMostOfShort = std::size_t{1} << 16;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of a part: MPI counts in int

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int given = 0;
    // One thread makes all calls, this one.
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
      throw Error("MPI could not be started.");
    int rank = 0, size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank_ = static_cast<std::size_t>(rank);
    size_ = static_cast<std::size_t>(size);
    arriving_.resize(size_);
  }

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }

  void send(std::size_t to, Tag tag, std::shared_ptr<const std::string> bytes) override {
    if (bytes->size() <= kMostOfShort) {
      const std::string head = {0, static_cast<char>(tag)};
      return send_part(to, kShort, std::make_shared<const std::string>(head + *bytes), 0);
    }
    for (std::size_t begin = 0; begin < bytes->size(); begin += kMostBytes) {
      const int more = begin + kMostBytes < bytes->size() ? 1 : 0;
      send_part(to, kLong + 2 * static_cast<int>(tag) + more, bytes, begin);
    }
  }

  std::optional<Message> poll() override {
    forget_sent();
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &message, &status);
    if (there == 0) return std::nullopt;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    std::string part(static_cast<std::size_t>(count), '\0');
    MPI_Mrecv(part.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    const auto from = static_cast<std::size_t>(status.MPI_SOURCE);
    if (status.MPI_TAG == kShort)
      return part.size() < 2 ? std::nullopt
                             : std::optional(Message{from, static_cast<Tag>(part[1]), part.substr(2)});
    std::string& whole = arriving_[from];
    whole.empty() ? whole.swap(part) : static_cast<void>(whole += part);
    if (status.MPI_TAG % 2 != 0) return std::nullopt;
    return Message{from, static_cast<Tag>((status.MPI_TAG - kLong) / 2), std::exchange(whole, {})};
  }

  bool all_sent() const override { return sending_.empty(); }

  void close() override { MPI_Finalize(); }
  void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  struct Sending {
    std::shared_ptr<const std::string> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void send_part(std::size_t to, int tag, std::shared_ptr<const std::string> bytes, std::size_t begin) {
    const std::size_t count = std::min(kMostBytes, bytes->size() - begin);
    Sending& part = sending_.emplace_back();
    part.bytes = std::move(bytes);
    MPI_Isend(part.bytes->data() + begin, static_cast<int>(count), MPI_BYTE, static_cast<int>(to), tag,
              MPI_COMM_WORLD, &part.request);
  }

  void forget_sent() {
    for (auto part = sending_.begin(); part != sending_.end();) {
      int sent = 0;
      MPI_Test(&part->request, &sent, MPI_STATUS_IGNORE);
      part = sent != 0 ? sending_.erase(part) : std::next(part);
    }
  }

  std::size_t rank_ = 0, size_ = 1;
  std::list<Sending> sending_;
  std::vector<std::string> arriving_;  // parts so far, of each sender
};

}  // namespace

bool built_with_mpi() {
  return true;
}

std::string mpi_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int size = 0;
  MPI_Get_library_version(text, &size);
  const std::string_view all(text, static_cast<std::size_t>(size));
  std::string name(all.substr(0, all.find_first_of(",\n")));
  std::replace(name.begin(), name.end(), '\t', ' ');  // MPICH has one
  return name;
}

std::unique_ptr<Transport> join_by_mpi() {
  return std::make_unique<MpiTransport>();
}

}  // namespace normscope::cluster

#else

namespace normscope::cluster {

bool built_with_mpi() {
  return false;
}
std::string mpi_name() {
  return "";
}
std::unique_ptr<Transport> join_by_mpi() {
  throw Error("This program was built without MPI.");
}

}  // namespace normscope::cluster

#endif
