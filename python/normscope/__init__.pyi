# Written by scripts/python-stubs from what options and results say of themselves; do not edit.
import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt


class SupportsDLPack(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...


class SupportsRead(Protocol):
    def read(self) -> str | bytes: ...


Array: TypeAlias = npt.ArrayLike | SupportsDLPack
Path: TypeAlias = str | os.PathLike[str]
Word: TypeAlias = str | os.PathLike[str] | int | float
Words: TypeAlias = Word | Sequence[Word]

from . import results as results, train as train
from ._doctor import doctor as doctor
from ._core import Error as Error, KeySet as KeySet, decide_keys as decide_keys, norm as norm, norm_identities as norm_identities
from ._monitor import Monitor as Monitor
from ._watch import Trace as Trace, watch as watch
from .models import Model as Model, Passed as Passed, Tokenizer as Tokenizer, open_model as open_model
from .results import Fields as Fields, Result as Result, load_run as load_run

__version__: str
__commit__: str
__instruction_set__: str

__all__ = [
    'Error',
    'Fields',
    'KeySet',
    'Model',
    'Monitor',
    'Passed',
    'Result',
    'Tokenizer',
    'Trace',
    'ablate',
    'collapse',
    'decide_keys',
    'doctor',
    'equilibria',
    'heatmap',
    'keys',
    'load_run',
    'mask',
    'norm',
    'norm_identities',
    'open_model',
    'paper',
    'results',
    'scan',
    'train',
    'vocab',
    'watch',
]


def keys(
    file: Path | Array,
    *,
    tensor: Words | None = ...,
    heads: int | None = ...,
    norm: Words | None = ...,
    bias: Path | Array | None = ...,
    bias_tensor: Words | None = ...,
    rank: Literal['numerical', 'full'] | None = ...,
    margin: Literal['exact', 'bound'] | None = ...,
    noise: float | None = ...,
    query_norm: float | None = ...,
    effort: float | None = ...,
    prefix: bool | None = ...,
    exact: bool | None = ...,
    advice: bool | None = ...,
    summary: bool | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.KeysResult: ...


def scan(
    model: Words,
    *,
    text: Path | SupportsRead | None = ...,
    ids: Path | Array | None = ...,
    window: int | None = ...,
    stride: int | None = ...,
    samples: int | None = ...,
    layers: Words | None = ...,
    heads: Words | None = ...,
    space: Words | None = ...,
    mask: Words | None = ...,
    margin: Literal['exact', 'bound'] | None = ...,
    highlight: Literal['before', 'model', 'head', 'reachable'] | None = ...,
    trace: Words | None = ...,
    no_weights: bool | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.ScanResult: ...


def vocab(
    source: Path | Array,
    *,
    embeddings: bool | None = ...,
    bias: Path | Array | None = ...,
    tokenizer: Words | None = ...,
    margin: Literal['exact', 'bound'] | None = ...,
    limit: int | None = ...,
    exact: bool | None = ...,
    advice: bool | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.VocabResult: ...


def ablate(
    model: Words,
    *,
    text: Path | SupportsRead | None = ...,
    ids: Path | Array | None = ...,
    window: int | None = ...,
    stride: int | None = ...,
    samples: int | None = ...,
    norm: Words | None = ...,
    layers: Words | None = ...,
    drop_affine: bool | None = ...,
    rescale: bool | None = ...,
    mask_token: int | None = ...,
    prompts: int | None = ...,
    probe_length: int | None = ...,
    tolerated: float | None = ...,
    probe_tokens: Literal['text', 'vocabulary'] | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.AblateResult: ...


def heatmap(
    *,
    n: Words | None = ...,
    d: Words | None = ...,
    draws: int | None = ...,
    init: Words | None = ...,
    norm: Words | None = ...,
    precision: Words | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.HeatmapResult: ...


def mask(
    spec: Path | Sequence[str] | Array,
    n: int | None = ...,
    *,
    tensor: Words | None = ...,
    dense: bool = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.MasksResult: ...


def collapse(
    model: Words | None = ...,
    *,
    text: Path | SupportsRead | None = ...,
    ids: Path | Array | None = ...,
    stride: int | None = ...,
    variant: Words | None = ...,
    mask: Words | None = ...,
    norm: Words | None = ...,
    placement: Words | None = ...,
    temperature: Words | None = ...,
    dropout: Words | None = ...,
    shape: Words | None = ...,
    tokens: int | None = ...,
    dim: int | None = ...,
    heads: int | None = ...,
    feed_forward: int | None = ...,
    layers: int | None = ...,
    samples: int | None = ...,
    init: Words | None = ...,
    query_key: Words | None = ...,
    value: Words | None = ...,
    output: Words | None = ...,
    start: Words | None = ...,
    eps: float | None = ...,
    step_size: float | None = ...,
    precision: Words | None = ...,
    weight_norm: bool | None = ...,
    qknorm: bool | None = ...,
    fresh_weights: bool | None = ...,
    no_spectrum: bool | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.CollapseResult: ...


def equilibria(
    *,
    w: Words | None = ...,
    tokens: int | None = ...,
    dim: int | None = ...,
    starts: int | None = ...,
    steps: int | None = ...,
    angles: int | None = ...,
    trajectory: Words | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.EquilibriaResult: ...


def paper(
    *,
    only: Words | None = ...,
    seeds: int | None = ...,
    steps: int | None = ...,
    text_steps: int | None = ...,
    samples: int | None = ...,
    models: Words | None = ...,
    text: Words | None = ...,
    corpus: Words | None = ...,
    reviews: Words | None = ...,
    squad: Words | None = ...,
    test_text: Words | None = ...,
    full: bool | None = ...,
    budget: Words | None = ...,
    pieces: Words | None = ...,
    resume: Words | None = ...,
    seed: int | None = ...,
    threads: int = ...,
    out: Path | None = ...,
    progress: bool | None = ...,
) -> results.PaperResult: ...
