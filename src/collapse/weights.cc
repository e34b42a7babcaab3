// Weights and tokens drawn at random. Every row of every matrix has a random stream of its own, so that any
// number of threads draws the same.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/decompose.h"
#include "core/read_number.h"
#include "normscope/collapse.h"
#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

constexpr std::size_t kVocabulary = 30522;  // BERT's

// What a stream is for; layer and row follow in its lower bits.
enum class Purpose : std::uint64_t { query_key = 1, value, output, up, down, tokens, words, word, position };

std::uint64_t stream(Purpose purpose, std::uint64_t high, std::uint64_t low) {
  return static_cast<std::uint64_t>(purpose) << 56 | high << 28 | low;
}

std::optional<double> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() <= prefix.size() + 1 || name[prefix.size()] != ':') return {};
  const auto value = read_number<double>(name.substr(prefix.size() + 1));
  if (!value || !std::isfinite(*value)) {
    throw InputError(fmt::format("'{}' needs a number after the colon, as in {}:2.", name, prefix));
  }
  return value;
}

double bound_of(const MatrixInit& init, std::size_t rows, std::size_t cols) {
  if (init.kind == MatrixInit::Kind::xavier) return std::sqrt(6.0 / static_cast<double>(rows + cols));
  return init.number > 0 ? init.number : 1 / std::sqrt(static_cast<double>(rows));
}

// Orthonormal columns (rows, if there are fewer) by QR of a Gaussian matrix with the signs that make it Haar.
void make_orthonormal(Matrix<double>& w) {
  const auto rows = static_cast<Eigen::Index>(w.rows()), cols = static_cast<Eigen::Index>(w.cols());
  Eigen::Map<RowMatrix> values(w.data(), rows, cols);
  const bool wide = cols > rows;
  const Eigen::MatrixXd tall = wide ? Eigen::MatrixXd(values.transpose()) : Eigen::MatrixXd(values);
  const Qr qr = householder_qr(tall);
  Eigen::MatrixXd q = qr.thin_q();
  for (Eigen::Index j = 0; j < q.cols(); ++j) {
    if (qr.packed(j, j) < 0) q.col(j) *= -1;
  }
  values = wide ? Eigen::MatrixXd(q.transpose()) : q;
}

Matrix<double> draw(const MatrixInit& init, std::size_t rows, std::size_t cols, Purpose purpose,
                    std::size_t layer, std::size_t column, std::uint64_t seed, const Executor& executor) {
  using Kind = MatrixInit::Kind;
  Matrix<double> w(rows, cols);
  switch (init.kind) {
    case Kind::zero:
      return w;
    case Kind::identity:
    case Kind::jordan:
      for (std::size_t i = 0; i < std::min(rows, cols); ++i) {
        w(i, i) = 1;
        if (init.kind == Kind::jordan && i + 1 < cols) w(i, i + 1) = init.number;
      }
      return w;
    case Kind::given:
      if (init.given.rows() != rows || init.given.cols() != cols) {
        throw InputError(fmt::format("The given matrix is {} x {}; {} x {} is needed.", init.given.rows(),
                                     init.given.cols(), rows, cols));
      }
      return init.given;
    default:
      break;
  }
  const double bound = init.kind == Kind::orthogonal ? 1 : bound_of(init, rows, cols);
  executor.for_each(rows, [&](std::size_t i) {
    Random random(seed, stream(purpose, layer, column << 20 | i));
    for (double& value : w[i]) {
      value = init.kind == Kind::xavier ? bound * (2 * random.uniform() - 1) : bound * random.normal();
    }
  });
  if (init.kind == Kind::orthogonal) make_orthonormal(w);
  return w;
}

// The weights of every output unit, a column, to norm 1.
void normalize_columns(Matrix<double>& w) {
  std::vector<double> squares(w.cols());
  for (std::size_t i = 0; i < w.rows(); ++i) {
    for (std::size_t j = 0; j < w.cols(); ++j) squares[j] += w(i, j) * w(i, j);
  }
  for (std::size_t i = 0; i < w.rows(); ++i) {
    for (std::size_t j = 0; j < w.cols(); ++j) {
      if (squares[j] > 0) w(i, j) /= std::sqrt(squares[j]);
    }
  }
}

