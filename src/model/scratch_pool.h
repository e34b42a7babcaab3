#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "normscope/block.h"

namespace normscope {

// Scratch memory of the forward pass, one per thread at work.
template <class T>
class ScratchPool {
 public:
  template <class Function>
  void with_scratch(const Function& function) {
    std::unique_ptr<BlockForward<T>> scratch = take();
    function(*scratch);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::unique_ptr<BlockForward<T>> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<BlockForward<T>>();
    auto scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<BlockForward<T>>> free_;
};

}  // namespace normscope
