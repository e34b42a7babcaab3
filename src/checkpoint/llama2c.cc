#include "checkpoint/llama2c.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "checkpoint/small_file.h"
#include "io/dtype.h"
#include "io/file_errors.h"

namespace normscope::checkpoint {
namespace {

using io::reject;

constexpr std::size_t kNumbers = 7, kHeaderBytes = kNumbers * 4;
constexpr std::uint32_t kNewerMagic = 0x616b3432;  // of versions 1 and 2

struct Header {
  std::size_t width, feed_forward, layers, heads, key_heads, vocabulary, positions;
  bool shared;  // the classifier is the word embedding
  std::size_t head_width() const { return width / heads; }
};

std::int32_t little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return static_cast<std::int32_t>(value);
}

[[noreturn]] void reject_file(const std::string& label, const std::string& what) {
  reject(label, what, "name a .bin file exported with llama2.c's export.py --version 0");
}

Header read_header(const io::Bytes& bytes, const std::string& label) {
  if (bytes.size() < kHeaderBytes) io::reject_truncated(label, kHeaderBytes, bytes.size());
  std::array<std::byte, kHeaderBytes> raw{};
  bytes.read(0, raw);
  if (std::memcmp(raw.data(), "PK\x03\x04", 4) == 0 || raw[0] == std::byte{0x80})
    reject(
        label, "is a Python pickle, which can run any program and is not read",
        "convert the model with save_pretrained(directory, safe_serialization=True) of transformers and name "
        "the directory");
  if (std::memcmp(raw.data(), "version https", 13) == 0)
    reject(label, "is a Git LFS pointer, not the file itself", "fetch it with git lfs pull");
  std::array<std::int64_t, kNumbers> numbers{};
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = little_endian(std::span(raw).subspan(4 * i, 4));
  if (static_cast<std::uint32_t>(numbers[0]) == kNewerMagic)
    reject_file(label, "is a llama2.c file of version 1 or later, and only version 0 is read");
  constexpr const char* kNames[kNumbers] = {"dim",      "hidden_dim", "layers",   "heads",
                                            "kv_heads", "vocabulary", "positions"};
  constexpr std::int64_t kMost[kNumbers] = {1 << 20, 1 << 22, 10'000, 1 << 20, 1 << 20, 1 << 28, 1 << 28};
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const std::int64_t value = i == 5 ? std::abs(numbers[i]) : numbers[i];
    if (value < 1 || value > kMost[i])
      reject_file(label,
                  fmt::format("is not a llama2.c file: its header says {} = {}, where 1 to {} is expected",
                              kNames[i], numbers[i], kMost[i]));
  }
  const auto number = [&](std::size_t i) { return static_cast<std::size_t>(std::abs(numbers[i])); };
  const Header header{number(0), number(1), number(2), number(3),
                      number(4), number(5), number(6), numbers[5] > 0};
  if (header.width % header.heads != 0 || header.heads % header.key_heads != 0 ||
      header.head_width() % 2 != 0)
    reject_file(label,
                fmt::format("is not a llama2.c file: its header says {} heads, {} of keys, for a width of {}",
                            header.heads, header.key_heads, header.width));
  return header;
}

class Llama2cTensors : public TensorSource {
 public:
  Llama2cTensors(std::unique_ptr<io::Bytes> bytes, std::string label, const Header& header)
      : bytes_(std::move(bytes)), label_(std::move(label)) {
    const std::size_t d = header.width, f = header.feed_forward, k = header.key_heads * header.head_width();
    require_length(header);
    add("model.embed_tokens.weight", {header.vocabulary, d});
    add_layers("input_layernorm", {d}, header);
    add_layers("self_attn.q_proj", {d, d}, header);
    add_layers("self_attn.k_proj", {k, d}, header);
    add_layers("self_attn.v_proj", {k, d}, header);
    add_layers("self_attn.o_proj", {d, d}, header);
    add_layers("post_attention_layernorm", {d}, header);
    add_layers("mlp.gate_proj", {f, d}, header);
    add_layers("mlp.down_proj", {d, f}, header);
    add_layers("mlp.up_proj", {f, d}, header);
    add("model.norm.weight", {d});
    end_ += std::uint64_t{header.positions} * header.head_width() * sizeof(float);
    if (!header.shared) add("lm_head.weight", {header.vocabulary, d});
  }

