"""What `keys --advice` says, checked without any of the library's code: in fractions, by trying every basis of the linear programs of
docs/theory.md (What would help)."""
import itertools
import json
import os
import subprocess
import tempfile
import unittest
from fractions import Fraction

import numpy as np

PROGRAM = os.environ.get("NORMSCOPE_PROGRAM")
SETS = 40
TOLERANCE = Fraction(1, 10**10)  # weights of covers and thresholds are rounded to doubles


def solved(columns, right):
    """The x with Σ x_c·columns[c] = right, if the columns are independent and there is one."""
    rows = [[column[r] for column in columns] + [right[r]] for r in range(len(right))]
    count = len(columns)
    for c in range(count):
        pivot = next((r for r in range(c, len(rows)) if rows[r][c] != 0), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [value / rows[c][c] for value in rows[c]]
        for r in range(len(rows)):
            if r != c and rows[r][c] != 0:
                rows[r] = [a - rows[r][c] * b for a, b in zip(rows[r], rows[c])]
    return [rows[c][count] for c in range(count)] if all(row[count] == 0 for row in rows[count:]) else None


def bases(others, most):
    return itertools.chain.from_iterable(
        itertools.combinations(others, size) for size in range(1, min(most, len(others)) + 1))


def least_offset(keys, offsets, i):
    """max Σλ_j b_j − b_i over all covers of key i; None: there is none, and the key is selectable."""
    best = None
    for chosen in bases([j for j in range(len(keys)) if j != i], len(keys[0]) + 1):
        weights = solved([keys[j] + [Fraction(1)] for j in chosen], keys[i] + [Fraction(1)])
        if weights is not None and min(weights) >= 0:
            value = sum(w * offsets[j] for w, j in zip(weights, chosen)) - offsets[i]
            best = value if best is None else max(best, value)
    return best


def least_factor(keys, offsets, i):
    """max t with a cover of t·k_i and Σλ_j b_j ≥ b_i: what is above it is a slack."""
    d = len(keys[0])
    factor = [-x for x in keys[i]] + [Fraction(0), Fraction(0)]
    slack = [Fraction(0)] * (d + 1) + [Fraction(-1)]
    right = [Fraction(0)] * d + [Fraction(1), offsets[i]]
    best = None
    for chosen in bases([j for j in range(len(keys)) if j != i], d + 2):
        columns = [keys[j] + [Fraction(1), offsets[j]] for j in chosen]
        for with_slack in ([], [slack]):
            x = solved(columns + [factor] + with_slack, right)
            if x is not None and min(x[:len(chosen)]) >= 0 and (not with_slack or x[-1] >= 0):
                best = x[len(chosen)] if best is None else max(best, x[len(chosen)])
    return best


def dot(a, b):
    return sum((x * y for x, y in zip(a, b)), Fraction(0))


def drawn(random, kind):
    """Keys and offsets, or no offsets."""
    n, d = int(random.randint(3, 8)), int(random.choice([1, 2, 3]))
    if kind == "normal":
        return random.randn(n, d), None
    if kind == "lattice":  # ties, equal keys
        return random.randint(-2, 3, (n, d)).astype(float), None
    if kind == "offsets":
        return random.randn(n, d), random.randn(n)
    if kind == "lattice with offsets":
        return random.randint(-2, 3, (n, d)).astype(float), random.randint(-2, 3, n).astype(float)
    plane = random.randint(-3, 4, (n, 2)).astype(float) @ random.randint(-2, 3, (2, 3)).astype(float)
    return plane + ([5.0, -3.0, 7.0] if kind == "flat beside the origin" else 0.0), None


class Advice(unittest.TestCase):
    def ask(self, keys, offsets):
        with tempfile.TemporaryDirectory() as folder:
            call = [PROGRAM, "keys", f"{folder}/keys.npy", "--advice", "--json", "--quiet"]
            np.save(f"{folder}/keys.npy", keys)
            if offsets is not None:
                np.save(f"{folder}/bias.npy", offsets)
                call += ["--bias", f"{folder}/bias.npy"]
            return json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)["sets"][0]

    def check_threshold(self, told, least, keys, offsets, i, scales):
        self.assertAlmostEqual(told["least"], float(least), delta=1e-12 * max(1, abs(float(least))))
        enough = Fraction(told["enough"])
        self.assertGreater(enough, least)
        query = [Fraction(x) for x in told["witness"]]
        own = dot(query, keys[i])
        mine = (enough * own if scales else own + enough) + offsets[i]
        self.assertGreater(mine, max(dot(query, keys[j]) + offsets[j] for j in range(len(keys)) if j != i))
        if scales:
            self.assertGreaterEqual(own, 0)  # and so at every larger factor
        cover = {term["index"]: Fraction(term["weight"]) for term in told["cover"]}
        self.assertNotIn(i, cover)
        self.assertGreaterEqual(min(cover.values()), 0)
        self.assertLess(abs(sum(cover.values()) - 1), TOLERANCE)
        for c, x in enumerate(keys[i]):
            wanted = x * Fraction(told["least"]) if scales else x
            self.assertLess(abs(sum(w * keys[j][c] for j, w in cover.items()) - wanted), TOLERANCE * max(1, abs(wanted)))
        reached = offsets[i] + (0 if scales else Fraction(told["least"]))
        self.assertGreater(sum(w * offsets[j] for j, w in cover.items()), reached - TOLERANCE)

    def test_every_threshold_is_the_least_and_its_certificates_hold(self):
        random = np.random.RandomState(17)
        kinds = ["normal", "lattice", "offsets", "lattice with offsets", "flat through the origin", "flat beside the origin"]
        checked = 0
        for turn in range(SETS):
            kind = kinds[turn % len(kinds)]
            given, bias = drawn(random, kind)
            answer = self.ask(given, bias)
            keys = [[Fraction(float(x)) for x in row] for row in given]
            offsets = [Fraction(float(b)) for b in bias] if bias is not None else [Fraction(0)] * len(keys)
            least = [least_offset(keys, offsets, i) for i in range(len(keys))]
            for i, key in enumerate(answer["keys"]):
                with self.subTest(kind=kind, turn=turn, key=i):
                    selectable = least[i] is None or least[i] < 0
                    self.assertEqual(key["verdict"] == "selectable", selectable)
                    self.assertEqual("advice" in key, not selectable)
                    if selectable:
                        continue
                    advice = key["advice"]
                    self.check_threshold(advice["offset"], least[i], keys, offsets, i, False)
                    if "scale" in advice:
                        self.check_threshold(advice["scale"], least_factor(keys, offsets, i), keys, offsets, i, True)
                    else:
                        self.assertTrue(advice["without"])
                    checked += 1
            if "offsets_for_all" in answer:
                with self.subTest(kind=kind, turn=turn):
                    self.check_all(answer["offsets_for_all"], keys, offsets, least)
        self.assertGreater(checked, SETS)

    def check_all(self, told, keys, offsets, least):
        for i, value in enumerate(least):
            wanted = 0 if value is None else max(0, float(value))
            self.assertAlmostEqual(told["least"][i], wanted, delta=1e-12 * max(1, wanted))
        lifted = [b + Fraction(c) for b, c in zip(offsets, told["offsets"])]
        for i, key in enumerate(keys):
            if keys.count(key) == 1:  # equal keys tie, whatever is added to both
                lead = least_offset(keys, lifted, i)
                self.assertTrue(lead is None or lead < 0, i)


if __name__ == "__main__":
    unittest.main()
