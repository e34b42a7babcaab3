#!/usr/bin/env python3
"""Reads checkpoints that normscope wrote with Hugging Face transformers and compares logits.

    NORMSCOPE_WRITTEN=DIR build/tests/golden_tests --gtest_filter='WrittenForTransformers.*'
    check_written_checkpoint.py DIR [--record written_checkpoint.json]

DIR holds model directories, each with NAME.json beside it: token ids and the logits of normscope. A model whose
model_type begins with "normscope-" must be refused. Needs transformers and PyTorch."""
import argparse
import json
import pathlib
import sys

import torch
import transformers

TOLERANCE = 5e-5


def refusals(directory):
    """How often loading is refused, of the ways to try."""
    ways = [transformers.AutoConfig, transformers.AutoModelForCausalLM, transformers.GPT2LMHeadModel]
    refused = 0
    for way in ways:
        try:
            way.from_pretrained(directory)
        except (ValueError, OSError, KeyError):
            refused += 1
    return refused, len(ways)


def logits(directory, config, ids):
    kind = getattr(transformers, config["architectures"][0])
    model, info = kind.from_pretrained(directory, output_loading_info=True)
    left = {key: names for key, names in info.items() if names}
    if left:
        sys.exit(f"{directory}: tensors and model do not fit: {left}")
    with torch.no_grad():
        return [model.eval()(torch.tensor([text])).logits.flatten().tolist() for text in ids]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    recorded, failed = {}, False
    for described in sorted(options.directory.glob("*.json")):
        directory, ours = described.with_suffix(""), json.loads(described.read_text())
        config = json.loads((directory / "config.json").read_text())
        if config["model_type"].startswith("normscope-"):
            refused, ways = refusals(directory)
            print(f"{directory.name}: {config['model_type']} refused in {refused} of {ways} ways")
            failed |= refused < ways
            continue
        theirs = logits(directory, config, ours["ids"])
        worst = max(abs(a - b) for x, y in zip(theirs, ours["logits"], strict=True) for a, b in zip(x, y, strict=True))
        print(f"{directory.name}: {config['architectures'][0]}, {sum(map(len, theirs))} logits, largest difference {worst:.2g}")
        failed |= not worst < TOLERANCE
        recorded[directory.name] = [[float(f"{value:.7g}") for value in text] for text in theirs]
    if options.record:
        options.record.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