  const TensorInfo* find(const std::string& name) const override {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second.info;
  }
  void read_rows(const std::string& name, std::size_t first, std::span<float> into) const override {
    const Place& place = places_.at(name);
    const std::uint64_t width = place.info.shape.size() == 1 ? 1 : place.info.shape[1];
    const std::uint64_t begin = place.begin + first * width * sizeof(float);
    const std::span<std::byte> raw = std::as_writable_bytes(into);
    bytes_->read(begin, raw);
    if constexpr (std::endian::native == std::endian::big)
      io::decode(DType::float32, std::vector<std::byte>(raw.begin(), raw.end()), into, 0, label_);
  }
  std::string label() const override { return label_; }
  std::string label_of(const std::string&) const override { return label_; }

  std::uint64_t end() const { return end_; }  // of the weights
  const io::Bytes& bytes() const { return *bytes_; }

 private:
  struct Place {
    TensorInfo info;
    std::uint64_t begin;
  };

  // In double first: the header's numbers may stand for more than 64 bits of bytes. Only then are the names
  // of all layers worth their memory.
  void require_length(const Header& header) const {
    const auto d = static_cast<double>(header.width), f = static_cast<double>(header.feed_forward);
    const auto k = static_cast<double>(header.key_heads * header.head_width());
    const double words = static_cast<double>(header.vocabulary) * d * (header.shared ? 1 : 2);
    const double layer = 2 * d + 2 * d * d + 2 * k * d + 3 * d * f;
    const double angles = static_cast<double>(header.positions) * static_cast<double>(header.head_width());
    const double needed =
        kHeaderBytes + 4 * (words + static_cast<double>(header.layers) * layer + d + angles);
    if (needed > static_cast<double>(bytes_->size()))
      reject_file(label_,
                  fmt::format("is truncated or not a llama2.c file: its header stands for {:.0f} bytes, "
                              "found {}",
                              needed, bytes_->size()));
  }

  void add(const std::string& name, std::vector<std::size_t> shape) {
    std::uint64_t size = sizeof(float);
    for (const std::size_t extent : shape) size *= extent;
    places_.emplace(name, Place{{name, DType::float32, std::move(shape)}, end_});
    end_ += size;
  }
  void add_layers(const char* name, const std::vector<std::size_t>& shape, const Header& header) {
    for (std::size_t layer = 0; layer < header.layers; ++layer)
      add(fmt::format("model.layers.{}.{}.weight", layer, name), shape);
  }

  std::unique_ptr<io::Bytes> bytes_;
  std::string label_;
  std::unordered_map<std::string, Place> places_;
  std::uint64_t end_ = kHeaderBytes;
};

ModelPlan plan_of(const Header& header) {
  ModelPlan plan;
  plan.family = llama_family();
  plan.tie_word_embeddings = header.shared;
  ModelSpec& spec = plan.spec;
  spec.family = "llama";
  spec.vocabulary = header.vocabulary;
  spec.layers = header.layers;
  spec.positions = header.positions;
  spec.causal = true;
  BlockSpec& block = spec.block;
  block.width = header.width;
  block.heads = header.heads;
  block.key_heads = header.key_heads;
  block.feed_forward = header.feed_forward;
  block.activation = Activation::silu;
  block.gated = true;
  block.norm = parse_norm("rmsnorm");
  block.norm.affine = true;
  block.norm.eps = 1e-5;
  block.placement = Placement::pre;
  block.rotary = {.frequencies = rotary_frequencies(header.head_width(), 10000), .neighbours = true};
  spec.final_norm = block.norm;
  return plan;
}

}  // namespace

Llama2c read_llama2c(std::unique_ptr<io::Bytes> bytes, const std::string& label) {
  const Header header = read_header(*bytes, label);
  auto tensors = std::make_shared<Llama2cTensors>(std::move(bytes), label, header);
  const std::uint64_t after = tensors->bytes().size() - tensors->end();
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 26;
  if (after > kLongest)
    reject_file(label, fmt::format("is longer than its header says: {} bytes follow the weights", after));
  std::string tokenizer(after, '\0');
  tensors->bytes().read(tensors->end(), std::as_writable_bytes(std::span(tokenizer)));
  return {plan_of(header), std::move(tensors), std::move(tokenizer)};
}

Llama2c open_llama2c(const std::filesystem::path& path) {
  const std::string label = io::quoted_path(path.string());
  if (!is_file(path)) reject(label, "is not a file, or does not exist", "check the path");
  return read_llama2c(io::open_bytes(path.string(), 0), label);
}

}  // namespace normscope::checkpoint
