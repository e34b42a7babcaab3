#pragma once
// Competitors written in Python run in a process of their own and answer in JSON.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

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

}  // namespace normscope::bench
