#pragma once
// Messages between the processes of a job. MPI is one way to carry them; a test carries them in memory.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace normscope::cluster {

// Numbers stay what they are: processes of different versions must understand that they are.
enum class Tag : char { hello, ask, batch, done, shared, failed, finished, end, bye, memory, opened };

struct Message {
  std::size_t from = 0;
  Tag tag = Tag::hello;
  std::string bytes;
};

// All calls come from the thread that made it. Messages of one sender arrive in order.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  // Returns at once; the bytes, which are not copied, leave in later calls of `poll`.
  virtual void send(std::size_t to, Tag tag, std::shared_ptr<const std::string> bytes) = 0;
  // A message that has come, if there is one.
  virtual std::optional<Message> poll() = 0;
  virtual bool all_sent() const = 0;
  // The last call: `close` if all processes make it, `abort` ends them all.
  virtual void close() = 0;
  [[noreturn]] virtual void abort(int code) = 0;
};

// Whether this program was built with MPI, and of whose make ("Open MPI 4.1.4"; empty without).
bool built_with_mpi();
std::string mpi_name();
// Joins the job. Throws Error if MPI cannot be started or if the program was built without.
std::unique_ptr<Transport> join_by_mpi();

}  // namespace normscope::cluster
