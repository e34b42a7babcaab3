#include "fetch/sha512.h"

#include <openssl/evp.h>

#include "normscope/error.h"

namespace normscope::fetch {
namespace {

// Only memory, or a library that is told to have no SHA-512, can be missing.
void check(int done) {
  if (done != 1) throw Error("OpenSSL could not compute a SHA-512; check its configuration.");
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

Context new_context() {
  Context context(EVP_MD_CTX_new());
  check(context ? 1 : 0);
  return context;
}

}  // namespace

struct Sha512::State {
  Context context = new_context();
};

Sha512::Sha512() : state_(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(state_->context.get(), EVP_sha512(), nullptr));
}

Sha512::~Sha512() = default;

void Sha512::add(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

Digest Sha512::digest() const {
  const Context ended = new_context();
  check(EVP_MD_CTX_copy_ex(ended.get(), state_->context.get()));
  Digest result{};
  check(EVP_DigestFinal_ex(ended.get(), result.data(), nullptr));
  return result;
}

std::string integrity_of(const Digest& digest) {
  constexpr std::size_t kLength = 4 * ((std::tuple_size_v<Digest> + 2) / 3);
  std::array<unsigned char, kLength + 1> text{};
  EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest.size()));
  return "sha512-" + std::string(text.begin(), text.end() - 1);
}

}  // namespace normscope::fetch
