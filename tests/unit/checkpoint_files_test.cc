// Where the files of a model lie, how they are cut, and its tokenizer.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "support/opened_checkpoint.h"

namespace normscope {
namespace {

using nlohmann::json;

// Sets a variable of the environment for one test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (old_)
      ::setenv(name_, old_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// What is published under refs/main of an id's folder in a Hugging Face cache: links into blobs.
void cache_as(const TinyCheckpoint& model, const std::filesystem::path& cache, const std::string& folder) {
  const auto at = cache / folder;
  std::filesystem::create_directories(at / "blobs");
  std::filesystem::create_directories(at / "refs");
  std::filesystem::create_directories(at / "snapshots" / "abc123");
  write_safetensors((at / "blobs" / "1").string(), model.list());
  std::ofstream(at / "blobs" / "2") << model.config.dump();
  std::filesystem::create_symlink("../../blobs/1", at / "snapshots" / "abc123" / "model.safetensors");
  std::filesystem::create_symlink("../../blobs/2", at / "snapshots" / "abc123" / "config.json");
  std::ofstream(at / "refs" / "main") << "abc123\n";
}

TEST(CheckpointFiles, HalfPrecisionAndDoubleBecomeFloat) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float64}) {
    TinyCheckpoint model = tiny_bert();
    for (auto& [name, tensor] : model.tensors) {
      tensor.dtype = dtype;
      for (double& value : tensor.values) value = std::ldexp(std::fmod(value * 1024, 7) - 3, -4);
    }
    const Checkpoint checkpoint = opened(model);
    expect_map(model, "bert.encoder.layer.0.output.dense.weight", checkpoint.weights->layer(0).down);
  }
}

TEST(CheckpointFiles, TheOnlySafetensorsFileMayHaveAnyName) {
  const TemporaryDirectory directory;
  const TinyCheckpoint model = tiny_bert();
  const std::string path = model.write(directory, "model.fp16.safetensors");
  EXPECT_EQ(open_checkpoint(path).weights->spec().layers, 2u);
  model.write(directory, "other.safetensors");
  expect_mentions(message_of([&] { open_checkpoint(path); }),
                  {"model.fp16.safetensors", "other.safetensors", "index.json"});
}

TEST(CheckpointFiles, SayWhatWasLookedForAndThatPicklesAreNotRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.path().string();
  expect_mentions(message_of([&] { open_checkpoint(path); }), {"config.json"});
  directory.file("config.json", tiny_bert().config.dump());
  expect_mentions(message_of([&] { open_checkpoint(path); }), {"model.safetensors", "index.json"});
  directory.file("pytorch_model.bin", "PK");
  expect_mentions(message_of([&] { open_checkpoint(path); }),
                  {"pickle", "pytorch_model.bin", "safe_serialization"});
}

// A BERT in two files.
struct Shards {
  TinyCheckpoint model = tiny_bert();
  json index;
  std::vector<Tensor> first, second;

  Shards() {
    for (const auto& [name, tensor] : model.tensors) {
      const bool early = name.find("layer.1") == std::string::npos;
      (early ? first : second).push_back(tensor);
      index["weight_map"][name] = early ? "a.safetensors" : "b.safetensors";
    }
  }
  std::string write(const TemporaryDirectory& directory) const {
    directory.file("config.json", model.config.dump());
    directory.file("model.safetensors.index.json", index.dump());
    write_safetensors(directory.file("a.safetensors"), first);
    write_safetensors(directory.file("b.safetensors"), second);
    return directory.path().string();
  }
  std::string refused() const {
    const TemporaryDirectory directory;
    const std::string path = write(directory);
    return message_of([&] { open_checkpoint(path); });
  }
};

TEST(CheckpointShards, AreReadAsOne) {
  const Shards shards;
  const TemporaryDirectory directory;
  const Checkpoint checkpoint = open_checkpoint(shards.write(directory));
  expect_map(shards.model, "bert.encoder.layer.0.output.dense.weight", checkpoint.weights->layer(0).down);
  expect_map(shards.model, "bert.encoder.layer.1.output.dense.weight", checkpoint.weights->layer(1).down);
}

TEST(CheckpointShards, TheIndexNamesFilesOfItsOwnDirectoryOnly) {
  for (const std::string name : {"../b.safetensors", "/b.safetensors", "..", "", "sub/b.safetensors"}) {
    Shards shards;
    shards.index["weight_map"]["bert.encoder.layer.1.output.dense.weight"] = name;
    expect_mentions(shards.refused(), {"index.json", "bert.encoder.layer.1.output.dense.weight"});
  }
}

