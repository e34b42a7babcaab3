#include "background.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace py = pybind11;

namespace normscope::python {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTick(100), kPatience(800), kLongestWaitAtExit(20'000);

struct Job {
  std::function<void(Watch&)> work;
  Watch watch;
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable ended_changed;
  bool ended = false, left_alone = false;
};

// Work left to itself; threads of Python that wait for work.
std::atomic<int> abandoned = 0, waiting = 0;
// The interpreter ends. Who then asks for its lock is ended in the middle of our frames, which aborts the process, so that daemon
// threads wait here instead; all but the thread that ends it.
std::atomic<bool> closing = false;
std::thread::id closer;

bool is_late() {
  return closing && std::this_thread::get_id() != closer;
}

[[noreturn]] void sleep_forever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

struct Waiting {
  Waiting() { ++waiting; }
  ~Waiting() { --waiting; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
};

void run(const std::shared_ptr<Job>& job) {
  try {
    job->work(job->watch);
  } catch (...) {
    job->failure = std::current_exception();
  }
  job->work = nullptr;  // what it owns goes before anyone is told
  const std::lock_guard lock(job->mutex);
  job->ended = true;
  if (job->left_alone) --abandoned;
  job->ended_changed.notify_all();
}

bool wait(Job& job, std::chrono::milliseconds most) {
  std::unique_lock lock(job.mutex);
  return job.ended_changed.wait_for(lock, most, [&] { return job.ended; });
}

void tell_state(Job& job, const Tell& tell) {
  if (tell.is_none()) return;
  py::list notes;
  {
    std::vector<std::string> taken;
    {
      const std::lock_guard lock(job.watch.mutex);
      taken.swap(job.watch.notes);
    }
    for (const std::string& note : taken)
      notes.append(py::reinterpret_steal<py::object>(
          PyUnicode_DecodeUTF8(note.data(), static_cast<py::ssize_t>(note.size()), "replace")));
  }
  tell(job.watch.done.load(), job.watch.total.load(), notes);
}

// The work goes on without who asked for it.
void leave_alone(Job& job, std::thread& worker) {
  {
    const std::lock_guard lock(job.mutex);
    job.left_alone = !job.ended;
    if (job.left_alone) ++abandoned;
  }
  worker.detach();
}

// The caller has an error to raise; the work is asked to stop.
void stop(const std::shared_ptr<Job>& job, std::thread& worker) {
  job->watch.stop = true;
  bool ended = false;
  {
    const py::gil_scoped_release release;
    ended = wait(*job, kPatience);
    if (ended) worker.join();
  }
  if (!ended) leave_alone(*job, worker);
}

}  // namespace

void run_in_background(std::function<void(Watch&)> work, const Tell& tell) {
  if (is_late()) {
    const py::gil_scoped_release release;
    sleep_forever();
  }
  const Waiting here;
  const auto job = std::make_shared<Job>();
  job->work = std::move(work);
  std::thread worker([job] { run(job); });
  try {
    for (bool ended = false; !ended;) {
      {
        const py::gil_scoped_release release;
        ended = wait(*job, kTick);
        if (is_late()) {
          job->watch.stop = true;
          leave_alone(*job, worker);
          --waiting;
          sleep_forever();
        }
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      tell_state(*job, tell);
    }
  } catch (...) {
    stop(job, worker);
    throw;
  }
  worker.join();
  if (job->failure) std::rethrow_exception(job->failure);
}

std::shared_ptr<const void> keep_alive(const py::object& object) {
  PyObject* held = object.inc_ref().ptr();
  return {held, [](PyObject* pointer) {
            const py::gil_scoped_acquire lock;
            Py_DECREF(pointer);
          }};
}

void prepare_for_forks() {
  pthread_atfork(nullptr, nullptr, [] { abandoned = waiting = 0; });  // a child has one thread
}

void wait_for_abandoned_work() {
  const auto end = Clock::now() + kLongestWaitAtExit;
  closer = std::this_thread::get_id();
  closing = true;
  const py::gil_scoped_release release;
  while ((waiting > 0 || abandoned > 0) && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace normscope::python
