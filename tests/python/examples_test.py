"""examples/: the scripts and the cells of the notebooks run, in an empty directory."""
import ast
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import normscope

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


class Examples(unittest.TestCase):
    def setUp(self):
        self.home, self.before = tempfile.TemporaryDirectory(), os.getcwd()
        os.chdir(self.home.name)

    def tearDown(self):
        os.chdir(self.before)
        self.home.cleanup()

    def run_script(self, name, *arguments):
        done = subprocess.run([sys.executable, "-B", EXAMPLES / name, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def run_notebook(self, name):
        """Runs its cells as a notebook does: the last expression of a cell is shown."""
        cells = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]
        shown, names = [], {}
        for cell in cells:
            self.assertNotIn("outputs", {} if not cell.get("outputs") else cell, "notebooks are kept without outputs")
            if cell["cell_type"] != "code":
                continue
            tree = ast.parse("".join(cell["source"]))
            last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(tree, name, "exec"), names)
                value = eval(compile(last, name, "eval"), names) if last else None
            if hasattr(value, "_repr_html_"):
                shown.append(value._repr_html_())
        return shown

    def test_keys_of_your_matrix(self):
        said = self.run_script("keys_of_your_matrix.py")
        self.assertIn("norm layernorm, set 0: 64 selectable, 0 tied, 0 unselectable", said)
        self.assertTrue(pathlib.Path("keys-none.html").exists())

    def test_does_my_norm_matter(self):
        self.assertIn("layernorm: train loss", self.run_script("does_my_norm_matter.py", "20"))

    def test_model_on_your_text(self):
        normscope.train.lm(corpus="grammar", tokenizer="bytes", tokens=5000, context=64, batch=2, steps=1, layers=2, heads=2, out="lm")
        shutil.copytree("lm/models/layernorm-seed11", "model")
        pathlib.Path("text.txt").write_text("Once upon a time there was a norm. " * 5)
        self.assertIn("scan.html marks them", self.run_script("model_on_your_text.py", "model", "text.txt"))

    @unittest.skipUnless(all(map(importlib.util.find_spec, ("torch", "transformers"))), "PyTorch and transformers are not installed")
    def test_watch_a_training(self):
        self.assertIn("rmsnorm: loss", self.run_script("watch_a_training.py", "3"))
        self.assertTrue(pathlib.Path("watched/layernorm/config.json").exists())

    def test_notebooks(self):
        for name in ("keys.ipynb", "train_and_compare.ipynb"):
            shown = self.run_notebook(name)
            self.assertGreaterEqual(len(shown), 2, name)
            self.assertTrue(all("<svg" in each or "text" in each for each in shown), name)


if __name__ == "__main__":
    unittest.main()
