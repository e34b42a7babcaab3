// A scan against brute force: queries are tried by the thousand, and who wins is counted.
#include "normscope/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

// A random model whose biases and gains are not trivial. query_bias: their size; large ones leave the queries
// that can be formed on one side of 0.
class TinyModel : public ModelWeights {
 public:
  explicit TinyModel(const ModelSpec& spec, std::uint64_t seed, double query_bias = 0)
      : inner_(random_model(spec, seed)), seed_(seed), query_bias_(query_bias) {}
  const ModelSpec& spec() const override { return inner_->spec(); }
  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    return inner_->embeddings(ids);
  }
  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights = inner_->embedding();
    weights.norm = {around(1, 0.3, 1), around(0, 0.3, 2)};
    return weights;
  }
  BlockWeights<float> layer(std::size_t index) const override {
    BlockWeights<float> weights = inner_->layer(index);
    const std::uint64_t first = 10 * (index + 1);
    weights.attention_gain = around(1, 0.3, first);
    weights.feed_forward_gain = around(1, 0.3, first + 1);
    if (spec().block.norm.projection == Projection::ones) {
      weights.attention_bias = around(0, 0.3, first + 2);
      weights.feed_forward_bias = around(0, 0.3, first + 3);
      weights.query_key_value_bias =
          around(0, 0.5, first + 4, spec().block.query_width() + 2 * spec().block.key_width());
    }
    if (query_bias_ > 0) {
      weights.query_key_value_bias.resize(spec().block.query_width() + 2 * spec().block.key_width(), 0);
      std::ranges::copy(around(0, query_bias_, first + 5, spec().block.query_width()),
                        weights.query_key_value_bias.begin());
    }
    if (spec().block.relative.buckets > 0) {
      for (float& value :
           std::span(weights.relative.view().data, weights.relative.rows() * weights.relative.cols()))
        value *= 3;
    }
    return weights;
  }
  NormWeights final_norm() const override { return inner_->final_norm(); }
  HeadWeights head() const override { return inner_->head(); }

 private:
  std::vector<float> around(double middle, double sd, std::uint64_t stream, std::size_t count = 0) const {
    Random random(seed_, 1000 + stream);
    std::vector<float> values(count > 0 ? count : spec().block.width);
    for (float& value : values) value = static_cast<float>(middle + sd * random.normal());
    return values;
  }
  std::unique_ptr<ModelWeights> inner_;
  std::uint64_t seed_;
  double query_bias_;
};

ModelSpec tiny(const char* norm, Placement placement) {
  ModelSpec spec;
  spec.family = "tiny";
  spec.vocabulary = 40;
  spec.layers = 2;
  spec.initializer_range = 0.7;
  spec.block.width = 4;
  spec.block.heads = 2;
  spec.block.feed_forward = 8;
  spec.block.placement = placement;
  spec.block.norm = parse_norm(norm);
  spec.block.norm.affine = true;
  if (placement == Placement::post) spec.embedding_norm = spec.block.norm;
  return spec;
}

ModelSpec bert_like() {
  return tiny("layernorm", Placement::post);
}

// Two heads share one set of keys, which is rotated; each token sees those before it.
ModelSpec llama_like() {
  ModelSpec spec = tiny("rmsnorm", Placement::pre);
  spec.block.key_heads = 1;
  spec.block.rotary.frequencies = {0.7};
  spec.causal = true;
  return spec;
}

ModelSpec gpt2_like() {
  ModelSpec spec = tiny("layernorm", Placement::pre);
  spec.causal = true;
  return spec;
}

// Each token sees the four before it.
ModelSpec mistral_like() {
  ModelSpec spec = llama_like();
  spec.window = 5;
  return spec;
}

// Keys and queries of norm 1: every key is selectable, and reachable queries are no ellipsoid.
ModelSpec unit_queries_like() {
  ModelSpec spec = gpt2_like();
  spec.block.normalize_query_key = true;
  return spec;
}

