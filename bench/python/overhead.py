"""What Python adds: to a call of `keys` beside the time that the study itself takes, to an import; how soon Ctrl-C ends a call; and,
where torch and transformers are installed, what `watch` adds to a forward pass of MiniLM in PyTorch and what a Monitor adds to a training.

    PYTHONPATH=build/python python3 bench/python/overhead.py [--json FILE] [--minilm DIRECTORY]

DIRECTORY: with its config.json; by default what `normscope data get minilm` fetched.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import normscope

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "python"))
import interrupts  # noqa: E402


def keys(repeats=7):
    """(share that the call takes beyond the study in C++, seconds of that): medians, 16 sets of 1024 keys in 8 dimensions."""
    values = np.random.default_rng(0).standard_normal((16, 1024, 8))
    shares, times = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        result = normscope.keys(values)
        whole = time.perf_counter() - start
        study = result._answer.seconds
        shares.append(whole / study - 1)
        times.append(study)
        del result  # not in the time of the next
    return statistics.median(shares), statistics.median(times)


def importing(repeats=5):
    code = "import time; t = time.perf_counter(); import normscope; print(time.perf_counter() - t)"
    return min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(repeats))


def watching(directory, repeats=15):
    """Share that `watch` adds to a pass; None: torch, transformers or the model are not there. Turns alternate: machines drift."""
    try:
        import torch
        import transformers
    except ImportError:
        return None
    if not directory.is_dir():
        return None
    # Its shape; what the weights are does not matter to the time.
    model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(directory)).eval()
    batch = {"input_ids": torch.randint(1000, 20000, (8, 128))}
    plain, watched = [], []
    with torch.no_grad():
        model(**batch)
        for _ in range(repeats):
            start = time.perf_counter()
            model(**batch)
            plain.append(time.perf_counter() - start)
            with normscope.watch(model):
                start = time.perf_counter()
                model(**batch)
                watched.append(time.perf_counter() - start)
    return statistics.median(watched) / statistics.median(plain) - 1


def monitoring(steps=400):
    """Share that looks every 200 steps add to the training of examples/watch_a_training.py; None: torch or transformers is not there."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([sys.executable, ROOT / "examples" / "watch_a_training.py", str(steps)], cwd=home, capture_output=True,
                              text=True, check=True)
    return max(float(share) for share in re.findall(r"watching took ([0-9.]+) %", done.stdout)) / 100


def interrupting():
    """(seconds from Ctrl-C to KeyboardInterrupt at worst, in which call)"""
    return max((interrupts.interrupted(call)[1], name) for name, call in interrupts.LONG_CALLS.items())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json")
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    options.add_argument("--minilm", type=pathlib.Path, default=pathlib.Path(home) / "normscope" / "minilm")
    options = options.parse_args()
    share, seconds = keys()
    slowest, call = interrupting()
    found = {"keys_overhead": share, "keys_seconds": seconds, "import_seconds": importing(), "interrupt_seconds": slowest,
             "watch_overhead": watching(options.minilm), "monitor_overhead": monitoring()}
    print(f"keys, 16 × 1024 × 8    {seconds:.3f} s, Python adds {100 * share:.1f} % (less than 5 % is meant)")
    print(f"import normscope       {found['import_seconds']:.3f} s (less than 0.3 s is meant)")
    watch = found["watch_overhead"]
    print("watch on MiniLM        " + ("not measured: torch, transformers or the model are not there" if watch is None else
                                       f"adds {100 * watch:.1f} % to a pass of 8 × 128 tokens (less than 5 % is meant)"))
    print(f"Ctrl-C ends a call     within {slowest:.2f} s, {call} last (less than 1 s is meant)")
    monitor = found["monitor_overhead"]
    print("Monitor, every=200     " + ("not measured: torch or transformers is not there" if monitor is None else
                                       f"adds {100 * monitor:.1f} % to a training of a small GPT-2 (less than 2 % is meant)"))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