// Word k of Zipf's law, P ∝ 1/(k + 1): the logarithm of its rank is uniform, up to rounding to whole ranks.
std::size_t zipf_word(Random& random) {
  const double rank = std::exp(random.uniform() * std::log(static_cast<double>(kVocabulary) + 1));
  return std::min(kVocabulary, static_cast<std::size_t>(rank)) - 1;
}

void add_embedding(std::span<double> token, Purpose purpose, std::size_t index, std::uint64_t seed) {
  Random random(seed, stream(purpose, 0, index));
  for (double& value : token) value += 0.02 * random.normal();
}

}  // namespace

MatrixInit parse_matrix_init(std::string_view name) {
  using Kind = MatrixInit::Kind;
  if (name == "bert") return {Kind::gaussian, 0.02, {}};
  if (name == "gaussian") return {Kind::gaussian, 0, {}};
  if (name == "xavier") return {Kind::xavier, 0, {}};
  if (name == "orthogonal") return {Kind::orthogonal, 0, {}};
  if (name == "identity") return {Kind::identity, 0, {}};
  if (name == "zero") return {Kind::zero, 0, {}};
  if (const auto s = number_after(name, "gaussian")) {
    if (*s <= 0) throw InputError(fmt::format("'{}': the standard deviation must be above 0.", name));
    return {Kind::gaussian, *s, {}};
  }
  if (const auto w = number_after(name, "jordan")) return {Kind::jordan, *w, {}};
  throw InputError(
      fmt::format("There are no weights '{}'; there are bert, gaussian, gaussian:S, xavier, orthogonal, "
                  "identity, zero, jordan:W, and files of a matrix (.npy, .npz, .safetensors).",
                  name));
}

std::string name_of(const MatrixInit& init) {
  using Kind = MatrixInit::Kind;
  switch (init.kind) {
    case Kind::gaussian:
      return init.number > 0 ? fmt::format("gaussian:{}", init.number) : "gaussian";
    case Kind::xavier:
      return "xavier";
    case Kind::orthogonal:
      return "orthogonal";
    case Kind::identity:
      return "identity";
    case Kind::zero:
      return "zero";
    case Kind::jordan:
      return fmt::format("jordan:{}", init.number);
    case Kind::given:
      break;
  }
  return "given";
}

bool is_orthogonal(MatrixView<const double> w) {
  if (w.rows != w.cols) return false;
  for (std::size_t a = 0; a < w.cols; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (std::size_t i = 0; i < w.rows; ++i) dot += w(i, a) * w(i, b);
      if (!(std::fabs(dot - (a == b)) <= 1e-6)) return false;
    }
  }
  return true;
}

TokenStart parse_token_start(std::string_view name) {
  for (const auto kind : {TokenStart::Kind::gaussian, TokenStart::Kind::sphere, TokenStart::Kind::bert}) {
    if (name == name_of(kind)) return {kind, {}, {}};
  }
  throw InputError(
      fmt::format("Tokens cannot start as '{}'; there are gaussian, sphere, bert, text:FILE, and "
                  "files of tokens (.npy, .npz, .safetensors).",
                  name));
}

TokenStart text_start(std::string_view text) {
  TokenStart start{TokenStart::Kind::text, {}, {}};
  const auto is_letter = [](char c) {
    return static_cast<unsigned char>(c) >= 128 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  };
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (is_letter(text[i]) && end < text.size() && is_letter(text[end])) ++end;
    std::string word(text.substr(i, end - i));
    i = end;
    if (static_cast<unsigned char>(word[0]) <= ' ' || word[0] == 127) continue;
    for (char& c : word) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    start.words.push_back(numbers.emplace(std::move(word), numbers.size()).first->second);
  }
  return start;
}

const char* name_of(TokenStart::Kind kind) {
  switch (kind) {
    case TokenStart::Kind::gaussian:
      return "gaussian";
    case TokenStart::Kind::sphere:
      return "sphere";
    case TokenStart::Kind::bert:
      return "bert";
    case TokenStart::Kind::text:
      return "text";
    case TokenStart::Kind::given:
      break;
  }
  return "given";
}

