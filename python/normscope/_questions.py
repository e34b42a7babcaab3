"""A function for each question: keywords from the options that its study describes."""
from __future__ import annotations

import inspect
import operator
import os
import shutil
import tempfile
from typing import Any

from . import _core
from ._examples import EXAMPLES
from ._progress import Progress
from .results import _result_of

# Where an array stands for a file; where a text or its token ids may be held in memory.
_ARRAYS = {"keys": ("file", "bias"), "vocab": ("source", "bias"), "mask": ("spec",)}
_TEXTS = ("scan", "ablate", "collapse")
_KEPT = ("train.majority", "train.lm", "train.sentiment", "paper")  # always in a directory
_POSITIONAL = {"mask": ("n",)}
_WITH_RESUME = {"resume", "steps", "checkpoint_every", "threads", "progress"}
_TYPES = {"text": "str", "whole": "int", "number": "float", "flag": "bool", "choice": "str", "list": "str or a list of them"}


def _wrong(keyword: str, wanted: str, value: object) -> TypeError:
    return TypeError(f"{keyword} takes {wanted}, not {type(value).__name__}")


def _number(value: Any) -> str | None:
    """A real number that is no flag, as text that reads back as the same; None if it is none."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return None
    try:
        return str(operator.index(value))
    except TypeError:
        pass
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or getattr(value, "ndim", 0) > 0:
        return None
    return repr(float(value))


def _word(keyword: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        if isinstance(path, str):
            return path
    number = _number(value)
    if number is None:
        raise _wrong(keyword, "str", value)
    return number


def _value(note: _core.Option, value: Any) -> str | list[str] | bool:
    """As the compiled part takes it: a text, several, or a flag."""
    kind, keyword = note["kind"], note["keyword"]
    if kind == "flag":
        if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
            raise _wrong(keyword, "True or False", value)
        return bool(value)
    if kind == "list":
        if isinstance(value, (list, tuple)):
            return [_word(keyword, each) for each in value]
        return [_word(keyword, value)]
    if kind == "whole":
        if isinstance(value, (bool, str)) or not hasattr(value, "__index__"):
            raise _wrong(keyword, "a whole number", value)
        return str(operator.index(value))
    if kind == "number":
        number = _number(value)
        if number is None:
            raise _wrong(keyword, "a number", value)
        return number
    if kind == "choice":
        if not isinstance(value, str):
            raise _wrong(keyword, " or ".join(note["choices"]), value)
        return value
    if isinstance(value, (list, tuple, range)):  # "0,3", as the program has it
        return ",".join(_word(keyword, each) for each in value)
    return _word(keyword, value)


def _names_a_file(value: object) -> bool:
    return isinstance(value, (str, os.PathLike)) or (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, (str, os.PathLike)) for each in value))


class _Call:
    """What the compiled part is given, taken from the keywords one by one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, str | list[str] | bool] = {}
        self.array: Any = None
        self.bias: Any = None
        self.text: str | None = None
        self.ids: Any = None

    def take(self, note: _core.Option, value: Any) -> None:
        keyword = note["keyword"]
        arrays = _ARRAYS.get(self.name, ())
        if keyword in arrays and not _names_a_file(value):
            if keyword == "bias":
                self.bias = value
            else:
                self.array = value
            self.values[keyword] = ["array"] if note["kind"] == "list" else "array"
        elif self.name in _TEXTS and keyword == "text" and hasattr(value, "read"):
            text = value.read()
            self.text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
            self.values[keyword] = "text"
        elif self.name in _TEXTS and keyword == "ids" and not isinstance(value, (str, os.PathLike)):
            self.ids = value
            self.values[keyword] = "ids"
        else:
            self.values[keyword] = _value(note, value)


def _default(note: _core.Option) -> Any:
    if note["kind"] == "flag":
        return False
    if note["kind"] == "list":
        return tuple(note["several"]) or None
    if not note["fallback"]:
        return None
    return {"whole": int, "number": float}.get(note["kind"], str)(note["fallback"])


def _signature(name: str, notes: list[_core.Option]) -> inspect.Signature:
    kinds = inspect.Parameter
    parameters = []
    for note in notes:
        positional = note["input"] or note["keyword"] in _POSITIONAL.get(name, ())
        default: Any = kinds.empty if note["required"] else _default(note)
        parameters.append(kinds(note["keyword"], kinds.POSITIONAL_OR_KEYWORD if positional else kinds.KEYWORD_ONLY,
                                default=default))
    parameters.sort(key=lambda each: each.kind)
    if name == "mask":
        parameters.append(kinds("dense", kinds.KEYWORD_ONLY, default=True))
    common = {"seed": None if name.startswith("train.") else 0, "threads": 0, "out": None, "progress": None}
    parameters += [kinds(each, kinds.KEYWORD_ONLY, default=value) for each, value in common.items()]
    return inspect.Signature(parameters)


