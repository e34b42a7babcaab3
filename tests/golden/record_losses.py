#!/usr/bin/env python3
"""Records losses of real trainings, a number per step, for the watch on losses: three that are merely noisy and two
that go wrong. Needs PyTorch; writes losses.json beside it.

  words       next character of a small text, batches of 2 x 16: noise of single batches
  classes     two classes, a twentieth of the labels wrong, batches of 4: near 0 with single high losses
  steps       the same characters, batches of 8 x 32, learning rate cut to a tenth halfway
  too_fast    `words`, the learning rate times 300 from step 600 on
  swapped     `classes`, all labels turned round from step 600 on
"""
import json
import pathlib

import torch

TEXT = ("Attention scores are inner products of queries and keys. A key inside the convex hull of the others is never "
        "given the highest score, whatever the query. Layer normalization puts all keys on a sphere, where every key is "
        "a vertex of the hull. Without scaling, some keys lie inside. ") * 4


def rounded(losses):
    return [float(f"{loss:.4g}") for loss in losses]


def characters(seed, batch, length, steps, rate_at):
    torch.manual_seed(seed)
    alphabet = sorted(set(TEXT))
    text = torch.tensor([alphabet.index(c) for c in TEXT])
    model = torch.nn.ModuleDict({"in": torch.nn.Embedding(len(alphabet), 32), "rnn": torch.nn.GRU(32, 64, batch_first=True),
                                 "out": torch.nn.Linear(64, len(alphabet))})
    adam = torch.optim.AdamW(model.parameters())
    losses = []
    for step in range(steps):
        for group in adam.param_groups:
            group["lr"] = rate_at(step)
        start = torch.randint(0, len(text) - length - 1, (batch,))
        window = torch.stack([text[s:s + length + 1] for s in start])
        scores = model["out"](model["rnn"](model["in"](window[:, :-1]))[0])
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), window[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return rounded(losses)


def classes(seed, steps, swapped_from):
    torch.manual_seed(seed)
    x = torch.randn(2000, 16)
    labels = (x[:, :4].sum(1) > 0).long()
    wrong = torch.rand(2000) < 0.05
    labels = torch.where(wrong, 1 - labels, labels)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(steps):
        batch = torch.randint(0, 2000, (4,))
        target = 1 - labels[batch] if step >= swapped_from else labels[batch]
        loss = torch.nn.functional.cross_entropy(model(x[batch]), target)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return rounded(losses)


def main():
    torch.set_num_threads(1)
    never = 10 ** 9
    curves = {
        "words": characters(1, 2, 16, 2000, lambda step: 3e-3),
        "classes": classes(2, 3000, never),
        "steps": characters(3, 8, 32, 1500, lambda step: 1e-2 if step < 750 else 1e-3),
        "too_fast": characters(1, 2, 16, 700, lambda step: 3e-3 if step < 600 else 0.9),
        "swapped": classes(2, 700, 600),
    }
    path = pathlib.Path(__file__).with_name("losses.json")
    path.write_text(json.dumps(curves, separators=(",", ":")) + "\n")
    for name, losses in curves.items():
        print(f"{name}: {len(losses)} steps, {losses[0]} to {losses[-1]}, largest of the last half {max(losses[len(losses) // 2:])}")


if __name__ == "__main__":
    main()
