"""Which keys of your own matrix can attention select?

    python examples/keys_of_your_matrix.py [KEYS.npy]

Without a file: 64 random keys in 4 dimensions, with and without layer norm.
"""
from __future__ import annotations

import sys

import numpy as np

import normscope


def main(arguments: list[str]) -> None:
    keys = np.load(arguments[0]) if arguments else np.random.default_rng(0).standard_normal((64, 4)).astype("float32")
    for norm in ("none", "layernorm"):
        result = normscope.keys(keys, norm=norm, query_norm=10)
        for number, found in enumerate(result.sets):
            counts = found.counts
            print(f"norm {norm}, set {number}: {counts.selectable} selectable, {counts.tied} tied, {counts.unselectable} unselectable")
            lost = [key for key in found.keys or [] if key.verdict == "unselectable"]
            for key in lost[:3]:
                covering = ", ".join(f"{term.weight:.2f} of key {term.index}" for term in key.cover or [])
                print(f"  key {key.index} is covered by {covering}")
        result.report(f"keys-{norm}.html")
        print(f"  keys-{norm}.html shows margins and depths")


if __name__ == "__main__":
    main(sys.argv[1:])
