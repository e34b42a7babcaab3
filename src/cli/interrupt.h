#pragma once
// Ctrl-C and SIGTERM end a command within a second, with one sentence that says what was kept.
//
// The first signal asks the executors to stop, which they do between two pieces; if that takes too long the
// process ends all the same. Files are whole or absent either way (record.h). A second signal ends it at
// once.
#include <atomic>
#include <string>
#include <string_view>

#include "normscope/record.h"

namespace normscope::cli {

// From here on; to be called once. The flag is for executors (executor.h); who else must stop sets it, too.
std::atomic<bool>& watch_for_interrupts();
bool was_interrupted();
// Of a process that is not the one to speak, or that has had its last word: it ends as the others do, without another.
void be_silent_when_stopped();

// What a person should know if the run is stopped from now on: what was kept and how to go on. once_there: a
// file; until there is one, `before` is said.
void set_kept(const std::string& sentence, const std::string& once_there = "",
              const std::string& before = "");

// Of a run that can be resumed.
std::string kept_of(const RunDirectory& directory, std::string_view command);

// To be called once what was interrupted has ended: erases the line of progress; the exit code, 128 + the signal,
// or 0 if it was no signal that stopped it; and the sentence.
int code_of_interrupt();
std::string sentence_of_interrupt();

}  // namespace normscope::cli
