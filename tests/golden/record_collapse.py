"""record_collapse.py [DIRECTORY]

Passes tokens through a small transformer in PyTorch, with the parts, masks, norms and placements that our block offers,
and records what it must reproduce: collapse.json and collapse.safetensors, in the directory of this file unless another
is named. Prints how far PyTorch in float32 is from PyTorch in float64, and refuses to record a case where that is above
1e-5 of the tokens' norm: two correct programs could not be told from two different ones.

Needs PyTorch 1.13 or newer and NumPy (Debian: python3-torch). Run from the top of the source tree, a few seconds:

    /usr/bin/python3 tests/golden/record_collapse.py

collapse.json

  cases      group (tests are named after it), variant, mask, norm, eps, affine (gains and biases of the norms), biases
             (of the products), placement, temperature (d_QK; 0: the width of a head), query_key_norm
  attention  cases whose attention matrices of the first layer are recorded
  measures   numbers of sets of tokens: the final layer of a case, or all its layers one below the other

collapse.safetensors, all float64

  start                 tokens × d
  mask                  tokens × tokens, 1 where the mask named "random" has an edge
  weights.NAME          layers × …; y = xW + b
  outputs               cases × layers × tokens × d: the tokens after each layer
  least_weight, entropy cases × layers: the least attention weight on an edge; the entropy of the attention weights in
                        nats, mean over heads and tokens that attend to something
  attention             len(attention) × heads × tokens × tokens
  singular_values.I     of measures[I]

A norm whose row has nothing to scale (0, or σ = 0 with eps = 0) is 0 there. With sandwich placement, gain and bias
belong to the norm before the function; the norm after it has none.
"""
import itertools
import json
import math
import pathlib
import struct
import sys

import numpy
import torch
import torch.nn.functional as functional

TOKENS, WIDTH, HEADS, FEED_FORWARD, LAYERS = 7, 8, 2, 32, 3
VARIANTS = ["san", "san+skip", "san+norm", "san+skip+norm", "full"]
PLACEMENTS = ["post", "pre", "sandwich"]
MASKS = ["full", "causal", "window:1", "onesided:1", "dilated:1,2", "global:1+window:1", "star", "block:3", "random"]
MOST_ROUNDING = 1e-5


# --- weights ---


def make_weights():
    """Numbers that float32 holds exactly, so that float and double programs start from the same ones."""
    generator = torch.Generator().manual_seed(11)

    def normal(deviation, *shape):
        return (deviation * torch.randn(LAYERS, *shape, generator=generator)).double()

    d, f = WIDTH, FEED_FORWARD
    return {
        "query_key_value": normal(0.5, d, 3 * d),
        "query_key_value_bias": normal(0.5, 3 * d),
        "output": normal(0.5, d, d),
        "output_bias": normal(0.5, d),
        "up": normal(0.5, d, f),
        "up_bias": normal(0.5, f),
        "down": normal(0.25, f, d),
        "down_bias": normal(0.5, d),
        "attention_gain": (1 + normal(0.3, d)).float().double(),
        "attention_bias": normal(0.3, d),
        "feed_forward_gain": (1 + normal(0.3, d)).float().double(),
        "feed_forward_bias": normal(0.3, d),
    }


# --- masks: allowed[i, j] if token i attends to token j ---


def allowed_by(name, drawn):
    if name == "random":
        return drawn
    allowed = torch.zeros(TOKENS, TOKENS, dtype=torch.bool)
    for part in name.split("+"):
        kind, _, numbers = part.partition(":")
        numbers = [int(n) for n in numbers.split(",")] if numbers else []
        for i, j in itertools.product(range(TOKENS), repeat=2):
            if kind == "full":
                edge = True
            elif kind == "causal":
                edge = j <= i
            elif kind == "window":
                edge = abs(i - j) <= numbers[0]
            elif kind == "onesided":
                edge = 0 <= i - j <= numbers[0]
            elif kind == "dilated":
                edge = abs(i - j) % numbers[1] == 0 and abs(i - j) <= numbers[0] * numbers[1]
            elif kind in ("global", "star"):
                edge = min(i, j) < (numbers[0] if numbers else 1) or i == j
            elif kind == "block":
                edge = i // numbers[0] == j // numbers[0]
            else:
                raise ValueError(f"unknown mask {name}")
            allowed[i, j] |= edge
    return allowed


def draw_mask():
    generator = torch.Generator().manual_seed(12)
    allowed = torch.rand(TOKENS, TOKENS, generator=generator) < 0.4
    allowed[3] = False  # a token that attends to nothing
    allowed[5, 5] = False
    allowed[5, 0] = True
    return allowed


# --- the block ---


def quotient(a, b):
    """a/b, and 0 where b is 0."""
    return torch.where(b == 0, torch.zeros_like(a), a / b)


