"""Every question from Python is what the program answers, bit for bit; results as objects, tables, files and pages."""
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import normscope

PROGRAM = os.environ.get("NORMSCOPE_PROGRAM")
# What differs from run to run, whoever asks.
TIMES = re.compile(r'"(seconds|ms_per_step|tokens_per_second)": ?(null|[0-9.e+-]+)')

MODEL = "lm/models/layernorm-seed11"
LM = dict(corpus="grammar", tokenizer="bytes", tokens=20000, context=32, batch=2, steps=3, dimension=8, layers=2, heads=2)


def timeless(text):
    return TIMES.sub(r'"\1":0', text.strip())


class InADirectory(unittest.TestCase):
    """With arrays, a text, and a small model that was trained there."""

    @classmethod
    def setUpClass(cls):
        cls.home, cls.before = tempfile.TemporaryDirectory(), os.getcwd()
        os.chdir(cls.home.name)
        generator = np.random.RandomState(0)
        np.save("keys.npy", generator.randn(12, 3).astype("float32"))
        np.save("batch.npy", generator.randn(3, 20, 4).astype("float16"))
        np.save("bias.npy", generator.randn(12).astype("float32"))
        np.save("mask.npy", np.tril(np.ones((6, 6), bool)))
        pathlib.Path("story.txt").write_text("Once upon a time there was a norm. " * 5)
        pathlib.Path("reviews.tsv").write_text("sentence\tlabel\n" + "".join(f"good {i}\t1\nbad {i}\t0\n" for i in range(20)))
        normscope.train.lm(**LM, out="lm")

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        cls.home.cleanup()


