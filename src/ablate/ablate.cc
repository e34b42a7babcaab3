#include "normscope/ablate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "ablate/probe.h"
#include "core/gemm.h"
#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

constexpr std::size_t kMostStateBytes = std::size_t{256} << 20;
constexpr double kSettled = 1e-3;      // relative change of a constant that is left alone
constexpr double kHiddenShare = 0.15;  // of the tokens, as BERT was trained
constexpr std::uint64_t kHiddenStream = std::uint64_t{3} << 40;

// Which norm of a model it is, and whose gain and bias.
struct Site {
  enum class Place { embedding, attention, feed_forward };
  Place place = Place::attention;
  std::size_t layer = 0;
  bool operator==(const Site&) const = default;
};

// The norm in front of attention of a layer.
std::optional<Site> site_before(const ModelSpec& spec, std::size_t layer) {
  if (spec.block.placement != Placement::post) return Site{Site::Place::attention, layer};
  if (layer > 0) {
    const bool fed = spec.block.feed_forward > 0;
    return Site{fed ? Site::Place::feed_forward : Site::Place::attention, layer - 1};
  }
  if (spec.width_of_embedding() != spec.block.width) return std::nullopt;
  return Site{Site::Place::embedding, 0};
}

NormSpec feed_forward_norm(const BlockSpec& block) {
  return block.feed_forward_norm ? *block.feed_forward_norm : block.norm;
}

NormSpec trained_norm(const ModelSpec& spec, const Site& site) {
  switch (site.place) {
    case Site::Place::embedding:
      return spec.embedding_norm;
    case Site::Place::attention:
      return spec.block.norm;
    case Site::Place::feed_forward:
      break;
  }
  return feed_forward_norm(spec.block);
}

// A norm in another's place: gain and bias are the model's, if any are kept.
struct Replaced {
  Site site;
  NormSpec norm;
  bool keeps_affine = true;
  double factor = 1;

  void apply(std::size_t width, std::vector<float>& gain, std::vector<float>& bias) const {
    if (!keeps_affine) {
      gain.clear();
      bias.clear();
    }
    if (factor == 1) return;
    if (gain.empty()) gain.assign(width, 1);
    for (float& each : gain) each = static_cast<float>(static_cast<double>(each) * factor);
  }
};

Replaced replacement(const ModelSpec& spec, const Site& site, const NormChange& change, double factor) {
  const NormSpec old = trained_norm(spec, site);
  Replaced replaced{site, change.norm, old.affine && !change.drop_affine, factor};
  replaced.norm.eps = old.eps;
  replaced.norm.affine = replaced.keeps_affine || factor != 1;
  return replaced;
}

// A model with other norms in some places.
class ChangedModel : public ModelWeights {
 public:
  ChangedModel(const ModelWeights& trained, std::vector<Replaced> replaced)
      : trained_(trained), replaced_(std::move(replaced)) {}

  const ModelSpec& spec() const override { return trained_.spec(); }
  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    return trained_.embeddings(ids);
  }
  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights = trained_.embedding();
    if (const Replaced* replaced = at({Site::Place::embedding, 0}))
      replaced->apply(spec().width_of_embedding(), weights.norm.gain, weights.norm.bias);
    return weights;
  }
  BlockWeights<float> layer(std::size_t index) const override {
    BlockWeights<float> weights = trained_.layer(index);
    if (const Replaced* replaced = at({Site::Place::attention, index}))
      replaced->apply(spec().block.width, weights.attention_gain, weights.attention_bias);
    if (const Replaced* replaced = at({Site::Place::feed_forward, index}))
      replaced->apply(spec().block.width, weights.feed_forward_gain, weights.feed_forward_bias);
    return weights;
  }
  NormWeights final_norm() const override { return trained_.final_norm(); }
  HeadWeights head() const override { return trained_.head(); }
  Matrix<float> words() const override { return trained_.words(); }
  Matrix<float> positions() const override { return trained_.positions(); }
  Matrix<float> types() const override { return trained_.types(); }

  ForwardChanges changes() const {
    ForwardChanges changes;
    if (const Replaced* replaced = at({Site::Place::embedding, 0})) changes.embedding_norm = replaced->norm;
    changes.block = [this](std::size_t layer) {
      BlockSpec block = spec().block;
      // Without a norm of its own the feed-forward part takes that of attention, which is about to change.
      block.feed_forward_norm = feed_forward_norm(block);
      if (const Replaced* replaced = at({Site::Place::attention, layer})) block.norm = replaced->norm;
      if (const Replaced* replaced = at({Site::Place::feed_forward, layer}))
        block.feed_forward_norm = replaced->norm;
      return block;
    };
    return changes;
  }

 private:
  const Replaced* at(const Site& site) const {
    const auto here = std::find_if(replaced_.begin(), replaced_.end(),
                                   [&](const Replaced& each) { return each.site == site; });
    return here == replaced_.end() ? nullptr : &*here;
  }

  const ModelWeights& trained_;
  std::vector<Replaced> replaced_;
};

