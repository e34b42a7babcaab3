#include "cluster/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <numeric>

#include "core/pack.h"
#include "core/working_order.h"
#include "normscope/error.h"
#include "normscope/version.h"

namespace normscope::cluster {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// How long the thread that carries messages sleeps: with somebody waiting for one, and without.
constexpr microseconds kEager(20), kIdle(500);
constexpr double kBatchSeconds = 0.02;          // of work that is handed out in one message
constexpr std::size_t kWorksRemembered = 1000;  // the first may be so far ahead
// Another process's failure is acted on after this: the first may be about to say the same.
constexpr milliseconds kGrace(300);
// Processes that do not end when told to are ended.
constexpr std::chrono::seconds kPatience(3), kPatienceOfFirst(5);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double seconds_of_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<HeldBytes> held(std::vector<std::string> all) {
  std::vector<HeldBytes> each;
  each.reserve(all.size());
  for (std::string& one : all) {
    auto own = std::make_shared<const std::string>(std::move(one));
    each.push_back({own, *own});
  }
  return each;
}

// What was packed as a list of strings, where it lies.
std::vector<HeldBytes> parts_of(const std::shared_ptr<const std::string>& bytes) {
  Unpacker from(*bytes);
  std::vector<HeldBytes> parts;
  for (auto left = from.take<std::uint64_t>(); left > 0; --left) parts.push_back({bytes, from.take_view()});
  return parts;
}

struct AskMessage {
  std::uint64_t stage = 0, wanted = 1, work = 0;
};
// Of name and costs: they follow from what a process has read.
std::uint64_t fingerprint_of(const PieceWork& work) {
  const auto* const costs = reinterpret_cast<const char*>(work.costs.data());
  return checksum({costs, work.costs.size() * sizeof(double)}, checksum(work.name));
}
struct BatchMessage {
  std::uint64_t stage = 0;
  std::vector<std::uint64_t> pieces;
};
struct DoneMessage {
  std::uint64_t stage = 0, piece = 0;
  double seconds = 0;
  std::string result;
};

}  // namespace

Sameness sameness(std::vector<std::string> arguments) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '?';
  return {version(),
          commit(),
          instruction_set(),
          std::move(arguments),
          host,
          static_cast<std::uint64_t>(::getpid()),
          this_machine()};
}

Job::Job(const Join& join, std::atomic<bool>& stop) : stop_(stop) {
  if (!join) return;
  std::exception_ptr failed;
  thread_ = std::thread([this, &join, &failed] { serve(join, failed); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return joined_; });
  if (!failed) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failed);
}

Job::~Job() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// All that is MPI happens in this thread.
void Job::serve(const Join& join, std::exception_ptr& failed) {
  std::unique_ptr<Transport> transport;
  try {
    transport = join();
  } catch (...) {
    failed = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    joined_ = true;
    if (transport) {
      rank_ = transport->rank();
      size_ = transport->size();
      known_.resize(size_);
      finished_.assign(size_, 0);
      gone_.assign(size_, 0);
    }
  }
  changed_.notify_all();
  if (!transport) return;
  while (true) {
    std::deque<Outgoing> leaving;
    const double begin = watches_times_ ? seconds_of_thread() : 0;
    {
      const std::lock_guard lock(mutex_);
      leaving.swap(outgoing_);
    }
    for (Outgoing& each : leaving) {
      bytes_sent_ += each.bytes->size();
      transport->send(each.to, each.tag, std::move(each.bytes));
    }
    bool came = !leaving.empty();
    while (auto message = transport->poll()) {
      came = true;
      const std::size_t sender = message->from;
      try {
        handle(std::move(*message));
      } catch (const Error&) {  // what no process of this version sends
        const std::lock_guard lock(mutex_);
        note_failure(sender,
                     {2, "A process of the job is another version of normscope; start the same everywhere."});
      }
    }
    std::unique_lock lock(mutex_);
    if (watches_times_ && came) carried_.seconds += seconds_of_thread() - begin;
    if (abort_) transport->abort(*abort_);
    if (closing_ && outgoing_.empty() && transport->all_sent()) break;
    flush_if_due();
    if (failure_ && !stop_ && Clock::now() - failed_at_ > kGrace) {
      stop_ = true;
      changed_.notify_all();
    }
    if (end_ && *end_ != 0 && !ending_ && Clock::now() - end_at_ > kPatience) ::_exit(*end_);
    if (came || !outgoing_.empty()) continue;
    const bool eager = waiting_ > 0 || closing_ || !transport->all_sent();
    wake_.wait_for(lock, eager ? kEager : kIdle);
  }
  transport->close();
}