TEST(CheckpointShards, EveryTensorIsInItsFileAndInNoOther) {
  Shards swapped;
  swapped.index["weight_map"]["bert.encoder.layer.1.output.dense.weight"] = "a.safetensors";
  expect_mentions(swapped.refused(),
                  {"a.safetensors", "holds no tensor 'bert.encoder.layer.1.output.dense.weight'"});
  Shards twice;
  twice.second.push_back(twice.first.front());
  expect_mentions(twice.refused(), {"b.safetensors", twice.first.front().name, "another file"});
  Shards missing;
  missing.index["weight_map"]["extra"] = "c.safetensors";
  expect_mentions(missing.refused(), {"c.safetensors", "missing"});
  Shards number;
  number.index["weight_map"]["extra"] = 3;
  expect_mentions(number.refused(), {"extra", "index.json"});
  Shards without;
  without.index.erase("weight_map");
  expect_mentions(without.refused(), {"weight_map", "index.json"});
}

TEST(CheckpointThreads, ReadLayersAtOnce) {
  const TinyCheckpoint model = tiny_bert();
  const Checkpoint checkpoint = opened(model);
  const BlockWeights<float> expected = checkpoint.weights->layer(1);
  std::vector<std::thread> threads;
  std::vector<Matrix<float>> found(4);
  for (Matrix<float>& one : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) one = checkpoint.weights->layer(1).down;
    });
  for (std::thread& thread : threads) thread.join();
  for (const Matrix<float>& one : found) EXPECT_EQ(one.values(), expected.down.values());
}

TEST(CheckpointCache, IdsAreFoundWhereHuggingFaceKeepsThem) {
  const TemporaryDirectory home;
  const TinyCheckpoint model = tiny_bert();
  cache_as(model, home.path() / "hub", "models--some-org--tiny.bert");
  cache_as(model, home.path() / "hub", "models--tiny");
  {
    const Variable cache("HF_HUB_CACHE", (home.path() / "hub").string());
    EXPECT_EQ(open_checkpoint("some-org/tiny.bert").weights->spec().layers, 2u);
  }
  const Variable no_cache("HF_HUB_CACHE", ""), hf_home("HF_HOME", home.path().string());
  EXPECT_EQ(open_checkpoint("tiny").weights->spec().layers, 2u);
  const std::string main = (home.path() / "hub" / "models--tiny" / "refs" / "main").string();
  std::ofstream(main) << "../../..";
  // Not followed; the only snapshot is taken.
  EXPECT_TRUE(open_checkpoint("tiny").path.ends_with("snapshots/abc123"));
}

TEST(CheckpointCache, AnAbsentModelSaysHowToGetIt) {
  const TemporaryDirectory empty;
  const Variable cache("HF_HUB_CACHE", empty.path().string()), data("NORMSCOPE_DATA", empty.path().string());
  expect_mentions(message_of([] { open_checkpoint("org/name"); }), {"huggingface-cli download org/name"});
  expect_mentions(message_of([] { open_checkpoint("minilm"); }), {"normscope data get minilm"});
  expect_mentions(message_of([] { open_checkpoint("no/such/directory"); }), {"does not exist"});
  expect_mentions(message_of([] { open_checkpoint(""); }), {"not the name"});
}

TEST(CheckpointCache, FetchedModelsAreFoundByName) {
  const TemporaryDirectory data;
  const Variable variable("NORMSCOPE_DATA", data.path().string());
  std::filesystem::create_directory(data.path() / "minilm");
  const TinyCheckpoint model = tiny_bert();
  std::ofstream(data.path() / "minilm" / "config.json") << model.config.dump();
  write_safetensors((data.path() / "minilm" / "model.fp16.safetensors").string(), model.list());
  EXPECT_EQ(open_checkpoint("minilm").path, (data.path() / "minilm").string());
}

TEST(CheckpointTokenizer, IsReadFromVocabularyFilesOrItsAbsenceExplained) {
  const TemporaryDirectory directory;
  const std::string path = tiny_bert().write(directory);
  expect_mentions(open_checkpoint(path).no_tokenizer, {"tokenizer.json", "vocab.txt"});
  directory.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nHello\n");
  const auto word = [&] { return open_checkpoint(path).tokenizer.value().encode("Hello").at(1).id; };
  EXPECT_EQ(word(), 5u);
  directory.file("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(word(), 6u);
  directory.file("tokenizer.json", "{");
  const Checkpoint broken = open_checkpoint(path);
  EXPECT_FALSE(broken.tokenizer);
  expect_mentions(broken.no_tokenizer, {"tokenizer.json"});
}

TEST(CheckpointTokenizer, Gpt2HasVocabJsonAndMerges) {
  const TemporaryDirectory directory;
  const std::string path = tiny_gpt2().write(directory);
  directory.file("vocab.json", R"({"a":0,"b":1,"ab":2})");
  directory.file("merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(open_checkpoint(path).tokenizer.value().encode("ab").at(0).id, 2u);
}

}  // namespace
}  // namespace normscope
