// Any training as a run directory.
#include "record/training_record.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "normscope/error.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A training whose state is two floats.
class Counting {
 public:
  explicit Counting(TrainingRecord record) : record_(std::move(record)) {
    record_.set_checkpoint_every(3);
    record_.restore([&](const TrainingState& state) {
      state.read("parameters", values_);
      step_ = std::stoull(state.metadata("step"));
      lines_ = {state.lines().begin(), state.lines().end()};
      return step_;
    });
  }
  void run(std::uint64_t until, std::uint64_t end) {
    while (step_ < until) {
      values_[0] += 0.1f;
      values_[1] *= values_[0];
      ++step_;
      record_.append("{\"step\":" + std::to_string(step_) + "}\n");
      if (!record_.checkpoint_due(step_, step_ == end)) continue;
      const FloatTensor tensor{"parameters", {2}, values_};
      record_.write_checkpoint(step_, std::span(&tensor, 1), {{"step", std::to_string(step_)}});
    }
  }
  const std::vector<std::string>& lines() const { return lines_; }
  const TrainingRecord& record() const { return record_; }

 private:
  TrainingRecord record_;
  std::vector<float> values_ = {1, 1};
  std::uint64_t step_ = 0;
  std::vector<std::string> lines_;
};

class AnyTrainingRecord : public ::testing::Test {
 protected:
  Counting begin(const char* name) const {
    return Counting(
        TrainingRecord(place(name), "train lm", provenance(1, 1), R"({"rate": 0.5})", "rate 0.5"));
  }
  Counting resumed(const char* name, const std::string& settings = "rate 0.5") const {
    return Counting(TrainingRecord::open(place(name), settings));
  }
  std::string refusal(const std::string& settings = "rate 0.5") const {
    return message_of([&] { resumed("run", settings); });
  }
  fs::path place(const char* name) const { return temporary_.path() / name; }

  const TemporaryDirectory temporary_;
};

TEST_F(AnyTrainingRecord, StoppedAnywhereLeadsToTheSameBytes) {
  begin("whole").run(10, 10);
  for (std::uint64_t stop = 0; stop <= 10; ++stop) {
    SCOPED_TRACE(stop);
    fs::remove_all(place("run"));
    begin("run").run(stop, 10);
    std::ofstream(place("run") / kMetricsFile, std::ios::app) << "{\"torn";  // by a kill within a line
    Counting again = resumed("run");
    EXPECT_EQ(again.lines().size(), stop == 10 ? 10 : stop / 3 * 3);
    again.run(10, 10);
    EXPECT_EQ(again.record().checkpoint_step(), 10u);
    for (const char* file : {kMetricsFile, kCheckpointFile})
      EXPECT_EQ(content(place("run") / file), content(place("whole") / file)) << file;
  }
}

TEST_F(AnyTrainingRecord, KnowsItsOptionsAndItsCommand) {
  begin("run");
  EXPECT_EQ(TrainingRecord::options(place("run"), "train lm")["rate"], 0.5);
  EXPECT_THROW(TrainingRecord::options(place("run"), "train majority"), InputError);
  expect_mentions(message_of([&] { begin("run"); }), {"holds a run already", "--resume"});
  // What would not help is not advised.
  const std::string other =
      message_of([&] { TrainingRecord(place("run"), "train majority", provenance(1, 1), "{}", ""); });
  expect_mentions(other, {"holds a run already", "'normscope train lm'", "new directory"});
  EXPECT_EQ(other.find("--resume"), std::string::npos) << other;
}

TEST_F(AnyTrainingRecord, GoesOnOnlyWithWhatItWrote) {
  begin("run").run(6, 10);
  expect_mentions(refusal("rate 0.25"), {"they do not fit each other"});
  const fs::path log = place("run") / kMetricsFile, checkpoint = place("run") / kCheckpointFile;
  const std::string lines = content(log), state = content(checkpoint);

  std::ofstream(log) << "{\"step\":7}" << lines.substr(10);
  expect_mentions(refusal(), {"does not begin with the"});
  std::ofstream(log) << lines;

  for (const std::size_t from_end : {1u, 6u}) {  // a byte of each number
    std::string changed = state;
    changed[changed.size() - from_end] ^= 1;
    std::ofstream(checkpoint, std::ios::binary) << changed;
    expect_mentions(refusal(), {"they do not fit each other"});
  }
  std::string changed = state;
  changed.replace(changed.find("\"step\":\"6\""), 10, "\"step\":\"5\"");
  std::ofstream(checkpoint, std::ios::binary) << changed;
  expect_mentions(refusal(), {"they do not fit each other"});

  std::ofstream(checkpoint, std::ios::binary) << state;
  EXPECT_EQ(resumed("run").record().checkpoint_step(), 6u);
  fs::remove(log);
  expect_mentions(refusal(), {"metrics.jsonl", "is missing"});
}

TEST_F(AnyTrainingRecord, NamesThatACheckpointUsesItselfAreRefused) {
  TrainingRecord record(place("run"), "train lm", provenance(1, 1), "{}", "");
  EXPECT_THROW(record.write_checkpoint(1, std::span<const FloatTensor>(), {{"log_hash", "1"}}), Error);
  EXPECT_FALSE(fs::exists(record.checkpoint_path()));
}

TEST(SafetensorsOfFloats, AreTheBytesOfTheSameTensors) {
  const TemporaryDirectory directory;
  const std::vector<float> values = {1.5f, -0.0f, 3e-42f, 7, 8, 9};
  const std::vector<FloatTensor> floats = {{"a", {2, 2}, std::span(values).first(4)},
                                           {"b", {2}, std::span(values).last(2)}};
  std::vector<Tensor> doubles;
  for (const FloatTensor& tensor : floats)
    doubles.push_back(
        {tensor.name, DType::float32, tensor.shape, {tensor.values.begin(), tensor.values.end()}});
  write_safetensors(directory.file("floats"), floats, {{"k", "v"}});
  write_safetensors(directory.file("doubles"), doubles, {{"k", "v"}});
  EXPECT_EQ(content(directory.file("floats")), content(directory.file("doubles")));
  const FloatTensor wrong{"a", {3}, values};
  expect_mentions(message_of([&] { write_safetensors(directory.file("x"), std::span(&wrong, 1)); }),
                  {"has shape (3,) but 6 values"});
}

}  // namespace
}  // namespace normscope