void Job::post(std::size_t to, Tag tag, std::string bytes) {
  outgoing_.push_back({to, tag, std::make_shared<const std::string>(std::move(bytes))});
  wake_.notify_one();
}

// Waits until `ready`, with the lock held, or throws what came in between.
template <class Ready>
void Job::await(std::unique_lock<std::mutex>& lock, const Ready& ready) {
  ++waiting_;
  wake_.notify_one();
  struct Leave {
    std::size_t& waiting;
    ~Leave() { --waiting; }
  } leave{waiting_};
  while (!ready()) {
    if (trouble_) std::rethrow_exception(trouble_);
    if (stop_) throw Cancelled();
    changed_.wait_for(lock, milliseconds(20));  // a signal that asks to stop wakes nobody
  }
}

void Job::handle(Message message) {
  const std::lock_guard lock(mutex_);
  Unpacker from(message.bytes);
  switch (message.tag) {
    case Tag::hello:
      known_[message.from] = from.take<Sameness>();
      break;
    case Tag::ask: {
      const auto ask = from.take<AskMessage>();
      answer({message.from, ask.wanted, ask.stage, ask.work});
      break;
    }
    case Tag::batch: {
      auto batch = from.take<BatchMessage>();
      if (batch.stage != stage_) break;
      asked_ = false;
      exhausted_ = batch.pieces.empty();
      queue_.insert(queue_.end(), batch.pieces.begin(), batch.pieces.end());
      break;
    }
    case Tag::done: {
      auto done = from.take<DoneMessage>();
      ++carried_.pieces;
      if (done.stage == stage_) take_result(done.piece, std::move(done.result), done.seconds, true);
      break;
    }
    case Tag::shared: {
      auto bytes = std::make_shared<const std::string>(std::move(message.bytes));
      send_down(bytes);
      shared_.push_back(std::move(bytes));
      break;
    }
    case Tag::memory:
      offered_.push_back(from.take<MemoryPlace>());
      break;
    case Tag::opened:
      ++opened_;
      break;
    case Tag::failed:
      note_failure(message.from, from.take<Ending>());
      finished_[message.from] = 1;
      break;
    case Tag::finished:
      finished_[message.from] = 1;
      break;
    case Tag::end:
      end_ = from.take<int>();
      end_at_ = Clock::now();
      if (*end_ != 0) stop_ = true;
      break;
    case Tag::bye:
      gone_[message.from] = 1;
      break;
    default:
      throw Error("not a message of ours");
  }
  changed_.notify_all();
}

// To the processes below this one in a tree, so that no process sends to all.
void Job::send_down(const Bytes& bytes) {
  for (const std::size_t child : {2 * rank_ + 1, 2 * rank_ + 2})
    if (child < size_) outgoing_.push_back({child, Tag::shared, bytes});
  wake_.notify_one();
}

Job::Bytes Job::await_shared() {
  std::unique_lock lock(mutex_);
  await(lock, [&] { return !shared_.empty(); });
  Bytes bytes = std::move(shared_.front());
  shared_.pop_front();
  return bytes;
}

std::string Job::name_of(std::size_t rank) const {
  return known_[rank] ? fmt::format("process {} on {}", rank, known_[rank]->host)
                      : fmt::format("process {}", rank);
}

void Job::require_same(const Sameness& mine) {
  if (size_ <= 1) return;
  std::unique_lock lock(mutex_);
  known_[rank_] = mine;
  if (rank_ > 0) return post(0, Tag::hello, packed(mine));
  await(lock, [&] {
    return std::all_of(known_.begin(), known_.end(), [](const auto& x) { return x.has_value(); });
  });
  for (std::size_t rank = 1; rank < size_; ++rank) {
    const Sameness& other = *known_[rank];
    const auto refuse = [&](const std::string& what, const std::string& there, const std::string& here) {
      throw InputError(fmt::format("All processes of a job do the same work, but {} {} {}, and the first {}.",
                                   name_of(rank), what, there, here));
    };
    const auto made = [](const Sameness& x) { return fmt::format("{} (commit {})", x.version, x.commit); };
    if (made(other) != made(mine)) refuse("is normscope", made(other), made(mine));
    if (other.arguments != mine.arguments)
      refuse("was called with", fmt::format("'{}'", fmt::join(other.arguments, " ")),
             fmt::format("with '{}'", fmt::join(mine.arguments, " ")));
    if (other.instruction_set != mine.instruction_set)
      refuse(
          "computes with", other.instruction_set,
          fmt::format("with {}: last digits could differ; use machines of one kind", mine.instruction_set));
  }
}

