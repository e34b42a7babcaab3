"""pytorch_majority.py BATCH.json

Trains the majority model of one encoder layer on one batch with PyTorch, over and over, and prints JSON: the loss of
each step before its update, the wall seconds of each step (forward, loss, backward, Adam, clearing the gradients),
their minimum and median. Loss and gradients are computed once beforehand, without a step, to warm up.

Needs PyTorch 1.13 or newer (Debian: python3-torch); without it, prints {"absent": why}.

    /usr/bin/python3 bench/majority/pytorch_majority.py batch.json

BATCH.json holds "norm" (layernorm, rmsnorm, published or none), "classes", "length", "d", "heads", "threads", "steps",
"parameters" (flat, by the names below, row by row), "tokens" (one list of `length` per sequence) and "labels" (one per
sequence). Adam 1e-3 with the learning rate of step t being 1e-3 · (1 − t/170000).
"""
import json
import math
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    print(json.dumps({"absent": f"not installed ({error}; python3-torch)"}))
    sys.exit(0)

LEARNING_RATE = 1e-3
DECAY_STEPS = 170000

# The name of each parameter in BATCH.json, and in TransformerEncoderLayer.
LAYER_NAMES = {
    "layers.0.attention.in_proj": "self_attn.in_proj_weight",
    "layers.0.attention.out_proj.weight": "self_attn.out_proj.weight",
    "layers.0.attention.out_proj.bias": "self_attn.out_proj.bias",
    "layers.0.norm2.gain": "norm2.weight",
    "layers.0.norm2.bias": "norm2.bias",
    "layers.0.feed_forward.linear1.weight": "linear1.weight",
    "layers.0.feed_forward.linear1.bias": "linear1.bias",
    "layers.0.feed_forward.linear2.weight": "linear2.weight",
    "layers.0.feed_forward.linear2.bias": "linear2.bias",
}


class ScaledTo(torch.nn.Module):
    """Scales every row to the same Euclidean norm."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        return x * (self.norm / torch.linalg.vector_norm(x, dim=-1, keepdim=True))


def norm1(kind, d):
    if kind == "layernorm":
        return torch.nn.LayerNorm(d, eps=0.0, elementwise_affine=False)
    if kind == "rmsnorm":
        return ScaledTo(math.sqrt(d))
    if kind == "published":
        return ScaledTo(1 / math.sqrt(d))
    if kind == "none":
        return torch.nn.Identity()
    raise SystemExit(f"norm {kind} is none of layernorm, rmsnorm, published, none")


class Majority(torch.nn.Module):
    def __init__(self, batch):
        super().__init__()
        d, parameters = batch["d"], batch["parameters"]
        width = len(parameters["layers.0.feed_forward.linear1.bias"])
        self.embedding = torch.nn.Embedding(batch["classes"], d)
        self.layer = torch.nn.TransformerEncoderLayer(
            d, batch["heads"], width, dropout=0.0, layer_norm_eps=0.0, batch_first=True, norm_first=True
        )
        self.layer.self_attn.in_proj_bias = None
        self.layer.norm1 = norm1(batch["norm"], d)
        state = {"embedding.weight": parameters["embedding"]}
        state.update({"layer." + theirs: parameters[ours] for ours, theirs in LAYER_NAMES.items()})
        shapes = {name: value.shape for name, value in self.state_dict().items()}
        self.load_state_dict(
            {name: torch.tensor(values, dtype=torch.float32).reshape(shapes[name]) for name, values in state.items()}
        )

    def forward(self, tokens):
        return self.layer(self.embedding(tokens)) @ self.embedding.weight.T


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: pytorch_majority.py BATCH.json")
    with open(sys.argv[1], encoding="utf-8") as file:
        batch = json.load(file)
    torch.set_num_threads(batch["threads"])
    model = Majority(batch).train()
    tokens = torch.tensor(batch["tokens"])
    if tokens.shape != (len(batch["labels"]), batch["length"]):
        raise SystemExit("tokens must be one list of `length` per label")
    targets = torch.tensor(batch["labels"]).repeat_interleave(batch["length"])
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8)

    def loss_of_batch():
        return torch.nn.functional.cross_entropy(model(tokens).reshape(-1, batch["classes"]), targets)

    loss_of_batch().backward()
    optimizer.zero_grad(set_to_none=True)

    losses, seconds = [], []
    for step in range(batch["steps"]):
        start = time.perf_counter()
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / DECAY_STEPS)
        loss = loss_of_batch()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
        losses.append(loss.item())
    report = {"torch": torch.__version__, "threads": torch.get_num_threads(), "losses": losses, "seconds": seconds}
    report.update({"best": min(seconds), "median": statistics.median(seconds)})
    print(json.dumps(report))


if __name__ == "__main__":
    main()