double norm_of(std::span<const float> row) {
  double squares = 0;
  for (const float value : row) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

double mean_norm(MatrixView<const float> x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.rows; ++i) sum += norm_of(x[i]);
  return sum / static_cast<double>(x.rows);
}

Matrix<float> copied(MatrixView<const float> from) {
  Matrix<float> to(from.rows, from.cols);
  for (std::size_t i = 0; i < from.rows; ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
  return to;
}

void compare(MatrixView<const float> trained, MatrixView<const float> changed, LayerEffect& effect) {
  double differences = 0, squares = 0, cosines = 0;
  for (std::size_t i = 0; i < trained.rows; ++i) {
    double product = 0, left = 0, right = 0;
    for (std::size_t j = 0; j < trained.cols; ++j) {
      const auto a = static_cast<double>(trained(i, j)), b = static_cast<double>(changed(i, j));
      differences += (b - a) * (b - a);
      product += a * b;
      left += a * a;
      right += b * b;
    }
    squares += left;
    // A zero row points nowhere: like itself, unlike all others.
    cosines += left > 0 && right > 0 ? product / (std::sqrt(left) * std::sqrt(right)) : left == right ? 1 : 0;
  }
  effect.change = differences > 0 ? std::sqrt(differences / squares) : 0;
  effect.cosine = differences > 0 ? cosines / static_cast<double>(trained.rows) : 1;
}

void add_weights(const AttentionRows<float>& rows, double share, LayerEffect& effect) {
  for (std::size_t i = 0; i < rows.weights.rows; ++i) {
    double entropy = 0, top = 0;
    for (const float each : rows.weights[i]) {
      if (each <= 0) continue;
      const auto weight = static_cast<double>(each);
      entropy -= weight * std::log(weight);
      top = std::max(top, weight);
    }
    effect.entropy += share * entropy;
    effect.largest_weight += share * top;
  }
}

using Texts = std::span<const std::vector<std::uint32_t>>;
using States = std::vector<std::vector<Matrix<float>>>;  // texts × layers

class Ablating {
 public:
  Ablating(const ModelWeights& weights, Texts windows, const AblateSettings& settings,
           const Executor& executor, const std::function<void(std::size_t, std::size_t)>& progress)
      : weights_(weights),
        spec_(weights.spec()),
        windows_(windows),
        settings_(settings),
        executor_(executor),
        progress_(progress) {}

  Ablation run() {
    check();
    choose_layers();
    choose_loss();
    make_prompts();
    begin_rows();
    plan();
    calibrate();
    for (std::size_t first = 0; first < windows_.size(); first += batch_)
      measure_windows(first, std::min(batch_, windows_.size() - first));
    for (std::size_t r = 0; r < result_.rows.size(); ++r) measure_probe(r);
    return std::move(result_);
  }

 private:
  void check() const {
    if (windows_.empty()) throw InputError("There is no text to run the model on.");
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      if (windows_[w].empty()) throw InputError(fmt::format("Window {} has no tokens.", w));
    }
    if (settings_.changes.empty()) throw InputError("There is no norm to put in place of the model's.");
    for (std::size_t c = 0; c < settings_.changes.size(); ++c) {
      if (settings_.changes[c].norm.projection == Projection::normals)
        throw InputError("A norm with learned normals cannot replace one: nothing says what they are.");
      for (std::size_t other = 0; other < c; ++other) {
        if (name_of(settings_.changes[c]) == name_of(settings_.changes[other]))
          throw InputError(fmt::format("The norm '{}' is asked for twice.", name_of(settings_.changes[c])));
      }
    }
  }

  void choose_layers() {
    result_.layers = settings_.layers;
    if (result_.layers.empty()) {
      for (std::size_t layer = 0; layer < spec_.layers; ++layer) {
        if (site_before(spec_, layer)) result_.layers.push_back(layer);
      }
      if (result_.layers.size() < spec_.layers) {
        result_.notes.emplace_back(
            "Layer 0 stays as trained: a linear map stands between the norm of the embeddings and its "
            "attention.");
      }
    }
    for (const std::size_t layer : result_.layers) {
      if (layer >= spec_.layers) {
        throw InputError(
            fmt::format("There is no layer {}: the model has {}, counted from 0.", layer, spec_.layers));
      }
      const auto norm = norm_before_attention(spec_, layer);
      if (!norm) {
        throw InputError(
            fmt::format("Layer {} has no norm in front of attention: a linear map stands between it and the "
                        "norm of the embeddings.",
                        layer));
      }
      result_.trained.push_back(*norm);
    }
    if (result_.layers.empty()) throw InputError("No layer of the model has a norm in front of attention.");
  }

  void choose_loss() {
    const bool headed = spec_.head != ModelSpec::Head::none;
    const bool pairs =
        std::all_of(windows_.begin(), windows_.end(), [](const auto& window) { return window.size() > 1; });
    if (headed && spec_.causal && pairs) result_.loss = Ablation::Loss::next_token;
    if (headed && !spec_.causal && settings_.mask_token) result_.loss = Ablation::Loss::masked_token;
    if (headed && spec_.causal && !pairs)
      result_.notes.emplace_back("No loss was measured: a window of one token has no next one.");
    if (headed && !spec_.causal && !settings_.mask_token)
      result_.notes.emplace_back("No loss was measured: which token hides others is not known.");
    if (!headed) result_.notes.emplace_back("The model has no output head, so there is no loss to measure.");
    if (result_.loss == Ablation::Loss::masked_token) hide_tokens();
    if (headed && (spec_.causal || settings_.mask_token)) head_ = weights_.head();
  }

  // Which tokens of a window are hidden: at least one, the same in every row.
  void hide_tokens() {
    const auto& special = settings_.special;
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < windows_[w].size(); ++i) {
        if (std::find(special.begin(), special.end(), windows_[w][i]) == special.end()) places.push_back(i);
      }
      Random random(settings_.seed, kHiddenStream | w);
      auto count = static_cast<std::size_t>(std::lround(kHiddenShare * static_cast<double>(places.size())));
      count = std::min(std::max<std::size_t>(count, 1), places.size());
      std::vector<std::uint32_t> ids = windows_[w];
      std::vector<ProbeQuestion>& questions = hidden_questions_.emplace_back();
      for (std::size_t k = 0; k < count; ++k) {
        std::swap(places[k], places[k + random.below(places.size() - k)]);
        questions.push_back({places[k], ids[places[k]]});
        ids[places[k]] = *settings_.mask_token;
      }
      hidden_.push_back(std::move(ids));
    }
    const bool any = std::all_of(hidden_questions_.begin(), hidden_questions_.end(),
                                 [](const auto& questions) { return !questions.empty(); });
    if (any) return;
    result_.loss = Ablation::Loss::none;
    result_.notes.emplace_back("No loss was measured: a window holds nothing but special tokens.");
  }

  void make_prompts() {
    probe_ = make_probe(spec_, settings_);
    result_.probe_length = probe_.length;
    result_.tolerated = settings_.tolerated;
    result_.probe_from_vocabulary = probe_.from_vocabulary;
    if (probe_.length == 0 && settings_.prompts > 0)
      result_.notes.emplace_back(
          "No prompts were made: the model has too few positions or tokens for two copies of four.");
    if (probe_.length > 0 && probe_.from_vocabulary && !settings_.probe_tokens.empty())
      result_.notes.emplace_back(
          "The text has too few different tokens for the prompts; theirs are drawn from the vocabulary.");
    for (const auto* prompts : {&probe_.copy, &probe_.lookup}) {
      for (const Prompt& prompt : *prompts) prompt_ids_.push_back(prompt.ids);
    }
  }

  void begin_rows() {
    result_.rows.emplace_back().name = "as trained";
    for (const NormChange& change : settings_.changes) {
      AblateRow& row = result_.rows.emplace_back();
      row.name = name_of(change);
      row.change = change;
      if (change.rescale) row.rescale.assign(spec_.layers, 1);
    }
    for (AblateRow& row : result_.rows) row.windows.reserve(windows_.size());
  }

  // How many windows go at once, and how many layers will be passed.
  void plan() {
    std::size_t longest = 1;
    for (const auto& window : windows_) longest = std::max(longest, window.size());
    const std::size_t bytes =
        std::max<std::size_t>(1, spec_.layers * longest * spec_.block.width * sizeof(float));
    batch_ = std::clamp<std::size_t>(kMostStateBytes / bytes, 1, windows_.size());
    const std::size_t batches = (windows_.size() + batch_ - 1) / batch_;
    const std::size_t of_windows = result_.loss == Ablation::Loss::masked_token ? 2 : 1;
    total_ = result_.rows.size() * (batches * of_windows + (prompt_ids_.empty() ? 0 : 1));
    // Rounds of calibration: a guess, since they end when the constants have settled.
    if (rescales())
      total_ += batches * (1 + 4 * static_cast<std::size_t>(std::count_if(
                                       settings_.changes.begin(), settings_.changes.end(),
                                       [](const NormChange& change) { return change.rescale; })));
    total_ *= spec_.layers;
  }

  bool rescales() const {
    return std::any_of(settings_.changes.begin(), settings_.changes.end(),
                       [](const NormChange& change) { return change.rescale; });
  }

  // One forward pass; the layer it is in is noted, for the message if it fails.
  std::vector<Matrix<float>> pass(const ModelWeights& weights, Texts texts, ForwardObserver observer,
                                  const ForwardChanges& changes) {
    auto then = std::move(observer.layer);
    observer.layer = [&, then](std::size_t layer, const BlockSpec& block, const BlockWeights<float>& read) {
      layer_ = layer;
      if (then) then(layer, block, read);
      if (progress_) progress_(std::min(++done_, total_), total_);
    };
    return forward(weights, texts, executor_, observer, changes);
  }

  ChangedModel model_of(const AblateRow& row) const {
    std::vector<Replaced> replaced;
    for (std::size_t k = 0; row.change && k < result_.layers.size(); ++k) {
      const std::size_t layer = result_.layers[k];
      const double factor = row.rescale.empty() ? 1 : row.rescale[layer];
      replaced.push_back(replacement(spec_, *site_before(spec_, layer), *row.change, factor));
    }
    return {weights_, std::move(replaced)};
  }

  // Mean over all tokens of ‖g ⊙ norm(x)‖, what enters attention but for the bias, in every layer.
  std::vector<double> norms_before_attention(const ChangedModel& model) {
    const ForwardChanges changes = model.changes();
    const NormWeights of_embeddings = model.embedding().norm;
    NormSpec norm, next_norm;
    std::vector<float> gain, next_gain;
    std::vector<std::vector<double>> sums(windows_.size(), std::vector<double>(spec_.layers));
    for (std::size_t first = 0; first < windows_.size(); first += batch_) {
      next_norm = changes.embedding_norm ? *changes.embedding_norm : spec_.embedding_norm;
      next_gain = of_embeddings.gain;
      ForwardObserver observer;
      observer.layer = [&](std::size_t, const BlockSpec& block, const BlockWeights<float>& weights) {
        const bool post = block.placement == Placement::post, fed = block.feed_forward > 0;
        norm = post ? next_norm : block.norm;
        gain = post ? next_gain : weights.attention_gain;
        next_norm = fed ? feed_forward_norm(block) : block.norm;
        next_gain = fed ? weights.feed_forward_gain : weights.attention_gain;
      };
      observer.point = [&](std::size_t text, std::size_t layer, TracePoint point,
                           MatrixView<const float> values) {
        if (point != TracePoint::norm_in || !site_before(spec_, layer)) return;
        Matrix<float> out(values.rows, values.cols);
        NormParameters<float> parameters;
        parameters.gain = gain;
        norm_forward<float>(norm, parameters, values, out.view());
        sums[first + text][layer] = mean_norm(out.view()) * static_cast<double>(values.rows);
      };
      pass(model, windows_.subspan(first, std::min(batch_, windows_.size() - first)), observer, changes);
    }
    std::vector<double> means(spec_.layers);
    double tokens = 0;
    for (const auto& window : windows_) tokens += static_cast<double>(window.size());
    for (const auto& window : sums) {
      for (std::size_t layer = 0; layer < spec_.layers; ++layer) means[layer] += window[layer] / tokens;
    }
    return means;
  }

  // c_l of every rescaled row. A layer's constant moves the tokens of those after it; each pass settles at
  // least one more layer, so that as many passes as layers settle all, and mostly few are needed.
  void calibrate() {
    if (!rescales()) return;
    const std::vector<double> trained = norms_before_attention(model_of(result_.rows.front()));
    for (AblateRow& each : result_.rows) {
      if (each.rescale.empty()) continue;
      attempt(each, [&](AblateRow& row) {
        for (std::size_t round = 0; round < result_.layers.size(); ++round) {
          if (correct(row, trained) < kSettled) break;
        }
      });
    }
  }

  // One round: the greatest relative change of a constant.
  double correct(AblateRow& row, const std::vector<double>& trained) {
    const std::vector<double> now = norms_before_attention(model_of(row));
    double most = 0;
    for (const std::size_t layer : result_.layers) {
      const double factor = trained[layer] / now[layer];
      // A layer that reads only zeros stays as it is.
      if (!std::isfinite(factor) || factor <= 0) continue;
      row.rescale[layer] *= factor;
      most = std::max(most, std::abs(factor - 1));
    }
    return most;
  }

  void measure_windows(std::size_t first, std::size_t count) {
    States states;
    for (std::size_t r = 0; r < result_.rows.size(); ++r) {
      attempt(result_.rows[r], [&](AblateRow& row) { measure_windows(row, first, count, states); });
    }
  }

  // A row whose model does not stay finite says so, and has no values.
  template <class Measure>
  void attempt(AblateRow& row, const Measure& measure) {
    if (!row.failure.empty()) return;
    try {
      measure(row);
    } catch (const InputError&) {
      throw;
    } catch (const Error&) {
      if (!row.change) throw;
      AblateRow failed;
      failed.name = row.name;
      failed.change = row.change;
      failed.rescale = row.rescale;
      // Which token was first to leave depends on the number of threads; the layer does not.
      failed.failure = fmt::format("Tokens left the range of float32 in layer {}.", layer_);
      row = std::move(failed);
    }
  }

  void measure_windows(AblateRow& row, std::size_t first, std::size_t count, States& states) {
    const ChangedModel model = model_of(row);
    const ForwardChanges changes = model.changes();
    const bool trained = !row.change;
    if (trained) states.assign(count, std::vector<Matrix<float>>(spec_.layers));
    std::vector<std::vector<LayerEffect>> effects(count, std::vector<LayerEffect>(spec_.layers));
    ForwardObserver observer;
    observer.attention = [&](std::size_t text, std::size_t layer, const AttentionRows<float>& rows) {
      const auto queries = static_cast<double>(windows_[first + text].size() * spec_.block.heads);
      add_weights(rows, 1 / queries, effects[text][layer]);
    };
    observer.point = [&](std::size_t text, std::size_t layer, TracePoint point,
                         MatrixView<const float> values) {
      LayerEffect& effect = effects[text][layer];
      if (point == TracePoint::norm_out) effect.norm = mean_norm(values);
      if (point != TracePoint::out) return;
      if (trained) {
        states[text][layer] = copied(values);
      } else {
        compare(states[text][layer].view(), values, effect);
      }
    };
    const std::vector<Matrix<float>> tokens = pass(model, windows_.subspan(first, count), observer, changes);
    std::move(effects.begin(), effects.end(), std::back_inserter(row.windows));
    if (result_.loss == Ablation::Loss::next_token) {
      for (std::size_t w = 0; w < count; ++w) {
        const auto losses = next_token_losses(spec_, head_, tokens[w].view(), windows_[first + w], executor_);
        row.losses.push_back(mean_interval(losses).mean);
      }
    } else if (result_.loss == Ablation::Loss::masked_token) {
      const auto filled = pass(model, std::span(hidden_).subspan(first, count), {}, changes);
      const OneThreadPerProduct one_thread;
      std::vector<double> losses(count);
      executor_.for_each(count, [&](std::size_t w) {
        losses[w] = answer(spec_, head_, filled[w].view(), hidden_questions_[first + w], {}).loss;
      });
      row.losses.insert(row.losses.end(), losses.begin(), losses.end());
    }
  }

  // What every head did in a prompt: of its queries, how many found; the sum of weights on what is to be
  // found.
  struct HeadFinds {
    double found = 0, weight = 0;
  };

  void watch_finds(const Prompt& prompt, const AttentionRows<float>& rows, HeadFinds& finds) const {
    for (std::size_t i = 0; i < rows.weights.rows; ++i) {
      const std::size_t query = rows.first + i;
      const auto target = prompt.finds[query];
      if (!target || *target < rows.reach.first || *target >= rows.reach.last) continue;
      const auto row = rows.weights[i];
      const float weight = row[*target - rows.reach.first];
      bool highest = weight > 0;
      for (std::size_t j = 0; highest && j < row.size(); ++j) {
        const std::size_t key = rows.reach.first + j;
        highest = key == query || key == *target || row[j] < weight;
      }
      finds.found += highest ? 1 : 0;
      finds.weight += static_cast<double>(weight);
    }
  }

  void measure_probe(std::size_t r) {
    if (prompt_ids_.empty()) return;
    attempt(result_.rows[r], [&](AblateRow& row) { measure_probe(row); });
  }

  void measure_probe(AblateRow& row) {
    const ChangedModel model = model_of(row);
    const std::size_t copies = probe_.copy.size(), heads = spec_.block.heads;
    std::vector<std::vector<HeadFinds>> finds(copies, std::vector<HeadFinds>(spec_.layers * heads));
    ForwardObserver observer;
    observer.attention = [&](std::size_t text, std::size_t layer, const AttentionRows<float>& rows) {
      if (text < copies) watch_finds(probe_.copy[text], rows, finds[text][layer * heads + rows.head]);
    };
    const auto tokens = pass(model, prompt_ids_, observer, model.changes());
    choose_best_head(finds, row.finds);
    const bool answers = !probe_.copy.front().questions.empty();
    if (!answers) return;
    const OneThreadPerProduct one_thread;
    std::vector<Answers> all(prompt_ids_.size());
    std::vector<double> first_losses(copies);
    executor_.for_each(prompt_ids_.size(), [&](std::size_t k) {
      const Prompt& prompt = k < copies ? probe_.copy[k] : probe_.lookup[k - copies];
      all[k] = answer(spec_, head_, tokens[k].view(), prompt.questions, prompt.offers);
      if (k < copies && !prompt.first.empty())
        first_losses[k] = answer(spec_, head_, tokens[k].view(), prompt.first, {}).loss;
    });
    if (spec_.causal) row.first_loss = first_losses;
    for (std::size_t k = 0; k < all.size(); ++k) {
      ProbeScores& scores = k < copies ? row.copy : row.lookup;
      const Prompt& prompt = k < copies ? probe_.copy[k] : probe_.lookup[k - copies];
      scores.loss.push_back(all[k].loss);
      scores.accuracy.push_back(all[k].accuracy);
      scores.choice.push_back(all[k].choice);
      scores.chance += 1 / static_cast<double>(prompt.offers.size()) / static_cast<double>(copies);
    }
  }

  void choose_best_head(const std::vector<std::vector<HeadFinds>>& finds, ProbeFinds& best) const {
    const std::size_t heads = spec_.block.heads;
    std::vector<double> asked;
    for (const Prompt& prompt : probe_.copy) {
      asked.push_back(static_cast<double>(std::count_if(prompt.finds.begin(), prompt.finds.end(),
                                                        [](const auto& key) { return key.has_value(); })));
      best.chance += chance_of_finding(spec_, prompt) / static_cast<double>(probe_.copy.size());
    }
    double most = -1;
    std::size_t chosen = 0;
    for (std::size_t k = 0; k < spec_.layers * heads; ++k) {
      double share = 0, weight = 0;
      for (std::size_t p = 0; p < finds.size(); ++p) {
        share += finds[p][k].found / asked[p];
        weight += finds[p][k].weight / asked[p];
      }
      // The weight, at most the number of prompts, only breaks ties.
      const double value = share + weight * 1e-6;
      if (!(value > most)) continue;
      most = value;
      chosen = k;
    }
    best.layer = chosen / heads;
    best.head = chosen % heads;
    for (std::size_t p = 0; p < finds.size(); ++p) {
      best.share.push_back(finds[p][chosen].found / asked[p]);
      best.weight.push_back(finds[p][chosen].weight / asked[p]);
    }
  }

  const ModelWeights& weights_;
  const ModelSpec& spec_;
  Texts windows_;
  const AblateSettings& settings_;
  const Executor& executor_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  std::size_t batch_ = 1, total_ = 0, done_ = 0, layer_ = 0;
  HeadWeights head_;
  std::vector<std::vector<std::uint32_t>> hidden_, prompt_ids_;
  std::vector<std::vector<ProbeQuestion>> hidden_questions_;
  Probe probe_;
  Ablation result_;
};

