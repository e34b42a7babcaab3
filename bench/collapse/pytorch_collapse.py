"""pytorch_collapse.py DIRECTORY

Passes tokens through a transformer with PyTorch, as often as it is asked, and answers in JSON, a line for a line.

Needs PyTorch 1.13 or newer (Debian: python3-torch); without it, prints {"absent": why}.

DIRECTORY holds model.json ("tokens", "width", "heads", "feed_forward", "layers", "samples", "eps", "threads");
start.f32, samples × tokens × width; weights.f32, for each layer query, key and value side by side (width × 3·width),
output (width × width), up (width × feed_forward) and down (feed_forward × width), with y = xW and no biases; and the
pipe `questions`, where every line is {"variant", "mask", "threads", "batch", "measures", "output"}: which block (san,
san+skip, san+norm, san+skip+norm or full; layernorm without gain after each sum), which mask (full, causal, window:w
or onesided:w), on how many threads (at most those of model.json), whether the samples pass as one batch or one after
the other, whether every layer is measured (distance from all tokens equal, cosines, singular values), and where the
final tokens go ("": nowhere).

The first line printed is {"torch": version, "threads": n}; then, to each question, {"wall": seconds, "cpu": seconds} of
all samples.
"""
import ctypes
import ctypes.util
import json
import math
import os
import pathlib
import sys
import time

DIRECTORY = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit("usage: pytorch_collapse.py DIRECTORY")
MODEL = json.loads((DIRECTORY / "model.json").read_text())
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(MODEL["threads"])

try:
    import numpy
    import torch
    import torch.nn.functional as functional
except ImportError as error:
    print(json.dumps({"absent": f"not installed ({error}; python3-torch)"}))
    sys.exit(0)


def set_threads(count):
    """PyTorch does not pass the number on to OpenBLAS."""
    torch.set_num_threads(count)
    library = ctypes.util.find_library("openblas")
    if library and hasattr(ctypes.CDLL(library), "openblas_set_num_threads"):
        ctypes.CDLL(library).openblas_set_num_threads(count)


def load_layers():
    d, f = MODEL["width"], MODEL["feed_forward"]
    shapes = [(d, 3 * d), (d, d), (d, f), (f, d)]
    flat = torch.from_numpy(numpy.fromfile(DIRECTORY / "weights.f32", dtype="<f4"))
    parts = iter(flat.split([rows * cols for rows, cols in shapes] * MODEL["layers"]))
    return [[next(parts).reshape(shape) for shape in shapes] for _ in range(MODEL["layers"])]


def forbidden_by(mask):
    """What is added to scores: 0 or −∞; None for the full mask."""
    kind, _, width = mask.partition(":")
    n = MODEL["tokens"]
    back = torch.arange(n)[:, None] - torch.arange(n)[None, :]
    allowed = {
        "full": None,
        "causal": back >= 0,
        "window": back.abs() <= int(width or 0),
        "onesided": (back >= 0) & (back <= int(width or 0)),
    }[kind]
    return None if allowed is None else torch.zeros(n, n).masked_fill(~allowed, -math.inf)


def attention(h, query_key_value, output, forbidden):
    samples, n, d = h.shape
    heads = MODEL["heads"]
    q, k, v = (h @ query_key_value).view(samples, n, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
    scores = (q / math.sqrt(d // heads)) @ k.transpose(-1, -2)
    if forbidden is not None:
        scores += forbidden
    return (functional.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(samples, n, d) @ output


def measures_of(x):
    """Of samples × tokens × d: μ, ‖X‖, cosines (least and mean), singular values, rank, stable and effective rank."""
    mu = torch.linalg.matrix_norm(x - x.mean(1, keepdim=True))
    norm = torch.linalg.matrix_norm(x)
    unit = functional.normalize(x, dim=-1)
    cosines = (unit @ unit.transpose(1, 2)).triu(1)
    singular = torch.linalg.svdvals(x)
    limit = singular[:, :1] * max(x.shape[1:]) * torch.finfo(x.dtype).eps
    shares = singular / singular.sum(-1, keepdim=True)
    return [
        (mu / norm).tolist(),
        cosines.amin((1, 2)).tolist(),
        cosines.sum((1, 2)).tolist(),
        (singular > limit).sum(-1).tolist(),
        (norm / singular[:, 0]).square().tolist(),
        torch.exp(-torch.xlogy(shares, shares).sum(-1)).tolist(),
    ]


def run(x, layers, variant, forbidden, measured):
    skip, norm = variant in ("san+skip", "san+skip+norm", "full"), variant in ("san+norm", "san+skip+norm", "full")

    def after(x, y):
        y = x + y if skip else y
        return functional.layer_norm(y, (MODEL["width"],), eps=MODEL["eps"]) if norm else y

    if measured:
        measures_of(x)
    for query_key_value, output, up, down in layers:
        x = after(x, attention(x, query_key_value, output, forbidden))
        if variant == "full":
            x = after(x, functional.gelu(x @ up) @ down)
        if measured:
            measures_of(x)
    return x


def main():
    set_threads(MODEL["threads"])
    layers = load_layers()
    start = torch.from_numpy(numpy.fromfile(DIRECTORY / "start.f32", dtype="<f4"))
    start = start.reshape(MODEL["samples"], MODEL["tokens"], MODEL["width"])
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
    with open(DIRECTORY / "questions", encoding="utf-8") as questions, torch.inference_mode():
        for line in questions:
            question = json.loads(line)
            forbidden = forbidden_by(question["mask"])
            set_threads(question["threads"])
            batches = [start] if question["batch"] else list(start.split(1))
            wall, cpu = time.perf_counter(), time.process_time()
            outputs = [run(x, layers, question["variant"], forbidden, question["measures"]) for x in batches]
            seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            if question["output"]:
                torch.cat(outputs).contiguous().numpy().astype("<f4").tofile(question["output"])
            print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
