"""The type stubs say what the compiled package does."""
import pathlib
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

    def test_every_stub_is_python(self):
        for path in pathlib.Path(normscope.__file__).parent.glob("*.pyi"):
            compile(path.read_text(encoding="utf-8"), str(path), "exec")


if __name__ == "__main__":
    unittest.main()