// One layer's weights for all.
ModelSpec albert_like() {
  ModelSpec spec = bert_like();
  spec.groups = 1;
  return spec;
}

ModelSpec t5_like() {
  ModelSpec spec = tiny("rmsnorm", Placement::pre);
  spec.block.relative.buckets = 8;
  spec.block.relative.max_distance = 16;
  spec.block.temperature = 1;
  return spec;
}

std::vector<std::uint32_t> text_of(std::size_t n, std::uint64_t seed) {
  Random random(seed, 3);
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < n; ++i) ids.push_back(static_cast<std::uint32_t>(random.below(40)));
  return ids;
}

// Keys of every layer as the forward pass shows them, and the layer's weights.
struct Seen {
  std::map<std::size_t, Matrix<double>> keys, queries, tokens;  // tokens: what attention maps
  std::map<std::size_t, BlockWeights<float>> weights;
};

Seen look_at(const ModelWeights& model, const std::vector<std::uint32_t>& ids) {
  Seen seen;
  ForwardObserver observer;
  observer.layer = [&](std::size_t layer, const BlockSpec&, const BlockWeights<float>& weights) {
    seen.weights[layer] = weights;
  };
  observer.point = [&](std::size_t, std::size_t layer, TracePoint point, MatrixView<const float> values) {
    Matrix<double> copied(values.rows, values.cols);
    for (std::size_t i = 0; i < values.rows; ++i)
      std::copy(values[i].begin(), values[i].end(), copied[i].begin());
    if (point == TracePoint::key) seen.keys[layer] = copied;
    if (point == TracePoint::query) seen.queries[layer] = copied;
    if (point == TracePoint::norm_out) seen.tokens[layer] = copied;
  };
  forward(model, std::span(&ids, 1), Executor(1), observer);
  return seen;
}

// Who has the highest score, by how much; -1: nobody alone.
struct Winner {
  std::size_t key = 0;
  double by = 0;
};
Winner winner(const std::vector<double>& scores) {
  Winner best;
  double second = -INFINITY;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] > scores[best.key]) best.key = j;
  }
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (j != best.key) second = std::max(second, scores[j]);
  }
  best.by = scores[best.key] - second;
  return best;
}

// The widest victory of each key over the queries tried.
class Victories {
 public:
  explicit Victories(std::size_t n) : by_(n, 0) {}
  void add(const std::vector<double>& scores) {
    const Winner best = winner(scores);
    by_[best.key] = std::max(by_[best.key], best.by);
  }
  double operator[](std::size_t key) const { return by_[key]; }

 private:
  std::vector<double> by_;
};

std::vector<double> scores_of(MatrixView<const double> keys, std::span<const double> query) {
  std::vector<double> scores(keys.rows);
  for (std::size_t j = 0; j < keys.rows; ++j) {
    for (std::size_t c = 0; c < query.size(); ++c) scores[j] += query[c] * keys(j, c);
  }
  return scores;
}

Matrix<double> head_keys(const Seen& seen, const BlockSpec& block, std::size_t layer, std::size_t head) {
  const Matrix<double>& all = seen.keys.at(layer);
  const std::size_t width = block.width_of_head(), first = block.key_head_of(head) * width;
  Matrix<double> keys(all.rows(), width);
  for (std::size_t i = 0; i < all.rows(); ++i) {
    for (std::size_t c = 0; c < width; ++c) keys(i, c) = all(i, first + c);
  }
  return keys;
}

// Offsets of the scores as the attention of the model adds them.
void add_offsets(const ModelSpec& spec, const BlockWeights<float>& weights, std::size_t place,
                 std::size_t head, std::vector<double>& scores) {
  if (spec.block.relative.buckets == 0) return;
  for (std::size_t j = 0; j < scores.size(); ++j)
    scores[j] += static_cast<double>(weights.relative(head, spec.block.relative.bucket(place, j)));
}

