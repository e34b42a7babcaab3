#pragma once
// A job whose processes are threads of this one and whose messages go through memory.
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster/job.h"
#include "normscope/error.h"
#include "normscope/executor.h"

namespace normscope::cluster {

struct Post {
  explicit Post(std::size_t size) : boxes(size) {}
  std::mutex mutex;
  std::vector<std::deque<Message>> boxes;
};

class MemoryTransport final : public Transport {
 public:
  MemoryTransport(Post& post, std::size_t rank) : post_(post), rank_(rank) {}
  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return post_.boxes.size(); }
  void send(std::size_t to, Tag tag, std::shared_ptr<const std::string> bytes) override {
    const std::lock_guard lock(post_.mutex);
    post_.boxes[to].push_back({rank_, tag, *bytes});
  }
  std::optional<Message> poll() override {
    const std::lock_guard lock(post_.mutex);
    if (post_.boxes[rank_].empty()) return std::nullopt;
    Message message = std::move(post_.boxes[rank_].front());
    post_.boxes[rank_].pop_front();
    return message;
  }
  bool all_sent() const override { return true; }
  void close() override {}
  [[noreturn]] void abort(int) override { std::abort(); }

 private:
  Post& post_;
  std::size_t rank_;
};

// What each process of a job ended with and said.
struct Ended {
  int code = -1;
  std::string said;
};

template <class Body>  // body(job, executor), in every process
std::vector<Ended> run_job(std::size_t size, int threads, const Body& body) {
  Post post(size);
  std::vector<Ended> ended(size);
  std::vector<std::thread> processes;
  for (std::size_t rank = 0; rank < size; ++rank)
    processes.emplace_back([&, rank] {
      std::atomic<bool> stop = false;
      Job job([&] { return std::make_unique<MemoryTransport>(post, rank); }, stop);
      Ending ending;
      try {
        const Executor executor(threads, &stop, &job);
        body(job, executor);
      } catch (const Cancelled&) {
      } catch (const InputError& error) {
        ending = {2, error.what()};
      } catch (const Error& error) {
        ending = {1, error.what()};
      }
      ended[rank].code = job.end(ending, [&](const std::string& sentence) { ended[rank].said += sentence; });
    });
  for (std::thread& each : processes) each.join();
  return ended;
}

}  // namespace normscope::cluster
