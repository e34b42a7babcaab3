# Written by scripts/python-stubs from what options and results say of themselves; do not edit.
from collections.abc import Iterator, KeysView
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from . import Path, _core

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]


class Fields:
    def to_dict(self) -> dict[str, Any]: ...


class Result(Fields):
    @property
    def command(self) -> str: ...
    @property
    def directory(self) -> str | None: ...
    def to_json(self, indent: int | None = ...) -> str: ...
    def table(self, part: str | None = ..., library: Literal["pandas", "polars", "none"] | None = ...) -> Any: ...
    def save(self, directory: Path) -> None: ...
    def report(self, path: Path) -> None: ...
    def _repr_html_(self) -> str: ...


class AblateLayerResult(Fields):
    layer: int  # counted from 0
    change: Interval  # of the hidden states beside those as trained, relative to these (Frobenius)
    cosine: Interval  # of each token with itself as trained
    entropy: Interval  # of attention weights, nats, mean over heads and tokens
    largest_weight: Interval  # highest attention weight, mean over heads and tokens
    norm: Interval  # mean norm of what enters attention
    constant: float | None  # what rescaling multiplied with


class AblateResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    seed: int  # of every random number
    threads: int  # used; results do not depend on it
    seconds: float  # time of the passes, without reading and writing
    settings: AblateResultSettings  # the options as resolved
    family: str  # of the model
    norm: str  # in front of attention, as trained
    changed_layers: IntArray  # whose norm was replaced
    measured_loss: Literal["none", "next token", "masked token"]  # of which tokens
    verdict: str  # in a sentence
    notes: list[str]  # what was done and what to know, in sentences
    rows: list[AblateRowResult]  # the model as trained first, then one entry per change


class AblateResultSettings(Fields):
    model: str  # as given
    text: str  # the file of the text or of its token ids, as given
    window: int  # tokens read at once, at most
    stride: int  # tokens from the beginning of a window to that of the next
    windows: int  # read
    norms: list[str]  # the changes, in order
    layers: IntArray  # whose norm was to be replaced; empty: all
    mask_token: int | None  # what hides tokens from an encoder; null: none is known
    drop_affine: bool  # learned gain and bias were dropped
    rescale: bool  # each change also with a constant per layer
    prompts: int  # of each kind of the retrieval probe
    probe_length: int  # random tokens of a prompt, which come twice
    tolerated: float  # share of the retrieval above chance that 'not worse' must exclude losing
    probe_tokens: Literal["text", "vocabulary"]  # where random tokens were drawn from


class AblateRowResult(Fields):
    name: str  # of the change
    norm: str | None  # in place of the model's; null: as trained
    failure: str | None  # why nothing was measured
    loss: Interval | None  # mean over windows
    losses: FloatArray | None  # mean of each window, nats
    loss_change: Interval | None  # beside the model as trained, window by window
    layers: list[AblateLayerResult] | None  # one entry per layer
    probe: RetrievalProbeResult | None  # sharp retrieval from prompts of random tokens
    retrieval: list[RetrievalChange] | None  # beside the model as trained, with verdicts


class ArcBasinResult(Fields):
    angles: int  # of token 2, evenly over the circle
    apart: int  # angles from which the tokens stay apart
    share: float  # of these in all
    formula: float  # ½ − arcsin(1/w)/2π, what the share should be
    mismatches: int  # angles whose fate the arcs do not tell
    zero_rows: int  # angles from which a row became 0
    unsettled: int  # angles whose fate was not seen


class AssumptionResult(Fields):
    name: str  # what the theorem asks
    met: bool  # whether it was so
    detail: str  # how far


class ClaimResult(Fields):
    where: str  # figure, table or section
    claim: str  # in the paper's words, shortened
    published: str  # value, with its unit
    measured: str  # mean and interval, over how many seeds
    verdict: str  # holds, holds only if …, does not hold, open, or the answer; of a stand-in with its name before it
    why: str  # the evidence, in a sentence or two
    id: str  # part and number: the address of its card
    part: str  # of the audit
    paper: str  # brody2023, wu2024, or beyond
    topic: str  # what it is about, in a word
    holds: Literal["yes", "conditionally", "no", "open", "answered"]  # the verdict in a word
    condition: str  # what must be granted, or the answer of a question
    stand_in: str  # what was looked at in the place of the paper's; empty: nothing
    not_at_hand: str  # what the paper looked at, and was not looked at here
    missing: str  # what would settle it; of a settled claim, what is nearest to turning it
    more: str  # while it is open: what could be run more of, and at what cost; empty: nothing
    more_seconds: float | None  # about, on two cores; null: there is nothing more to run
    holds_half: Literal["yes", "conditionally", "no", "open", "answered"]  # the verdict with all thresholds halved
    holds_twice: Literal["yes", "conditionally", "no", "open", "answered"]  # and doubled
    comparisons: list[ComparisonResult]  # what the verdict is made of, in order
    level: float  # of the intervals: stricter the more there are, and the more often one looks
    looks: int  # until it was settled, or until now
    pieces: int  # of the audit that its part has had
    amount: str  # of what it was judged by: samples, seeds
    figures: list[str]  # that belong to it, by name
    confounds: list[str]  # what the paper did not separate: scale, dropout, eps, head-space, heat-map, mu-scale