class Questions(InADirectory):
    def program(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments, "--json", "--quiet"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def same(self, result, *arguments):
        self.assertEqual(timeless(result.to_json()), timeless(self.program(*arguments)))

    def test_keys(self):
        self.same(normscope.keys("keys.npy"), "keys", "keys.npy")
        self.same(normscope.keys("keys.npy", norm="layernorm", bias="bias.npy", query_norm=10, prefix=True, exact=True),
                  "keys", "keys.npy", "--norm", "layernorm", "--bias", "bias.npy", "--query-norm", "10", "--prefix", "--exact")
        self.same(normscope.keys("batch.npy", heads=2, summary=True, noise=1e-3, margin="bound", rank="full"), "keys",
                  "batch.npy", "--heads", "2", "--summary", "--noise", "1e-3", "--margin", "bound", "--rank", "full")
        self.same(normscope.keys(pathlib.Path("keys.npy"), advice=True), "keys", "keys.npy", "--advice")

    def test_keys_of_an_array_are_those_of_its_file(self):
        for file in ("keys.npy", "batch.npy"):
            array, expected = normscope.keys(np.load(file)), normscope.keys(file)
            text = timeless(array.to_json()).replace('"file":"array"', f'"file":"{file}"')
            self.assertEqual(text, timeless(expected.to_json()))
        array = normscope.keys(np.load("keys.npy"), bias=np.load("bias.npy"))
        text = timeless(array.to_json()).replace('"file":"array"', '"file":"keys.npy"').replace('"bias":"array"', '"bias":"bias.npy"')
        self.assertEqual(text, timeless(normscope.keys("keys.npy", bias="bias.npy").to_json()))

    def test_vocab(self):
        self.same(normscope.vocab("keys.npy", bias="bias.npy", limit=3, exact=True), "vocab", "keys.npy", "--bias", "bias.npy",
                  "--limit", "3", "--exact")
        self.same(normscope.vocab(MODEL, embeddings=True), "vocab", MODEL, "--embeddings")
        array = normscope.vocab(np.load("keys.npy"), bias=np.load("bias.npy"))
        self.assertEqual(array.counts.to_dict(), normscope.vocab("keys.npy", bias="bias.npy").counts.to_dict())

    def test_scan(self):
        self.same(normscope.scan(MODEL, text="story.txt", layers=[0, 1], heads="0", space=["model", "head"], samples=2),
                  "scan", MODEL, "--text", "story.txt", "--layers", "0,1", "--heads", "0", "--space", "model", "head",
                  "--samples", "2")

    def test_a_text_or_ids_in_memory_are_those_of_a_file(self):
        expected = normscope.scan(MODEL, text="story.txt", window=16)
        held = normscope.scan(MODEL, text=io.StringIO(pathlib.Path("story.txt").read_text()), window=16)
        self.assertEqual(timeless(held.to_json()).replace('"text":"text"', '"text":"story.txt"'), timeless(expected.to_json()))
        ids = normscope.open_model(MODEL).tokenizer.encode(pathlib.Path("story.txt").read_text())
        by_ids = normscope.scan(MODEL, ids=ids, window=16)
        np.testing.assert_array_equal(by_ids.windows[0].ids, expected.windows[0].ids)
        self.assertEqual([layer.model.verdicts for layer in by_ids.windows[0].layers],
                         [layer.model.verdicts for layer in expected.windows[0].layers])

    def test_ablate(self):
        self.same(normscope.ablate(MODEL, text="story.txt", norm=["none", "center"], window=32, prompts=2, probe_length=4,
                                   rescale=True, seed=5), "ablate", MODEL, "--text", "story.txt", "--norm", "none", "center",
                  "--window", "32", "--prompts", "2", "--probe-length", "4", "--rescale", "--seed", "5")

    def test_heatmap(self):
        self.same(normscope.heatmap(n="3:9:3", d=[2, 3], draws=5, norm="rmsnorm", seed=7), "heatmap", "--n", "3:9:3", "--d",
                  "2,3", "--draws", "5", "--norm", "rmsnorm", "--seed", "7")

    def test_mask(self):
        self.same(normscope.mask("causal", 16), "mask", "causal", "--n", "16")
        self.same(normscope.mask(["full", "random:0.3"], n=9, seed=3), "mask", "full", "random:0.3", "--n", "9", "--seed", "3")
        self.same(normscope.mask("mask.npy"), "mask", "mask.npy")
        self.assertEqual(normscope.mask(np.load("mask.npy")).masks[0].edges, 21)

    def test_collapse(self):
        self.same(normscope.collapse(variant="san", mask=["full", "causal"], tokens=8, dim=4, layers=6, temperature=[1, 4]),
                  "collapse", "--variant", "san", "--mask", "full", "causal", "--tokens", "8", "--dim", "4", "--layers", "6",
                  "--temperature", "1", "4")
        self.same(normscope.collapse(MODEL, text="story.txt", tokens=16, init="both"), "collapse", MODEL, "--text", "story.txt",
                  "--tokens", "16", "--init", "both")

    def test_equilibria(self):
        self.same(normscope.equilibria(w=[1.5, 2], starts=50, steps=50, angles=36, tokens=3), "equilibria", "--w", "1.5,2",
                  "--starts", "50", "--steps", "50", "--angles", "36", "--tokens", "3")

    def test_trainings(self):
        small = dict(steps=4, samples=200, classes=3, length=4, margin=1, evaluate_every=2)
        flags = [each for name, value in small.items() for each in ("--" + name.replace("_", "-"), str(value))]
        self.same(normscope.train.majority(norm="layernorm,none", seeds=2, **small), "train", "majority", "--norm",
                  "layernorm,none", "--seeds", "2", *flags)
        self.same(normscope.train.majority(in_3d=True, seed=5, steps=2, samples=200), "train", "majority", "--3d", "--seed", "5",
                  "--steps", "2", "--samples", "200")
        flags = [each for name, value in LM.items() for each in ("--" + name, str(value))]
        self.same(normscope.load_run("lm"), "train", "lm", *flags, "--out", "lm-of-the-program")
        self.same(normscope.train.sentiment(data="reviews.tsv", tokenizer="words", steps=2, batch=2, test_share=0.2, out="s"),
                  "train", "sentiment", "--data", "reviews.tsv", "--tokenizer", "words", "--steps", "2", "--batch", "2",
                  "--test-share", "0.2", "--out", "s-of-the-program")

    def test_paper(self):
        self.same(normscope.paper(only="wu5"), "paper", "--only", "wu5", "--out", "paper-of-the-program")

    def test_what_is_kept_is_what_the_program_keeps(self):
        calls = {"keys": (normscope.keys, ("keys.npy",), {}), "mask": (normscope.mask, ("causal",), {"n": 8}),
                 "heatmap": (normscope.heatmap, (), {"n": "3:5", "d": "3", "draws": 2}),
                 "vocab": (normscope.vocab, ("keys.npy",), {}),
                 "equilibria": (normscope.equilibria, (), {"w": 2, "starts": 20, "steps": 20, "angles": 36}),
                 "collapse": (normscope.collapse, (), {"variant": "san", "tokens": 6, "dim": 4, "layers": 3}),
                 "scan": (normscope.scan, (MODEL,), {"text": "story.txt", "window": 16})}
        for command, (ask, inputs, options) in calls.items():
            flags = [each for name, value in options.items() for each in ("--" + name, str(value))]
            self.program(command, *inputs, *flags, "--out", f"program-{command}")
            ask(*inputs, **options, out=f"python-{command}")
            names = sorted(os.listdir(f"program-{command}"))
            self.assertEqual(sorted(os.listdir(f"python-{command}")), names)
            for name in names:
                program, python = (pathlib.Path(f"{who}-{command}", name).read_bytes() for who in ("program", "python"))
                if name != "report.html":
                    self.assertEqual(TIMES.sub("", python.decode("latin-1")), TIMES.sub("", program.decode("latin-1")), name)
            kept = normscope.load_run(f"python-{command}")
            self.assertEqual(json.loads(kept.to_json()), json.loads(pathlib.Path(f"python-{command}/results.json").read_text()))
            kept.report(f"{command}.html")
            self.assertTrue("<table" in pathlib.Path(f"{command}.html").read_text(), command)
            kept.save(f"copy-{command}")
            self.assertEqual(sorted(os.listdir(f"copy-{command}")), names)

    def test_what_would_help(self):
        keys = [[1., 1], [1, -1], [-1, 1], [-1, -1], [0.25, 0.25]]
        advice = normscope.keys(keys, advice=True).sets[0].keys[4].advice
        self.assertAlmostEqual(advice.scale.least, 4)  # then it is the corner
        self.assertGreater(advice.scale.enough, 4)
        np.save("inside.npy", np.array(keys))
        self.same(normscope.keys("inside.npy", advice=True), "keys", "inside.npy", "--advice")
        self.same(normscope.vocab("inside.npy", advice=True), "vocab", "inside.npy", "--advice")

    def test_doctor(self):
        told = json.loads(self.program("doctor"))
        result = normscope.doctor()
        self.assertIsInstance(result, normscope.results.DoctorResult)
        found = json.loads(result.to_json())
        self.assertEqual([part["name"] for part in found["parts"]], [part["name"] for part in told["parts"]])
        of_time = {"Python", "disk of data", "disk here"}  # this interpreter; what others write meanwhile
        self.assertEqual([part for part in found["parts"] if part["name"] not in of_time],
                         [part for part in told["parts"] if part["name"] not in of_time])
        python = next(part for part in result.parts if part.name == "Python")
        self.assertIn(normscope.__file__, python.found)
        self.assertEqual([row["name"] for row in result.table(library="none")], [part.name for part in result.parts])
        self.assertRegex(result._repr_html_(), "Nothing is missing|Missing: ")
        self.assertIn("<td>disk here</td>", result._repr_html_())
        result.report("doctor.html")
        self.assertIn("disk here", pathlib.Path("doctor.html").read_text(encoding="utf-8"))
        with self.assertRaisesRegex(ValueError, "no run"):
            result.save("doctor")
        with mock.patch("normscope._doctor.program", lambda: None), self.assertRaisesRegex(normscope.Error, "was not built"):
            normscope.doctor()

    def test_trainings_are_kept_and_resumed(self):
        small = dict(samples=200, classes=3, length=4, margin=1, evaluate_every=2)
        whole = normscope.train.majority(**small, steps=6, decay_steps=100)
        normscope.train.majority(**small, steps=2, decay_steps=100, out="majority")
        further = normscope.train.majority(resume="majority", steps=6)
        self.assertEqual(further.directory, os.path.realpath("majority"))
        self.assertEqual(timeless(further.to_json()), timeless(whole.to_json()))
        self.assertIsNone(whole.directory)
        whole.save("majority-copy")
        self.assertIn("metrics.jsonl", os.listdir("majority-copy"))
        self.assertIn("<svg", whole._repr_html_())
        with self.assertRaisesRegex(ValueError, "resume goes on with the settings of the run; norm"):
            normscope.train.majority(resume="majority", norm="none")
        with self.assertRaisesRegex(ValueError, "earlier run|holds"):
            normscope.train.majority(**small, steps=2, out="majority")

    def test_fields_are_attributes(self):
        result = normscope.keys([[1., 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])
        self.assertIsInstance(result, normscope.results.KeysResult)
        self.assertIsInstance(result, normscope.Result)
        keys = result.sets[0].keys
        self.assertIsInstance(keys[0], normscope.results.KeyResult)
        self.assertIsInstance(keys[0].witness, np.ndarray)
        self.assertEqual(keys[4].verdict, "unselectable")
        self.assertIsNone(keys[4].advice)  # not asked for
        with self.assertRaisesRegex(AttributeError, "has no field 'verdicts'"):
            result.verdicts
        found = json.loads(result.to_json())
        self.assertEqual(json.loads(json.dumps(result.to_dict())), found)
        self.assertIn("sets", dir(result))
        self.assertIn("the options as resolved", type(result).__doc__)
        self.assertEqual(json.loads(result.to_json(indent=2)), found)
        with self.assertRaisesRegex(TypeError, "save"):
            import pickle
            pickle.dumps(result)

    def test_tables(self):
        result = normscope.keys(np.load("batch.npy"))
        rows = result.table(library="none")
        self.assertEqual((len(rows), rows[25]["set"], rows[25]["index"]), (60, 1, 5))
        self.assertEqual(rows[25]["verdict"], result.sets[1].keys[5].verdict)
        self.assertEqual([row["n"] for row in result.table("sets", library="none")], [20] * 3)
        with self.assertRaisesRegex(ValueError, "there is no list 'set'"):
            result.table("set")
        with self.assertRaisesRegex(TypeError, "part takes the name of a list"):
            result.table(["sets"])
        with self.assertRaisesRegex(ValueError, "library takes"):
            result.table(library="numpy")
        scanned = normscope.scan(MODEL, text="story.txt", window=16).table(library="none")
        self.assertEqual({(row["layer"], row["head"]) for row in scanned}, {(layer, head) for layer in (0, 1) for head in (0, 1)})
        for name in ("pandas", "polars"):
            try:
                __import__(name)
            except ImportError:
                with self.assertRaisesRegex(ImportError, f"needs {name}"):
                    result.table(library=name)
            else:
                self.assertEqual(len(result.table(library=name)), 60)

    def test_a_notebook_shows_the_figures(self):
        shown = normscope.heatmap(n="3:5", d=3, draws=2)._repr_html_()
        self.assertIn("<svg", shown)
        self.assertNotIn("<script", shown)
        self.assertIn("svg{max-width:100%", shown)
        hostile = normscope.mask(np.eye(3))._repr_html_()
        self.assertIn("<svg", hostile)
        os.mkdir("<b>")
        np.save("<b>/keys.npy", np.eye(3))
        shown = normscope.keys("<b>/keys.npy")._repr_html_()
        self.assertNotIn("<b>/", shown)

    def test_a_long_table_of_a_notebook_says_how_long_it_is(self):
        markup = normscope.results._table_markup("A & B", "", [["<i>", "n"]] + [["x", str(n)] for n in range(50)])
        self.assertIn("<h4>A &amp; B</h4>", markup)
        self.assertIn("<th>&lt;i&gt;</th>", markup)
        self.assertEqual(markup.count("<tr>"), 21)
        self.assertIn("20 of 50 rows", markup)

    def test_wrong_calls_say_what_they_take(self):
        array = np.eye(3)
        for call, kind, words in (
                (lambda: normscope.keys(array, norm="layernrom"), ValueError, "layernorm"),
                (lambda: normscope.keys(array, norm=[]), ValueError, ""),
                (lambda: normscope.keys(array, margin="exakt"), ValueError, "margin takes exact or bound, not 'exakt'"),
                (lambda: normscope.keys(array, query_norm=-1), ValueError, "query_norm"),
                (lambda: normscope.keys(array, query_norm=float("nan")), ValueError, "query_norm"),
                (lambda: normscope.keys(array, query_norm="1"), TypeError, "query_norm takes a number, not str"),
                (lambda: normscope.keys(array, heads=2.0), TypeError, "heads takes a whole number, not float"),
                (lambda: normscope.keys(array, heads=-1), ValueError, "heads"),
                (lambda: normscope.keys(array, exact=1), TypeError, "exact takes True or False, not int"),
                (lambda: normscope.keys(array, threads=-1), ValueError, "threads takes 0 to 1024, not -1"),
                (lambda: normscope.keys(array, seed=1.5), TypeError, "seed takes a whole number"),
                (lambda: normscope.keys(array, seed=1 << 64), ValueError, "seed takes"),
                (lambda: normscope.keys(array, quiet=True), TypeError, "quiet"),
                (lambda: normscope.keys(), TypeError, "file"),
                (lambda: normscope.keys("nowhere.npy"), ValueError, "nowhere.npy"),
                (lambda: normscope.keys(array, progress="yes"), TypeError, "progress"),
                (lambda: normscope.keys(array, bias=[1, 2]), ValueError, "bias"),
                (lambda: normscope.keys(array, out="story.txt"), ValueError, "story.txt"),
                (lambda: normscope.heatmap(draws=10 ** 30), ValueError, "draws"),
                (lambda: normscope.heatmap(n=object()), TypeError, "n takes str"),
                (lambda: normscope.mask(np.full((2, 2), 0.5)), ValueError, "0.5"),
                (lambda: normscope.mask(np.ones((2, 3))), ValueError, "shape"),
                (lambda: normscope.scan(MODEL), ValueError, "text"),
                (lambda: normscope.scan(MODEL, ids=[0.5]), ValueError, "no token id"),
                (lambda: normscope.scan(MODEL, ids=[[1, -2]]), ValueError, "no token id"),
                (lambda: normscope.scan("nowhere", text="story.txt"), ValueError, "nowhere"),
                (lambda: normscope.load_run("nowhere"), ValueError, "nowhere"),
                (lambda: normscope.load_run("."), ValueError, ""),
                (lambda: normscope.keys(array).save("story.txt"), ValueError, "story.txt"),
                (lambda: normscope.keys(array).report("nowhere/page.html"), ValueError, "nowhere"),
        ):
            with self.assertRaisesRegex(kind, words):
                call()

    def test_damaged_runs_are_refused(self):
        normscope.keys("keys.npy", out="damaged")
        path = pathlib.Path("damaged/results.json")
        whole = path.read_text()
        for text in ("", "{", "[]", "{}", whole[: len(whole) // 2], whole.replace('"rank":', '"rnak":'), whole.replace('"n":12', '"n":"x"')):
            path.write_text(text)
            with self.assertRaises(ValueError, msg=text[:20]):
                normscope.load_run("damaged")

    def test_a_long_call_tells_how_far_it_is(self):
        program = "import normscope\nnormscope._progress._BEGIN = 0\nnormscope.heatmap(n=[%s], d=[8, 30], draws=%s, progress=%s, threads=1)"
        # A call that lasts for minutes, and is stopped as soon as it has told something.
        with subprocess.Popen([sys.executable, "-c", program % (300, 100000, True)], stderr=subprocess.PIPE) as long:
            told = b""
            while b"heatmap" not in told:
                part = os.read(long.stderr.fileno(), 1000)
                self.assertTrue(part, told)
                told += part
            long.send_signal(signal.SIGINT)
            long.stderr.read()
        for shown in (False, None):  # None: only where somebody is there to see it
            done = subprocess.run([sys.executable, "-c", program % (50, 400, shown)], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", shown)

    def test_notes_are_logged(self):
        with self.assertLogs("normscope", "INFO") as logged:
            normscope.train.lm(tokenizer="bytes", corpus="grammar", tokens=2000, context=16, batch=2, steps=1)
            import logging
            logging.getLogger("normscope").info("at least this")
        self.assertTrue(logged.output)


class Models(InADirectory):
    def test_tokens(self):
        tokenizer = normscope.Tokenizer(MODEL)
        text = "naïve – text"
        ids = tokenizer.encode(text)
        self.assertEqual(ids.dtype, np.uint32)
        self.assertEqual(tokenizer.decode(ids), text)
        raw = b"plain text"
        offsets = tokenizer.offsets(raw.decode())
        self.assertEqual(b"".join(raw[begin:end] for begin, end in offsets), raw)
        self.assertEqual(tokenizer.id(tokenizer.token(int(ids[0]))), ids[0])
        self.assertIsNone(tokenizer.token(2 ** 32 - 1))
        self.assertGreaterEqual(len(tokenizer), 256)

    def test_forward(self):
        model = normscope.open_model(MODEL)
        self.assertEqual((model.family, model.layers, model.heads, model.width), ("gpt2", 2, 2, 8))
        ids = model.tokenizer.encode("Once upon a time")
        passed = model.forward(ids, trace="all", logits=True)
        self.assertEqual(sorted(passed.trace), sorted(model.points))
        self.assertEqual(passed.logits.shape, (len(ids), model.vocabulary))
        hooked = model.forward(list(ids), trace=["blocks.1.attn.hook_k", "blocks.0.hook_resid_post", "attn.key"])
        np.testing.assert_array_equal(hooked["blocks.1.attn.hook_k"].reshape(len(ids), -1), passed["layer.1.attn.key"])
        np.testing.assert_array_equal(hooked["blocks.0.hook_resid_post"], passed["layer.0.out"])
        np.testing.assert_array_equal(hooked["layer.0.attn.key"], passed["layer.0.attn.key"])
        # The keys that `scan` decided.
        scanned = normscope.scan(MODEL, ids=ids, space=["head"], mask="full").windows[0]
        keys = passed["layer.0.attn.key"].reshape(len(ids), model.heads, -1)
        decided = normscope.decide_keys(np.ascontiguousarray(keys[:, 0]))
        self.assertEqual("".join(word[0] for word in decided.verdict), scanned.layers[0].heads[0].keys.verdicts)
        for wrong in ("attn.kee", "layer.7.attn.key", "blocks.9.attn.hook_k", "blocks.0.hook_z"):
            with self.assertRaisesRegex(ValueError, "there is no point"):
                model.forward(ids, trace=[wrong])
        for wrong in ([], [10 ** 6], [[1, 2]], [0.5], ["a"]):
            with self.assertRaises((ValueError, TypeError)):
                model.forward(wrong)
        with self.assertRaisesRegex(AttributeError, "has no attribute 'depth'"):
            model.depth


if __name__ == "__main__":
    if not PROGRAM:
        sys.exit("NORMSCOPE_PROGRAM must name the program to compare with.")
    unittest.main()
