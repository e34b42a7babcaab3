#pragma once
// The questions Python can ask: for each its options, its study, and an answer that is held until somebody looks at it.
// Nothing here knows Python.
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "normscope/tensor_file.h"
#include "objects.h"
#include "options.h"
#include "report/carded_page.h"
#include "study/context.h"
#include "study/model_text.h"
#include "study/scan.h"

namespace normscope::python {

// What a call has beside its options.
struct Call {
  std::optional<std::uint64_t> seed;
  int threads = 0;
  std::string out;                    // the directory of the run; empty: none
  std::optional<Tensor> array, bias;  // in place of files
  HeldText held;
};

// How far it is, for whoever waits; from any thread.
struct Watch {
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> done = 0, total = 0;
  void note(std::string_view sentence) {
    const std::lock_guard lock(mutex);
    notes.emplace_back(sentence);
  }
  std::mutex mutex;
  std::vector<std::string> notes;
};

struct Answer {
  std::string command;
  std::function<std::string(int indent)> json;
  std::function<void(ObjectSink&)> object;
  std::function<CardedPage()> page;
  // Where the files of the run are, if they are; what is not in memory can be copied from there only.
  std::filesystem::path directory = {};
  std::function<void(const std::filesystem::path&)> save = {};  // none: copy the directory
  double seconds = 0;  // that the study took, all of it, without Python
};

struct Question {
  const char *name, *sentence, *result;  // result: the class of its answers
  std::vector<OptionNote> (*options)();
  Answer (*ask)(const OptionValues& values, const Call& call, Watch& watch);
};

std::span<const Question> questions();
// The classes of all answers.
ClassNotes answer_classes();
// What a live model showed, as `scan` would answer of its directory.
Answer scan_trace(const LiveTrace& trace, const OptionValues& values, const Call& call, Watch& watch);
// What `normscope doctor --json` printed.
Answer read_doctor(const std::string& json);
// A run that was kept. Throws InputError if there is none, it has not ended, or it is damaged.
Answer load_answer(const std::filesystem::path& directory);

}  // namespace normscope::python
