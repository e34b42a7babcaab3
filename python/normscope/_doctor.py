"""What the program finds on this machine."""
from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from . import _core
from .__main__ import NO_PROGRAM, program
from .results import _result_of

if TYPE_CHECKING:
    from .results import DoctorResult


def doctor() -> DoctorResult:
    """What this machine has and lacks, and how to get it: what `normscope doctor` tells, with this interpreter as its Python.

    Returns a results.DoctorResult.

    >>> import normscope
    >>> found = {part.name: part.found for part in normscope.doctor().parts}
    >>> found["program"].startswith("normscope " + normscope.__version__)
    True
    """
    found = program()
    if found is None:
        raise _core.Error(NO_PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    if sys.executable:
        environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    done = subprocess.run([found, "doctor", "--json"], capture_output=True, encoding="utf-8", errors="replace", env=environment)
    if done.returncode != 0:
        raise _core.Error(f"normscope doctor ended with {done.returncode}: {done.stderr.strip()}")
    result: DoctorResult = _result_of(_core.doctor(done.stdout))
    return result
