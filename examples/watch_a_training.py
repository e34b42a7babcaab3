"""What does the norm in front of attention do while a model learns? Train, watch, compare.

    python examples/watch_a_training.py [STEPS]

Needs PyTorch and transformers. A small GPT-2 reads this file, byte by byte, once with layer norm and once with RMS norm in front
of its attention; `normscope serve watched` draws the curves while it does.
"""
from __future__ import annotations

import pathlib
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import normscope

LENGTH = 64


def model_with(norm: str) -> torch.nn.Module:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_embd=64, n_layer=2, n_head=4, n_positions=LENGTH))
    if norm == "rmsnorm":
        for block in model.transformer.h:
            block.ln_1 = torch.nn.RMSNorm(64, eps=1e-5)
    return model


def main(arguments: list[str]) -> None:
    steps = int(arguments[0]) if arguments else 400
    text = torch.tensor(list(pathlib.Path(__file__).read_bytes()))
    for norm in ("layernorm", "rmsnorm"):
        model = model_with(norm)
        optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
        sample = {"input_ids": text[None, :LENGTH]}
        monitor = normscope.Monitor(model, every=200, sample=sample, out=f"watched/{norm}")
        start = time.perf_counter()
        for step in range(1, steps + 1):
            begins = torch.randint(len(text) - LENGTH, (16,)).tolist()
            batch = torch.stack([text[begin:begin + LENGTH] for begin in begins])
            loss = model(input_ids=batch, labels=batch).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            monitor(step)
        passed = time.perf_counter() - start
        row = monitor.look(steps)
        watched = sum(each["seconds"] for each in monitor.history[:-1])
        print(f"{norm}: loss {loss.item():.2f}; watching took {100 * watched / (passed - watched):.1f} % of the training")
        for layer in (0, 1):
            before, model_space, head = (row[f"layer.{layer}.{space}"] for space in ("before", "model", "head"))
            print(f"  layer {layer}: of {LENGTH} tokens no query can select {100 * before:.0f} % before the norm, "
                  f"{100 * model_space:.0f} % after it, {100 * head:.0f} % in the heads; "
                  f"{100 * row[f'layer.{layer}.along_ones']:.1f} % of the energy lies along 1")


if __name__ == "__main__":
    main(sys.argv[1:])