class CollapseCurveResult(Fields):
    name: str  # of the curve, as no other has it: group and mask
    group: str  # the panel it is shown in: the variant, and what else distinguishes panels
    mask: str  # as given, or of the model
    skip: bool  # with skip connections
    norm: str  # by name; none: without
    placement: str  # of the norm: post, pre or sandwich
    feed_forward: int  # hidden width; 0: attention only
    temperature: float  # d_QK, of which scores are divided by the root
    dropout: float  # of attention weights and outputs
    rate: CollapseRateResult  # how fast the tokens become alike
    measures: dict[str, MeasureByLayer]  # of the tokens after every layer, by name
    singular_values: list[FloatArray]  # of the tokens, per layer, mean over samples; empty: not asked for
    least_weight: FloatArray  # least attention weight of each layer
    entropy: FloatArray  # mean entropy of the attention weights of each layer
    empty_rows: int  # tokens that the mask lets attend to nothing
    undefined_rows: int  # rows that a norm could not scale; they stay 0
    theory: CollapseTheoryResult  # what the theorems say of it


class CollapseRateResult(Fields):
    factor: float  # share of μ/‖X‖ left after each layer, geometric mean over samples
    low: float  # lower end of its 95 % interval; null: one sample has none
    high: float  # its upper end
    samples: FloatArray  # the factor of each sample
    layers: int  # of the first sample that were fitted, down to rounding


class CollapseResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    seed: int  # of every random number
    threads: int  # used; results do not depend on it
    seconds: float  # time to compute all curves, without reading and writing
    settings: CollapseUsed  # the options as resolved
    verdict: str  # which curve collapses fastest and which slowest, in a sentence
    curves: list[CollapseCurveResult]  # one per case; of a model, for each of its inits


class CollapseTheoryResult(Fields):
    epsilon: float  # least attention weight of all layers and samples
    radius: int | None  # of the mask; null: it has no centre
    diameter: int | None  # of the mask; null: not strongly connected
    theorem1: TheoremResult  # of Wu et al.: without norms
    theorem2_diameter: TheoremResult  # with norms; r is the diameter, which is provable
    theorem2_radius: TheoremResult  # with norms; r is the radius, as one may read it
    corollary1: TheoremResult  # with norms, if no angle is obtuse at the start


class CollapseUsed(Fields):
    tokens: int  # N, of every sample
    dim: int  # dimensions of a token
    heads: int  # of attention
    feed_forward: int  # hidden width where a variant has that part; 0: none has
    layers: int  # passed through
    samples: int  # starts, or windows of the text
    variants: list[str]  # which parts of a block are on
    masks: list[str]  # as given
    norms: list[str]  # as given
    placements: list[str]  # of the norms
    temperatures: list[str]  # d_QK, as given; empty: the width of a head
    dropouts: list[str]  # of attention weights and outputs, as given
    init: str  # of all weights for which nothing else is said
    query_key: str  # query and key weights
    value: str  # value weights
    output: str  # output weights
    weight_norm: bool  # the weights of every unit have norm 1
    fresh_weights: bool  # every sample has weights of its own
    qknorm: bool  # queries and keys have norm 1 in every head
    start: str  # where the tokens start
    precision: Literal["float32", "float64"]  # of the forward pass
    spectrum: bool  # singular values and ranks were computed
    eps: float  # of the norms
    step_size: float | None  # h: layer l is at the time l·h; left out: 1
    model: str | None  # the trained model
    family: str | None  # of the model
    own_mask: str | None  # the mask the model was trained with
    text: str | None  # the file that the model read
    stride: int | None  # tokens from one window to the next


class ComparisonResult(Fields):
    what: str  # what was measured
    unit: str  # of all numbers here: ×, °, %, nats, or none
    value: float  # measured; null: nothing was
    low: float  # lower end of its interval; null: it has none, as of one sample, or no end
    high: float  # upper end
    count: int  # values that the interval is of; 0: an exact number
    direction: Literal["above", "below", "at least", "at most"]  # where it must lie
    threshold: float  # against which it is held
    reason: str  # why this threshold; empty: a natural one, no difference or none at all
    half: float | None  # half the threshold, counted from no difference; null: it is natural
    twice: float | None  # and twice
    published: float | None  # value of the paper; null: it has none in this unit
    answer: str  # yes, no or not yet


class CoverTerm(Fields):
    index: int  # of a key
    weight: float  # above 0


class DoctorPart(Fields):
    name: str  # what is looked at
    found: str  # what is there
    advice: str  # how to get what is missing; empty: nothing is


class DoctorResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    parts: list[DoctorPart]  # what the program uses, one by one


class EquilibriaResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    seed: int  # of every random number
    threads: int  # used; results do not depend on it
    seconds: float  # time to compute everything, without writing
    tokens: int  # N, of equilibria and final ranks
    dim: int  # d, of the same
    starts: int  # random starts
    steps: int  # layers from each
    zero_row_policy: str  # what happens to rows that cancel, and how many met one
    rank_tolerance: float  # a rank counts the singular values above this share of the largest
    settled_change: float  # a start is settled if from half the layers on none of them moved by more than this share
    settled_step: float  # and if the last layer moved no entry by more than this divided by the layers
    verdict: str  # what was found, in a sentence
    weights: list[EquilibriaWeightResult]  # one entry per w


