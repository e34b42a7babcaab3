"""pytorch_transformer.py BATCH.json

Trains GPT-2 or BERT on one batch with PyTorch, over and over, and prints JSON: the losses of the first steps without
dropout (before each update), then the wall seconds of steps with dropout (forward, loss, backward, AdamW, clearing the
gradients) and the largest memory the process had. One gradient is computed beforehand to warm up.

Needs PyTorch 1.13 or newer (Debian: python3-torch); without it, prints {"absent": why}.

BATCH.json holds "family" (gpt2 or bert), the shape, "dropout", "threads", "losses" and "steps" (how many of each),
"learning_rate", "slots" (name, rows, columns, in the order of PARAMETERS: a file of float32 beside it, named in
"parameters"), "tokens" (a list per text), and for bert "lengths" and "labels". Matrices are out × in.
"""
import json
import os
import resource
import statistics
import sys
import time

try:
    import numpy
    import torch
    from torch.nn import functional as F
except ImportError as error:
    print(json.dumps({"absent": f"not installed ({error}; python3-torch)"}))
    sys.exit(0)


class Transformer(torch.nn.Module):
    def __init__(self, batch, folder):
        super().__init__()
        self.batch = batch
        self.gpt2 = batch["family"] == "gpt2"
        values = torch.from_numpy(numpy.fromfile(os.path.join(folder, batch["parameters"]), dtype=numpy.float32))
        self.own, offset = {}, 0
        for name, rows, columns in batch["slots"]:
            part = values[offset:offset + rows * columns].clone()
            offset += rows * columns
            vector = name.endswith((".bias", ".gain"))
            self.own[name] = torch.nn.Parameter(part if vector else part.view(rows, columns))
            self.register_parameter("own_" + name.replace(".", "_"), self.own[name])

    def norm(self, name, x, centre=False):
        if name + ".gain" in self.own:
            return F.layer_norm(x, x.shape[-1:], self.own[name + ".gain"], self.own[name + ".bias"], 1e-5)
        return F.layer_norm(x, x.shape[-1:], None, None, 1e-5) if centre else x

    def layer(self, l, x, mask, p):
        own = lambda name: self.own.get(f"layers.{l}.{name}")
        heads, (texts, length, d) = self.batch["heads"], x.shape
        h = self.norm(f"layers.{l}.norm1", x, True) if self.gpt2 else x
        q, k, v = F.linear(h, own("attention.qkv.weight"), own("attention.qkv.bias")).split(d, -1)
        split = lambda t: t.view(texts, length, heads, d // heads).transpose(1, 2)
        scores = split(q) @ split(k).transpose(-1, -2) / (d // heads) ** 0.5
        weights = F.dropout(F.softmax(scores.masked_fill(mask, torch.finfo(scores.dtype).min), -1), p)
        attended = (weights @ split(v)).transpose(1, 2).reshape(texts, length, d)
        x = x + F.dropout(F.linear(attended, own("attention.out.weight"), own("attention.out.bias")), p)
        h = self.norm(f"layers.{l}.norm2", x) if self.gpt2 else x
        hidden = F.gelu(F.linear(h, own("up.weight"), own("up.bias")), approximate="tanh" if self.gpt2 else "none")
        return x + F.dropout(F.linear(hidden, own("down.weight"), own("down.bias")), p)

    def loss(self, tokens, mask, targets, p):
        x = self.own["word"][tokens] + self.own["position"][: tokens.shape[1]]
        if "type" in self.own:
            x = x + self.own["type"][0]
        x = F.dropout(x, p)
        for l in range(self.batch["layers"]):
            x = self.layer(l, x, mask, p)
        if self.gpt2:
            x = self.norm("final_norm", x)
            logits = x @ self.own["word"].T
            return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))
        pooled = torch.tanh(F.linear(x[:, 0], self.own["pooler.weight"], self.own["pooler.bias"]))
        return F.cross_entropy(
            F.linear(F.dropout(pooled, p), self.own["classifier.weight"], self.own["classifier.bias"]), targets)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        batch = json.load(file)
    torch.set_num_threads(batch["threads"])
    model = Transformer(batch, os.path.dirname(sys.argv[1]))
    tokens = torch.tensor(batch["tokens"])
    length = tokens.shape[1]
    if batch["family"] == "gpt2":
        mask, targets = torch.ones(length, length, dtype=torch.bool).triu(1), None
    else:
        mask = (torch.arange(length)[None, :] >= torch.tensor(batch["lengths"])[:, None])[:, None, None, :]
        targets = torch.tensor(batch["labels"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=batch["learning_rate"], weight_decay=0.0)
    model.loss(tokens, mask, targets, 0.0).backward()
    optimizer.zero_grad(set_to_none=True)
    losses, seconds = [], []
    for step in range(batch["losses"] + batch["steps"]):
        timed = step >= batch["losses"]
        start = time.perf_counter()
        loss = model.loss(tokens, mask, targets, batch["dropout"] if timed else 0.0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        (seconds.append(time.perf_counter() - start) if timed else losses.append(loss.item()))
    print(json.dumps({"torch": torch.__version__, "losses": losses, "seconds": seconds,
                      "median": statistics.median(seconds),
                      "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