void expect_agreement(const ScanSet& set, const Victories& victories, double certain, const char* what) {
  std::size_t selectable = 0;
  for (std::size_t j = 0; j < set.verdicts.size(); ++j) {
    SCOPED_TRACE(testing::Message() << what << ", token " << j << ", widest victory " << victories[j]);
    if (victories[j] > 1e-6) {
      EXPECT_EQ(set.verdicts[j], Verdict::selectable);
    }
    if (set.verdicts[j] == Verdict::selectable && set.margins[j] > certain) {
      EXPECT_GT(victories[j], 0);
    }
    selectable += set.verdicts[j] == Verdict::selectable;
  }
  EXPECT_GT(selectable, 0u);
}

class ScanOf : public testing::TestWithParam<int> {
 protected:
  static ModelSpec spec() {
    return GetParam() == 0 ? bert_like() : GetParam() == 1 ? llama_like() : t5_like();
  }
};

TEST_P(ScanOf, HeadSpaceIsWhatQueriesOfAnyLengthAndDirectionCanDo) {
  const TinyModel model(spec(), 5);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(14, 1)};
  ScanSettings settings;
  settings.margins = Margins::exact;
  const auto scanned = scan(model, windows, settings, Executor(2));
  const Seen seen = look_at(model, windows[0]);
  const BlockSpec& block = model.spec().block;
  std::size_t unselectable = 0;
  for (const ScanLayer& layer : scanned[0].layers) {
    for (const ScanHead& head : layer.heads) {
      const Matrix<double> keys = head_keys(seen, block, layer.layer, head.head);
      Victories victories(keys.rows());
      const std::size_t places = block.relative.buckets > 0 ? keys.rows() : 1;
      for (std::size_t place = 0; place < places; ++place) {
        for (int a = 0; a < 720; ++a) {
          const double angle = a * std::numbers::pi / 360;
          for (double length = 0.01; length < 300; length *= 1.25) {
            const double query[] = {length * std::cos(angle), length * std::sin(angle)};
            std::vector<double> scores = scores_of(keys.view(), query);
            for (double& score : scores) score *= block.score_scale();
            add_offsets(model.spec(), seen.weights.at(layer.layer), place, head.head, scores);
            victories.add(scores);
          }
        }
      }
      expect_agreement(head.keys, victories, 0.15, "head");
      unselectable += head.keys.count(Verdict::unselectable);
    }
  }
  EXPECT_GT(unselectable, 0u);
}

