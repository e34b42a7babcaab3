#pragma once
// Where work runs. Results never depend on the number of threads: work is cut into fixed pieces, each piece
// writes its own results, and reductions happen in piece order.
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace normscope {

// The run was asked to stop. Not an Error: nothing is wrong with it.
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "The run was stopped."; }
};

class Executor {
 public:
  // 0 threads: as many as the machine has. stop: asked before every piece, if given; it must outlive this.
  explicit Executor(int threads = 0, const std::atomic<bool>* stop = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const { return threads_; }
  // Calls body(piece) for every piece in [0, pieces), in any order, on up to threads() threads.
  // The first exception thrown by a piece is rethrown here; Cancelled if `stop` became true.
  void for_each(std::size_t pieces, const std::function<void(std::size_t)>& body) const;

 private:
  void require_going_on() const {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) throw Cancelled();
  }

  int threads_;
  const std::atomic<bool>* stop_;
  struct Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace normscope
