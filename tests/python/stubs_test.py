"""The type stubs say what the compiled package does."""
import ast
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import normscope

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Stubs(unittest.TestCase):
    def test_they_are_not_stale(self):
        done = subprocess.run([sys.executable, ROOT / "scripts" / "python-stubs", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_they_lie_beside_the_package(self):
        folder = pathlib.Path(normscope.__file__).parent
        for name in ("py.typed", "__init__.pyi", "results.pyi", "train.pyi", "_core.pyi"):
            self.assertTrue((folder / name).exists(), name)

    def test_those_of_the_compiled_part_name_all_it_has(self):
        """They are written by hand."""
        tree = ast.parse((pathlib.Path(normscope.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
        stubbed = {each.name: each for each in tree.body if isinstance(each, (ast.ClassDef, ast.FunctionDef))}
        stubbed.update({each.target.id: each for each in tree.body if isinstance(each, ast.AnnAssign)})
        there = {name for name in dir(normscope._core) if not name.startswith("__") or name in stubbed}
        self.assertEqual(set(stubbed) - {"Option"}, there)  # a type of dicts, which is nothing at run time
        for name, each in stubbed.items():
            if isinstance(each, ast.ClassDef) and name not in ("Option", "Error"):
                named = {part.name if isinstance(part, ast.FunctionDef) else part.target.id for part in each.body}
                own = {part for part in vars(getattr(normscope._core, name)) if not part.startswith("_")}
                self.assertEqual({part for part in named if not part.startswith("_")}, own, name)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_package_and_examples_are_clean_under_mypy(self):
        examples = sorted((ROOT / "examples").glob("*.py"))
        if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
            examples.remove(ROOT / "examples" / "watch_a_training.py")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, ROOT / "python" / "normscope", *examples],
                              capture_output=True, text=True, cwd=ROOT / "python")
        self.assertEqual(done.returncode, 0, done.stdout)

    @unittest.skipUnless(shutil.which("nm"), "there is no nm")
    def test_the_compiled_part_shows_other_libraries_nothing(self):
        done = subprocess.run(["nm", "-D", "--defined-only", normscope._core.__file__], capture_output=True, text=True, check=True)
        self.assertEqual([line.split()[-1] for line in done.stdout.splitlines()], ["PyInit__core"])

    def test_every_stub_is_python(self):
        for path in pathlib.Path(normscope.__file__).parent.glob("*.pyi"):
            compile(path.read_text(encoding="utf-8"), str(path), "exec")


if __name__ == "__main__":
    unittest.main()