TEST_P(ScanOf, ReachableIsWhatNormalisedTokensCanDo) {
  const TinyModel model(spec(), 6);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(12, 2)};
  ScanSettings settings;
  settings.margins = Margins::exact;
  const auto scanned = scan(model, windows, settings, Executor(2));
  const Seen seen = look_at(model, windows[0]);
  const BlockSpec& block = model.spec().block;
  const std::size_t d = block.width, width = block.width_of_head(), last = windows[0].size() - 1;
  Random random(9, 9);
  for (const ScanLayer& layer : scanned[0].layers) {
    ASSERT_TRUE(layer.reachable_known);
    // The norm in front: of the layer (pre), or the one that ended the layer before (post).
    const BlockWeights<float>& weights = seen.weights.at(layer.layer);
    NormParameters<double> parameters;
    std::vector<float> gain = weights.attention_gain, bias = weights.attention_bias;
    if (block.placement == Placement::post && layer.layer == 0) {
      gain = model.embedding().norm.gain;
      bias = model.embedding().norm.bias;
    } else if (block.placement == Placement::post) {
      gain = seen.weights.at(layer.layer - 1).feed_forward_gain;
      bias = seen.weights.at(layer.layer - 1).feed_forward_bias;
    }
    const std::vector<double> gains(gain.begin(), gain.end()), biases(bias.begin(), bias.end());
    parameters.gain = gains;
    parameters.bias = biases;
    for (const ScanHead& head : layer.heads) {
      const Matrix<double> keys = head_keys(seen, block, layer.layer, head.head);
      Victories victories(keys.rows());
      std::vector<double> largest(keys.rows(), 0);
      for (int tried = 0; tried < 90000; ++tried) {
        Matrix<double> token(1, d);
        for (double& value : token[0]) value = random.normal();
        norm_forward<double>(block.norm, parameters, token.view(), token.view());
        std::vector<double> query(width);
        for (std::size_t r = 0; r < width; ++r) {
          const std::size_t column = head.head * width + r;
          if (!weights.query_key_value_bias.empty())
            query[r] = static_cast<double>(weights.query_key_value_bias[column]);
          for (std::size_t i = 0; i < d; ++i)
            query[r] += token(0, i) * static_cast<double>(weights.query_key_value(i, column));
        }
        // From every place; largest weights from the last.
        const std::size_t place = tried % 3 > 0 ? last : random.below(last + 1);
        if (!block.rotary.frequencies.empty()) {
          const double angle = static_cast<double>(place) * block.rotary.frequencies[0];
          query = {query[0] * std::cos(angle) - query[1] * std::sin(angle),
                   query[0] * std::sin(angle) + query[1] * std::cos(angle)};
        }
        std::vector<double> scores = scores_of(keys.view(), query);
        for (double& score : scores) score *= block.score_scale();
        add_offsets(model.spec(), weights, place, head.head, scores);
        victories.add(scores);
        if (place != last) continue;
        double sum = 0;
        for (const double score : scores) sum += std::exp(score);
        for (std::size_t j = 0; j < scores.size(); ++j)
          largest[j] = std::max(largest[j], std::exp(scores[j]) / sum);
      }
      expect_agreement(head.reachable, victories, 0.1, "reachable");
      for (std::size_t j = 0; j < keys.rows(); ++j) {
        EXPECT_LE(largest[j], head.reachable.largest_weights[j] * 1.02) << j;
        EXPECT_GE(largest[j], head.reachable.largest_weights[j] * 0.9) << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ScanOf, testing::Values(0, 1, 2), [](const auto& tested) {
  return tested.param == 0   ? "post_norm_with_biases"
         : tested.param == 1 ? "rotary_grouped"
                             : "offsets_by_distance";
});

// Every query of the pass against every space that holds it, for models of all kinds.
struct Family {
  const char* name;
  ModelSpec spec;
  double query_bias = 0;
};

void PrintTo(const Family& family, std::ostream* out) {
  *out << family.name;
}

class WinnersOf : public testing::TestWithParam<Family> {};

TEST_P(WinnersOf, AreSelectableInEverySpaceThatHoldsTheirQuery) {
  const Family& family = GetParam();
  const BlockSpec& block = family.spec.block;
  std::size_t wins = 0, unselectable = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const TinyModel model(family.spec, seed, family.query_bias);
    const std::vector<std::vector<std::uint32_t>> windows = {text_of(24, seed)};
    const Mask mask = model_mask(family.spec, 24);
    ScanSettings settings;
    settings.largest_weights = false;
    settings.prefixes = family.spec.causal;
    const auto scanned = scan(model, windows, settings, Executor(2));
    settings.prefixes = !family.spec.causal;
    EXPECT_NO_THROW(scan(model, windows, settings, Executor(2)));  // it checks those queries that it can
    const Seen seen = look_at(model, windows[0]);
    for (const ScanLayer& layer : scanned[0].layers) {
      EXPECT_EQ(layer.reachable_known, !block.normalize_query_key);
      for (const ScanHead& head : layer.heads) {
        const Matrix<double> keys = head_keys(seen, block, layer.layer, head.head);
        unselectable += head.keys.count(Verdict::unselectable) + head.reachable.count(Verdict::unselectable);
        for (std::size_t place = 0; place < 24; ++place) {
          const auto query =
              seen.queries.at(layer.layer)[place].subspan(head.head * keys.cols(), keys.cols());
          std::vector<double> scores = scores_of(keys.view(), query);
          for (double& score : scores) score *= block.score_scale();
          add_offsets(family.spec, seen.weights.at(layer.layer), place, head.head, scores);
          for (std::size_t j = 0; j < scores.size(); ++j) {
            if (!mask.attends(place, j)) scores[j] = -INFINITY;
          }
          const Winner best = winner(scores);
          if (!(best.by > 1e-3)) continue;
          ++wins;
          SCOPED_TRACE(testing::Message() << "seed " << seed << ", layer " << layer.layer << ", head "
                                          << head.head << ", place " << place << ", token " << best.key);
          EXPECT_EQ(head.keys.verdicts[best.key], Verdict::selectable);
          if (layer.reachable_known) {
            EXPECT_EQ(head.reachable.verdicts[best.key], Verdict::selectable);
          }
          if (block.rotary.frequencies.empty() && block.relative.buckets == 0 && !block.normalize_query_key) {
            EXPECT_EQ(layer.model.verdicts[best.key], Verdict::selectable);
          }
        }
      }
    }
  }
  EXPECT_GT(wins, 300u);
  if (!block.normalize_query_key) {
    EXPECT_GT(unselectable, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, WinnersOf,
    testing::Values(Family{"gpt2", gpt2_like()}, Family{"gpt2_far_queries", gpt2_like(), 6},
                    Family{"bert", bert_like()}, Family{"bert_far_queries", bert_like(), 6},
                    Family{"llama", llama_like()}, Family{"mistral", mistral_like()},
                    Family{"mistral_far_queries", mistral_like(), 6},
                    Family{"qwen2_far_queries", llama_like(), 6}, Family{"albert", albert_like()},
                    Family{"unit_queries", unit_queries_like()}, Family{"t5", t5_like()}),
    [](const auto& tested) { return std::string(tested.param.name); });

// Whatever query, from every place that sees the token, against what that place sees.
TEST(Scan, ASlidingWindowIsWhatQueriesSee) {
  const TinyModel model(mistral_like(), 5);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(20, 1)};
  ScanSettings settings;
  settings.margins = Margins::exact;
  settings.prefixes = true;
  const auto scanned = scan(model, windows, settings, Executor(2));
  const Seen seen = look_at(model, windows[0]);
  const Mask mask = model_mask(model.spec(), 20);
  std::size_t unselectable = 0;
  for (const ScanLayer& layer : scanned[0].layers) {
    const Matrix<double> keys = head_keys(seen, model.spec().block, layer.layer, 0);
    Victories victories(keys.rows());
    std::vector<double> from_place(keys.rows(), 0);  // at the place that is named
    for (std::size_t place = 0; place < 20; ++place) {
      for (int a = 0; a < 3600; ++a) {
        const double angle = a * std::numbers::pi / 1800;
        const double query[] = {std::cos(angle), std::sin(angle)};
        std::vector<double> scores = scores_of(keys.view(), query);
        for (std::size_t j = 0; j < scores.size(); ++j) {
          if (!mask.attends(place, j)) scores[j] = -INFINITY;
        }
        victories.add(scores);
        const Winner best = winner(scores);
        if (layer.heads[0].keys.places[best.key] == place)
          from_place[best.key] = std::max(from_place[best.key], best.by);
      }
    }
    const ScanSet& set = layer.heads[0].keys;
    expect_agreement(set, victories, 0.01, "head");
    for (std::size_t i = 0; i < keys.rows(); ++i) {
      if (set.verdicts[i] == Verdict::selectable && std::isfinite(set.margins[i])) {
        EXPECT_NEAR(from_place[i], set.margins[i], 0.01 + 0.05 * set.margins[i]) << i;
      }
      EXPECT_EQ(set.places[i].has_value(), set.verdicts[i] != Verdict::unselectable);
    }
    unselectable += set.count(Verdict::unselectable);
  }
  EXPECT_GT(unselectable, 0u);
}

TEST(Scan, RobustlyUnselectableAreSomeOfTheUnselectable) {
  for (const ModelSpec& spec : {t5_like(), mistral_like(), gpt2_like(), bert_like()}) {
    std::size_t unselectable = 0, robust = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const TinyModel model(spec, seed);
      const std::vector<std::vector<std::uint32_t>> windows = {text_of(30, seed)};
      ScanSettings settings;
      settings.prefixes = spec.causal;
      settings.spaces = {KeySpace::model, KeySpace::head};
      const auto scanned = scan(model, windows, settings, Executor(1));
      for (const ScanLayer& layer : scanned[0].layers) {
        for (const ScanHead& head : layer.heads) {
          const ScanSet& set = head.keys;
          ASSERT_EQ(set.robust.size(), 30u);
          for (std::size_t i = 0; i < 30; ++i)
            EXPECT_TRUE(!set.robust[i] || set.verdicts[i] == Verdict::unselectable);
          EXPECT_EQ(set.robust_unselectable,
                    static_cast<std::size_t>(std::count(set.robust.begin(), set.robust.end(), true)));
          unselectable += set.count(Verdict::unselectable);
          robust += *set.robust_unselectable;
        }
      }
    }
    EXPECT_GT(robust, 0u);
    EXPECT_LE(robust, unselectable);
  }
}

TEST(Scan, WithoutItsMaskOnlyQueriesThatSeeAllAreHeld) {
  // Most queries of a causal model see less than the window: they prove nothing about all its keys.
  const TinyModel model(llama_like(), 3);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(24, 3)};
  const auto whole = scan(model, windows, {}, Executor(1));
  std::size_t won = 0;
  for (const ScanLayer& layer : whole[0].layers) {
    for (std::size_t i = 0; i < 24; ++i)
      won += layer.heads[0].keys.verdicts[i] == Verdict::unselectable && layer.heads[0].queries.wins[i] > 0;
  }
  EXPECT_GT(won, 0u);
}