def _range(note: _core.Option) -> str:
    low, high = note["low"], note["high"]
    if low is not None and high is not None:
        return f"{low:.10g} to {high:.10g}"
    return "" if low is None else f"at least {low:.10g}"


def _about(name: str, note: _core.Option) -> str:
    takes = ", ".join(repr(each) for each in note["choices"]) or _range(note)
    sentence = note["sentence"].replace("--", "")
    if note["keyword"] in _ARRAYS.get(name, ()):
        sentence += "; or an array"
    if name in _TEXTS and note["keyword"] == "text":
        sentence += "; or an open file, such as io.StringIO"
    if name in _TEXTS and note["keyword"] == "ids":
        sentence += "; or an array or a list of them"
    if note["otherwise"]:
        sentence += f" [{note['otherwise'].replace('--', '')}]"
    return sentence + (f" ({takes})" if takes else "")


def _documentation(name: str, sentence: str, notes: list[_core.Option], result: str) -> str:
    rows = [(note["keyword"], _about(name, note)) for note in notes]
    if name == "mask":
        rows.append(("dense", "Whether [\"allowed\"], the n × n array of one mask, is there"))
    seed = "Of a single run [11]" if name.startswith("train.") else "Of every random number; same seed, same result"
    rows += [("seed", seed), ("threads", "0: as many as the machine has; results do not depend on it (0 to 1024)"),
             ("out", "Directory for the files of the run" + (
                 "; without it they last as long as the result" if name in _KEPT else "")),
             ("progress", "True, False, or None: if somebody is there to see it")]
    width = max(len(row[0]) for row in rows)
    lines = [f"{keyword:{width}}  {about}" for keyword, about in rows]
    return "\n".join([sentence, "", *lines, "", f"Returns a results.{result}.", "", "Example:", "", EXAMPLES[name]])


def _common(seed: Any, threads: Any, out: Any) -> tuple[int | None, int, str]:
    if seed is not None:
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise _wrong("seed", "a whole number", seed)
        seed = operator.index(seed)
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed takes 0 to 2**64 - 1, not {seed}.")
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise _wrong("threads", "a whole number", threads)
    threads = operator.index(threads)
    if not 0 <= threads <= 1024:
        raise ValueError(f"threads takes 0 to 1024, not {threads}.")
    out = "" if out is None else os.fspath(out)
    if not isinstance(out, str):
        raise _wrong("out", "the name of a directory", out)
    return seed, threads, out


def _question(name: str, sentence: str, result: str) -> Any:
    notes = _core.options(name)
    signature = _signature(name, notes)
    by_keyword = {note["keyword"]: note for note in notes}
    own = {"seed", "threads", "out", "progress", "dense"}

    def ask(*args: Any, **keywords: Any) -> Any:
        given = signature.bind(*args, **keywords).arguments
        call = _Call(name)
        for keyword, value in given.items():
            if keyword not in own and value is not None:
                call.take(by_keyword[keyword], value)
        if "resume" in call.values:
            for keyword in given:
                if keyword not in _WITH_RESUME and given[keyword] is not None:
                    raise ValueError(f"resume goes on with the settings of the run; {keyword} cannot be given with it.")
        seed, threads, out = _common(given.get("seed", signature.parameters["seed"].default),
                                     given.get("threads", 0), given.get("out"))
        temporary = None
        if name in _KEPT and not out and "resume" not in call.values:
            temporary = tempfile.mkdtemp(prefix="normscope-")
            out = os.path.join(temporary, "run")
        progress = Progress(name, given.get("progress"))
        try:
            answer = _core.ask(name, call.values, seed, threads, out, call.array, "array", call.bias, call.text,
                               call.ids, progress)
        except BaseException:
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)
            raise
        finally:
            progress.close()
        found = _result_of(answer, temporary)
        specs = call.values.get("spec") if name == "mask" and call.array is None else None
        if isinstance(specs, list) and len(specs) == 1:
            found._legacy = (specs[0], operator.index(given.get("n") or 128), seed, given.get("dense", True))
        return found

    ask.__name__ = ask.__qualname__ = name.split(".")[-1]
    ask.__module__ = "normscope.train" if name.startswith("train.") else "normscope"
    ask.__signature__ = signature  # type: ignore[attr-defined]
    ask.__doc__ = _documentation(name, sentence, notes, result)
    return ask


for _name, _sentence, _result in _core.questions():
    globals()[_name.split(".")[-1]] = _question(_name, _sentence, _result)
