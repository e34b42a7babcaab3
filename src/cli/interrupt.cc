#include "cli/interrupt.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

#include "cli/common.h"

namespace normscope::cli {
namespace {

// A handler reaches nothing but what is global.
std::atomic<bool> stop = false;
std::atomic<int> signal_seen = 0;
struct Kept {
  std::string sentence, once_there, before;  // a file, and what is said until it is there
};
std::atomic<const Kept*> kept = nullptr;
std::atomic<bool> silent = false;

constexpr int kPatience = 800'000;  // microseconds

void put(const char* text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void erase_progress() {
  if (::isatty(STDERR_FILENO) == 1) put("\r\x1b[K");
}

const char* sentence() {
  const Kept* told = kept.load();
  const bool before =
      told != nullptr && !told->once_there.empty() && ::access(told->once_there.c_str(), F_OK) != 0;
  return told == nullptr ? "Stopped; nothing was written."
         : before        ? told->before.c_str()
                         : told->sentence.c_str();
}

void write_sentence() {
  if (silent) return;
  erase_progress();
  put("normscope: ");
  put(sentence());
  put("\n");
}

void end_now(int) {
  write_sentence();
  ::_exit(128 + signal_seen.load());
}

void ask_to_stop(int signal) {
  int none = 0;
  if (!signal_seen.compare_exchange_strong(none, signal)) end_now(signal);
  stop = true;
  const itimerval patience{{0, 0}, {0, kPatience}};
  ::setitimer(ITIMER_REAL, &patience, nullptr);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

std::atomic<bool>& watch_for_interrupts() {
  handle(SIGINT, ask_to_stop);
  handle(SIGTERM, ask_to_stop);
  handle(SIGALRM, end_now);
  return stop;
}

void set_kept(const std::string& sentence, const std::string& once_there, const std::string& before) {
  // A handler may be reading an earlier one: all stay.
  static std::vector<std::unique_ptr<const Kept>> all;
  all.push_back(std::make_unique<const Kept>(Kept{printable(sentence), once_there, printable(before)}));
  kept = all.back().get();
}

std::string kept_of(const RunDirectory& directory, std::string_view command) {
  const std::string path = directory.path().string();
  return fmt::format("Stopped. What was finished is kept in '{}'; normscope {} --resume {} goes on with it.",
                     path, command, path);
}

bool was_interrupted() {
  return signal_seen != 0;
}

void be_silent_when_stopped() {
  silent = true;
}

int code_of_interrupt() {
  const itimerval none{};
  ::setitimer(ITIMER_REAL, &none, nullptr);
  if (!silent) erase_progress();
  return signal_seen == 0 ? 0 : 128 + signal_seen.load();
}

std::string sentence_of_interrupt() {
  return sentence();
}

}  // namespace normscope::cli
