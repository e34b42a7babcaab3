#include "normscope/majority.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/decompose.h"
#include "normscope/error.h"
#include "normscope/random.h"
#include "train/parameters.h"
#include "train/paths.h"
#include "train/training.h"

namespace normscope {
namespace {

// Stream of a run's seed that orders the batches: one per epoch from here on.
constexpr std::uint64_t kFirstEpoch = 1'000;

template <class T>
std::span<const T> part(std::span<const T> values, std::size_t size, std::size_t index) {
  return values.subspan(index * size, size);
}

// Mean and standard deviation of the angles of the queries that the tokens of a set ask with.
void measure_angles(const TypeGeometry& geometry, std::span<const double> type_counts, MajorityRow& row) {
  const auto angles = angles_to_ones(geometry.queries);
  const std::size_t heads = angles.size() / type_counts.size();
  double count = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < angles.size(); ++i) {
    count += type_counts[i / heads];
    sum += type_counts[i / heads] * angles[i];
  }
  row.angle_mean = sum / count;
  for (std::size_t i = 0; i < angles.size(); ++i) {
    squares += type_counts[i / heads] * (angles[i] - row.angle_mean) * (angles[i] - row.angle_mean);
  }
  row.angle_sd = std::sqrt(squares / count);
}

std::vector<double> count_types(const SequenceSet& set) {
  std::vector<double> counts(set.classes, 0.0);
  for (const std::uint16_t token : set.tokens) ++counts[token];
  return counts;
}

}  // namespace

EncoderSpec majority_encoder(const MajoritySettings& settings, const std::string& norm) {
  EncoderSpec spec;
  spec.classes = settings.task.classes;
  spec.dimension = settings.dimension;
  spec.layers = settings.layers;
  spec.heads = settings.heads;
  spec.feed_forward = settings.feed_forward == 0 ? settings.dimension : settings.feed_forward;
  spec.norm1 = parse_norm(norm);
  spec.norm2 = parse_norm("layernorm");
  spec.norm2.affine = true;
  spec.mask = settings.mask;
  spec.matrix = settings.learned_matrix;
  spec.uniform = settings.uniform_attention;
  spec.placement = settings.placement;
  spec.temperature = settings.temperature;
  spec.keep_apart = settings.keep_apart;
  return spec;
}

void check_majority(const MajoritySettings& settings, std::span<const std::string> norms) {
  check_task(settings.task);
  if (settings.dimension < 2) {
    throw InputError(
        "The majority encoder needs at least 2 dimensions: its second norm projects one of them out.");
  }
  for (const std::string& norm : norms) check_encoder(majority_encoder(settings, norm));
  encoder_mask(settings.mask, settings.task.length);
  if (settings.batch < 1) throw InputError("A batch needs at least 1 sequence.");
  if (settings.evaluate_every < 1) throw InputError("An evaluation takes place every 1 or more steps.");
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (!positive(settings.adam.learning_rate)) {
    throw InputError(
        fmt::format("The learning rate is a positive number, not {}.", settings.adam.learning_rate));
  }
  if (settings.path == EncoderPath::bag) {
    for (const std::string& norm : norms)
      make_encoder_gradient<float>(majority_encoder(settings, norm), settings.path);
  }
}

MajoritySettings majority_in_3d() {
  MajoritySettings settings;
  settings.task.classes = 10;
  settings.task.length = 30;
  settings.task.samples = 6000;
  settings.dimension = 3;
  settings.steps = settings.adam.schedule.steps = 10'000;
  settings.stop_accuracy = 1;
  return settings;
}

TypeGeometry type_geometry(const EncoderSpec& spec, std::span<const float> parameters) {
  const std::size_t d = spec.dimension, width = d / spec.heads;
  const NormSpec before = spec.placement == Placement::post ? NormSpec() : spec.norm1;  // the first attention
  const std::vector<double> values(parameters.begin(), parameters.end());
  const auto slice = slices(spec, std::span(values));
  TypeGeometry geometry{Matrix<double>(spec.classes, d), Matrix<double>(spec.classes * spec.heads, d)};
  Matrix<double> input(spec.classes, d, {slice.embedding.begin(), slice.embedding.end()});
  if (spec.matrix) {
    for (std::size_t t = 0; t < spec.classes; ++t) {
      const auto token = part(slice.embedding, d, t);
      for (std::size_t i = 0; i < d; ++i)
        input(t, i) =
            std::inner_product(token.begin(), token.end(), part(slice.layers[0].matrix, d, i).begin(), 0.0);
    }
  }
  norm_forward(before, norm_parameters(slice.layers[0].norm1, d), std::as_const(input).view(),
               geometry.keys.view());
  const auto query = part(slice.layers[0].in_proj, d * d, 0), key = part(slice.layers[0].in_proj, d * d, 1);
  const double root = std::sqrt(spec.query_key_width());
  for (std::size_t row = 0; row < geometry.queries.rows(); ++row) {
    const auto h = geometry.keys[row / spec.heads];
    for (std::size_t c = row % spec.heads * width; c < (row % spec.heads + 1) * width; ++c) {
      const double q =
          std::inner_product(h.begin(), h.end(), query.begin() + static_cast<std::ptrdiff_t>(c * d), 0.0);
      for (std::size_t j = 0; j < d; ++j) geometry.queries(row, j) += q * key[c * d + j] / root;
    }
  }
  return geometry;
}

