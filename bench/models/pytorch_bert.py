"""pytorch_bert.py DIRECTORY

Passes a batch through a BERT with PyTorch, as often as it is asked (pytorch_dialogue.py).

DIRECTORY holds model.json ("texts", "tokens", "width", "heads", "feed_forward", "layers", "eps", "threads");
numbers.f32: summed embeddings (texts x tokens x width), gain and bias of their norm, and for each layer query, key and
value side by side (width x 3 width), output, up, down (in x out), their biases, and gain and bias of both norms; and
the pipe `questions`, where every line is {"output": file of the final tokens, or ""}.
"""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pytorch_dialogue import MODEL, answer_questions, numbers, torch  # noqa: E402

functional = torch.nn.functional
B, N, D, H, F = (MODEL[key] for key in ("texts", "tokens", "width", "heads", "feed_forward"))
FLAT = numbers("numbers.f32")
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


def timed():
    tokens = forward()
    return lambda: tokens


torch.set_num_threads(MODEL["threads"])
answer_questions(lambda question: timed)