// Prompts that all show the same difference have an interval without width, however few they are. What n of them
// show is then that at most a share 1 − 0.05^(1/n) of prompts behaves otherwise (95 %), each of which may lose
// all; and that it is no mere chance to lie on one side if 2^−n is at most 2.5 %.
bool excludes_loss(const Interval& difference, double loss, double tolerated) {
  if (difference.low < difference.high) return difference.above(-loss);
  return difference.above(-loss) && 1 - std::pow(0.05, 1 / static_cast<double>(difference.count)) < tolerated;
}
bool shows_loss(const Interval& difference) {
  if (difference.low < difference.high) return difference.below(0);
  return difference.below(0) && std::exp2(-static_cast<double>(difference.count)) <= 0.025;
}

RetrievalChange retrieval_change(std::string measure, std::span<const double> trained,
                                 std::span<const double> changed, double chance, double tolerated,
                                 bool failed) {
  RetrievalChange result;
  result.measure = std::move(measure);
  result.trained = mean_interval(trained);
  result.changed = mean_interval(changed);
  result.difference = mean_difference(trained, changed);
  result.chance = chance;
  const double loss = tolerated * (result.trained.mean - chance);
  if (failed) {
    result.verdict = RetrievalVerdict::failed;
  } else if (!result.trained.above(2 * chance)) {  // the best of many heads is above chance by chance
    result.verdict = RetrievalVerdict::untestable;
  } else if (result.difference.count < 3) {  // two values are told as they are, and settle nothing
    result.verdict = RetrievalVerdict::not_shown;
  } else {
    result.verdict = shows_loss(result.difference)                       ? RetrievalVerdict::worse
                     : excludes_loss(result.difference, loss, tolerated) ? RetrievalVerdict::not_worse
                                                                         : RetrievalVerdict::not_shown;
  }
  return result;
}

}  // namespace

