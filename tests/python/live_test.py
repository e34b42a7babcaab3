"""Tiny models of every family: `scan` of their directories finds what `watch` saw of them in PyTorch (record_live.py)."""
import json
import pathlib
import unittest

import normscope

RECORDED = pathlib.Path(__file__).resolve().parent / "live"
FAMILIES = ["albert", "bert", "distilbert", "gpt2", "llama", "mistral", "mt5", "qwen2", "roberta", "t5", "umt5"]


class Live(unittest.TestCase):
    def test_scan_of_the_directory_is_what_was_seen_live(self):
        self.assertEqual(sorted(path.name for path in RECORDED.iterdir()), FAMILIES)
        for family in FAMILIES:
            recorded = json.loads((RECORDED / family / "recorded.json").read_text(encoding="utf-8"))
            result = normscope.scan(RECORDED / family, ids=recorded["ids"], space=["before", "model", "head"])
            window = result.windows[0]
            for place, letters in recorded["live"].items():
                layer, part, *head = place.split(".")
                found = window.layers[int(layer)]
                decided = found.heads[int(head[0])].keys if head else getattr(found, part)
                self.assertEqual(decided.verdicts, letters, f"{family} {place}")
            self.assertEqual(len([place for place in recorded["live"] if "head" in place]), 4, family)

    def test_equal_tokens_have_equal_keys(self):
        """Where no position is part of them, which is T5's first layer."""
        for family in ("t5", "mt5", "umt5"):
            model = normscope.open_model(RECORDED / family)
            for length in (5, 16, 30):
                passed = model.forward([7, 9] * length, trace="all")
                for point in ("query", "key", "value"):
                    values = passed[f"layer.0.attn.{point}"]
                    self.assertTrue((values[::2] == values[0]).all() and (values[1::2] == values[1]).all(), f"{family} {point}")


if __name__ == "__main__":
    unittest.main()