std::vector<double> angles_to_ones(const Matrix<double>& rows) {
  std::vector<double> angles;
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    double along = 0, square = 0;
    for (const double value : rows[r]) along += value, square += value * value;
    along /= std::sqrt(static_cast<double>(rows.cols()));
    const double across = std::sqrt(std::max(0.0, square - along * along));
    angles.push_back(square == 0 ? 90.0 : std::atan2(across, std::fabs(along)) * 180 / std::numbers::pi);
  }
  return angles;
}

double out_of_plane(const Matrix<double>& rows) {
  const Eigen::Map<const RowMatrix> values(rows.data(), static_cast<Eigen::Index>(rows.rows()),
                                           static_cast<Eigen::Index>(rows.cols()));
  const double total = values.squaredNorm();
  if (!(total > 0) || rows.rows() < rows.cols()) return 0;
  const Eigen::VectorXd singular = jacobi_singular_values(RowMatrix(values));
  return singular.tail(1).squaredNorm() / total;
}

std::optional<std::uint64_t> MajorityRun::steps_to(double loss) const {
  for (const MajorityRow& row : rows) {
    if (row.train_loss <= loss) return row.step;
  }
  return std::nullopt;
}

template <>
struct TrainingData<MajorityTask> {
  TrainingData(const MajoritySettings& settings, const std::vector<TrainingRunId>& runs,
               const Executor& executor) {
    check_majority(settings, norms_of(runs));
    std::vector<std::uint64_t> seeds;
    for (const TrainingRunId& id : runs) {
      const std::uint64_t seed = settings.data_seed.value_or(id.seed);
      if (of_seed.try_emplace(seed).second) seeds.push_back(seed);
    }
    executor.for_each(seeds.size(), [&](std::size_t i) {
      Sequences& made = of_seed.at(seeds[i]);
      made.data = make_majority_data(settings.task, seeds[i]);
      made.type_counts = count_types(made.data.test);
    });
  }

  struct Sequences {
    MajorityData data;
    std::vector<double> type_counts;  // of the test tokens
  };
  std::map<std::uint64_t, Sequences> of_seed;
};

template <>
struct Runner<MajorityTask> : RunnerOf<MajorityTask> {
  Runner(const MajoritySettings& settings_, const TrainingData<MajorityTask>& data, const TrainingRunId& id)
      : RunnerOf(settings_, majority_encoder(settings_, id.norm), id),
        sequences(data.of_seed.at(settings_.data_seed.value_or(run.id.seed))),
        model(make_encoder_gradient<float>(run.spec, settings_.path)) {}

  // The batch of a step: an epoch is a random order of the training set, its last batch what is left.
  std::span<const std::uint32_t> batch() {
    const std::size_t all = sequences.data.train.size(), size = std::min(settings.batch, all);
    const std::size_t per_epoch = (all + size - 1) / size;
    const std::uint64_t now = run.step / per_epoch;
    if (epoch != now) {
      epoch = now;
      order.resize(all);
      std::iota(order.begin(), order.end(), 0U);
      Random random(run.id.seed, kFirstEpoch + now);
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    }
    const std::size_t begin = run.step % per_epoch * size;
    return std::span(order).subspan(begin, std::min(size, order.size() - begin));
  }

  double gradient(std::span<float> gradient, const Executor& executor) {
    good = run.parameters;
    return model->gradient(sequences.data.train, batch(), run.parameters, gradient, executor);
  }
  static bool fine(double loss, std::span<const float>) { return std::isfinite(loss); }
  bool fine_after(double) const {
    return std::all_of(run.parameters.begin(), run.parameters.end(),
                       [](float value) { return std::isfinite(value); });
  }
  // Normals that are not finite would be an error wherever they are used.
  void give_up() {
    run.parameters = good;
    run.diverged = run.finished = true;
  }

  void evaluate(double train_loss, const Executor& executor) {
    MajorityRow row;
    row.step = run.step;
    row.train_loss = train_loss;
    row.test = model->measure(sequences.data.test, run.parameters, executor);
    if (!std::isfinite(row.test.loss)) {
      if (run.rows.empty()) {
        throw Error(fmt::format(
            "The loss of {} with seed {} is not finite before the first step: there is nothing to "
            "train; take fewer layers or another norm.",
            run.id.norm, run.id.seed));
      }
      run.diverged = run.finished = true;
      return;
    }
    measure_angles(type_geometry(run.spec, run.parameters), sequences.type_counts, row);
    run.rows.push_back(row);
  }
  bool reached() const { return run.rows.back().test.accuracy >= settings.stop_accuracy; }
  bool diverged() const { return run.diverged; }
  static void tell(const std::function<void()>& on_step) { on_step(); }

  void take_tensors(const std::string&, const TensorsByName&, bool diverged) { run.diverged = diverged; }
  std::string own_state() const { return packed(run.diverged); }
  void set_own_state(std::string_view bytes) { run.diverged = unpacked<bool>(bytes); }

  const TrainingData<MajorityTask>::Sequences& sequences;
  std::unique_ptr<EncoderGradient<float>> model;
  std::vector<std::uint32_t> order;  // of the epoch `epoch`
  std::optional<std::uint64_t> epoch;
};

template class Training<MajorityTask>;

}  // namespace normscope