TEST(Scan, NormStatisticsSplitIntoProjectionAndScaling) {
  const TinyModel model(bert_like(), 3);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(20, 4)};
  const auto scanned = scan(model, windows, {}, Executor(1));
  // The layer's own points, seen independently.
  std::map<std::size_t, std::pair<NormShare, NormShare>> expected;
  ForwardObserver observer;
  observer.point = [&](std::size_t, std::size_t layer, TracePoint point, MatrixView<const float> x) {
    if (point != TracePoint::norm_in && point != TracePoint::norm_out) return;
    NormShare& share = point == TracePoint::norm_in ? expected[layer].first : expected[layer].second;
    for (std::size_t i = 0; i < x.rows; ++i) {
      double sum = 0, squares = 0;
      for (const float value : x[i])
        sum += static_cast<double>(value), squares += static_cast<double>(value * value);
      share.along_ones += sum * sum / 4 / squares / 20;
      share.norm_mean += std::sqrt(squares) / 20;
    }
  };
  forward(model, windows, Executor(1), observer);
  for (const ScanLayer& layer : scanned[0].layers) {
    EXPECT_NEAR(layer.norm_in.along_ones, expected[layer.layer].first.along_ones, 1e-6);
    EXPECT_NEAR(layer.norm_out.norm_mean, expected[layer.layer].second.norm_mean, 1e-6);
  }
}

