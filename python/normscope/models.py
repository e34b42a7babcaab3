"""Trained models in files: their tokenizers, and the numbers that pass through them."""
from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._points import by_heads, named_points
from ._progress import Progress


class Tokenizer:
    """From text to the token ids a model was trained with, and back.

    place: a tokenizer.json, or a model as `open_model` names it.

    >>> import normscope
    >>> tokenizer = normscope.Tokenizer("model")
    >>> tokenizer.decode(tokenizer.encode("Once upon a time"))
    'Once upon a time'
    """

    def __init__(self, place: Any) -> None:
        self._core = place if isinstance(place, _core.Tokenizer) else _core.Tokenizer(os.fspath(place))

    def encode(self, text: str, *, special: bool = True) -> npt.NDArray[np.uint32]:
        """Token ids, a uint32 array; special: with those that the tokenizer adds around a text."""
        return self._core.encode(text, special=special)

    def offsets(self, text: str, *, special: bool = True) -> npt.NDArray[np.int64]:
        """For each token the bytes of the UTF-8 text that it stands for, begin and end."""
        return self._core.offsets(text, special=special)

    def decode(self, ids: Any, *, special: bool = False) -> str:
        """The text of ids; special: with special tokens."""
        return self._core.decode(ids, special=special)

    def token(self, id: int) -> str | None:
        """As the vocabulary spells it; None: there is no such id."""
        return self._core.token(id)

    def id(self, token: str) -> int | None:
        """Of a token as the vocabulary spells it; None: there is no such token."""
        return self._core.id(token)

    def __len__(self) -> int:
        return len(self._core)


class Passed:
    """What a forward pass gave: tokens (n × d, after the last layer and norm), logits or None, and a trace by name.

    >>> import normscope
    >>> passed = normscope.open_model("model").forward([1, 2, 3], trace="layer.0.out")
    >>> passed["layer.0.out"].shape == passed.tokens.shape
    True
    """

    def __init__(self, tokens: Any, logits: Any, trace: dict[str, Any]) -> None:
        self.tokens, self.logits, self.trace = tokens, logits, trace

    def __getitem__(self, name: str) -> Any:
        return self.trace[name]

    def __repr__(self) -> str:
        return f"Passed(tokens={' × '.join(map(str, self.tokens.shape))}, trace={sorted(self.trace)})"


class Model:
    """A trained model: family, vocabulary, layers, positions, width, heads, key_heads, head_width, causal, has_head."""

    def __init__(self, name: Any) -> None:
        self._core = _core.Checkpoint(os.fspath(name))
        self._facts = self._core.facts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._facts:
            raise AttributeError(f"'Model' has no attribute '{name}'; it has {', '.join(self._facts)}, tokenizer, forward")
        return self._facts[name]

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | set(self._facts))

    def __repr__(self) -> str:
        return f"<normscope.Model: {self.family}, {self.layers} layers, {self.heads} heads, width {self.width}>"

    @property
    def tokenizer(self) -> Tokenizer:
        """Raises ValueError that says why, if there is none."""
        return Tokenizer(self._core.tokenizer)

    @property
    def points(self) -> list[str]:
        """The names of all that can be traced: layer.0.attn.norm.in, …, layer.3.out."""
        return self._core.points

    def forward(self, ids: Any, trace: Any = (), *, logits: bool = False, threads: int = 0,
                progress: bool | None = None) -> Passed:
        """One text through the model, float32, the same bytes for any number of threads.

        ids      its token ids
        trace    names of points: 'layer.3.attn.key', 'attn.key' of every layer, 'all', or as TransformerLens has them
                 ('blocks.3.attn.hook_k', with an axis for the heads)
        logits   also those of every token, n × vocabulary

        >>> import normscope
        >>> model = normscope.open_model("model")
        >>> passed = model.forward([1, 2, 3], trace=["layer.0.attn.key", "blocks.0.attn.hook_q"])
        >>> passed["layer.0.attn.key"].shape == (3, model.width)
        True
        >>> passed["blocks.0.attn.hook_q"].shape == (3, model.heads, model.head_width)
        True
        """
        names = named_points(trace, self.points, rotated=self._facts["rotary"])
        bar = Progress("forward", progress)
        try:
            tokens, scores, points = self._core.forward(ids, {each for found in names.values() for each in found}, bool(logits),
                                                        threads, bar)
        finally:
            bar.close()
        found = {asked: by_heads(asked, name.split(".", 2)[2], points[name], self._facts) for asked, (name,) in names.items()}
        return Passed(tokens, scores, found)


def open_model(name: Any) -> Model:
    """A trained model: a Hugging Face directory, an id in its local cache, a llama2.c file, or one fetched by
    `normscope data get`. Nothing is downloaded.

    >>> import normscope
    >>> normscope.open_model("model").family
    'gpt2'
    """
    return Model(name)
