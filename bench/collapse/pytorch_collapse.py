"""pytorch_collapse.py DIRECTORY

Passes tokens through a transformer with PyTorch, as often as it is asked (pytorch_dialogue.py).

DIRECTORY holds model.json ("tokens", "width", "heads", "feed_forward", "layers", "samples", "eps", "threads");
start.f32, samples × tokens × width; weights.f32, for each layer query, key and value side by side (width × 3·width),
output (width × width), up (width × feed_forward) and down (feed_forward × width), with y = xW and no biases; and the
pipe `questions`, where every line is {"variant", "mask", "threads", "batch", "measures", "output"}: which block (san,
san+skip, san+norm, san+skip+norm or full; layernorm without gain after each sum), which mask (full, causal, window:w
or onesided:w), on how many threads (at most those of model.json), whether the samples pass as one batch or one after
the other, whether every layer is measured (distance from all tokens equal, cosines, singular values), and where the
final tokens go ("": nowhere).

Times are of all samples.
"""
import ctypes
import ctypes.util
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pytorch_dialogue import MODEL, answer_questions, numbers, torch  # noqa: E402

functional = torch.nn.functional


def set_threads(count):
    """PyTorch does not pass the number on to OpenBLAS."""
    torch.set_num_threads(count)
    library = ctypes.util.find_library("openblas")
    if library and hasattr(ctypes.CDLL(library), "openblas_set_num_threads"):
        ctypes.CDLL(library).openblas_set_num_threads(count)


def load_layers():
    d, f = MODEL["width"], MODEL["feed_forward"]
    shapes = [(d, 3 * d), (d, d), (d, f), (f, d)]
    parts = iter(numbers("weights.f32").split([rows * cols for rows, cols in shapes] * MODEL["layers"]))
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
    start = numbers("start.f32").reshape(MODEL["samples"], MODEL["tokens"], MODEL["width"])

    def prepare(question):
        forbidden = forbidden_by(question["mask"])
        set_threads(question["threads"])
        batches = [start] if question["batch"] else list(start.split(1))

        def run_batches():
            outputs = [run(x, layers, question["variant"], forbidden, question["measures"]) for x in batches]
            return lambda: torch.cat(outputs)

        return run_batches

    answer_questions(prepare)


if __name__ == "__main__":
    main()
