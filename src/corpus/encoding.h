#pragma once
// Many texts to token ids, by several threads.
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "normscope/tokenizer.h"

namespace normscope::corpus {

// A memory of words for each thread at work, handed on from piece to piece. Ids do not depend on what a
// memory holds.
class WordMemories {
 public:
  void with(const std::function<void(WordMemory&)>& body) {
    std::unique_ptr<WordMemory> memory = taken();
    body(*memory);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(memory));
  }

 private:
  std::unique_ptr<WordMemory> taken() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<WordMemory>();
    std::unique_ptr<WordMemory> memory = std::move(free_.back());
    free_.pop_back();
    return memory;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordMemory>> free_;
};

}  // namespace normscope::corpus
