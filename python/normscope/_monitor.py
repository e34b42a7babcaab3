"""What norms and masks do to attention while a model is trained."""
from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from typing import Any, Callable

import numpy as np

from . import _core
from ._attention import is_tensor
from ._watch import _POINTS, Trace

_LOGGER = logging.getLogger("normscope")


class Monitor:
    """Looks at a sample every so many steps of a training.

    As a callback of the Hugging Face Trainer, or of Lightning, it is given as it is: callbacks=[monitor].

    model      a PyTorch module, as `watch` takes it; further keywords (keys, queries, norms, heads, …) go there
    every      steps between two looks
    sample     what the model is called with: a dict of keywords, a tuple of arguments, or a tensor
    tokens     of each text that are looked at, at most
    log        a file that gets a line of JSON for every look
    out        a run directory, of which `normscope serve DIR` draws the curves while they grow: a line for every layer
    writer     a TensorBoard SummaryWriter, or anything with add_scalar(name, value, step)
    call       called with each row: a dict

    The sample goes to where the model is. Modules of a model that were in training mode are in it again afterwards, others are not. Of the
    processes of a distributed training only the first looks. Numbers that are none any more do not end a training: the row then has
    `trouble`, a sentence, in place of the layers.

    Each row tells the step, the seconds it took, and for each layer (layer.3.…): the share of tokens that no query can
    select before the norm, after it and in the heads (before, model, head), the least margin of a key that can be selected in
    a head, μ/‖X‖, effective rank, and the share of energy along the vector of ones, all three of what enters the norm.

    >>> monitor = normscope.Monitor(live_model, every=200, sample=batch, log="log.jsonl")
    >>> for step in range(401):
    ...     _ = monitor(step)  # after each step of the training
    >>> [row["step"] for row in monitor.history]
    [0, 200, 400]
    >>> 0 <= monitor.history[0]["layer.0.head"] <= 1
    True
    """

    def __init__(self, model: Any, *, every: int = 200, sample: Any = None, tokens: int = 64, log: Any = None, out: Any = None,
                 writer: Any = None, call: Callable[[dict[str, Any]], Any] | None = None, threads: int = 0, **watched: Any) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(f"every takes a number of steps of at least 1, not {every!r}")
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 2:
            raise ValueError(f"tokens takes a number of at least 2, not {tokens!r}")
        if sample is None:
            raise ValueError("sample is missing: what the model is called with when it is looked at")
        self.model, self.every, self.sample, self.tokens = model, every, sample, tokens
        # Lightning sets `log` of its callbacks.
        self._file, self.writer, self.call, self.threads = None if log is None else os.fspath(log), writer, call, threads
        self.history: list[dict[str, Any]] = []
        self._trace = Trace(model, **watched)
        self._last: int | None = None
        about = {"model": type(model).__name__, "every": every, "tokens": tokens}
        self._kept = None if out is None or not _is_first_process() else _core.MonitorLog(os.fspath(out), json.dumps(about))

    def __call__(self, step: int) -> dict[str, Any] | None:
        """After a step of the training: the row, or None if it is not time for a look."""
        return self.look(step) if step % self.every == 0 and _is_first_process() else None

    def _after(self, step: int) -> None:
        # Batches whose gradients are accumulated are of one step.
        if step != self._last:
            self._last = step
            self(step)

    def look(self, step: int) -> dict[str, Any]:
        """Now, whatever the step."""
        start = time.perf_counter()
        row: dict[str, Any] = {"step": int(step), **self._measured()}
        row["seconds"] = time.perf_counter() - start
        self.history.append(row)
        self._tell(row)
        return row

    def _run(self) -> None:
        training = [module for _, module in self.model.named_modules() if getattr(module, "training", False)]
        sample = _beside(self.sample, self.model)
        for module in training:
            module.training = False
        try:
            with _without_gradients(), self._trace:
                if isinstance(sample, dict):
                    self.model(**sample)
                elif isinstance(sample, (tuple, list)):
                    self.model(*sample)
                else:
                    self.model(sample)
        finally:
            for module in training:
                module.training = True

    def _measured(self) -> dict[str, Any]:
        self._trace.clear()
        try:
            self._run()
            given = self._trace._given(None, None, None, self.tokens)
        finally:
            self._trace.clear()
        try:
            answer = _core.scan_trace(given, {}, self.threads, "", None)
        except ValueError as error:
            if all(_are_numbers(layer) for window in given["windows"] for layer in window["layers"]):
                raise
            _LOGGER.warning("%s", error)
            return {"trouble": str(error)}
        return _by_layer(json.loads(answer.json(-1)), given["windows"])

    def _tell(self, row: dict[str, Any]) -> None:
        if self._file is not None:
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(_line(row))
        if self._kept is not None:
            self._kept.append("".join(map(_line, _rows_of_layers(row))))
        if self.writer is not None:
            for name, value in row.items():
                if name != "step" and isinstance(value, (int, float)):
                    self.writer.add_scalar(f"normscope/{name}", value, row["step"])
        if self.call is not None:
            self.call(row)

    # ---- the Trainer of transformers asks for these by name, and for any other event

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._after(state.global_step)

    # Lightning's
    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        self._after(trainer.global_step)

    @property
    def state_key(self) -> str:
        """Of its state in checkpoints of Lightning, which it has none of."""
        return f"normscope.Monitor.{id(self)}"

    _legacy_state_key = state_key

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_") or name in ("setup", "teardown", "state_dict", "load_state_dict"):
            return _nothing
        raise AttributeError(f"'Monitor' has no attribute '{name}'")


