#pragma once
// The majority task of Brody, Alon, Yahav 2023 (§4.1, App. E.1): name the token type that occurs most often
// in a sequence, at every position. Solved exactly by attention that weighs all keys equally, which keys
// orthogonal to 1 allow a query along 1 to do: the paper's case for the projection in LayerNorm.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/executor.h"
#include "normscope/matrix.h"
#include "normscope/train.h"
#include "normscope/training.h"

namespace normscope {

struct MajorityRow;
struct MajorityRun;
struct MajoritySettings;

// Sequences are integer partitions of `length` into at most `classes` parts, met by a depth-first enumeration
// in which the order of choices is shuffled at every step, and kept if the largest part exceeds the second
// largest by at least `margin`; each gets `assignments` random assignments of its parts to classes. A
// partition of one part is kept only where no other exists (length ≤ 2, or one class). Once all partitions
// were met the enumeration starts anew.
struct MajorityTask {
  using Settings = MajoritySettings;
  using Run = MajorityRun;
  using Row = MajorityRow;
  using Source = const Executor&;  // which makes the data
  using OnStep = std::function<void()>;

  std::size_t classes = 20, length = 50, samples = 100'000, margin = 6, assignments = 10;

  bool operator==(const MajorityTask&) const = default;
};
struct MajorityData {
  SequenceSet train, test;  // 80/20, stratified by label
};
// Throws InputError on settings that leave nothing to draw.
void check_task(const MajorityTask& task);
MajorityData make_majority_data(const MajorityTask& task, std::uint64_t seed);

// The seeds of the paper's ten runs.
std::span<const std::uint64_t> paper_seeds();

struct MajoritySettings {
  MajorityTask task;
  std::size_t dimension = 8, heads = 1, layers = 1;
  std::size_t feed_forward = 0;          // 0: as wide as the dimension
  std::string mask = "full";             // as EncoderSpec::mask
  Placement placement = Placement::pre;  // as those of EncoderSpec
  double temperature = 0, keep_apart = 0;
  std::size_t batch = 6000;
  AdamSettings adam;  // decays linearly over 170 000 steps, ten times as many as are run
  std::uint64_t steps = 17'000, evaluate_every = 100;
  double stop_accuracy = 2;                // a run ends once its test accuracy reaches this; above 1: never
  std::optional<std::uint64_t> data_seed;  // none: the seed of the run, as in the paper
  EncoderPath path = EncoderPath::automatic;
  bool uniform_attention = false, learned_matrix = false;  // as EncoderSpec::uniform, ::matrix

  bool operator==(const MajoritySettings&) const = default;
};
// The encoder of a run: norm1 by name without gain and bias and with eps = 0, norm2 an affine LayerNorm with
// eps = 0.
EncoderSpec majority_encoder(const MajoritySettings& settings, const std::string& norm);
// Throws InputError that names what cannot be, for every norm.
void check_majority(const MajoritySettings& settings, std::span<const std::string> norms);

// The 3-D version behind Fig. 1a and 1b: d = 3, 10 classes, length 30, 6000 sequences, one step per epoch,
// until the test accuracy is 1 or 10 000 steps are done.
MajoritySettings majority_in_3d();

// What one evaluation records.
struct MajorityRow {
  std::uint64_t step = 0;
  double train_loss = 0;  // mean over the steps since the last row (at step 0: NaN)
  EncoderMeasures test;
  // Of the queries of the test tokens to 1, in the first layer, in degrees, folded into [0, 90].
  double angle_mean = 0, angle_sd = 0;
};

// Where the token types stand in the first layer, in model space (the paper's): the keys a type's token
// offers and the query it asks with.
struct TypeGeometry {
  Matrix<double> keys;  // classes × d: norm1(embedding), after the matrix in front of it if there is one; the
                        // embedding where norms come after (post)
  Matrix<double> queries;  // classes·heads × d: h W_Qᵀ W_K/√d_QK
};
TypeGeometry type_geometry(const EncoderSpec& spec, std::span<const float> parameters);
// Angle to 1 of each row, in degrees, folded into [0, 90]; 90 for a zero row.
std::vector<double> angles_to_ones(const Matrix<double>& rows);
// Share of the rows' squared length outside their best hyperplane through the origin: 0 if they lie in one.
double out_of_plane(const Matrix<double>& rows);

// The task solved by hand: exact averaging, as keys orthogonal to 1 allow it. Every type has a direction u_c
// orthogonal to 1, and e_c = ρ(u_c ± 1/√d) with a small ρ; W_K reads along 1 only, so that queries lie along 1 and
// all keys that LayerNorm leaves get the score 0; values are √d·u_c, and what attention makes of them is
// √d Σ_c f_c u_c, f_c the share of type c among the tokens. W_O scales it so that the logits are β u_c·Σ f_c′ u_c′ up to
// a thousandth; the feed-forward part adds nothing.
struct AveragingSolution {
  EncoderSpec spec;  // with LayerNorm
  std::vector<float> parameters;
  double sharpness = 1;  // β: what the first sequences of a set are told best with
};
// u_c, classes × dimension (2 or more): a harmonic frame, the points (cos 2πkc/C, sin 2πkc/C) for some frequencies k and
// (−1)^c/√2 where a dimension is left, over their length. A simplex if there are as many dimensions as classes.
Matrix<double> type_directions(std::size_t classes, std::size_t dimension);
// Mean cross-entropy of the logits β u_c·Σ f_c′ u_c′.
double averaging_loss(const Matrix<double>& directions, double sharpness, const SequenceSet& set);
AveragingSolution averaging_solution(const MajoritySettings& settings, const SequenceSet& train);

struct MajorityRun {
  TrainingRunId id;
  EncoderSpec spec;
  std::vector<MajorityRow> rows;
  std::vector<float> parameters;
  std::uint64_t step = 0;
  bool finished = false;  // all steps done, or the accuracy reached, or diverged
  bool diverged = false;  // the loss became NaN or infinite; the last row is the last finite one

  // The first evaluation whose train_loss is at most `loss`, if any.
  std::optional<std::uint64_t> steps_to(double loss) const;
};

// Advancing throws Error if the loss is not finite at step 0.
using MajorityTraining = Training<MajorityTask>;
extern template class Training<MajorityTask>;

}  // namespace normscope
