#include "normscope/executor.h"

#ifndef __EMSCRIPTEN__  // no oneTBB there, and threads need headers that static folders are served without
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <algorithm>
#include <thread>

namespace normscope {
namespace {

thread_local int pieces_inside = 0;  // pieces of for_each that this thread is in
struct InsidePiece {
  InsidePiece() { ++pieces_inside; }
  ~InsidePiece() { --pieces_inside; }
  InsidePiece(const InsidePiece&) = delete;
  InsidePiece& operator=(const InsidePiece&) = delete;
};

}  // namespace

Pieces* Executor::pieces() const {
  return pieces_inside > 0 ? nullptr : pieces_;
}

#ifdef __EMSCRIPTEN__
struct Executor::Arena {};

Executor::Executor(int /*threads*/, const std::atomic<bool>* stop, Pieces* pieces)
    : threads_(1), stop_(stop), pieces_(pieces) {}
Executor::~Executor() = default;

void Executor::for_each(std::size_t pieces, const std::function<void(std::size_t)>& body) const {
  const InsidePiece inside;
  for (std::size_t piece = 0; piece < pieces; ++piece) require_going_on(), body(piece);
}
#else
namespace {

constexpr int kMostThreads = 1024;

// oneTBB orders the caller before the pieces and the pieces before the caller's return, but inside a library
// that ThreadSanitizer cannot see into; these tell it. Pieces stay unordered among themselves.
#ifdef __SANITIZE_THREAD__
char started, finished;
struct CallerOrder {
  CallerOrder() { __tsan_release(&started); }
  ~CallerOrder() { __tsan_acquire(&finished); }
};
struct PieceOrder {
  PieceOrder() { __tsan_acquire(&started); }
  ~PieceOrder() { __tsan_release(&finished); }
};
#else
struct [[maybe_unused]] CallerOrder {};
struct [[maybe_unused]] PieceOrder {};
#endif

}  // namespace

struct Executor::Arena {
  explicit Arena(int threads) : arena(threads) {}
  // Without this oneTBB starts no more threads than there are cores, and says so on standard error. The
  // lowest limit in force counts, so it is the same for every executor; the arena holds the number asked for.
  tbb::global_control limit{tbb::global_control::max_allowed_parallelism, kMostThreads};
  mutable tbb::task_arena arena;
};

Executor::Executor(int threads, const std::atomic<bool>* stop, Pieces* pieces)
    : threads_(std::clamp(threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency()), 1,
                          kMostThreads)),
      stop_(stop),
      pieces_(pieces),
      arena_(threads_ > 1 ? std::make_unique<Arena>(threads_) : nullptr) {}

Executor::~Executor() = default;

void Executor::for_each(std::size_t pieces, const std::function<void(std::size_t)>& body) const {
  if (threads_ == 1 || pieces <= 1) {
    const InsidePiece inside;
    for (std::size_t piece = 0; piece < pieces; ++piece) require_going_on(), body(piece);
    return;
  }
  const CallerOrder caller;
  arena_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, pieces, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          const PieceOrder order;
          const InsidePiece inside;
          for (std::size_t piece = range.begin(); piece != range.end(); ++piece)
            require_going_on(), body(piece);
        },
        tbb::simple_partitioner());
  });
}
#endif

}  // namespace normscope
