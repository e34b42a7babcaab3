"""What Python adds: to a call of `keys` beside the time that the study itself takes, to an import; how soon Ctrl-C ends a call; and,
where torch and transformers are installed, what `watch` adds to a forward pass of MiniLM in PyTorch and what a Monitor adds to a training.

    PYTHONPATH=build/python python3 bench/python/overhead.py [--json FILE]

or, with torch and transformers, the interpreter of a virtual environment that has them and a wheel of `make wheel`. Each figure is told as soon as it
is there. Answers are checked first: those of the program, bit for bit; what a model gives, watched or not; the rows of a monitor. Fails if
they differ, never because of a time.
"""
import argparse
import importlib.util
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
from normscope.__main__ import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "python"))
import interrupts  # noqa: E402


# The shape of MiniLM; what the weights are does not matter to the time.
MINILM = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)


def require(holds, sentence):
    if not holds:
        sys.exit(f"{sentence}: nothing was measured.")


def has_torch():
    return all(map(importlib.util.find_spec, ("torch", "transformers")))


def check_keys(values):
    """Python and the program answer the same, but for times."""
    found = program()
    require(found is not None, "the program is not there to compare with")
    times = re.compile(r'"seconds": ?[0-9.e+-]+')
    with tempfile.TemporaryDirectory() as home:
        file = os.path.join(home, "keys.npy")
        np.save(file, values)
        done = subprocess.run([found, "keys", file, "--json", "--quiet"], capture_output=True, text=True, check=True)
        require(times.sub("", normscope.keys(file).to_json()) == times.sub("", done.stdout.strip()), "Python and the program differ about keys")
        decided = [each.counts for each in normscope.decide_keys(values)]
        require(decided == [each.counts.to_dict() for each in normscope.keys(values).sets], "keys and decide_keys differ")


def keys(repeats=7):
    """(share that the call takes beyond the study in C++, seconds of that): medians, 16 sets of 1024 keys in 8 dimensions."""
    values = np.random.default_rng(0).standard_normal((16, 1024, 8))
    check_keys(values)
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


def watching(repeats=15):
    """Share that `watch` adds to a pass; None: torch or transformers is not there. Turns alternate: machines drift."""
    if not has_torch():
        return None
    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**MINILM)).eval()
    batch = {"input_ids": torch.randint(1000, 20000, (8, 128))}
    plain, watched = [], []
    with torch.no_grad():
        expected = model(**batch).last_hidden_state
        with normscope.watch(model) as trace:
            given = model(**batch).last_hidden_state
        require(torch.equal(given, expected), "a model that is watched gives something else")
        require(len(trace.points) == 4 * MINILM["num_hidden_layers"], "not all layers were seen")
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
    if not has_torch():
        return None
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([sys.executable, ROOT / "examples" / "watch_a_training.py", str(steps)], cwd=home, capture_output=True,
                              text=True, check=True)
        for norm in ("layernorm", "rmsnorm"):
            lines = pathlib.Path(home, "watched", norm, "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            looks = sorted({json.loads(line)["step"] for line in lines})
            require(looks == list(range(200, steps + 1, 200)), f"the monitor looked after steps {looks}")
    return max(float(share) for share in re.findall(r"watching took ([0-9.]+) %", done.stdout)) / 100


def interrupting():
    """(seconds from Ctrl-C to KeyboardInterrupt at worst, in which call)"""
    return max((interrupts.interrupted(call, wait=0.5)[1], name) for name, call in interrupts.LONG_CALLS.items())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json")
    options = options.parse_args()
    found = {}

    def tell(name, sentence):
        print(f"{name:22} {sentence}", flush=True)

    found["keys_overhead"], found["keys_seconds"] = share, seconds = keys()
    tell("keys, 16 × 1024 × 8", f"{seconds:.3f} s, Python adds {100 * share:.1f} % (less than 5 % is meant)")
    found["import_seconds"] = importing()
    tell("import normscope", f"{found['import_seconds']:.3f} s (less than 0.3 s is meant)")
    found["watch_overhead"] = watch = watching()
    tell("watch on MiniLM", "not measured: torch or transformers is not there" if watch is None else
         f"adds {100 * watch:.1f} % to a pass of 8 × 128 tokens (less than 5 % is meant)")
    found["monitor_overhead"] = monitor = monitoring()
    tell("Monitor, every=200", "not measured: torch or transformers is not there" if monitor is None else
         f"adds {100 * monitor:.1f} % to a training of a small GPT-2 (less than 2 % is meant)")
    slowest, call = interrupting()
    found["interrupt_seconds"] = slowest
    tell("Ctrl-C ends a call", f"within {slowest:.2f} s, {call} last (less than 1 s is meant)")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
