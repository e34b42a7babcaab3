"""What normalization and masks do to a transformer's attention, decided exactly.

Every question of the program is a function here, with the program's options as keywords and its results as objects:

    keys, scan, vocab, ablate, heatmap, mask, collapse, equilibria, train.majority, train.lm, train.sentiment, paper

Beside them: `norm` and `decide_keys` on arrays, `norm_identities` for the paper's equations, `Tokenizer` and `open_model` for trained models in files, `watch` and
`Monitor` for live ones, `doctor` for what this machine has and lacks, and `load_run` for what `out=`, `save` or the program's --out kept.
"""
import atexit as _atexit

from . import _core
from ._core import Error, KeySet, __commit__, __instruction_set__, __version__, decide_keys, norm, norm_identities
from ._questions import ablate, collapse, equilibria, heatmap, keys, mask, paper, scan, vocab
from . import results, train
from .models import Model, Passed, Tokenizer, open_model
from .results import Fields, Result, load_run

# A call that was interrupted may still be coming to its end.
_atexit.register(_core._wait_for_abandoned_work)

__all__ = [
    "Error", "Fields", "KeySet", "Model", "Monitor", "Passed", "Result", "Tokenizer", "Trace", "ablate", "collapse",
    "decide_keys", "doctor", "equilibria", "heatmap", "keys", "load_run", "mask", "norm", "norm_identities", "open_model", "paper",
    "results", "scan", "train", "vocab", "watch",
]

_LATER = {"watch": "_watch", "Trace": "_watch", "Monitor": "_monitor", "doctor": "_doctor"}


def __getattr__(name):
    # What needs live models, or other programs, is read when it is used.
    if name not in _LATER:
        raise AttributeError(f"module 'normscope' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module("." + _LATER[name], __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(__all__))
