#pragma once
// Where work runs. Results never depend on the number of threads: work is cut into fixed pieces, each piece
// writes its own results, and reductions happen in piece order.
#include <cstddef>
#include <functional>
#include <memory>

namespace normscope {

class Executor {
 public:
  // 0 threads: as many as the machine has.
  explicit Executor(int threads = 0);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const { return threads_; }
  // Calls body(piece) for every piece in [0, pieces), in any order, on up to threads() threads.
  // The first exception thrown by a piece is rethrown here.
  void for_each(std::size_t pieces, const std::function<void(std::size_t)>& body) const;

 private:
  int threads_;
  struct Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace normscope
