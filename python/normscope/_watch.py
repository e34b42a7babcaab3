"""Live models: what passes through the attention of a PyTorch model while it runs. PyTorch and transformers are needed only
by the model itself."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._attention import Attention, first, is_tensor, numbers
from ._points import by_heads, named_points
from ._progress import Progress
from ._questions import _common, _value

_ROUNDOFF = {"torch.float16": 2.0**-11, "torch.bfloat16": 2.0**-8, "torch.float64": 2.0**-53}
_POINTS = {"norm_in": "attn.norm.in", "norm_out": "attn.norm.out", "query": "attn.query", "key": "attn.key"}
_LIVE_OPTIONS = ("layers", "heads", "space", "mask", "margin")


def _version(tensor: Any) -> Any:
    """How often it was changed in place; None: it does not say."""
    try:
        return tensor._version
    except (AttributeError, RuntimeError):  # of inference mode
        return None


class _Kept:
    """A tensor until the scan: as it is, where it says whether a later step changed it, else a copy."""

    def __init__(self, tensor: Any) -> None:
        self.version = _version(tensor)
        self.tensor = tensor.detach() if self.version is not None else tensor.detach().clone()
        self.shape = tensor.shape

    def rows(self, batch: int, seen: Any) -> Any:
        if self.version is not None and _version(self.tensor) != self.version:
            raise ValueError("the model changed in place what had been seen of it; run it under torch.inference_mode(), where copies are kept")
        return _rows(self.tensor, batch, seen)


def _rows(tensor: Any, batch: int, seen: Any) -> Any:
    """tokens × numbers of one text: of batch × n × d, or batch × heads × n × width."""
    values = numbers(tensor[batch])
    if values.ndim == 3:
        values = values.transpose(1, 0, 2)[seen].reshape(len(seen), -1)
        return np.ascontiguousarray(values)
    return np.ascontiguousarray(values[seen])


class _Pass:
    """One call of the model."""

    def __init__(self) -> None:
        self.ids: Any = None
        self.padding: Any = None
        self.layers: list[dict[str, Any]] = []


class Trace:
    """What `watch` saw; made by it.

    >>> with normscope.watch(live_model) as trace:
    ...     _ = live_model(**batch)
    >>> trace.points[:2]
    ['layer.0.attn.norm.in', 'layer.0.attn.norm.out']
    >>> trace["layer.0.attn.key"].shape == trace.point("layer.0.attn.query", text=0).shape
    True
    >>> trace.scan().windows[0].layers[0].layer
    0
    """

    def __init__(self, model: Any, *, keys: str | None = None, queries: str | None = None, norms: str | None = None,
                 heads: int | None = None, key_heads: int | None = None, causal: bool | None = None) -> None:
        named = (keys, queries)
        if any(named) and not (all(named) and heads):
            raise ValueError("keys, queries and heads go together: the names of the modules, with {} for the layer, and "
                             "how many heads their outputs hold")
        for keyword, pattern in (("keys", keys), ("queries", queries), ("norms", norms)):
            if pattern is not None and "{}" not in pattern:
                raise ValueError(f"{keyword} names modules with {{}} for the layer, such as 'blocks.{{}}.attn.key', not {pattern!r}")
        if not hasattr(model, "named_modules") or not hasattr(model, "register_forward_pre_hook"):
            raise TypeError(f"watch takes a PyTorch module, not {type(model).__name__}; models in files are for scan and open_model")
        self.model = model
        self.passes: list[_Pass] = []
        self._causal = causal
        self._attention = Attention(model, self._add_layer, {"keys": keys, "queries": queries, "norms": norms}, heads, key_heads)

    # ---- while the model runs

    def __enter__(self) -> Trace:
        if self._attention.watching:
            raise RuntimeError("this trace watches already; call watch again for another")
        try:
            self._attention.begin(self._begin)
        except BaseException:
            self._attention.end()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._attention.end()

    def clear(self) -> None:
        """Forgets what was seen."""
        self.passes.clear()

    def _begin(self, module: Any, args: Any, kwargs: Any) -> None:
        each = _Pass()
        ids = first(args, kwargs, "input_ids", "ids")
        if is_tensor(ids) and len(ids.shape) == 2 and "int" in str(ids.dtype):
            each.ids = ids.detach()
        padding = kwargs.get("attention_mask")
        if is_tensor(padding) and len(padding.shape) == 2:
            each.padding = padding.detach()
        self.passes.append(each)

    def _add_layer(self, query: Any, key: Any, *, heads: int, key_heads: int, scale: float, norm_in: Any = None,
                   norm_out: Any = None, offsets: Any = None) -> None:
        if not self.passes or query.shape[0] != key.shape[0] or query.shape[-2] != key.shape[-2]:
            return  # attention to another text, or to a cache of earlier tokens
        layers = self.passes[-1].layers
        layers.append({
            "layer": len(layers), "heads": heads, "key_heads": key_heads, "scale": scale, "offsets": offsets,
            "unit_roundoff": _ROUNDOFF.get(str(getattr(query, "dtype", "")), 2.0**-24), "query": _Kept(query), "key": _Kept(key),
            # Residual streams are what models add to in place.
            "norm_in": None if norm_in is None else _Kept(norm_in.detach().clone()),
            "norm_out": None if norm_out is None else _Kept(norm_out),
        })

    # ---- afterwards

    @property
    def causal(self) -> bool:
        """Whether tokens attend to those before them only."""
        return bool(self._attention.causal if self._causal is None else self._causal)

    def _windows(self, most: int | None = None, layers: list[int] | None = None) -> list[dict[str, Any]]:
        windows = []
        for each in self.passes:
            if not each.layers:
                continue
            batch, n = each.layers[0]["key"].shape[0], each.layers[0]["key"].shape[-2]
            for b in range(batch):
                seen = np.arange(n)
                if each.padding is not None:
                    seen = np.flatnonzero(np.asarray(numbers(each.padding[b])) != 0)
                if len(seen) == 0:
                    continue  # padding only
                if most is not None:
                    seen = seen[:most]
                ids = np.zeros(len(seen), np.int64) if each.ids is None else _numbers_of_ids(each.ids[b])[seen]
                rows = [{**layer, "offsets": _offsets_of(layer["offsets"], n, seen),
                         **{point: None if layer[point] is None else layer[point].rows(b, seen) for point in _POINTS}}
                        for layer in each.layers if layers is None or layer["layer"] in layers]
                windows.append({"ids": ids, "layers": rows})
        return windows

    @property
    def points(self) -> list[str]:
        """The names of what was seen: layer.0.attn.norm.in, layer.0.attn.key, …"""
        layers = next((each.layers for each in self.passes if each.layers), [])
        return [f"layer.{layer['layer']}.{name}" for layer in layers for point, name in _POINTS.items() if layer[point] is not None]

    def point(self, name: str, text: int = 0) -> Any:
        """What was seen of a text at a point, n × d, as models in files name it ('layer.3.attn.key'), or as TransformerLens
        does ('blocks.3.attn.hook_k', with an axis for the heads). trace[name]: of the first text."""
        (found,), = named_points(name, self.points).values()
        _, number, rest = found.split(".", 2)
        windows = self._windows(layers=[int(number)])
        if not 0 <= text < len(windows):
            raise IndexError(f"there is no text {text}; {len(windows)} were seen, counted from 0")
        layer = windows[text]["layers"][0]
        kind = next(point for point, place in _POINTS.items() if place == rest)
        return by_heads(name, rest, layer[kind], layer)

    def __getitem__(self, name: str) -> Any:
        return self.point(name)

    def _given(self, text: Any, tokens: Any, tokenizer: Any, most: int | None = None) -> dict[str, Any]:
        if not any(each.layers for each in self.passes):
            raise ValueError("nothing was seen: call the model inside `with normscope.watch(model) as trace:`")
        config = getattr(self.model, "config", None)
        windows = self._windows(most)
        if not windows:
            raise ValueError("all that was seen is padding: attention_mask hides every token")
        spelled = list(tokens) if tokens is not None else []
        if spelled and isinstance(spelled[0], str):
            spelled = [spelled]
        if tokenizer is not None and not spelled:
            spelled = [_spelled(tokenizer, window["ids"]) for window in windows]
        first = windows[0]["layers"][0]
        width = first["norm_out"].shape[1] if first["norm_out"] is not None else first["query"].shape[1]
        return {
            "model": str(getattr(config, "_name_or_path", "") or type(self.model).__name__),
            "family": str(getattr(config, "model_type", "") or type(self.model).__name__), "width": width,
            "text": "text" if text is None else str(text)[:60], "causal": self.causal,
            "window": self._attention.sliding(max(len(window["ids"]) for window in windows)),
            "tokens": [[str(each) for each in row] for row in spelled], "windows": windows,
        }

    def scan(self, text: Any = None, *, tokens: Any = None, tokenizer: Any = None, threads: int = 0, out: Any = None,
             progress: bool | None = None, **options: Any) -> Any:
        """Which tokens of the texts that the model was given can its layers and heads select: a results.ScanResult.

        text       what they are called in the result
        tokens     how the tokens are spelled: a list of words for each text; or
        tokenizer  what spells their ids: normscope's, or one of transformers
        layers, heads, space, mask, margin, threads, out, progress: as of scan; the space `reachable` needs weights and is
                   for models in files
        """
        notes = {note["keyword"]: note for note in _core.options("scan")}
        values = {}
        for keyword, value in options.items():
            if keyword not in _LIVE_OPTIONS:
                raise TypeError(f"trace.scan takes {', '.join(_LIVE_OPTIONS)}, not {keyword}")
            if value is not None:
                values[keyword] = _value(notes[keyword], value)
        _, threads, out = _common(0, threads, out)
        from .results import _result_of

        bar = Progress("scan", progress)
        try:
            return _result_of(_core.scan_trace(self._given(text, tokens, tokenizer), values, threads, out, bar))
        finally:
            bar.close()

    def __repr__(self) -> str:
        return f"<normscope.Trace: {len(self.passes)} passes, {sum(len(each.layers) for each in self.passes)} layers>"


def _numbers_of_ids(tensor: Any) -> Any:
    return np.asarray(tensor.cpu() if hasattr(tensor, "cpu") else tensor).astype(np.int64)


def _offsets_of(offsets: Any, n: int, seen: Any) -> Any:
    """Of the tokens that count, which follow each other."""
    if offsets is None:
        return None
    if len(seen) and seen[-1] - seen[0] != len(seen) - 1:
        raise ValueError("padding between tokens changes their distances, on which offsets of scores depend; pad before or after them")
    return offsets[:, n - len(seen):n + len(seen) - 1]


def _spelled(tokenizer: Any, ids: Any) -> list[str]:
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return [str(each) for each in tokenizer.convert_ids_to_tokens([int(each) for each in ids])]
    return [tokenizer.decode([int(each)]) or tokenizer.token(int(each)) or f"#{each}" for each in ids]


def watch(model: Any, *, keys: str | None = None, queries: str | None = None, norms: str | None = None,
          heads: int | None = None, key_heads: int | None = None, causal: bool | None = None) -> Trace:
    """What passes through the attention of a live PyTorch model.

    Models of transformers are followed through the library's own attention functions: keys and queries exactly as they are
    scored, after rotation and norms of queries and keys; of releases before 4.48 through their linear maps and rotations.
    torch.nn.MultiheadAttention and models of TransformerLens are known, too. Of other models give the names of modules, with {} for
    the layer:

    keys, queries   linear maps whose outputs are the keys and queries of all heads, side by side
    norms           the norms in front of attention
    heads           how many heads they hold; key_heads: of keys, if they are fewer
    causal          whether tokens attend to those before them only; by default what the attention itself says

    Nothing is kept of the n × n weights. What is seen, n × d numbers for each layer, is kept until clear().

    >>> with normscope.watch(live_model) as trace:  # a model of transformers, or any other
    ...     _ = live_model(**batch)
    >>> result = trace.scan()
    >>> result.windows[0].layers[0].heads[0].keys.verdicts[0]  # of the first token: selectable, tied or unselectable
    's'
    >>> len(trace["layer.0.attn.key"]) == len(result.windows[0].tokens)
    True
    """
    return Trace(model, keys=keys, queries=queries, norms=norms, heads=heads, key_heads=key_heads, causal=causal)