def normed(x, case, gain, bias):
    d, kind, eps = x.shape[-1], case["norm"], case["eps"]
    if kind == "layernorm" and eps > 0:
        y = functional.layer_norm(x, (d,), eps=eps)
    elif kind == "layernorm":
        y = quotient(x - x.mean(-1, keepdim=True), x.std(-1, keepdim=True, unbiased=False))
    elif kind == "rmsnorm":
        y = quotient(x, (x.pow(2).mean(-1, keepdim=True) + eps).sqrt())
    elif kind == "unit":
        y = quotient(x, (x.norm(dim=-1, keepdim=True) ** 2 + d * eps).sqrt())
    elif kind == "published":
        y = quotient(x, (x.norm(dim=-1, keepdim=True) ** 2 + d * eps).sqrt()) / math.sqrt(d)
    elif kind == "center":
        y = x - x.mean(-1, keepdim=True)
    elif kind == "xsigma":
        y = quotient(x, (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt())
    elif kind == "dyt":
        y = torch.tanh(0.5 * x)
    else:
        raise ValueError(f"unknown norm {kind}")
    if gain is not None:
        y = y * gain + bias
    return y


def attention(h, case, weights, allowed, trace):
    qkv = h @ weights["query_key_value"]
    if case["biases"]:
        qkv = qkv + weights["query_key_value_bias"]
    # heads × tokens × width of a head
    q, k, v = (part.reshape(TOKENS, HEADS, WIDTH // HEADS).transpose(0, 1) for part in qkv.chunk(3, dim=-1))
    if case["query_key_norm"]:
        q, k = quotient(q, q.norm(dim=-1, keepdim=True)), quotient(k, k.norm(dim=-1, keepdim=True))
    scores = q @ k.transpose(1, 2) / math.sqrt(case["temperature"] or WIDTH // HEADS)
    weight = functional.softmax(scores.masked_fill(~allowed, -math.inf), dim=-1)
    attends = allowed.any(-1)
    weight = torch.where(attends[None, :, None], weight, torch.zeros_like(weight))
    trace["least_weight"].append(weight[:, allowed].min().item())
    trace["entropy"].append(-torch.xlogy(weight, weight).sum(-1)[:, attends].mean().item())
    trace["attention"].append(weight)
    out = (weight @ v).transpose(0, 1).reshape(TOKENS, WIDTH) @ weights["output"]
    return out + weights["output_bias"] if case["biases"] else out


def feed_forward(h, case, weights):
    if case["biases"]:
        return functional.gelu(h @ weights["up"] + weights["up_bias"]) @ weights["down"] + weights["down_bias"]
    return functional.gelu(h @ weights["up"]) @ weights["down"]


def sublayer(x, f, case, gain, bias):
    skip = case["variant"] in ("san+skip", "san+skip+norm", "full")
    has_norm = case["variant"] in ("san+norm", "san+skip+norm", "full")
    before = has_norm and case["placement"] in ("pre", "sandwich")
    y = f(normed(x, case, gain, bias) if before else x)
    if has_norm and case["placement"] == "sandwich":
        y = normed(y, case, None, None)
    if skip:
        y = x + y
    if has_norm and case["placement"] == "post":
        y = normed(y, case, gain, bias)
    return y


def run(case, start, weights, drawn, dtype=torch.float64):
    """The tokens after each layer, and what attention did in each."""
    allowed = allowed_by(case["mask"], drawn)
    trace = {"least_weight": [], "entropy": [], "attention": []}
    x, outputs = start.to(dtype), []
    for layer in range(LAYERS):
        w = {name: values[layer].to(dtype) for name, values in weights.items()}
        affine = [w[name] if case["affine"] else None for name in ("attention_gain", "attention_bias")]
        x = sublayer(x, lambda h: attention(h, case, w, allowed, trace), case, *affine)
        if case["variant"] == "full":
            affine = [w[name] if case["affine"] else None for name in ("feed_forward_gain", "feed_forward_bias")]
            x = sublayer(x, lambda h: feed_forward(h, case, w), case, *affine)
        outputs.append(x)
    return torch.stack(outputs), trace


# --- the same from PyTorch's own layers, as a check on ours ---


def check_against_encoder_layer(case, start, weights, drawn):
    """Throws unless full blocks with layernorm are TransformerEncoderLayer's, to 1e-12. Post or pre; no empty row."""
    ours, _ = run(case, start, weights, drawn)
    x = start
    for i in range(LAYERS):
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH,
            HEADS,
            FEED_FORWARD,
            dropout=0.0,
            activation="gelu",
            layer_norm_eps=case["eps"],
            batch_first=True,
            norm_first=case["placement"] == "pre",
            dtype=torch.float64,
        )
        bias = (lambda values: values) if case["biases"] else torch.zeros_like
        shift = (lambda values: values) if case["affine"] else torch.zeros_like
        gain = (lambda values: values) if case["affine"] else torch.ones_like
        w = {name: values[i] for name, values in weights.items()}
        layer.load_state_dict(
            {
                "self_attn.in_proj_weight": w["query_key_value"].T,
                "self_attn.in_proj_bias": bias(w["query_key_value_bias"]),
                "self_attn.out_proj.weight": w["output"].T,
                "self_attn.out_proj.bias": bias(w["output_bias"]),
                "linear1.weight": w["up"].T,
                "linear1.bias": bias(w["up_bias"]),
                "linear2.weight": w["down"].T,
                "linear2.bias": bias(w["down_bias"]),
                "norm1.weight": gain(w["attention_gain"]),
                "norm1.bias": shift(w["attention_bias"]),
                "norm2.weight": gain(w["feed_forward_gain"]),
                "norm2.bias": shift(w["feed_forward_bias"]),
            }
        )
        with torch.no_grad():
            x = layer.train()(x[None], src_mask=~allowed_by(case["mask"], drawn))[0]
        difference = (x - ours[i]).abs().max().item()
        if not difference <= 1e-12:
            raise SystemExit(f"{case}: ours differs from TransformerEncoderLayer's by {difference:.2e}")


# --- cases ---


def make_case(group, variant, mask="full", norm="layernorm", placement="post", affine=False, **settings):
    case = {
        "group": group,
        "variant": variant,
        "mask": mask,
        "norm": norm,
        "eps": 1e-12 if norm == "layernorm" else 0.0,
        "affine": affine,
        "biases": affine,
        "placement": placement,
        "temperature": 0.0,
        "query_key_norm": False,
    }
    return {**case, **settings}


def all_cases():
    # Everything with layernorm; every other mask with gains and biases.
    for (v, variant), (p, placement) in itertools.product(enumerate(VARIANTS), enumerate(PLACEMENTS)):
        has_norm = variant in VARIANTS[2:]
        if not has_norm and placement != "post":
            continue
        group = f"{variant} {placement}" if has_norm else variant
        for m, mask in enumerate(MASKS):
            with_biases = (v + p + m) % 2 == 1
            yield make_case(group, variant, mask, "layernorm", placement, with_biases and has_norm, biases=with_biases)
    # Every other norm with every variant that has one, placement and mask, though not with all at once.
    turn = itertools.cycle(MASKS)
    for norm in ("rmsnorm", "unit", "center", "dyt", "published", "xsigma"):
        for i, (variant, placement) in enumerate(itertools.product(VARIANTS[2:], PLACEMENTS)):
            yield make_case(norm, variant, next(turn), norm, placement, affine=i % 2 == 0)
            yield make_case(norm, variant, next(turn), norm, placement, affine=i % 2 == 1)
        next(turn)
    # An eps that is felt.
    for norm in ("layernorm", "rmsnorm", "unit", "published", "xsigma"):
        yield make_case("eps", "full", "causal", norm, "sandwich", eps=0.1)
        yield make_case("eps", "san+norm", "random", norm, "post", affine=True, eps=0.1)
    # Without a norm the tokens of san grow, and with them the scores, beyond what float32 can follow at 1/64.
    for temperature in (1 / 64, 1.0, 64.0):
        for variant, mask in itertools.product(("san+norm", "san+skip+norm", "full"), ("full", "random", "window:1")):
            yield make_case("temperature", variant, mask, temperature=temperature, affine=mask == "random")
        if temperature >= 1:
            yield make_case("temperature", "san", "causal", temperature=temperature)
    for temperature in (1 / 64, 0.0):
        for variant, mask in itertools.product(VARIANTS, ("full", "random")):
            settings = {"temperature": temperature, "query_key_norm": True, "biases": mask == "random"}
            yield make_case("query_key_norm", variant, mask, **settings)


# --- measures, in NumPy ---


def clusters_of(joined):
    left, count = set(range(len(joined))), 0
    while left:
        count += 1
        reached = [left.pop()]
        while reached:
            i = reached.pop()
            neighbours = {j for j in left if joined[i, j]}
            left -= neighbours
            reached.extend(neighbours)
    return count


def measures_of(x):
    """Measures by the names of our own, and singular values."""
    tokens = torch.from_numpy(x)
    n, d = x.shape
    centred = x - x.mean(axis=0)
    mu, norm = numpy.linalg.norm(centred), numpy.linalg.norm(x)

    def one_infinity(m):
        return math.sqrt(numpy.linalg.norm(m, 1) * numpy.linalg.norm(m, numpy.inf))

    def cosines(rows):
        lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
        return numpy.divide(rows, lengths, out=numpy.zeros_like(rows), where=lengths > 0)

    pairs = numpy.triu_indices(n, 1)
    cosine = cosines(x) @ cosines(x).T
    if (abs(cosine[pairs] - 0.999) < 1e-6).any():
        raise SystemExit("a cosine is too near 0.999 to count reliably")
    differences = cosines(x[0 : n - n % 2 : 2] - x[1:n:2])
    difference = (differences @ differences.T)[numpy.triu_indices(n // 2, 1)]
    singular = torch.linalg.svdvals(tokens).numpy()
    shares = singular / singular.sum()
    rank = int(torch.linalg.matrix_rank(tokens))
    values = {
        "mu": mu,
        "norm": norm,
        "relative": mu / norm,
        "residual": one_infinity(centred) / one_infinity(x),
        "min_cosine": cosine[pairs].min(),
        "mean_cosine": cosine[pairs].mean(),
        "mean_abs_cosine": abs(cosine[pairs]).mean(),
        "difference_cosine": abs(difference).mean(),
        "near_share": (cosine[pairs] > 0.999).mean(),
        "clusters": clusters_of(cosine > 0.999),
        "rank": rank,
        "rank_share": rank / min(n, d),
        "stable_rank": (norm / singular[0]) ** 2,
        "effective_rank": math.exp(-sum(s * math.log(s) for s in shares if s > 0)),
        "least_singular": singular[-1],
    }
    return {name: float(value) for name, value in values.items()}, singular


# --- the files ---


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F64", "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(numpy.ascontiguousarray(values, dtype="<f8").tobytes() for values in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    torch.set_num_threads(1)
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    start = torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(10)).double()
    weights, drawn = make_weights(), draw_mask()
    cases = list(all_cases())
    outputs, least_weight, entropy, matrices, with_matrices = [], [], [], [], []
    worst, checked = 0.0, 0
    for index, case in enumerate(cases):
        x, trace = run(case, start, weights, drawn)
        rounded, _ = run(case, start, weights, drawn, torch.float32)
        rounding = max(((a - b).norm() / b.norm()).item() for a, b in zip(rounded.double(), x))
        if not rounding <= MOST_ROUNDING:
            raise SystemExit(f"{case}: float32 is {rounding:.1e} away from float64")
        worst = max(worst, rounding)
        post_or_pre = case["placement"] != "sandwich"
        if case["variant"] == "full" and case["norm"] == "layernorm" and post_or_pre and case["mask"] != "random":
            if case["temperature"] == 0 and not case["query_key_norm"]:
                check_against_encoder_layer(case, start, weights, drawn)
                checked += 1
        outputs.append(x.numpy())
        least_weight.append(trace["least_weight"])
        entropy.append(trace["entropy"])
        if case["mask"] == "random" and case["variant"] == "san+norm" and case["placement"] == "post":
            with_matrices.append(index)
            matrices.append(trace["attention"][0].numpy())
    print(f"{len(cases)} cases, of which {checked} are TransformerEncoderLayer's to 1e-12")
    print(f"float32 within {worst:.1e} of float64")

    tensors = {"start": start.numpy(), "mask": drawn.double().numpy()}
    tensors.update({f"weights.{name}": values.numpy() for name, values in weights.items()})
    tensors["outputs"] = numpy.stack(outputs)
    tensors["least_weight"], tensors["entropy"] = numpy.array(least_weight), numpy.array(entropy)
    tensors["attention"] = numpy.stack(matrices)

    measured = []
    wanted = [("san", "full", "final"), ("full post", "causal", "final"), ("san+skip", "star", "all")]
    wanted.append(("san", "random", "final"))  # one token is 0
    for group, mask, layers in wanted:
        index = next(i for i, case in enumerate(cases) if case["group"] == group and case["mask"] == mask)
        x = outputs[index][-1] if layers == "final" else outputs[index].reshape(-1, WIDTH)
        values, singular = measures_of(numpy.ascontiguousarray(x))
        tensors[f"singular_values.{len(measured)}"] = singular
        measured.append({"case": index, "layers": layers, "values": values})

    sizes = {"tokens": TOKENS, "width": WIDTH, "heads": HEADS, "feed_forward": FEED_FORWARD, "layers": LAYERS}
    text = "{" + "".join(f"{json.dumps(name)}:{value}," for name, value in sizes.items())
    text += '\n"cases":[\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n],"
    text += f'\n"attention":{json.dumps(with_matrices)},'
    text += '\n"measures":[\n' + ",\n".join(json.dumps(each) for each in measured) + "\n],"
    text += f'\n"torch":{json.dumps(torch.__version__)}}}\n'
    json.loads(text)
    (directory / "collapse.json").write_text(text)
    write_safetensors(directory / "collapse.safetensors", tensors)
    for name in ("collapse.json", "collapse.safetensors"):
        print(f"{directory / name}: {(directory / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
