"""record_majority.py [OUTPUT.json]

Trains the majority task with PyTorch and records what our trainer must reproduce: majority.json beside this file
unless another output is named. Prints, per case, the first and last loss and the largest relative difference between
training in float32 and in float64, which bounds how closely two correct programs can be expected to agree.

Needs PyTorch 1.13 or newer (Debian: python3-torch). Run from the top of the source tree, about 20 seconds on one core:

    /usr/bin/python3 tests/golden/record_majority.py

What is in the file, beyond the names that explain themselves:

  setup             index into "setups": the sequences, their labels, and the sequences of each of the 100 batches
  parameters        the initial values, row by row; {"same_as": i} are those of case i, which has the same shapes
  extra_parameters  the initial values that only this case has (learned normals, alpha)
  logits0           length × classes logits of the first sequence of the first batch, before any step
  gradients         of the first batch's loss, before clipping; gradients64 are the same from float64 arithmetic
  losses            of the batch of each step, before that step; losses64 the same, trained in float64 throughout
  final             the parameters after 100 steps (some cases only)
  optimizer         weight_decay applies to every parameter; clip 0 means none; step t = 0, 1, … has the learning rate
                    learning_rate · (1 − t / decay_steps)
"""
import json
import math
import pathlib
import random
import sys

import torch

STEPS = 100
BATCH = 32
SEQUENCES = 96
LEARNING_RATE = 1e-3
DECAY_STEPS = 170000
SETUPS = [{"classes": 20, "length": 50, "seed": 3}, {"classes": 10, "length": 30, "seed": 4}]


# --- data ---


def class_counts(length, distinct, widest_margin, generator):
    """Sizes of `distinct` classes, the first larger than every other by at least 1 and at most widest_margin."""
    if distinct == 1:
        return [length]
    while True:
        weights = [generator.random() for _ in range(distinct)]
        counts = [1] * distinct
        for part in generator.choices(range(distinct), weights, k=length - distinct):
            counts[part] += 1
        counts.sort(reverse=True)
        if 1 <= counts[0] - counts[1] <= widest_margin:
            return counts


def make_setup(classes, length, seed):
    generator = random.Random(seed)
    tokens, labels = [], []
    for i in range(SEQUENCES):
        distinct = (1, 1, 2, 2, 2)[i] if i < 5 else 3 + (i - 5) % (classes - 2)
        # Every third sequence is a close call. Two classes share an even length, so their margin is at least 2.
        widest_margin = length if i % 3 else (2 if distinct == 2 else 1)
        chosen = generator.sample(range(classes), distinct)
        counts = class_counts(length, distinct, widest_margin, generator)
        sequence = [c for c, count in zip(chosen, counts) for _ in range(count)]
        generator.shuffle(sequence)
        tokens.append(sequence)
        labels.append(chosen[0])
    batches, order = [], []
    while len(batches) < STEPS:
        if len(order) < BATCH:
            order = list(range(SEQUENCES))
            generator.shuffle(order)
        batches.append(order[:BATCH])
        order = order[BATCH:]
    return {"classes": classes, "length": length, "tokens": tokens, "labels": labels, "batches": batches}


# --- parameters ---


def shared_parameters(case, seed):
    """The initial values that every norm variant of the same shape starts from."""
    generator = torch.Generator().manual_seed(seed)
    d, width = case["d"], case["feed_forward"]

    def uniform(bound, *shape):
        return (torch.rand(*shape, generator=generator) * 2 - 1) * bound

    parameters = {"embedding": torch.randn(case["classes"], d, generator=generator)}
    for i in range(case["layers"]):
        at = f"layers.{i}."
        parameters[at + "attention.in_proj"] = uniform(math.sqrt(6 / (d + 3 * d)), 3 * d, d)  # Xavier: fans d, 3d
        parameters[at + "attention.out_proj.weight"] = uniform(1 / math.sqrt(d), d, d)
        parameters[at + "attention.out_proj.bias"] = torch.zeros(d)
        parameters[at + "norm2.gain"] = torch.ones(d)
        parameters[at + "norm2.bias"] = torch.zeros(d)
        parameters[at + "feed_forward.linear1.weight"] = uniform(1 / math.sqrt(d), width, d)
        parameters[at + "feed_forward.linear1.bias"] = uniform(1 / math.sqrt(d), width)
        parameters[at + "feed_forward.linear2.weight"] = uniform(1 / math.sqrt(width), d, width)
        parameters[at + "feed_forward.linear2.bias"] = uniform(1 / math.sqrt(width), d)
    return parameters


def extra_parameters(case, seed):
    """The initial values that belong to the norm variant."""
    generator = torch.Generator().manual_seed(seed)
    parameters = {}
    for i in range(case["layers"]):
        if case["norm"].startswith("project:"):
            normals = int(case["norm"].split(":")[1])
            parameters[f"layers.{i}.norm1.normals"] = torch.randn(normals, case["d"], generator=generator)
        elif case["norm"] == "dyt":
            parameters[f"layers.{i}.norm1.alpha"] = torch.full((1,), 0.5)
    return parameters


# --- the model ---