TEST(Scan, QueriesAreCountedOncePerTokenAndHead) {
  const TinyModel model(llama_like(), 3);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(300, 4), text_of(7, 5)};
  const auto scanned = scan(model, windows, {}, Executor(2));
  for (std::size_t w = 0; w < 2; ++w) {
    for (const ScanLayer& layer : scanned[w].layers) {
      for (const ScanHead& head : layer.heads) {
        std::size_t wins = 0;
        for (const std::size_t count : head.queries.wins) wins += count;
        EXPECT_EQ(wins, windows[w].size());
        EXPECT_GT(head.queries.entropy, 0);
        EXPECT_LE(head.queries.entropy, std::log(static_cast<double>(windows[w].size())));
      }
    }
  }
}

TEST(Scan, IsTheSameForAnyNumberOfThreads) {
  const TinyModel model(bert_like(), 8);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(30, 1), text_of(30, 2), text_of(9, 3)};
  const auto one = scan(model, windows, {}, Executor(1)), four = scan(model, windows, {}, Executor(4));
  for (std::size_t w = 0; w < windows.size(); ++w) {
    for (std::size_t l = 0; l < one[w].layers.size(); ++l) {
      EXPECT_EQ(one[w].layers[l].model.verdicts, four[w].layers[l].model.verdicts);
      EXPECT_EQ(one[w].layers[l].model.margins, four[w].layers[l].model.margins);
      for (std::size_t h = 0; h < one[w].layers[l].heads.size(); ++h) {
        EXPECT_EQ(one[w].layers[l].heads[h].reachable.largest_weights,
                  four[w].layers[l].heads[h].reachable.largest_weights);
        EXPECT_EQ(one[w].layers[l].heads[h].queries.wins, four[w].layers[l].heads[h].queries.wins);
      }
    }
  }
}

