"""The program `normscope`, as the wheel has it or as it lies on the path: python -m normscope keys keys.npy"""
from __future__ import annotations

import os
import shutil
import sys


NO_PROGRAM = "The program normscope was not built with this package: install it with `pip install .`, or build it with `make build`."


def program() -> str | None:
    """Where it is; None: nowhere."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "normscope")
    if os.access(beside, os.X_OK):
        return beside
    built = os.path.normpath(os.path.join(beside, "..", "..", "..", "..", "normscope"))  # of build/python/normscope
    if os.path.isfile(built) and os.access(built, os.X_OK):
        return built
    found = shutil.which("normscope")
    # The console script of this very package would come back here.
    return None if found is None or _is_script(found) else found


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def main() -> None:
    found = program()
    if found is None:
        sys.exit(NO_PROGRAM)
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    main()