template <class T>
BlockWeights<T> draw_weights(const WeightInit& init, std::size_t width, std::size_t feed_forward,
                             std::size_t layer, std::uint64_t seed, const Executor& executor) {
  const auto matrix = [&](const MatrixInit& how, std::size_t rows, std::size_t cols, Purpose purpose,
                          std::size_t column = 0) {
    Matrix<double> w = draw(how, rows, cols, purpose, layer, column, seed, executor);
    if (init.normalize) normalize_columns(w);
    return w;
  };
  const auto place = [](const Matrix<double>& from, Matrix<T>& to, std::size_t first) {
    for (std::size_t i = 0; i < from.rows(); ++i) {
      for (std::size_t j = 0; j < from.cols(); ++j) to(i, first + j) = static_cast<T>(from(i, j));
    }
  };
  BlockWeights<T> weights;
  weights.query_key_value = Matrix<T>(width, 3 * width);
  place(matrix(init.query_key, width, width, Purpose::query_key, 0), weights.query_key_value, 0);
  place(matrix(init.query_key, width, width, Purpose::query_key, 1), weights.query_key_value, width);
  place(matrix(init.value, width, width, Purpose::value), weights.query_key_value, 2 * width);
  weights.output = Matrix<T>(width, width);
  place(matrix(init.output, width, width, Purpose::output), weights.output, 0);
  if (feed_forward > 0) {
    weights.up = Matrix<T>(width, feed_forward);
    weights.down = Matrix<T>(feed_forward, width);
    place(matrix(init.feed_forward, width, feed_forward, Purpose::up), weights.up, 0);
    place(matrix(init.feed_forward, feed_forward, width, Purpose::down), weights.down, 0);
  }
  return weights;
}

template BlockWeights<float> draw_weights(const WeightInit&, std::size_t, std::size_t, std::size_t,
                                          std::uint64_t, const Executor&);
template BlockWeights<double> draw_weights(const WeightInit&, std::size_t, std::size_t, std::size_t,
                                           std::uint64_t, const Executor&);

bool embeds_words(const TokenStart& start) {
  return start.kind == TokenStart::Kind::bert || start.kind == TokenStart::Kind::text;
}

Matrix<double> draw_tokens(const TokenStart& start, std::size_t tokens, std::size_t width, std::size_t sample,
                           std::uint64_t seed) {
  Matrix<double> x(tokens, width);
  if (start.kind == TokenStart::Kind::given) {
    if (start.given.cols() != width || start.given.rows() < (sample + 1) * tokens) {
      throw InputError(fmt::format(
          "The given tokens are {} x {}; sample {} of {} tokens of width {} needs {} rows.",
          start.given.rows(), start.given.cols(), sample + 1, tokens, width, (sample + 1) * tokens));
    }
    for (std::size_t i = 0; i < tokens; ++i) {
      const auto from = start.given[sample * tokens + i];
      std::copy(from.begin(), from.end(), x[i].begin());
    }
    return x;
  }
  const bool is_text = start.kind == TokenStart::Kind::text;
  if (is_text && start.words.size() < (sample + 1) * tokens) {
    throw InputError(fmt::format("The text has {} words; {} sample{} of {} tokens need {}.",
                                 start.words.size(), sample + 1, sample == 0 ? "" : "s", tokens,
                                 (sample + 1) * tokens));
  }
  const bool embedded = embeds_words(start);
  Random words(seed, stream(Purpose::words, 0, sample));
  for (std::size_t i = 0; i < tokens; ++i) {
    if (embedded) {
      add_embedding(x[i], Purpose::word, is_text ? start.words[sample * tokens + i] : zipf_word(words), seed);
      add_embedding(x[i], Purpose::position, i + 1, seed);
      add_embedding(x[i], Purpose::position, 0, seed);  // the type, the same for all
      continue;
    }
    Random random(seed, stream(Purpose::tokens, sample, i));
    for (double& value : x[i]) value = random.normal();
  }
  NormSpec norm;
  if (start.kind == TokenStart::Kind::sphere) norm = parse_norm("unit");
  if (embedded) {
    norm = parse_norm("layernorm");
    norm.eps = 1e-12;
  }
  norm_forward<double>(norm, {}, x.view(), x.view());
  return x;
}

}  // namespace normscope