void Job::keep_in(PieceStore* store) {
  {
    const std::lock_guard lock(mutex_);
    try {
      if (store_ != nullptr && !trouble_) store_->flush();
    } catch (const std::exception&) {  // only later runs would have gained by it
    }
    store_ = rank_ == 0 ? store : nullptr;
  }
  if (store == nullptr || thread_.joinable()) return;
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!closing_) {
      flush_if_due();
      wake_.wait_for(lock, milliseconds(250));
    }
  });
}

void Job::keep_nothing_more() {
  const std::lock_guard lock(mutex_);
  if (store_ != nullptr) store_->drop_waiting();
  store_ = nullptr;
}

// With the lock held.
void Job::flush_if_due() {
  if (store_ == nullptr || trouble_) return;
  try {
    store_->flush_if_due();
  } catch (...) {
    trouble_ = std::current_exception();
    changed_.notify_all();
  }
}

// Pieces for a process that wants so many at once, with the lock held: fewer towards the end, more if they are
// short.
std::vector<std::uint64_t> Job::batch_for(std::size_t wanted) {
  std::vector<std::uint64_t> pieces;
  if (queue_.empty()) return pieces;
  const std::size_t fair = std::max<std::size_t>(1, queue_.size() / (2 * size_));
  const double rate = cost_done_ > 0 ? seconds_done_ / cost_done_ : 0;
  double seconds = 0;
  while (!queue_.empty() && pieces.size() < std::max<std::size_t>(1, fair)) {
    if (pieces.size() >= wanted && (rate == 0 || seconds >= kBatchSeconds * static_cast<double>(wanted)))
      break;
    seconds += rate * work_->costs[queue_.front()];
    pieces.push_back(queue_.front());
    queue_.pop_front();
  }
  return pieces;
}

void Job::answer(const Asking& asking) {
  const auto [from, wanted, stage, work] = asking;
  if (stage > stage_ || (stage == stage_ && work_ == nullptr && !exhausted_)) return early_.push_back(asking);
  // Who comes to other work than the first waits for an answer until all are told to end.
  const std::uint64_t before = stage_ - stage;
  if (before < works_begun_.size() && works_begun_[works_begun_.size() - 1 - before] != work)
    return note_other_work(from);
  BatchMessage batch{stage, {}};
  if (stage == stage_ && work_ != nullptr) batch.pieces = batch_for(wanted);
  post(from, Tag::batch, packed(batch));
}

void Job::note_other_work(std::size_t from) {
  note_failure(from,
               {2,
                "A process of the job has come to other work than the first; what they read must be the "
                "same everywhere."});
}

// With the lock held: another process cannot go on.
void Job::note_failure(std::size_t from, Ending failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  failed_rank_ = from;
  failed_at_ = Clock::now();
}

// With the lock held.
void Job::take_result(std::uint64_t piece, std::string bytes, double seconds, bool keep) {
  if (work_ == nullptr || piece >= there_.size() || there_[piece] != 0) return;
  if (keep) {
    cost_done_ += work_->costs[piece];
    seconds_done_ += seconds;
    if (watches_times_) times_.back().seconds.push_back(seconds);
    if (store_ != nullptr && work_->kept && !trouble_) {
      try {
        store_->add(work_name_, piece, bytes);
      } catch (...) {
        trouble_ = std::current_exception();
      }
    }
  }
  results_[piece] = std::move(bytes);
  there_[piece] = 1;
  --missing_;
  if (work_->finished) work_->finished(piece);
  changed_.notify_all();
}