class EquilibriaWeightResult(Fields):
    w: float  # entry above the diagonal of the value matrix
    fixed_points: list[FixedPointResult]  # of token 2 while token 1 is at (0, 1)
    arc: ArcBasinResult  # where token 2 goes while token 1 is at (0, 1)
    coupled: FinalRanksResult  # ranks at the end, two tokens in the plane, both moving
    equilibria: list[RankSummaryResult]  # those of Theorem 3, one entry per rank
    final_ranks: FinalRanksResult  # ranks at the end, of as many tokens and dimensions as asked for
    trajectories: list[TokenPathResult]  # two tokens in the plane, followed


class FinalRanksResult(Fields):
    starts: int  # random starts
    ranks: list[RankShare]  # one entry per rank, from 1
    zero_rows: int  # starts that met a row that became 0
    unsettled: int  # starts that had not settled after the last layer


class FixedPointResult(Fields):
    name: str  # A, B, C or S, as in the theory
    x: float  # where token 2 is, while token 1 is at (0, 1)
    y: float  # likewise
    multiplier: float  # of a small distance along the circle, per layer; null where the rows cancel
    kind: Literal["attracts", "repels", "singular"]  # what it does with what is near


class HeatmapCellResult(Fields):
    n: int  # keys
    d: int  # their dimension
    draws: int  # random sets of keys
    fraction: float  # mean over draws of the share of unselectable keys
    fraction_sd: float  # standard deviation of a draw's share; null: of one draw
    fraction_se: float  # standard error of fraction; null: of one draw
    any: float  # share of draws with at least one unselectable key
    any_se: float  # standard error of any; null: of one draw
    tied: float  # mean share of tied keys
    unselectable: int  # unselectable keys of all draws
    robust_unselectable: int  # those that stay so whatever rounding did to the coordinates
    robust_fraction: float  # fraction, over those only
    robust_any: float  # any, over those only


class HeatmapGridResult(Fields):
    norm: str  # applied to the keys
    cells: list[HeatmapCellResult]  # every d with every n, n running faster


class HeatmapResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    seed: int  # of every random number
    threads: int  # used; results do not depend on it
    seconds: float  # time to compute all grids, without writing
    init: Literal["normal", "uniform", "xavier"]  # the distribution of the coordinates
    precision: Literal["float32", "float64"]  # what the keys are held in
    draws: int  # random draws per cell
    n: IntArray  # numbers of keys, across
    d: IntArray  # dimensions, down
    verdict: str  # what the grids say of the paper's claim, in a sentence
    norm: str  # of cells: the one asked for, or none
    cells: list[HeatmapCellResult]  # the grid of that norm again
    grids: list[HeatmapGridResult]  # one grid per norm, over the same keys


class Interval(Fields):
    count: int  # values
    mean: float  # of the values; null: there is none
    low: float  # lower end of the 95 % interval; null: one value has none
    high: float  # its upper end


class KeyAdvice(Fields):
    scale: KeyThreshold | None  # factors of the key alone
    offset: KeyThreshold | None  # what is added to its score alone
    norms: list[NormAdvice]  # norms, applied to all keys, under which it is selectable
    without: str | None  # why there is no threshold


class KeyCounts(Fields):
    selectable: int  # some query gives them the strictly highest score
    tied: int  # some query puts them on top, but never alone
    unselectable: int  # every query that distinguishes the keys puts another above them
    undecided: int | None  # beyond the effort allowed to rational arithmetic


class KeyResult(Fields):
    index: int  # row of the key in its set
    verdict: Literal["selectable", "tied", "unselectable", "undecided"]  # what queries can do with the key
    robust: bool  # no change of the keys within the rounding of their dtype (or noise) alters the verdict
    margin: float | None  # distance to the hull of the others
    margin_at_most: float | None  # the margin is no larger, where an exact one was beyond rational arithmetic's effort
    depth: float | None  # a lower bound of the distance to the boundary of the others' hull
    max_weight: float | None  # softmax weight that a query of norm at most R was found to give the key
    max_weight_bound: float | None  # no query of norm at most R gives it more
    witness: FloatArray | None  # a query that puts the key on top
    exact_witness: list[str] | None  # the witness as integers or fractions, when no doubles pass the exact test
    cover: list[CoverTerm] | None  # other keys whose convex combination reproduces the key
    interior: list[CoverTerm] | None  # keys that reproduce the key and span the hull
    tied_with: IntArray | None  # the other keys that share the top score under the witness
    last_prefix: int | None  # length of the longest prefix of the keys in which this key is selectable; 0 if there is none
    verified: bool | None  # the certificate was checked in rational arithmetic
    advice: KeyAdvice | None  # what would make the key selectable