def scaled_to(x, norm):
    return x * (norm / x.pow(2).sum(-1, keepdim=True).sqrt())


def centered(x):
    return x - x.mean(-1, keepdim=True)


def norm1(kind, x, parameters, at):
    d = x.shape[-1]
    if kind == "layernorm":
        return scaled_to(centered(x), math.sqrt(d))
    if kind == "rmsnorm":
        return scaled_to(x, math.sqrt(d))
    if kind == "xsigma":
        return x / centered(x).pow(2).mean(-1, keepdim=True).sqrt()
    if kind == "published":
        return scaled_to(x, 1 / math.sqrt(d))
    if kind == "center":
        return centered(x)
    if kind == "unit":
        return scaled_to(x, 1.0)
    if kind == "none":
        return x
    if kind == "dyt":
        return torch.tanh(parameters[at + "norm1.alpha"] * x)
    if kind.startswith("project:"):
        normals = parameters[at + "norm1.normals"]
        rows = x.reshape(-1, d)
        weights = torch.linalg.solve(normals @ normals.T, normals @ rows.T)  # k × rows
        return scaled_to((rows - weights.T @ normals).reshape(x.shape), math.sqrt(d))
    raise ValueError(f"unknown norm {kind}")


def attention(h, parameters, at, heads, mask):
    sequences, length, d = h.shape
    q, k, v = (h @ parameters[at + "attention.in_proj"].T).split(d, dim=-1)

    def by_head(x):  # sequences × heads × length × d/heads
        return x.reshape(sequences, length, heads, d // heads).transpose(1, 2)

    scores = by_head(q) @ by_head(k).transpose(-1, -2) / math.sqrt(d // heads)
    if mask == "causal":
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    mixed = scores.softmax(-1) @ by_head(v)
    mixed = mixed.transpose(1, 2).reshape(sequences, length, d)
    return mixed @ parameters[at + "attention.out_proj.weight"].T + parameters[at + "attention.out_proj.bias"]


def feed_forward(x, parameters, at):
    at += "feed_forward."
    hidden = torch.relu(x @ parameters[at + "linear1.weight"].T + parameters[at + "linear1.bias"])
    return hidden @ parameters[at + "linear2.weight"].T + parameters[at + "linear2.bias"]


def logits_of(case, parameters, tokens):
    x = parameters["embedding"][tokens]
    for i in range(case["layers"]):
        at = f"layers.{i}."
        x = x + attention(norm1(case["norm"], x, parameters, at), parameters, at, case["heads"], case["mask"])
        g = scaled_to(centered(x), math.sqrt(case["d"]))
        x = x + feed_forward(g * parameters[at + "norm2.gain"] + parameters[at + "norm2.bias"], parameters, at)
    return x @ parameters["embedding"].T


def loss_of(logits, labels):
    targets = labels.repeat_interleave(logits.shape[1])
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[2]), targets)


# --- the same model from PyTorch's own layers, as a check on ours ---


class Published(torch.nn.Module):
    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True) / math.sqrt(x.shape[-1])


def check_against_encoder_layer(case, parameters, tokens):
    """Throws unless our logits are those of TransformerEncoderLayer to 1e-5. One layer; layernorm or published."""
    d = case["d"]
    layer = torch.nn.TransformerEncoderLayer(
        d, case["heads"], case["feed_forward"], dropout=0.0, layer_norm_eps=0.0, batch_first=True, norm_first=True
    )
    layer.self_attn.in_proj_bias = None
    layer.norm1 = Published() if case["norm"] == "published" else torch.nn.LayerNorm(d, 0.0, elementwise_affine=False)
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": parameters["layers.0.attention.in_proj"],
            "self_attn.out_proj.weight": parameters["layers.0.attention.out_proj.weight"],
            "self_attn.out_proj.bias": parameters["layers.0.attention.out_proj.bias"],
            "norm2.weight": parameters["layers.0.norm2.gain"],
            "norm2.bias": parameters["layers.0.norm2.bias"],
            "linear1.weight": parameters["layers.0.feed_forward.linear1.weight"],
            "linear1.bias": parameters["layers.0.feed_forward.linear1.bias"],
            "linear2.weight": parameters["layers.0.feed_forward.linear2.weight"],
            "linear2.bias": parameters["layers.0.feed_forward.linear2.bias"],
        }
    )
    with torch.no_grad():
        theirs = layer.train()(parameters["embedding"][tokens]) @ parameters["embedding"].T
        difference = (theirs - logits_of(case, parameters, tokens)).abs().max().item()
    if not difference <= 1e-5:
        raise SystemExit(f"{case['name']}: our logits differ from TransformerEncoderLayer's by {difference:.2e}")
    print(f"{case['name']}: logits within {difference:.1e} of TransformerEncoderLayer")


# --- training ---


