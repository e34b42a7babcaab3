from collections.abc import Callable
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from . import Array

__version__: str
__commit__: str
__instruction_set__: str


class Error(RuntimeError): ...


class KeySet:
    n: int
    d: int
    rank: int
    rank_tolerance: float
    matrix_rank: int
    kept: npt.NDArray[np.int64] | None
    left_out: float
    unit_roundoff: float
    counts: dict[str, int]
    robust_counts: dict[str, int]
    verdict: npt.NDArray[np.str_]
    robust: npt.NDArray[np.bool_]
    verified: npt.NDArray[np.bool_]
    exact_path: npt.NDArray[np.bool_]
    margin: npt.NDArray[np.float64]
    margin_at_most: npt.NDArray[np.float64]
    depth: npt.NDArray[np.float64]
    witness: npt.NDArray[np.float64] | None
    exact_witnesses: list[Any]
    covers: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None]
    interiors: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None]
    tied_with: list[npt.NDArray[np.int64]]
    max_weight: npt.NDArray[np.float64] | None
    max_weight_bound: npt.NDArray[np.float64] | None
    last_prefix: npt.NDArray[np.int64] | None
    def __len__(self) -> int: ...


# A KeySet, or a list of them for many sets.
def decide_keys(
    keys: Array,
    offsets: Array | None = ...,
    *,
    rank: Literal["numerical", "full"] = ...,
    exact: bool = ...,
    prefix: bool = ...,
    query_norm: float | None = ...,
    noise: float | None = ...,
    margins: Literal["exact", "bound"] = ...,
    threads: int = ...,
    certificates: bool = ...,
    unit_roundoff: float | None = ...,
    errors: Array | None = ...,
    effort: float | None = ...,
) -> Any: ...


# An array, or with return_counts a pair of it and a dict.
def norm(
    x: Array,
    variant: str = ...,
    *,
    eps: float = ...,
    gain: Array | None = ...,
    bias: Array | None = ...,
    normals: Array | None = ...,
    alpha: float = ...,
    return_counts: bool = ...,
) -> Any: ...


# What the package itself uses.
class Option(TypedDict):
    keyword: str
    kind: Literal["text", "whole", "number", "flag", "choice", "list"]
    input: bool
    required: bool
    sentence: str
    fallback: str
    otherwise: str
    choices: list[str]
    several: list[str]
    low: float | None
    high: float | None


Table = tuple[str, str, list[list[str]]]


class Answer:
    @property
    def command(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def directory(self) -> str | None: ...
    def json(self, indent: int) -> str: ...
    def fields(self, make: Callable[[str, dict[str, Any]], Any]) -> Any: ...
    def shown(self) -> tuple[str, list[str], list[Table], list[tuple[str, str, str]], list[Table]]: ...
    def report(self, path: str) -> None: ...
    def save(self, directory: str) -> bool: ...


class Tokenizer:
    def __init__(self, place: str) -> None: ...
    def encode(self, text: str, *, special: bool = ...) -> npt.NDArray[np.uint32]: ...
    def offsets(self, text: str, *, special: bool = ...) -> npt.NDArray[np.int64]: ...
    def decode(self, ids: Any, *, special: bool = ...) -> str: ...
    def token(self, id: int) -> str | None: ...
    def id(self, token: str) -> int | None: ...
    def __len__(self) -> int: ...


class Checkpoint:
    def __init__(self, name: str) -> None: ...
    @property
    def facts(self) -> dict[str, Any]: ...
    @property
    def points(self) -> list[str]: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def forward(self, ids: Any, names: set[str], logits: bool, threads: int, tell: Tell) -> tuple[Any, Any, dict[str, Any]]: ...


class MonitorLog:
    def __init__(self, directory: str, options: str) -> None: ...
    def append(self, lines: str) -> None: ...


Tell = Callable[[int, int, list[str]], None] | None


def questions() -> list[tuple[str, str, str]]: ...
def options(name: str) -> list[Option]: ...
def classes() -> list[tuple[str, list[tuple[str, str, str, bool]]]]: ...
def ask(
    name: str,
    values: dict[str, str | list[str] | bool],
    seed: int | None,
    threads: int,
    out: str,
    array: Any,
    array_name: str,
    bias: Any,
    text: str | None,
    ids: Any,
    tell: Tell,
) -> Answer: ...
def load(directory: str) -> Answer: ...
def doctor(json: str) -> Answer: ...
def scan_trace(given: dict[str, Any], values: dict[str, str | list[str] | bool], threads: int, out: str, tell: Tell) -> Answer: ...
def token_measures(tokens: Any) -> dict[str, float]: ...
def mask_graph(spec: str, n: int, *, seed: int = ..., dense: bool = ...) -> dict[str, Any]: ...
def _wait_for_abandoned_work() -> None: ...
