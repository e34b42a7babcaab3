#pragma once
// The processes of a job at the pieces of a study (pieces.h).
//
// Each process runs the whole study; where it comes to work in pieces, the first hands them out as processes
// become free, large ones first, keeps what is finished, and tells all of them all results, in order. One
// process alone is the same without messages. A thread of its own carries the messages, so that the first
// process works, too.
//
// Pieces are handed out a few at a time where they are short: a hundredth of a second of work and more in one
// message.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cluster/shared_memory.h"
#include "cluster/transport.h"
#include "normscope/executor.h"
#include "normscope/pieces.h"
#include "record/piece_store.h"

namespace normscope::cluster {

// What must be the same in all processes of a job, or they would not come to the same work.
struct Sameness {
  std::string version, commit, instruction_set;
  std::vector<std::string> arguments;
  std::string host;  // this and what follows may differ
  std::uint64_t pid = 0;
  std::string machine = {};  // the same where memory can be shared; empty: not known
};
// Of this process.
Sameness sameness(std::vector<std::string> arguments);

// How a run ended: its exit code and what is said of it, if anything.
struct Ending {
  int code = 0;
  std::string sentence = {};
};

struct PieceTimes {
  std::string work;
  std::vector<double> seconds;  // of pieces done here or elsewhere, in no order
};

class Job final : public Pieces {
 public:
  using Join = std::function<std::unique_ptr<Transport>()>;
  // join: called in the thread that carries messages; null: this process alone. stop: set if another process
  // failed.
  Job(const Join& join, std::atomic<bool>& stop);
  ~Job() override;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::size_t rank() const { return rank_; }
  std::size_t processes() const override { return size_; }
  bool first() const override { return rank_ == 0; }
  // Of those on this machine, as the launcher says.
  std::size_t processes_here() const { return here_; }
  void set_processes_here(std::size_t here) { here_ = here; }
  // Whether anything is gained by cutting work into pieces.
  bool divides_work() const { return size_ > 1 || store_ != nullptr; }

  // To be called by all processes before anything else. The first throws InputError that names the first
  // process that is not like it.
  void require_same(const Sameness& mine);

  // Where finished pieces are kept, in the first process; null: nowhere any more, after what waits was written. It
  // must outlive the work.
  void keep_in(PieceStore* store);
  // The work has ended, and its results are kept as such: what waits need not be written.
  void keep_nothing_more();

  std::vector<HeldBytes> run(const PieceWork& work, const Executor& executor) override;
  void enter(const std::string& scope) override;
  void leave() override;
  std::string from_first(const std::function<std::string()>& make) override;
  HeldBytes once_per_machine(const std::function<HeldBytes()>& make) override;

  // The last call of a process, with how its run ended (one that was asked to stop by another's failure: as if
  // nothing were wrong with it). Every process ends with the code that this gives, and what is wrong is said once,
  // by the first.
  using Say = std::function<void(const std::string& sentence)>;
  int end(Ending mine, const Say& say);

  // What pieces take, of all works from now on; in the first process.
  void watch_times() { watches_times_ = true; }
  const std::vector<PieceTimes>& times() const { return times_; }
  // Bytes that this process has sent.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  // Pieces that others have done, and the processor's time that messages took the first process meanwhile.
  struct Carried {
    std::size_t pieces = 0;
    double seconds = 0;
  };
  Carried carried() {
    const std::lock_guard lock(mutex_);
    return carried_;
  }

 private:
  void serve(const Join& join, std::exception_ptr& failed);
  void handle(Message message);
  void post(std::size_t to, Tag tag, std::string bytes);
  using Bytes = std::shared_ptr<const std::string>;
  void send_down(const Bytes& bytes);
  Bytes await_shared();
  void find_neighbours();
  template <class Ready>
  void await(std::unique_lock<std::mutex>& lock, const Ready& ready);
  void pull(const PieceWork& work, const Executor& outer, const Executor& inside);
  std::optional<std::size_t> next_piece(std::size_t wanted);
  std::vector<std::uint64_t> batch_for(std::size_t wanted);
  void flush_if_due();
  void take_result(std::uint64_t piece, std::string bytes, double seconds, bool keep);
  struct Asking {
    std::size_t from, wanted;
    std::uint64_t stage, work;
  };
  void answer(const Asking& asking);
  void note_failure(std::size_t from, Ending failure);
  void note_other_work(std::size_t from);
  std::string name_of(std::size_t rank) const;
  bool all_of(const std::vector<char>& ranks) const;

  std::atomic<bool>& stop_;
  std::size_t rank_ = 0, size_ = 1, here_ = 1;
  PieceStore* store_ = nullptr;
  std::vector<std::string> scopes_;
  std::map<std::string, std::size_t> works_;  // by name, scopes before it: how many there have been
  std::atomic<bool> watches_times_ = false;
  std::vector<PieceTimes> times_;
  std::atomic<std::uint64_t> bytes_sent_ = 0;
  Carried carried_;

  std::mutex mutex_;
  std::condition_variable changed_, wake_;  // for who waits for messages; for the thread that carries them
  struct Outgoing {
    std::size_t to;
    Tag tag;
    Bytes bytes;
  };
  std::deque<Outgoing> outgoing_;
  std::size_t waiting_ = 0;  // threads that wait for a message
  bool joined_ = false, closing_ = false;
  std::optional<int> abort_;

  // The work under way: its pieces that are not handed out, or, elsewhere than in the first process, those
  // that this one was given.
  std::uint64_t stage_ = 0;
  std::deque<std::uint64_t> works_begun_;  // fingerprints of the last works, this one the last
  const PieceWork* work_ = nullptr;
  std::string work_name_;
  std::deque<std::uint64_t> queue_;
  bool asked_ = false, exhausted_ = false;
  std::vector<std::string> results_;
  std::vector<char> there_;
  std::size_t missing_ = 0;
  double cost_done_ = 0, seconds_done_ = 0;
  std::exception_ptr trouble_;  // of keeping a result, in the thread that carries messages
  std::vector<Asking> early_;   // from processes that are ahead
  std::deque<Bytes> shared_;    // what the first process told all, in order

  // Processes on this machine, of which the first makes what they hold once; empty: not known yet.
  std::vector<std::size_t> neighbours_;
  std::deque<MemoryPlace> offered_;
  std::size_t opened_ = 0;  // neighbours that have seen the present offer

  // How the others are and ended.
  std::vector<std::optional<Sameness>> known_;
  std::vector<char> finished_, gone_;
  std::optional<Ending> failure_;  // of another process
  std::size_t failed_rank_ = 0;
  std::chrono::steady_clock::time_point failed_at_;
  std::optional<int> end_;  // what the first process said to end with
  std::chrono::steady_clock::time_point end_at_;
  bool ending_ = false;

  std::thread thread_;  // the last member: it uses the others
};

}  // namespace normscope::cluster
