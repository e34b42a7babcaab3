"""What scripts of PyTorch that answer questions have in common.

The script is called with a DIRECTORY that holds model.json, with at least "threads", and the pipe `questions`. The first
line printed is {"torch": version, "threads": n}; then, to each question, a line of JSON, {"wall": seconds, "cpu":
seconds}. Needs PyTorch 1.13 or newer (Debian: python3-torch); without it, {"absent": why} is printed instead.
"""
import json
import os
import pathlib
import sys
import time

DIRECTORY = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
MODEL = json.loads((DIRECTORY / "model.json").read_text())
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(MODEL["threads"])

try:
    import numpy
    import torch
except ImportError as error:
    print(json.dumps({"absent": f"not installed ({error}; python3-torch)"}))
    sys.exit(0)


def numbers(name):
    """A file of float32, flat."""
    return torch.from_numpy(numpy.fromfile(DIRECTORY / name, dtype="<f4"))


def answer_questions(prepare):
    """prepare(question) returns the function that is timed, which returns one that makes the final tokens: they go to the
    question's "output" if that names a file."""
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
    with open(DIRECTORY / "questions", encoding="utf-8") as questions, torch.inference_mode():
        for line in questions:
            question = json.loads(line)
            run = prepare(question)
            wall, cpu = time.perf_counter(), time.process_time()
            final_tokens = run()
            seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            if question["output"]:
                final_tokens().contiguous().numpy().astype("<f4").tofile(question["output"])
            print(json.dumps(seconds), flush=True)