def _nothing(*_: Any, **__: Any) -> Any:
    return None


def _is_first_process() -> bool:
    """Of a training that several processes share, as torch.distributed says, or what started them."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return bool(distributed.get_rank() == 0)
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))


def _beside(sample: Any, model: Any) -> Any:
    """The sample with its tensors where the model's first parameter is; what is like a dict as one."""
    device = getattr(next(iter(model.parameters()), None), "device", None) if hasattr(model, "parameters") else None
    known = device is not None and getattr(device, "type", "") != "meta"  # there, weights are brought when they are needed

    def moved(value: Any) -> Any:
        return value.to(device) if known and is_tensor(value) and hasattr(value, "to") else value

    if isinstance(sample, dict) or hasattr(sample, "keys"):
        return {name: moved(sample[name]) for name in sample.keys()}
    return type(sample)(map(moved, sample)) if type(sample) in (tuple, list) else moved(sample)


def _are_numbers(layer: dict[str, Any]) -> bool:
    return all(layer[part] is None or bool(np.isfinite(layer[part]).all()) for part in (*_POINTS, "offsets"))


class _without_gradients:
    def __enter__(self) -> None:
        torch = sys.modules.get("torch")
        self._guard = None if torch is None else torch.no_grad()
        if self._guard is not None:
            self._guard.__enter__()

    def __exit__(self, *failure: Any) -> None:
        if self._guard is not None:
            self._guard.__exit__(*failure)


def _line(row: dict[str, Any]) -> str:
    return json.dumps({name: None if isinstance(value, float) and not math.isfinite(value) else value
                       for name, value in row.items()}) + "\n"


def _rows_of_layers(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The same, a row for each layer: a curve for each in the panel of each measure."""
    rows: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        if name.startswith("layer."):
            _, layer, measure = name.split(".")
            rows.setdefault(layer, {"step": row["step"], "layer": f"layer {layer}"})[measure] = value
    return list(rows.values())


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _share(sets: list[Any]) -> float | None:
    known = [each for each in sets if each]
    return _mean([each["unselectable"] / len(each["verdicts"]) for each in known])


def _by_layer(result: dict[str, Any], windows: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for index, layer in enumerate(result["windows"][0]["layers"]):
        layers = [window["layers"][index] for window in result["windows"]]
        heads = [head.get("keys") for each in layers for head in each["heads"]]
        margins = [margin for head in heads if head for margin, verdict in zip(head["margins"], head["verdicts"])
                   if verdict == "s" and margin is not None and margin > 0]
        name = f"layer.{layer['layer']}"
        row[f"{name}.before"] = _share([each.get("before") for each in layers])
        row[f"{name}.model"] = _share([each.get("model") for each in layers])
        row[f"{name}.head"] = _share(heads)
        row[f"{name}.least_margin"] = min(margins) if margins else None
        seen = [window["layers"][index]["norm_in"] for window in windows]
        measures = [_core.token_measures(each) for each in seen if each is not None]
        row[f"{name}.relative"] = _mean([each["relative"] for each in measures])
        row[f"{name}.effective_rank"] = _mean([each["effective_rank"] for each in measures])
        row[f"{name}.along_ones"] = _mean([each["norm_in"]["along_ones"] for each in layers
                                           if each["norm_in"]["along_ones"] is not None])
    return row
