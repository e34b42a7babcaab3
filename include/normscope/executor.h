#pragma once
// Where work runs. Results never depend on the number of threads, nor on that of processes where there are
// several (pieces.h): work is cut into fixed pieces, each piece writes its own results, and reductions happen
// in piece order.
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace normscope {

class Pieces;

// The run was asked to stop. Not an Error: nothing is wrong with it.
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "The run was stopped."; }
};

class Executor {
 public:
  // 0 threads: as many as the machine has. stop: asked before every piece, if given. pieces: who else does
  // pieces, if anyone. Both must outlive this.
  explicit Executor(int threads = 0, const std::atomic<bool>* stop = nullptr, Pieces* pieces = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const { return threads_; }
  // Null inside for_each: what is a piece already is done here.
  Pieces* pieces() const;
  // Throws Cancelled if `stop` became true.
  void require_going_on() const {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) throw Cancelled();
  }
  // Calls body(piece) for every piece in [0, pieces), in any order, on up to threads() threads.
  // The first exception thrown by a piece is rethrown here; Cancelled if `stop` became true.
  void for_each(std::size_t pieces, const std::function<void(std::size_t)>& body) const;

 private:
  int threads_;
  const std::atomic<bool>* stop_;
  Pieces* pieces_;
  struct Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace normscope
