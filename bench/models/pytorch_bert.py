"""pytorch_bert.py DIRECTORY

Passes a batch through a BERT with PyTorch, as often as it is asked, and answers in JSON, a line for a line.

Needs PyTorch 1.13 or newer (Debian: python3-torch); without it, prints {"absent": why}.

DIRECTORY holds model.json ("texts", "tokens", "width", "heads", "feed_forward", "layers", "eps", "threads");
numbers.f32: summed embeddings (texts x tokens x width), gain and bias of their norm, and for each layer query, key and
value side by side (width x 3 width), output, up, down (in x out), their biases, and gain and bias of both norms; and
the pipe `questions`, where every line is {"output": file of the final tokens, or ""}.

The first line printed is {"torch": version, "threads": n}; then, to each question, {"wall": seconds, "cpu": seconds}.
"""
import json
import math
import os
import pathlib
import sys
import time

DIRECTORY = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit("usage: pytorch_bert.py DIRECTORY")
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

B, N, D, H, F = (MODEL[key] for key in ("texts", "tokens", "width", "heads", "feed_forward"))
FLAT = torch.from_numpy(numpy.fromfile(DIRECTORY / "numbers.f32", dtype="<f4"))
PLACE = 0


def take(*shape):
    global PLACE
    size = math.prod(shape)
    PLACE += size
    return FLAT[PLACE - size : PLACE].reshape(shape)


def linear_weight(rows, cols):
    """As torch.nn.Linear stores it, out x in."""
    return take(rows, cols).t().contiguous()


EMBEDDED, GAIN, BIAS = take(B, N, D), take(D), take(D)
LAYERS = [
    {
        "weights": [linear_weight(D, 3 * D), linear_weight(D, D), linear_weight(D, F), linear_weight(F, D)],
        "biases": [take(3 * D), take(D), take(F), take(D)],
        "norms": [take(D), take(D), take(D), take(D)],
    }
    for _ in range(MODEL["layers"])
]


def norm(x, gain, bias):
    return functional.layer_norm(x, (D,), gain, bias, MODEL["eps"])


def forward():
    x = norm(EMBEDDED, GAIN, BIAS)
    for layer in LAYERS:
        (qkv_w, out_w, up_w, down_w), (qkv_b, out_b, up_b, down_b) = layer["weights"], layer["biases"]
        q, k, v = functional.linear(x, qkv_w, qkv_b).view(B, N, 3, H, D // H).permute(2, 0, 3, 1, 4)
        attention = functional.softmax(q @ k.transpose(-1, -2) / math.sqrt(D // H), dim=-1)
        context = (attention @ v).transpose(1, 2).reshape(B, N, D)
        x = norm(x + functional.linear(context, out_w, out_b), *layer["norms"][:2])
        hidden = functional.gelu(functional.linear(x, up_w, up_b))
        x = norm(x + functional.linear(hidden, down_w, down_b), *layer["norms"][2:])
    return x


torch.set_num_threads(MODEL["threads"])
print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
with torch.inference_mode(), open(DIRECTORY / "questions") as questions:
    for line in questions:
        question = json.loads(line)
        wall, cpu = time.perf_counter(), time.process_time()
        result = forward()
        answer = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        if question["output"]:
            result.numpy().astype("<f4").tofile(question["output"])
        print(json.dumps(answer), flush=True)
