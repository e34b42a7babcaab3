#include "record/piece_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/pack.h"
#include "io/replace_file.h"
#include "normscope/error.h"
#include "normscope/record.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "normscope pieces 1\n", kEnding = ".pieces";
constexpr const char* kPlan = "plan.json";
constexpr std::size_t kMostPlan = 1 << 20;
// Pieces that end within this time share a file; of a long run a hundredth of its time.
constexpr double kSeconds = 1;

struct KeptPiece {
  std::string work;
  std::uint64_t piece = 0;
  std::string result;
};

// None if there is no regular file of that name: a link could lead anywhere, a pipe would hold us up.
std::optional<std::string> bytes_of(const fs::path& file, std::size_t most) {
  std::error_code unknown;
  if (!fs::is_regular_file(fs::symlink_status(file, unknown))) return std::nullopt;
  const auto size = fs::file_size(file, unknown);
  if (unknown || size > most) return std::nullopt;
  std::string bytes(size, '\0');
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(size))) return std::nullopt;
  return bytes;
}

bool may_be_ours(const fs::path& file) {
  return file.extension() == kEnding || file.filename() == kPlan ||
         io::is_temporary_name(file.filename().string());
}

}  // namespace

std::uint64_t checksum(std::string_view bytes, std::uint64_t before) {
  for (const char byte : bytes) before = (before ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return before;
}

PieceStore::PieceStore(const fs::path& run, std::uint64_t fingerprint)
    : folder_(run / kPiecesFolder),
      prefix_(fmt::format("{:016x}-", fingerprint)),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {
  std::error_code none;
  if (!fs::is_directory(fs::symlink_status(folder_, none))) return;
  io::remove_stale_temporaries(folder_);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder_, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix_) && name.ends_with(kEnding)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) read(file);
  if (damaged_ > 0)
    damage_ = fmt::format("{} file{} of finished pieces in '{}' {} damaged; {} pieces are done again.",
                          damaged_, damaged_ == 1 ? "" : "s", folder_.string(),
                          damaged_ == 1 ? "was" : "were", damaged_ == 1 ? "its" : "their");
}

void PieceStore::read(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string number = name.substr(prefix_.size(), name.size() - prefix_.size() - kEnding.size());
  std::size_t value = 0;
  for (const char digit : number) value = digit >= '0' && digit <= '9' ? 10 * value + (digit - '0') : value;
  next_ = std::max(next_, value + 1);
  constexpr std::size_t sum_bytes = sizeof(std::uint64_t);
  const auto bytes = bytes_of(file, std::size_t{1} << 40);
  try {
    if (!bytes || !bytes->starts_with(kMagic) || bytes->size() < kMagic.size() + sum_bytes)
      throw Error("not ours");
    const std::string_view all(*bytes), content = all.substr(0, all.size() - sum_bytes);
    if (unpacked<std::uint64_t>(all.substr(content.size())) != checksum(content)) throw Error("changed");
    Unpacker from(content.substr(kMagic.size()));
    while (!from.empty()) {
      auto piece = from.take<KeptPiece>();
      found_[{std::move(piece.work), piece.piece}] = std::move(piece.result);
    }
  } catch (const Error&) {
    ++damaged_;
    std::error_code ignored;
    fs::remove(file, ignored);
  }
}

std::optional<std::string> PieceStore::take(const std::string& work, std::size_t piece) {
  const auto found = found_.find({work, piece});
  if (found == found_.end()) return std::nullopt;
  std::string result = std::move(found->second);
  found_.erase(found);
  return result;
}

void PieceStore::add(const std::string& work, std::size_t piece, std::string_view result) {
  pack(written_, work);
  pack(written_, std::uint64_t{piece});
  pack(written_, std::uint64_t{result.size()});
  written_ += result;
  ++waiting_;
  flush_if_due();
}

void PieceStore::flush_if_due() {
  const auto now = std::chrono::steady_clock::now();
  const auto seconds = [&](auto since) { return std::chrono::duration<double>(now - since).count(); };
  if (seconds(last_) >= std::max(kSeconds, seconds(begin_) / 100)) flush();
}

void PieceStore::flush() {
  last_ = std::chrono::steady_clock::now();
  if (waiting_ == 0) return;
  if (first_time_) std::exchange(first_time_, nullptr)();
  std::error_code failed;  // which the writing then says
  fs::create_directories(folder_, failed);
  if (!plan_.empty()) write_file_atomically(folder_ / kPlan, std::exchange(plan_, {}));
  std::string bytes(kMagic);
  bytes += written_;
  pack(bytes, checksum(bytes));
  write_file_atomically(folder_ / fmt::format("{}{:06}{}", prefix_, next_++, kEnding), bytes);
  written_.clear();
  waiting_ = 0;
}

void PieceStore::drop_waiting() {
  written_.clear();
  waiting_ = 0;
}

std::optional<std::string> plan_of_unfinished_run(const fs::path& run) {
  return bytes_of(run / kPiecesFolder / kPlan, kMostPlan);
}

void remove_pieces(const fs::path& run) {
  const fs::path folder = run / kPiecesFolder;
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(folder, ignored))) return;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (may_be_ours(entry.path()) && !fs::is_directory(entry.symlink_status(ignored)))
      files.push_back(entry.path());
  for (const fs::path& file : files) fs::remove(file, ignored);
  fs::remove(folder, ignored);  // if it holds nothing else
}

}  // namespace normscope