// The next piece for a thread of this process.
std::optional<std::size_t> Job::next_piece(std::size_t pullers) {
  std::unique_lock lock(mutex_);
  const auto pop = [&] {
    const std::size_t piece = queue_.front();
    queue_.pop_front();
    return piece;
  };
  if (trouble_) std::rethrow_exception(trouble_);
  if (rank_ == 0) return queue_.empty() ? std::nullopt : std::optional(pop());
  const auto ask = [&] {
    if (asked_ || exhausted_) return;
    asked_ = true;
    post(0, Tag::ask, packed(AskMessage{stage_, pullers, works_begun_.back()}));
  };
  if (queue_.empty()) {
    ask();
    await(lock, [&] { return !queue_.empty() || exhausted_; });
    if (queue_.empty()) return std::nullopt;
  }
  const std::size_t piece = pop();
  if (queue_.size() < pullers) ask();  // so that more are there when these are done
  return piece;
}

void Job::pull(const PieceWork& work, const Executor& outer, const Executor& inside) {
  const std::size_t pullers = &outer == &inside ? 1 : static_cast<std::size_t>(outer.threads());
  while (const auto piece = next_piece(pullers)) {
    outer.require_going_on();
    const auto start = Clock::now();
    std::string result = work.result(*piece, inside);
    const double seconds = seconds_since(start);
    const std::lock_guard lock(mutex_);
    if (rank_ == 0) {
      take_result(*piece, std::move(result), seconds, true);
    } else {
      post(0, Tag::done, packed(DoneMessage{stage_, *piece, seconds, std::move(result)}));
    }
  }
}