TEST(Scan, InPrefixesTheFirstTokenIsSelectableEverywhere) {
  const TinyModel model(llama_like(), 2);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(25, 6)};
  ScanSettings settings;
  settings.spaces = {KeySpace::head};
  const auto whole = scan(model, windows, settings, Executor(1));
  settings.prefixes = true;
  const auto prefixes = scan(model, windows, settings, Executor(1));
  for (std::size_t l = 0; l < whole[0].layers.size(); ++l) {
    const ScanSet& all = whole[0].layers[l].heads[0].keys;
    const ScanSet& some = prefixes[0].layers[l].heads[0].keys;
    EXPECT_EQ(some.verdicts[0], Verdict::selectable);
    for (std::size_t i = 0; i < all.verdicts.size(); ++i) EXPECT_LE(*some.verdicts[i], *all.verdicts[i]);
  }
}

TEST(Scan, WhatEpsTakesOffTheSphereIsToldFromScaling) {
  for (const Placement placement : {Placement::pre, Placement::post}) {
    ModelSpec spec = tiny("layernorm", placement);
    spec.block.norm.eps = 5;  // larger than the variance of tokens: what leaves the norm differs in length
    if (placement == Placement::post) spec.embedding_norm = spec.block.norm;
    const TinyModel model(spec, 4);
    const std::vector<std::vector<std::uint32_t>> windows = {text_of(40, 6)};
    ScanSettings settings;
    settings.ideal_norms = true;
    const auto scanned = scan(model, windows, settings, Executor(2));
    for (const ScanLayer& layer : scanned[0].layers) {
      EXPECT_GT(layer.model.count(Verdict::unselectable), 0u);
      EXPECT_EQ(layer.unrounded.verdicts, layer.model.verdicts);  // none is near enough for float32 to matter
      EXPECT_EQ(layer.sphere.verdicts.size(), 40u);
      EXPECT_EQ(layer.sphere.count(Verdict::unselectable), 0u);
    }
  }
  // Without scaling there is no sphere; not asked for, nothing is decided.
  ScanSettings settings;
  settings.ideal_norms = true;
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(9, 6)};
  const TinyModel centred(tiny("center", Placement::pre), 4), scaled(bert_like(), 4);
  EXPECT_TRUE(scan(centred, windows, settings, Executor(1))[0].layers[0].sphere.verdicts.empty());
  EXPECT_TRUE(scan(scaled, windows, {}, Executor(1))[0].layers[0].unrounded.verdicts.empty());
}

TEST(Scan, ALayerOrHeadThatIsNotThereIsNamed) {
  const TinyModel model(bert_like(), 2);
  const std::vector<std::vector<std::uint32_t>> windows = {text_of(5, 6)};
  ScanSettings settings;
  settings.layers = {2};
  EXPECT_THROW(scan(model, windows, settings, Executor(1)), InputError);
  settings.layers = {};
  settings.heads = {7};
  EXPECT_THROW(scan(model, windows, settings, Executor(1)), InputError);
  EXPECT_THROW(scan(model, {}, {}, Executor(1)), InputError);
}

}  // namespace
}  // namespace normscope
