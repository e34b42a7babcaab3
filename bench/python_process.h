#pragma once
// Competitors written in Python run in a process of their own and answer in JSON.
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "clock.h"
#include "normscope/matrix.h"

namespace normscope::bench {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "normscope-bench-XXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

inline std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; pipe && (got = fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    output.append(buffer.data(), got);
  return output;
}

// A script of bench/ with one argument; quoted for the shell.
inline std::string python_command(const std::string& script, const std::string& argument) {
  return fmt::format("{} {} {}", quoted(BENCH_PYTHON), quoted(BENCH_SOURCE_DIR "/" + script),
                     quoted(argument));
}

// What the script said, and why that is no answer; empty if it is one.
struct PythonAnswer {
  nlohmann::ordered_json value;
  std::string absent;
};
inline PythonAnswer parse_answer(const std::string& text, const std::string& script) {
  PythonAnswer answer{nlohmann::ordered_json::parse(text, nullptr, false), ""};
  if (!answer.value.is_object())
    answer.absent = BENCH_PYTHON " failed to run " + script;
  else if (answer.value.contains("absent"))
    answer.absent = answer.value["absent"].get<std::string>();
  return answer;
}
inline PythonAnswer ask_python(const std::string& script, const std::string& argument) {
  return parse_answer(output_of(python_command(script, argument)), script);
}

// A competitor that stays: it answers every line written to the pipe `questions` of its directory by a line,
// and says one before the first question. An empty answer: it is gone.
class PythonDialogue {
 public:
  PythonDialogue(const std::string& command, const std::filesystem::path& directory)
      : pipe_((directory / "questions").string()) {
    if (mkfifo(pipe_.c_str(), S_IRUSR | S_IWUSR) == 0) answers_.reset(popen(command.c_str(), "r"));
  }

  // Before any question.
  std::string greeting() { return line(); }
  std::string ask(const std::string& question) {
    if (!questions_.is_open()) questions_.open(pipe_);
    questions_ << question << std::endl;
    return line();
  }

 private:
  std::string line() {
    std::string text;
    for (int c = 0; answers_ && (c = fgetc(answers_.get())) != EOF && c != '\n';) {
      text += static_cast<char>(c);
    }
    return text;
  }

  std::string pipe_;
  std::unique_ptr<FILE, int (*)(FILE*)> answers_{nullptr, pclose};
  std::ofstream questions_;  // closed first, which ends the competitor
};

// A transformer in PyTorch, held by a script that was told about it by files of its directory. It answers how
// long a pass took, and where it is asked to, writes the final tokens.
class PyTorchModel {
 public:
  const std::string& absent() const { return absent_; }
  const std::string& name() const { return name_; }

 protected:
  // Not begun: nobody asked for it.
  void begin(const std::string& script) {
    dialogue_ = std::make_unique<PythonDialogue>(python_command(script, directory_.path().string()),
                                                 directory_.path());
    const PythonAnswer greeting = parse_answer(dialogue_->greeting(), script);
    absent_ = greeting.absent;
    if (absent_.empty())
      name_ = fmt::format("PyTorch {}, {} threads", greeting.value["torch"].get<std::string>(),
                          greeting.value["threads"].get<int>());
  }
  Duration ask(const nlohmann::ordered_json& question) {
    const auto answer = nlohmann::ordered_json::parse(dialogue_->ask(question.dump()), nullptr, false);
    if (!answer.is_object()) throw std::runtime_error("PyTorch stopped answering");
    // Its threads wait actively for a while; then the machine is free for the next contestant.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return {answer["cpu"].get<double>(), answer["wall"].get<double>()};
  }
  // each(ours, theirs) of the final tokens of every sample, once they are written; false if they are not all
  // there.
  template <class Each>
  bool compare(const std::vector<Matrix<float>>& ours, const Each& each) const {
    std::ifstream file(tokens_file(), std::ios::binary);
    for (const Matrix<float>& x : ours) {
      std::vector<float> theirs(x.values().size());
      file.read(reinterpret_cast<char*>(theirs.data()),  // NOLINT: bytes of floats
                static_cast<std::streamsize>(theirs.size() * sizeof(float)));
      each(std::span(x.values()), std::span<const float>(theirs));
    }
    return static_cast<bool>(file);
  }
  std::string tokens_file() const { return directory_.path() / "output.f32"; }
  const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<PythonDialogue> dialogue_;
  std::string absent_ = "not asked", name_ = "PyTorch";
};

}  // namespace normscope::bench