def train(case, initial, setup, dtype):
    """First logits, first gradients, the loss of every step, and the final parameters, all in arithmetic of dtype."""
    parameters = {name: value.to(dtype, copy=True).requires_grad_() for name, value in initial.items()}
    tokens, labels = torch.tensor(setup["tokens"]), torch.tensor(setup["labels"])
    settings = case["optimizer"]
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[settings["kind"]]
    optimizer = kind(
        parameters.values(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings["weight_decay"]
    )
    losses = []
    for step, batch in enumerate(setup["batches"]):
        optimizer.param_groups[0]["lr"] = settings["learning_rate"] * (1 - step / settings["decay_steps"])
        optimizer.zero_grad()
        logits = logits_of(case, parameters, tokens[batch])
        loss = loss_of(logits, labels[batch])
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            logits0 = logits[0].detach().clone()
            gradients = {name: value.grad.clone() for name, value in parameters.items()}
        if settings["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(parameters.values(), settings["clip"])
        optimizer.step()
    if not all(map(math.isfinite, losses)):
        raise SystemExit(f"{case['name']}: a loss is not finite")
    return logits0, gradients, losses, {name: value.detach() for name, value in parameters.items()}


def make_case(name, norm, setup, layers=1, heads=1, d=8, feed_forward=None, mask="full", final=False, **optimizer):
    settings = {"kind": "adam", "learning_rate": LEARNING_RATE, "decay_steps": DECAY_STEPS}
    settings.update({"weight_decay": 0.0, "clip": 0.0, **optimizer})
    case = {
        "name": name,
        "norm": norm,
        "layers": layers,
        "heads": heads,
        "d": d,
        "classes": SETUPS[setup]["classes"],
        "length": SETUPS[setup]["length"],
        "feed_forward": feed_forward or d,
        "mask": mask,
        "optimizer": settings,
        "setup": setup,
    }
    return case, final


def all_cases():
    norms = ["layernorm", "rmsnorm", "xsigma", "published", "center", "unit", "none"]
    norms += ["project:1", "project:2", "project:4", "dyt"]
    for norm in norms:
        yield make_case(norm, norm, 0, final=norm in ("layernorm", "published"))
    yield make_case(
        "two layers, 2 heads, causal, layernorm", "layernorm", 0, layers=2, heads=2, feed_forward=16, mask="causal"
    )
    yield make_case("4 heads, rmsnorm", "rmsnorm", 0, heads=4)
    yield make_case("d=3, layernorm", "layernorm", 1, d=3)
    yield make_case("d=3, published", "published", 1, d=3)
    yield make_case("AdamW, clipped, layernorm", "layernorm", 0, final=True, kind="adamw", weight_decay=0.1, clip=0.05)


# --- the file ---


def written(value, digits):
    """JSON, with every float in `digits` significant digits: 9 are enough to read a float32 back exactly."""
    if isinstance(value, torch.Tensor):
        value = value.reshape(-1).tolist()
    if isinstance(value, float):
        return format(value, f".{digits}g")
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{written(v, digits)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(v, digits) for v in value) + "]"
    return json.dumps(value)


def main():
    torch.set_num_threads(1)
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("majority.json")
    setups = [make_setup(**setup) for setup in SETUPS]
    lines, first_of_shape = [], {}
    for index, (case, with_final) in enumerate(all_cases()):
        setup = setups[case["setup"]]
        shape = tuple(case[key] for key in ("layers", "d", "classes", "feed_forward"))
        if shape not in first_of_shape:
            first_of_shape[shape] = (index, shared_parameters(case, seed=100 + index))
        owner, shared = first_of_shape[shape]
        extra = extra_parameters(case, seed=200 + index)
        initial = {**shared, **extra}
        if case["layers"] == 1 and case["norm"] in ("layernorm", "published"):
            check_against_encoder_layer(case, initial, torch.tensor(setup["tokens"]))

        logits0, gradients, losses, final = train(case, initial, setup, torch.float32)
        _, gradients64, losses64, _ = train(case, initial, setup, torch.float64)
        difference = max(abs(a - b) / abs(b) for a, b in zip(losses, losses64))
        scale = max(g.abs().max().item() for g in gradients64.values())
        gradient = max((gradients[name] - g).abs().max().item() for name, g in gradients64.items()) / scale
        print(
            f"{case['name']}: loss {losses64[0]:.4f} to {losses64[-1]:.4f}; float32 against float64: "
            f"losses {difference:.1e}, first gradients {gradient:.1e} of the largest"
        )

        fields = [(key, written(value, 9)) for key, value in case.items()]
        fields.append(("parameters", written(shared if owner == index else {"same_as": owner}, 9)))
        if extra:
            fields.append(("extra_parameters", written(extra, 9)))
        fields += [("logits0", written(logits0, 9)), ("gradients", written(gradients, 9))]
        fields += [("gradients64", written(gradients64, 12)), ("losses", written(losses, 9))]
        fields.append(("losses64", written(losses64, 12)))
        if with_final:
            fields.append(("final", written(final, 9)))
        lines.append("{" + ",".join(f'"{key}":{text}' for key, text in fields) + "}")

    text = '{"cases":[\n' + ",\n".join(lines) + '\n],"setups":[\n'
    text += ",\n".join(written(setup, 9) for setup in setups)
    text += f'\n],"torch":{json.dumps(torch.__version__)}}}\n'
    json.loads(text)
    output.write_text(text)
    print(f"{output}: {len(text)} bytes")


if __name__ == "__main__":
    main()
