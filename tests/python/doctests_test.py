"""The examples of the docstrings, run in a directory that has a small trained model and a text."""
import doctest
import os
import pathlib
import shutil
import tempfile
import unittest

import fake_torch
import normscope


class Doctests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home, cls.before = tempfile.TemporaryDirectory(), os.getcwd()
        os.chdir(cls.home.name)
        normscope.train.lm(corpus="grammar", tokenizer="bytes", tokens=5000, context=32, batch=2, steps=1, layers=2, out="lm")
        shutil.copytree("lm/models/layernorm-seed11", "model")
        pathlib.Path("story.txt").write_text("Once upon a time there was a norm. " * 5)
        model = normscope.open_model("model")
        ids = model.tokenizer.encode("Once upon a time")
        cls.live = {"normscope": normscope, "batch": {"input_ids": fake_torch.tensor(ids[None].astype("int64"))},
                    "live_model": fake_torch.Model(model.forward(ids, trace="all"), model.layers, model.heads)}

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        cls.home.cleanup()

    def check(self, name, thing, names=None):
        found = [each for each in doctest.DocTestFinder(recurse=True).find(thing, name, globs=names or {}) if each.examples]
        self.assertTrue(found, f"{name} has no example")
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        said = []
        for each in found:
            runner.run(each, out=said.append)
        self.assertEqual(runner.failures, 0, "".join(said))

    def test_every_function_and_class_has_an_example_that_holds(self):
        for name in sorted(set(normscope.__all__) - {"Error", "results", "train"}):
            with self.subTest(name):
                self.check(name, getattr(normscope, name), self.live if name in ("watch", "Trace", "Monitor") else None)
        for name in normscope.train.__all__:
            with self.subTest(name):
                self.check(name, getattr(normscope.train, name))


if __name__ == "__main__":
    unittest.main()