std::string name_of(const NormChange& change) {
  return name_of(change.norm) + (change.drop_affine ? ", without gain and bias" : "") +
         (change.rescale ? ", rescaled" : "");
}

std::optional<NormSpec> norm_before_attention(const ModelSpec& spec, std::size_t layer) {
  const auto site = site_before(spec, layer);
  return site ? std::optional(trained_norm(spec, *site)) : std::nullopt;
}

Interval AblateRow::mean(double LayerEffect::*effect, std::size_t layer) const {
  std::vector<double> values;
  for (const auto& window : windows) values.push_back(window[layer].*effect);
  return mean_interval(values);
}

std::vector<double> AblateRow::copy_gain() const {
  std::vector<double> gain;
  for (std::size_t k = 0; k < first_loss.size(); ++k) gain.push_back(first_loss[k] - copy.loss[k]);
  return gain;
}

Ablation ablate(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
                const AblateSettings& settings, const Executor& executor,
                const std::function<void(std::size_t, std::size_t)>& progress) {
  return Ablating(weights, windows, settings, executor, progress).run();
}

const char* name_of(Ablation::Loss loss) {
  switch (loss) {
    case Ablation::Loss::none:
      return "none";
    case Ablation::Loss::next_token:
      return "next token";
    case Ablation::Loss::masked_token:
      break;
  }
  return "masked token";
}

