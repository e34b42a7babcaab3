from collections.abc import Sequence
from typing import Any, Literal, overload

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
