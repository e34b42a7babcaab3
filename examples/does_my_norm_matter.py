"""Does the choice of a norm matter? Train, look, compare.

    python examples/does_my_norm_matter.py [STEPS]

The majority task of Brody et al. 2023, small: layer norm, its two halves alone, and none.
"""
from __future__ import annotations

import sys

import normscope

NORMS = ("layernorm", "rmsnorm", "center", "none")


def main(arguments: list[str]) -> None:
    steps = int(arguments[0]) if arguments else 400
    result = normscope.train.majority(norm=",".join(NORMS), seeds=2, steps=steps, samples=4000, classes=8, length=16, margin=2,
                                      evaluate_every=max(1, steps // 10))
    for norm in result.norms:
        print(f"{norm.norm:>10}: train loss {norm.train_loss.mean:.3f}, accuracy {100 * norm.accuracy.mean:.1f} %")
    for run in result.runs:
        print(f"{run.norm:>10}, seed {run.seed}: queries at {run.angle_mean:.0f}° to the vector of ones")
    result.report("majority.html")
    print("majority.html has the curves")


if __name__ == "__main__":
    main(sys.argv[1:])
