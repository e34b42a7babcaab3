#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "normscope/block.h"

namespace normscope {

// Rooms for the forward pass, one per thread at work.
template <class T>
class Rooms {
 public:
  template <class Function>
  void with_room(const Function& function) {
    std::unique_ptr<BlockForward<T>> room = take();
    function(*room);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(room));
  }

 private:
  std::unique_ptr<BlockForward<T>> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<BlockForward<T>>();
    auto room = std::move(free_.back());
    free_.pop_back();
    return room;
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<BlockForward<T>>> free_;
};

}  // namespace normscope
