#include "normscope/executor.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <thread>

namespace normscope {

struct Executor::Arena {
  explicit Arena(int threads)
      : allowed(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads)),
        arena(threads) {}
  tbb::global_control allowed;  // more threads than cores are granted, and TBB does not warn of it on stderr
  mutable tbb::task_arena arena;
};

Executor::Executor(int threads)
    : threads_(threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      arena_(threads_ > 1 ? std::make_unique<Arena>(threads_) : nullptr) {}

Executor::~Executor() = default;

void Executor::for_each(std::size_t pieces, const std::function<void(std::size_t)>& body) const {
  if (threads_ == 1 || pieces <= 1) {
    for (std::size_t piece = 0; piece < pieces; ++piece) body(piece);
    return;
  }
  arena_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, pieces, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t piece = range.begin(); piece != range.end(); ++piece) body(piece);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace normscope
