#pragma once
// Work cut into pieces whose results are bytes, so that they can come from another process or from a file.
//
// How work is cut depends on the work alone, never on who does it, and results are put together in the order
// of the pieces: the same bytes for any number of processes and threads, also if some come from an earlier
// run that was killed.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace normscope {

class Executor;

struct PieceWork {
  // What the pieces are of. Works of one name, in one scope, are told apart by the order in which they come.
  std::string name;
  std::vector<double> costs;  // of each piece, about, in any unit: large ones are begun first
  // Whether finished pieces are worth keeping: they take longer than to write and read their results.
  bool kept = true;
  // The result of a piece. executor: threads to use inside it.
  std::function<std::string(std::size_t piece, const Executor& executor)> result;
  // Called once for each piece, wherever it was done, in the process that tells of progress; from any thread.
  std::function<void(std::size_t piece)> finished = {};
};

// Bytes that nobody changes any more, there as long as `held` is.
struct HeldBytes {
  std::shared_ptr<const void> held;
  std::string_view bytes;
};

// Who does pieces beyond the threads of this process: the processes of a job, or what an earlier run left.
//
// All processes of a job run the same program on the same input, so that they come to the same work in the
// same order and know the same results afterwards. Only the first prints and writes.
class Pieces {
 public:
  virtual ~Pieces() = default;

  virtual std::size_t processes() const = 0;
  virtual bool first() const = 0;
  // The results of all pieces, in order. Throws Cancelled if the run was asked to stop.
  virtual std::vector<HeldBytes> run(const PieceWork& work, const Executor& executor) = 0;
  // Works inside are told apart from those of the same name outside: for who leaves some of its works out when it
  // goes on.
  virtual void enter(const std::string& scope) = 0;
  virtual void leave() = 0;
  // What the first process makes, for all: what only it can know, such as the contents of a file that it
  // writes.
  virtual std::string from_first(const std::function<std::string()>& make) = 0;
  // What one process of each machine makes, for all that are on it: they hold the bytes once. Where memory cannot be
  // shared each makes its own.
  virtual HeldBytes once_per_machine(const std::function<HeldBytes()>& make) = 0;
};

}  // namespace normscope
