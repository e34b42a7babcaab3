"""docs/reproduction.md follows from docs/reproduction.json and the pictures beside it, and holds what they hold."""
import copy
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("reproduction", str(ROOT / "scripts" / "reproduction"))
reproduction = importlib.util.module_from_spec(importlib.util.spec_from_loader("reproduction", loader))
loader.exec_module(reproduction)

CLAIM = {"where": "Fig. 0", "claim": "A is more than *B*", "published": "3×", "measured": "2× (1.8 to 2.2)", "verdict": "holds", "why": "",
         "id": "fig2-1", "part": "fig2", "paper": "brody2023", "topic": "", "holds": "yes", "condition": "", "stand_in": "", "not_at_hand": "",
         "missing": "", "more": "", "more_seconds": None, "holds_half": "yes", "holds_twice": "no", "level": 0.95, "looks": 1, "pieces": 1,
         "amount": "3 seeds", "figures": ["fig2"], "confounds": [],
         "comparisons": [{"what": "A over B", "unit": "×", "value": 2.0, "low": 1.8125, "high": 2.2, "count": 3, "direction": "above",
                          "threshold": 1.5, "reason": "half as much again", "half": 1.25, "twice": 2.0, "published": 3, "answer": "yes"}]}
RESULTS = {"command": "paper", "version": "0", "commit": "abc", "isa": "avx2", "threads": 1, "parts": ["fig2"], "seeds": [11, 123],
           "steps": 5000, "steps_3d": 10000, "draws": 100, "samples": 8, "deep_samples": 1, "seed": 4, "budget": 60.0, "models": [], "text": "",
           "asked": {"budget": "1m", "corpus": "/home/someone/texts/wiki.txt", "squad": "", "models": "", "text": "", "reviews": "",
                     "full": False},
           "pieces": [{"effort": "majority", "level": 1, "amount": "3 seeds", "parts": ["fig2"]}], "claims": [CLAIM]}
PART = {"figures": [{"name": "fig2", "title": "Losses", "caption": "Two seeds.", "svg": "<svg></svg>", "csv": "", "settings": ""}],
        "tables": [{"title": "Table", "rows": [["a", "b"], ["1", "2"]]}]}


class Reproduction(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = json.loads((ROOT / "docs" / "reproduction.json").read_text(encoding="utf-8"))
        cls.page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")

    def test_the_page_follows_from_the_data(self):
        self.assertTrue(reproduction.page_of(self.data) == self.page, "scripts/reproduction writes it anew")

    def test_every_claim_is_on_it_with_its_verdict_and_intervals(self):
        claims = 0
        for run in self.data["runs"]:
            self.assertGreater(run["seconds"], 0)
            for claim in run["results"]["claims"]:
                if run["results"]["pieces"] and not claim["pieces"]:  # no time was left for it
                    self.assertIn(reproduction.plain(claim["where"]), self.page)
                    continue
                claims += 1
                for field in ("claim", "published", "measured", "verdict"):
                    self.assertIn(reproduction.cell(reproduction.plain(claim[field])), self.page)
                for each in claim["comparisons"]:
                    if not each["what"]:
                        continue
                    self.assertIn(f"| {reproduction.cell(each['what'])} | {reproduction.number(each['value'], each['unit'])} |", self.page)
        self.assertGreater(claims, 10)

    def test_its_pictures_are_there_and_all_are_shown(self):
        shown = set(re.findall(r"\]\(pictures/(reproduction-[^)]*)\)", self.page))
        kept = {path.name for path in (ROOT / "docs" / "pictures").glob("reproduction-*")}
        self.assertEqual(shown, kept)
        for name in kept:
            picture = (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8")
            self.assertTrue(picture.startswith("<svg "), name)
            self.assertNotIn("<script", picture, name)

    def test_a_change_of_the_data_shows(self):
        for field, value in (("verdict", "changed"), ("holds", "answered"), ("measured", "changed")):
            changed = copy.deepcopy(self.data)
            claims = changed["runs"][0]["results"]["claims"]
            next(claim for claim in claims if claim["pieces"])[field] = value
            self.assertFalse(reproduction.page_of(changed) == self.page, field)

    def test_runs_are_taken_without_the_places_of_their_files(self):
        with tempfile.TemporaryDirectory() as home:
            run, docs = pathlib.Path(home, "run"), pathlib.Path(home, "docs")
            run.mkdir()
            docs.mkdir()
            (run / "results.json").write_text(json.dumps(RESULTS))
            (run / "pieces.jsonl").write_text(json.dumps({**RESULTS["pieces"][0], "seconds": 4000}) + "\n")
            (run / "part-fig2-1.json").write_text(json.dumps(PART))
            before, reproduction.DOCS = reproduction.DOCS, docs
            try:
                reproduction.main([str(run)])
                page = (docs / "reproduction.md").read_text()
                for words in ("A is more than \\*B\\*", "1.81 to 2.2", "above 1.5×: half as much again", "(pictures/reproduction-1-fig2.svg)",
                              "With half the threshold: holds; with twice: does not hold.", "67 min in 1 piece. ", "smaller than the full audit",
                              "normscope paper --only fig2 --corpus wiki.txt --seed 4 --pieces docs/reproduction-1.jsonl --out again",
                              "the majority task: 5000 steps (published: ten of 17000)", "| majority | 3 seeds | fig2 |"):
                    self.assertIn(words, page)
                for path in docs.rglob("*"):
                    self.assertNotIn("/home/someone", path.read_text() if path.is_file() else "")
                reproduction.main(["--check"])
                (docs / "reproduction.md").write_text(page.replace("holds", "fails", 1))
                with self.assertRaises(SystemExit):
                    reproduction.main(["--check"])
            finally:
                reproduction.DOCS = before


if __name__ == "__main__":
    unittest.main()