class KeySetResult(Fields):
    batch: int | None  # of the heads, counted from 0
    head: int | None  # whose keys these are, counted from 0
    n: int  # keys
    d: int  # their dimension
    rank: int  # dimension of the affine hull the verdicts were decided in
    rank_tolerance: float  # a direction in which the keys spread less than this (root mean square, along a coordinate of average size) holds only rounding
    matrix_rank: int  # what NumPy's matrix_rank makes of the centred keys
    counts: KeyCounts  # keys by verdict
    robust_counts: KeyCounts  # the same, only keys whose verdict is robust
    exact_path: int  # keys that floating point could not decide, and rational arithmetic did
    kept: IntArray | None  # the coordinates on which keys were decided and certificates hold exactly
    left_out: float | None  # the largest distance of a key from the flat of these coordinates, judged to be rounding
    offsets_for_all: OffsetsForAll | None  # score offsets under which all keys are selectable, but for equal ones
    keys: list[KeyResult] | None  # one entry per key, in the order given


class KeyThreshold(Fields):
    least: float  # no value up to this one makes the key selectable, every larger one does
    enough: float  # a value above it, at which the witness selects the key
    witness: FloatArray | None  # a query that selects the key there and at every larger value
    cover: list[CoverTerm] | None  # other keys whose convex combination reproduces the key as `least` changes it


class KeysResult(Result):
    version: str  # of the program
    commit: str  # it was built from; -dirty after changes, unknown outside a repository
    seconds: float  # time to decide all sets, without reading and writing
    threads: int  # used; results do not depend on it
    isa: str  # instruction set the kernels ran with
    settings: KeysSettings  # the options as resolved
    undefined_rows: int | None  # rows that the norm could not scale (zero rows, or σ = 0); they became 0
    sets: list[KeySetResult]  # one entry per set: one for an n × d file, as many as the first axis says for a batch; of heads one for each, batch by batch