std::span<const Ablation::Loss> values_of(Ablation::Loss) {
  static constexpr Ablation::Loss all[] = {Ablation::Loss::none, Ablation::Loss::next_token,
                                           Ablation::Loss::masked_token};
  return all;
}

const char* name_of(RetrievalVerdict verdict) {
  switch (verdict) {
    case RetrievalVerdict::worse:
      return "worse";
    case RetrievalVerdict::not_worse:
      return "not worse";
    case RetrievalVerdict::not_shown:
      return "no difference shown";
    case RetrievalVerdict::untestable:
      return "untestable";
    case RetrievalVerdict::failed:
      break;
  }
  return "failed";
}

std::span<const RetrievalVerdict> values_of(RetrievalVerdict) {
  static constexpr RetrievalVerdict all[] = {RetrievalVerdict::worse, RetrievalVerdict::not_worse,
                                             RetrievalVerdict::not_shown, RetrievalVerdict::untestable,
                                             RetrievalVerdict::failed};
  return all;
}

std::vector<RetrievalValues> retrieval_values(const Ablation& ablation, std::size_t row) {
  const AblateRow& trained = ablation.rows.front();
  const AblateRow& changed = ablation.rows.at(row);
  std::vector<RetrievalValues> result;
  const auto add = [&](const char* name, const std::vector<double>& a, const std::vector<double>& b,
                       double chance) {
    if (!a.empty()) result.push_back({name, a, b, chance});
  };
  add("gain", trained.copy_gain(), changed.copy_gain(), 0);
  add("copy", trained.copy.choice, changed.copy.choice, trained.copy.chance);
  add("lookup", trained.lookup.choice, changed.lookup.choice, trained.lookup.chance);
  add("finds", trained.finds.share, changed.finds.share, trained.finds.chance);
  return result;
}

std::vector<RetrievalChange> retrieval_changes(const Ablation& ablation, std::size_t row) {
  const bool failed = !ablation.rows.at(row).failure.empty();
  std::vector<RetrievalChange> result;
  for (const RetrievalValues& each : retrieval_values(ablation, row))
    result.push_back(
        retrieval_change(each.measure, each.trained, each.changed, each.chance, ablation.tolerated, failed));
  return result;
}

}  // namespace normscope
