"""How far a call is: a bar of tqdm if it is installed, else a line on standard error."""
import logging
import sys
import time

_LOGGER = logging.getLogger("normscope")
_BEGIN = 0.5  # seconds before anything is shown


def _watched():
    """Whether somebody is there to see it: a terminal, or a notebook."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return True
    return sys.stderr is not None and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()


def _tqdm():
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


class Progress:
    """The callable that waits for the work; sentences go to the logger `normscope`."""

    def __init__(self, label, progress):
        if progress not in (None, True, False):
            raise TypeError(f"progress takes True, False or None (if somebody is there to see it), not {progress!r}")
        self.label = label
        self.shown = _watched() if progress is None else progress
        self.start = time.monotonic()
        self.bar = self.width = None

    def __call__(self, done, total, notes):
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
            self._line(done, total)

    def _line(self, done, total):
        passed = time.monotonic() - self.start
        line = f"{self.label}: {100 * done // total} %"
        if 0 < done <= total:
            line += f", {passed * (total - done) / done:.0f} s left"
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = max(self.width, len(line))

    def close(self):
        if self.bar is not None:
            self.bar.close()
        elif self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