class KeysSettings(Fields):
    file: str  # as given; - is standard input
    tensor: str  # as given; empty if none was named
    heads: int | None  # each has a set of its own
    dtype: Literal["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]  # of the file
    norm: str  # applied to the keys first
    bias: str  # the file with the score offsets; empty if none
    bias_tensor: str  # the tensor of that file, as asked for; empty if it was not named
    rank_policy: Literal["numerical", "full"]  # numerical: decided in the numerical affine hull; full: every digit at face value
    margin: Literal["exact", "bound"]  # exact, or certified lower bounds
    exact: bool  # every certificate was verified in rational arithmetic
    prefix: bool  # prefixes were asked about
    advice: bool | None  # what would help keys that are not selectable was asked
    query_norm: float | None  # R: the largest norm of queries whose weights are told
    noise: float | None  # robust means: against any change of each key of this norm
    effort: float  # products of 64-bit words that rational arithmetic may take for one key


class LanguagePlan(Fields):
    corpus: str  # what it is trained on, by name or file
    tokenizer: str  # by name
    squad: str | None  # file with the contexts whose keys are decided
    test_text: str | None  # file whose losses are measured and keys decided, in place of what is held out
    seeds: int  # how many of the plan's
    batch: int  # texts of a step
    context: int  # tokens of a text
    steps: int  # of training
    evaluate_every: int  # steps
    learning_rate: float  # of Adam at the start
    most_tokens: int  # of the corpus; 0: all
    held_out: int  # windows to measure losses on
    windows: int  # to decide keys of, after training
    trend_windows: int  # and on the way
    snapshots: int  # at so many evaluations, the first and the last among them


class MajorityNormResult(Fields):
    norm: str  # by name
    runs: int  # of this norm
    train_loss: MeanResult  # mean cross-entropy since the evaluation before, in nats
    test_loss: MeanResult  # mean cross-entropy of the held-out sequences
    accuracy: MeanResult  # share of positions that are right
    sequence_accuracy: MeanResult  # share of sequences right at every position
    angle_mean: MeanResult  # of the first layer's queries to 1, in degrees
    angle_sd: MeanResult  # its standard deviation over tokens and heads
    attention_entropy: MeanResult  # of the attention rows, in nats
    attention_distance: MeanResult  # their total variation distance from uniform
    steps_to: dict[str, MeanResult]  # of those that got there; a mean only if all did


class MajorityResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    threads: int  # used; results do not depend on it
    seconds: float  # of training and evaluation
    ms_per_step: float  # over the steps of all runs; null: there was none to do
    settings: MajorityUsed  # every option as resolved
    runs: list[MajorityRunResult]  # one for each norm and seed
    norms: list[MajorityNormResult]  # means over the seeds of each norm


class MajorityRunResult(Fields):
    norm: str  # by name
    seed: int  # of everything random in the run
    parameters: int  # their number
    step: int  # of the last evaluation, which the measures are of
    train_loss: float  # mean cross-entropy since the evaluation before, in nats
    test_loss: float  # mean cross-entropy of the held-out sequences
    accuracy: float  # share of positions that are right
    sequence_accuracy: float  # share of sequences right at every position
    angle_mean: float  # of the first layer's queries to 1, in degrees
    angle_sd: float  # its standard deviation over tokens and heads
    attention_entropy: float  # of the attention rows, in nats
    attention_distance: float  # their total variation distance from uniform
    diverged: bool | None  # the loss became infinite
    keys_out_of_plane: float  # share of the keys' squared length outside their best hyperplane through the origin
    steps_to: dict[str, int | None]  # the first evaluation whose train_loss is at most this; null: none


class MajorityUsed(Fields):
    classes: int  # token types
    length: int  # tokens of a sequence
    samples: int  # sequences
    margin: int  # least lead of the majority, in tokens
    assignments: int  # sequences made of each partition
    dim: int  # width d of the encoder
    heads: int  # of attention
    layers: int  # of the encoder
    feed_forward: int  # width of the hidden part
    mask: str  # by name
    placement: Literal["pre", "post", "sandwich"] | None  # of the norms; left out: pre
    temperature: float | None  # d_QK; left out: the width of a head
    keep_apart: float | None  # weight of 1 − (μ/‖X‖)² in the loss; left out: 0
    batch: int  # sequences of a step
    learning_rate: float  # of Adam, at the start
    decay_steps: int  # the step from which on the learning rate is 0
    weight_decay: float  # decoupled
    clip: float  # largest norm of the gradient; 0: no limit
    steps: int  # of training
    evaluate_every: int  # steps between two records
    stop_accuracy: float  # a run ends at this test accuracy; above 1: never
    data_seed: int | None  # of the sequences; null: that of the run
    path: Literal["automatic", "generic", "bag"]  # how gradients are computed
    uniform_attention: bool | None  # attention was frozen at equal weights
    learned_matrix: bool | None  # a learned d × d matrix stood in front of the norm


class MaskCentres(Fields):
    count: int  # tokens that reach every token
    ranges: list[IntArray]  # which: first and last of each run of neighbours


class MaskResult(Fields):
    mask: str  # as given
    tokens: int  # n
    edges: int  # pairs of a token and one that it attends to
    density: float  # edges / n²
    sparsity: float  # 1 − density
    self_loops: int  # tokens that attend to themselves
    empty_rows: int  # tokens that attend to nothing: their attention is defined as 0
    components: int  # strongly connected ones
    strongly_connected: bool  # every token reaches every token
    quasi_strongly_connected: bool  # some token reaches every token
    centres: MaskCentres  # tokens that reach every token
    radius: int | None  # layers after which some token has reached all; null: there is no such token
    diameter: int | None  # layers after which every token has reached all; null: not strongly connected


class MasksResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    seed: int  # of every random number
    threads: int  # used; results do not depend on it
    seconds: float  # time to tell the properties, without reading and writing
    masks: list[MaskResult]  # one entry per mask, in the order given
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def keys(self) -> KeysView[str]: ...


class MeanResult(Fields):
    runs: int  # that have a value
    mean: float  # over these runs
    low: float  # end of the 95 % interval
    high: float  # end of the 95 % interval


class MeasureByLayer(Fields):
    mean: FloatArray  # over samples, layer 0 (the start) first
    sd: FloatArray  # standard deviation over samples; null: of one sample


class NormAdvice(Fields):
    norm: str  # applied to all keys, in place of the one they have
    witness: FloatArray | None  # a query that selects the key after it


class NormShare(Fields):
    along_ones: float  # share of the energy along the vector of ones, mean over tokens
    norm_mean: float  # mean norm
    norm_spread: float  # standard deviation of the norms over their mean


class OffsetsForAll(Fields):
    least: FloatArray  # per key: what has to be added to its offset at least, and never quite suffices
    bend: float  # how much is added at the centre of the keys beyond that, less towards the outside
    offsets: FloatArray  # per key: what to add to its offset
    counts: KeyCounts  # keys by verdict with these offsets


class PaperAsked(Fields):
    budget: str  # of time; empty: the usual, or a fixed recipe
    squad: str  # whose keys are decided; empty: text held out of the corpus
    test_text: str | None  # that is measured on
    seeds: int | None  # how many of the paper's ten
    steps: int | None  # of the majority runs
    text_steps: int | None  # of the models of text
    samples: int | None  # of the collapse runs
    models: str  # pretrained; empty: those at hand
    text: str  # that they read; empty: built in
    corpus: str  # of the language model; empty: the first that was fetched
    reviews: str  # of the sentiment model and of sentences; empty: those fetched
    full: bool  # whether at the published scale


class PaperResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    seed: int  # of every random number
    threads: int  # used; results do not depend on it
    parts: list[str]  # what is rerun, in this order
    seeds: IntArray  # of the trainings
    steps: int  # of the majority runs in 8 dimensions
    steps_3d: int  # at most, of those in 3
    draws: int  # of the heat maps
    samples: int  # of the collapse runs with 12 layers
    deep_samples: int  # of those with 128
    budget: float | None  # seconds for pieces, each where a claim is open; amounts are then the most of each
    repeats: list[PieceResult] | None  # pieces of an earlier audit, in order
    models: list[str]  # pretrained, by the names they are opened by
    text: str  # file that they read, and sentences come from; empty: built in
    language: LanguagePlan | None  # how the language model is trained
    sentiment: SentimentPlan | None  # how the sentiment model is trained
    sentences: SentencePlan | None  # which sentences are looked at
    asked: PaperAsked | None  # options as given; what `--resume` with `--only` adds follows from them
    pieces: list[PieceResult]  # in the order in which they were run
    claims: list[ClaimResult]  # each with its verdict


class PieceResult(Fields):
    effort: str  # what is run more of
    level: int  # how much, from 1
    amount: str  # the same in words
    parts: list[str]  # that look at it


class ProbeFindsResult(Fields):
    layer: int  # of the best head
    head: int  # that looks most often at the token to be found
    share: Interval  # of tokens from which it does
    weight: Interval  # mean weight on the token to be found
    chance: float  # of the share


class ProbeResult(Fields):
    loss: Interval  # of the token to be found, nats
    accuracy: Interval  # share of questions where it is the likeliest of all tokens
    choice: Interval  # share where it is the likeliest of those the prompt asks for
    chance: float  # of choice
    first_loss: Interval | None  # of first copies, where there is nothing to retrieve
    gain: Interval | None  # by how much the loss of a second copy is lower than that of the first


class RankShare(Fields):
    rank: int  # of the tokens after the last layer
    starts: int  # starts that settled there
    share: float  # of these in all
    low: float  # lower end of Clopper and Pearson's 95 % interval of the share
    high: float  # its upper end


class RankSummaryResult(Fields):
    rank: int  # k: of the equilibria
    count: int  # how many there are; 0: the square below is negative
    second_entry_squared: float  # 1 − m²/w², the square of the last entry of token m + 1, where m = N − k + 1; 1 for rank 1
    enumerated: bool  # all of them were built; what follows is null or 0 if not
    residual: float  # largest change of an entry by one layer, over all of them
    stable_rank: float  # the largest ‖X‖_F²/‖X‖₂²
    published_bound: float  # N/(N − (N − 1)/w²), proven for k = N only
    own_bound: float  # N/(N − (m² + k − 2)/w²), by the same argument
    stable: int  # how many are stable, but for marginal directions
    least_radius: float  # least spectral radius of the layer's derivative, without eigenvalues 1
    largest_radius: float  # the largest
    least_signs: IntArray  # of the equilibrium of least radius, the first if several
    marginal: int  # eigenvalues 1, the same for all of them


class RetrievalChange(Fields):
    measure: str  # gain (of copies, in nats), copy, lookup or finds (shares)
    chance: float  # what guessing would reach
    trained: Interval  # of the model as trained
    changed: Interval  # with the norm replaced
    difference: Interval  # changed less trained, prompt by prompt
    verdict: Literal["worse", "not worse", "no difference shown", "untestable", "failed"]  # whether retrieval got worse


class RetrievalProbeResult(Fields):
    copy: ProbeResult | None  # random tokens, twice: is the next one known?
    lookup: ProbeResult | None  # pairs, twice: is the value of a key known?
    finds: ProbeFindsResult | None  # does a head look at the token to be found?


class ScanHeadResult(Fields):
    head: int  # counted from 0
    key_head: int  # whose keys it uses
    wins: IntArray  # per token: queries that gave it the highest weight
    entropy: float  # of the attention weights, nats, mean over queries
    largest_weight: float  # highest weight of a query, mean over queries
    keys: ScanSetResult | None  # the head space: any query
    reachable: ScanSetResult | None  # the same keys, for the queries the layer can form


class ScanLayerResult(Fields):
    layer: int  # counted from 0
    norm_in: NormShare  # tokens before the norm in front of attention
    norm_out: NormShare  # tokens after it
    before: ScanSetResult | None  # keys before the norm
    model: ScanSetResult | None  # keys after the norm
    heads: list[ScanHeadResult]  # one entry per head that was asked for


class ScanResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    seed: int  # of every random number
    threads: int  # used; results do not depend on it
    seconds: float  # time of the pass and of the verdicts, without reading
    settings: ScanResultSettings  # the options as resolved
    family: str  # of the model
    verdict: str  # in a sentence
    spaces: dict[str, ScanSpaceResult]  # by name: tokens that cannot be selected
    windows: list[ScanWindowResult] | None  # one entry per window of the text


class ScanResultSettings(Fields):
    model: str  # as given
    text: str  # the file of the text or of its token ids, as given
    window: int  # tokens read at once, at most
    stride: int  # tokens from the beginning of a window to that of the next
    windows: int  # read
    layers: IntArray  # scanned; empty: all
    heads: IntArray  # scanned; empty: all
    spaces: list[Literal["before", "model", "head", "reachable"]]  # key spaces asked about
    mask: str  # what the places of a window see, as `normscope mask` names it
    margin: Literal["exact", "bound"]  # exact, or certified lower bounds
    largest_weights: bool  # of reachable queries were asked for
    trace: str  # activations written, as given; empty: none


class ScanSetResult(Fields):
    selectable: int  # tokens that some query gives the strictly highest score
    tied: int  # tokens that some query puts on top, but never alone
    unselectable: int  # tokens that no query puts on top, from every place that sees them
    undecided: int  # tokens whose margin is within rounding of 0
    robust_unselectable: int | None  # of the unselectable: those that no rounding of the keys can have made so; null: not known
    rank: int  # of the largest set decided
    verdicts: str  # a letter per token: s selectable, t tied, u unselectable, ? not decided
    places: list[int | None]  # a place with that verdict; null: every place that sees the token
    margins: FloatArray  # of the selectable, from that place; 0: not measured there
    robust: str | None  # a letter per token: u unselectable whatever the rounding of the keys, - not so
    largest_weights: FloatArray | None  # softmax weight that a reachable query can give each token, from below, to within 0.1 %
    weight_places: IntArray | None  # the places that weights are from: the last, or one for each stretch of a sliding window


class ScanSpaceResult(Fields):
    tokens: int  # of all windows
    sets: int  # a token was looked at in
    unselectable_in_some: int  # tokens
    unselectable_in_all: int  # tokens
    tied_in_some: int | None  # tokens that are tied in some set
    undecided_in_some: int | None  # tokens that are not decided in some set


class ScanWindowResult(Fields):
    first: int  # of its tokens, in the text
    ids: IntArray  # of the tokens
    tokens: list[str]  # as the text has them, with what the tokenizer left out before each; of a character that several make up the first has it, and others may be empty
    layers: list[ScanLayerResult]  # one entry per layer that was asked for
    losses: FloatArray | None  # of next tokens, nats


class SentencePlan(Fields):
    reviews: str  # where the sentences come from, by name or file
    count: int  # sentences


class SentimentPlan(Fields):
    reviews: str  # what it is trained on, by name or file
    tokenizer: str  # by name
    seeds: int  # how many of the plan's
    batch: int  # texts of a step
    most_tokens: int  # of a text
    feed_forward: int  # hidden units
    training_texts: int  # evenly spaced; 0: all
    test_texts: int  # evenly spaced; 0: all
    steps: int  # of training
    evaluate_every: int  # steps
    learning_rate: float  # of Adam at the start


class TextNormResult(Fields):
    norm: str  # by name
    runs: int  # of this norm, without those with trouble
    train_loss: MeanResult  # over these
    held_out_loss: MeanResult  # over these
    accuracy: MeanResult | None  # over these; of one run with the interval of a share of texts
    perplexity: MeanResult | None  # over these


class TextResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    isa: str  # instruction set the kernels ran with
    threads: int  # used; results do not depend on it
    seconds: float  # of training and evaluation
    tokens_per_second: float  # of training; null: there was no step to do
    settings: TextUsed  # every option as resolved
    data: TextsFound  # the texts
    runs: list[TextRunResult]  # one for each norm and seed
    norms: list[TextNormResult]  # means over the seeds of each norm


class TextRunResult(Fields):
    norm: str  # by name
    seed: int  # of everything random in the run
    parameters: int  # their number
    step: int  # of the last evaluation, which the measures are of
    train_loss: float  # mean cross-entropy since the evaluation before, in nats
    held_out_loss: float | None  # the same of what is held out or tested
    accuracy: float | None  # share of texts whose class is right
    held_out_targets: int | None  # tokens or texts of that mean
    texts: int | None  # seen in training
    tokens: int | None  # seen in training
    perplexity: float | None  # exp of held_out_loss
    trouble: TroubleResult | None  # why the run stopped before its end
    model: str | None  # where in the run directory the model is


class TextUsed(Fields):
    model: str  # gpt2 or bert
    vocabulary: int  # tokens that the tokenizer knows
    dim: int  # width d of the model
    layers: int  # of the model
    heads: int  # of attention
    feed_forward: int  # width of the hidden part
    positions: int  # of the table of positions
    dropout: float  # share of numbers that it leaves out
    norm_affine: bool  # gain and bias before attention are trained
    query_key_value_bias: bool  # it is trained
    classes: int  # of a classifier; 0: a language model
    batch: int  # texts of a step
    context: int  # tokens of a text, or the most of one
    learning_rate: float  # of AdamW, at its peak
    schedule: Literal["constant", "linear", "cosine"]  # of the learning rate, after warmup
    warmup: int  # steps over which the learning rate rises from 0
    decay_steps: int  # the step from which on the learning rate is 0
    weight_decay: float  # decoupled
    clip: float  # largest norm of the gradient; 0: no limit
    steps: int  # of training
    evaluate_every: int  # steps between two records
    text: str  # description of the texts, for people
    tokenizer: str  # its description, for people
    content_hash: str  # of the tokens; a run goes on only with the same


class TextsFound(Fields):
    source: str  # a corpus by name, or files
    description: str  # the same for people
    generated: bool  # written by the grammar, not real text
    tokenizer: str  # for people: which, and how many tokens it has
    training_tokens: int | None  # tokens to train on
    held_out_tokens: int | None  # those at the end that are not
    documents: int | None  # of which something was read
    bytes: int | None  # of text that was read
    whole: bool | None  # false: the corpus has more
    training_texts: int | None  # texts to train on
    test_texts: int | None  # texts that each record is tested on
    cut_texts: int | None  # of both, longer than context
    repeated_texts: int | None  # left out of training, for they are tested
    classes: list[str] | None  # the labels, in the order of the model's outputs


class TheoremResult(Fields):
    assumptions: list[AssumptionResult]  # what the theorem asks of the run
    bound: FloatArray | None  # per layer, mean over samples: of μ for theorem 1, of μ/‖X‖ for the others; null: it does not speak of this curve
    violations: int | None  # layers and samples above what the bound allows, by more than rounding explains


class TokenPathResult(Fields):
    start: FloatArray  # x1, y1, x2, y2
    layers: int  # passed through
    end: FloatArray  # x1, y1, x2, y2 after the last
    fate: Literal["collapsed", "apart", "zero row", "not settled"]  # what became of the two tokens
    zero_rows: int  # rows that became 0, over all layers


class TroubleResult(Fields):
    kind: Literal["not finite", "spike"]  # a number that is not finite, or a loss that rose and stayed high
    step: int  # where it began
    loss: float  # there; null: not finite
    tensor: str  # not finite, or with the largest gradient; empty: only the loss is


class VocabResult(Result):
    version: str  # of the program
    commit: str  # it was built from
    seconds: float  # time to decide, without reading and writing
    threads: int  # used; results do not depend on it
    isa: str  # instruction set the kernels ran with
    settings: VocabResultSettings  # the options as resolved
    tokens: int  # rows of the matrix
    d: int  # their dimension
    rank: int  # dimension of the affine hull the verdicts were decided in
    bias: bool  # scores have an offset per token
    counts: KeyCounts  # tokens by verdict
    robust_counts: KeyCounts  # the same, only tokens whose verdict is robust
    exact_path: int  # tokens that floating point could not decide, and rational arithmetic did
    verified: int | None  # tokens whose certificate was checked in rational arithmetic
    offsets_for_all: OffsetsForAll | None  # biases under which all tokens are selectable, but for those with equal rows
    smallest_margins: list[VocabToken] | None  # selectable tokens by rising margin
    never_alone: list[VocabToken] | None  # all tokens that no hidden state puts on top alone


class VocabResultSettings(Fields):
    source: str  # the model or the file, as given
    bias: str  # the file with the score offsets; empty if none
    tokenizer: str  # the file that names the rows; empty if none was given
    embeddings: bool  # the word embeddings of a model were asked about
    margin: Literal["exact", "bound"]  # exact, or certified lower bounds
    exact: bool  # every certificate was verified in rational arithmetic
    advice: bool | None  # what would help tokens that never win alone was asked
    limit: int  # tokens listed by rising margin, at most
    dtype: Literal["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]  # of the file; of a model: the narrowest that holds its numbers


class VocabTerm(Fields):
    id: int  # of the token
    weight: float  # above 0
    token: str | None  # as the vocabulary spells it


class VocabToken(Fields):
    id: int  # row of the token
    token: str | None  # as the vocabulary spells it
    verdict: Literal["selectable", "tied", "unselectable", "undecided"]  # what hidden states can do with the token
    robust: bool  # no change of the rows within the rounding of their dtype alters the verdict
    margin: float | None  # distance to the hull of the others, or a lower bound of it
    depth: float | None  # a lower bound of the distance to the boundary of the others' hull
    exact_witness: list[str] | None  # a hidden state that puts the token on top, as integers or fractions, when no doubles pass the exact test
    cover: list[VocabTerm] | None  # other tokens whose convex combination reproduces the token's row
    interior: list[VocabTerm] | None  # tokens that reproduce the row and span the hull
    tied_with: IntArray | None  # the other tokens that share the top score
    verified: bool | None  # the certificate was checked in rational arithmetic
    advice: KeyAdvice | None  # what would make the token selectable


__all__ = [
    'AblateLayerResult',
    'AblateResult',
    'AblateResultSettings',
    'AblateRowResult',
    'ArcBasinResult',
    'AssumptionResult',
    'ClaimResult',
    'CollapseCurveResult',
    'CollapseRateResult',
    'CollapseResult',
    'CollapseTheoryResult',
    'CollapseUsed',
    'ComparisonResult',
    'CoverTerm',
    'DoctorPart',
    'DoctorResult',
    'EquilibriaResult',
    'EquilibriaWeightResult',
    'FinalRanksResult',
    'FixedPointResult',
    'HeatmapCellResult',
    'HeatmapGridResult',
    'HeatmapResult',
    'Interval',
    'KeyAdvice',
    'KeyCounts',
    'KeyResult',
    'KeySetResult',
    'KeyThreshold',
    'KeysResult',
    'KeysSettings',
    'LanguagePlan',
    'MajorityNormResult',
    'MajorityResult',
    'MajorityRunResult',
    'MajorityUsed',
    'MaskCentres',
    'MaskResult',
    'MasksResult',
    'MeanResult',
    'MeasureByLayer',
    'NormAdvice',
    'NormShare',
    'OffsetsForAll',
    'PaperAsked',
    'PaperResult',
    'PieceResult',
    'ProbeFindsResult',
    'ProbeResult',
    'RankShare',
    'RankSummaryResult',
    'RetrievalChange',
    'RetrievalProbeResult',
    'ScanHeadResult',
    'ScanLayerResult',
    'ScanResult',
    'ScanResultSettings',
    'ScanSetResult',
    'ScanSpaceResult',
    'ScanWindowResult',
    'SentencePlan',
    'SentimentPlan',
    'TextNormResult',
    'TextResult',
    'TextRunResult',
    'TextUsed',
    'TextsFound',
    'TheoremResult',
    'TokenPathResult',
    'TroubleResult',
    'VocabResult',
    'VocabResultSettings',
    'VocabTerm',
    'VocabToken',
    'Fields',
    'Result',
    'load_run',
]


def load_run(directory: Path) -> Any: ...
def _result_of(answer: _core.Answer, temporary: str | None = ...) -> Any: ...