std::vector<HeldBytes> Job::run(const PieceWork& work, const Executor& executor) {
  const std::size_t count = work.costs.size();
  {
    const std::lock_guard lock(mutex_);
    ++stage_;
    works_begun_.push_back(fingerprint_of(work));
    if (works_begun_.size() > kWorksRemembered) works_begun_.pop_front();
    work_ = &work;
    const std::string name =
        fmt::format("{}{}{}", fmt::join(scopes_, "/"), scopes_.empty() ? "" : "/", work.name);
    work_name_ = fmt::format("{} #{}", name, works_[name]++);
    queue_.clear();
    asked_ = exhausted_ = false;
    if (rank_ == 0) {
      if (watches_times_) times_.push_back({work.name, {}});
      results_.assign(count, {});
      there_.assign(count, 0);
      missing_ = count;
      cost_done_ = seconds_done_ = 0;
      for (std::size_t piece = 0; piece < count && store_ != nullptr && work.kept; ++piece)
        if (auto kept = store_->take(work_name_, piece)) take_result(piece, std::move(*kept), 0, false);
      std::vector<std::size_t> open;
      std::vector<double> costs;
      for (std::size_t piece = 0; piece < count; ++piece)
        if (there_[piece] == 0) open.push_back(piece), costs.push_back(work.costs[piece]);
      const std::size_t workers = size_ * static_cast<std::size_t>(executor.threads());
      for (const std::size_t turn : working_order(costs, workers)) queue_.push_back(open[turn]);
      for (const Asking& each : std::exchange(early_, {})) answer(each);
    }
  }
  struct Leave {
    Job& job;
    ~Leave() {
      const std::lock_guard lock(job.mutex_);
      job.work_ = nullptr;
      job.exhausted_ = true;
    }
  } leave{*this};
  try {
    // Many pieces: one to a thread. Few: the threads share one.
    if (executor.threads() > 1 && count < 2 * static_cast<std::size_t>(executor.threads()) * size_) {
      const Executor inside(executor.threads(), &stop_);
      pull(work, inside, inside);
    } else {
      const Executor alone(1);
      executor.for_each(static_cast<std::size_t>(executor.threads()),
                        [&](std::size_t) { pull(work, executor, alone); });
    }
    if (rank_ == 0) {
      std::unique_lock lock(mutex_);
      await(lock, [&] { return missing_ == 0; });
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (store_ != nullptr && !trouble_) store_->flush();  // what was finished before it was stopped
    throw;
  }
  if (rank_ > 0) return parts_of(await_shared());
  const std::lock_guard lock(mutex_);
  if (size_ > 1) send_down(std::make_shared<const std::string>(packed(results_)));
  return held(std::exchange(results_, {}));
}

void Job::enter(const std::string& scope) {
  scopes_.push_back(scope);
}
void Job::leave() {
  scopes_.pop_back();
}

std::string Job::from_first(const std::function<std::string()>& make) {
  if (size_ <= 1) return make();
  if (rank_ > 0) return *await_shared();
  const auto bytes = std::make_shared<const std::string>(make());
  const std::lock_guard lock(mutex_);
  send_down(bytes);
  return *bytes;
}

// Who shares memory with whom is known to the first, from what it was told when they met.
void Job::find_neighbours() {
  if (!neighbours_.empty()) return;
  const auto machines = unpacked<std::vector<std::string>>(from_first([&] {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all(size_);
    for (std::size_t rank = 0; rank < size_; ++rank)
      if (known_[rank]) all[rank] = known_[rank]->machine;
    return packed(all);
  }));
  for (std::size_t rank = 0; rank < size_; ++rank)
    if (rank == rank_ || (!machines[rank].empty() && machines[rank] == machines[rank_]))
      neighbours_.push_back(rank);
}

HeldBytes Job::once_per_machine(const std::function<HeldBytes()>& make) {
  if (size_ <= 1) return make();
  find_neighbours();
  const std::size_t maker = neighbours_.front();
  if (rank_ != maker) {
    std::unique_lock lock(mutex_);
    await(lock, [&] { return !offered_.empty(); });
    const MemoryPlace place = offered_.front();
    offered_.pop_front();
    lock.unlock();
    auto bytes = open_memory(place);
    lock.lock();
    post(maker, Tag::opened, {});
    lock.unlock();
    return bytes ? std::move(*bytes) : make();
  }
  HeldBytes own = make();
  if (neighbours_.size() == 1) return own;
  const OfferedMemory offer(own.bytes);
  auto bytes = offer.bytes();
  if (bytes) own = {};
  std::unique_lock lock(mutex_);
  for (const std::size_t rank : neighbours_)
    if (rank != maker) post(rank, Tag::memory, packed(offer.place()));
  await(lock, [&] { return opened_ + 1 == neighbours_.size(); });
  opened_ = 0;
  return bytes ? std::move(*bytes) : own;
}

bool Job::all_of(const std::vector<char>& ranks) const {
  return std::all_of(ranks.begin() + 1, ranks.end(), [](char is) { return is != 0; });
}

int Job::end(Ending mine, const Say& say) {
  if (size_ <= 1) {
    if (!mine.sentence.empty()) say(mine.sentence);
    return mine.code;
  }
  std::unique_lock lock(mutex_);
  const auto wait_until = [&](Clock::time_point until, const auto& ready) {
    ++waiting_;
    wake_.notify_one();
    while (!ready() && Clock::now() < until) changed_.wait_for(lock, milliseconds(20));
    --waiting_;
    return ready();
  };
  constexpr auto forever = Clock::time_point::max();
  ending_ = true;
  if (rank_ > 0) {
    if (mine.code == 0) {
      post(0, Tag::finished, {});
    } else if (!end_) {
      post(0, Tag::failed, packed(mine));
    }
    wait_until(mine.code == 0 ? forever : Clock::now() + 2 * kPatienceOfFirst,
               [&] { return end_.has_value(); });
    mine.code = end_.value_or(mine.code);
    post(0, Tag::bye, {});
  } else {
    if (mine.code == 0)
      wait_until(forever, [&] { return failure_.has_value() || !early_.empty() || all_of(finished_); });
    if (mine.code == 0 && !early_.empty()) note_other_work(early_.front().from);
    if (mine.code == 0 && failure_) {
      mine = *failure_;
      const std::size_t words = mine.sentence.find_last_not_of('.') + 1;
      if (words > 0)
        mine.sentence = fmt::format("{} ({}).", mine.sentence.substr(0, words), name_of(failed_rank_));
    }
    if (!mine.sentence.empty()) say(mine.sentence);
    for (std::size_t rank = 1; rank < size_; ++rank) post(rank, Tag::end, packed(mine.code));
    if (!wait_until(Clock::now() + kPatienceOfFirst, [&] { return all_of(gone_); }))
      abort_ = mine.code == 0 ? 1 : mine.code;
  }
  closing_ = true;
  lock.unlock();
  wake_.notify_all();
  thread_.join();
  return mine.code;
}

}  // namespace normscope::cluster
