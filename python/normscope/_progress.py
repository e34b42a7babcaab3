"""How far a call is: a bar of tqdm if it is installed, else a line on standard error."""
from __future__ import annotations

import importlib
import logging
import sys
import time
from typing import Any

_LOGGER = logging.getLogger("normscope")
_BEGIN = 0.5  # seconds before anything is shown


def _watched() -> bool:
    """Whether somebody is there to see it: a terminal, or a notebook."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return True
    return sys.stderr is not None and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()


def _tqdm() -> Any:
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None


class Progress:
    """The callable that waits for the work; sentences go to the logger `normscope`."""

    def __init__(self, label: str, progress: bool | None) -> None:
        if progress not in (None, True, False):
            raise TypeError(f"progress takes True, False or None (if somebody is there to see it), not {progress!r}")
        self.label = label
        self.shown = _watched() if progress is None else progress
        self.start = time.monotonic()
        self.bar: Any = None
        self.width: int | None = None  # of the line so far; None: there is none

    def __call__(self, done: int, total: int, notes: list[str]) -> None:
        for note in notes:
            _LOGGER.info("%s", note)
        if not self.shown or total == 0 or time.monotonic() - self.start < _BEGIN:
            return
        if self.bar is None and self.width is None:
            tqdm = _tqdm()
            if tqdm is None:
                self.width = 0
            else:
                self.bar = tqdm(total=total, desc=self.label, leave=False)
        if self.bar is not None:
            self.bar.total = total
            self.bar.n = min(done, total)
            self.bar.refresh()
        else:
            self._line(done, total, self.width or 0)

    def _line(self, done: int, total: int, width: int) -> None:
        passed = time.monotonic() - self.start
        line = f"{self.label}: {100 * done // total} %"
        if 0 < done <= total:
            line += f", {passed * (total - done) / done:.0f} s left"
        sys.stderr.write("\r" + line.ljust(width))
        sys.stderr.flush()
        self.width = max(width, len(line))

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        elif self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
