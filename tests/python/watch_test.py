"""Live models: a fake PyTorch stands in for the real one (fake_torch.py); Monitor."""
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

import fake_torch
from fake_torch import Linear, Model, MultiheadAttention, OneLayer, tensor
import normscope


class WithAModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home, cls.before = tempfile.TemporaryDirectory(), os.getcwd()
        os.chdir(cls.home.name)
        normscope.train.lm(corpus="grammar", tokenizer="bytes", tokens=20000, context=32, batch=2, steps=3, dimension=8,
                           layers=3, heads=2, out="lm")
        cls.place = "lm/models/layernorm-seed11"
        model = normscope.open_model(cls.place)
        cls.ids = model.tokenizer.encode("Once upon a time there")
        cls.passed = model.forward(cls.ids, trace="all")
        cls.heads, cls.layers, cls.tokenizer = model.heads, model.layers, model.tokenizer

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        cls.home.cleanup()

    def live(self):
        return Model(self.passed, self.layers, self.heads)

    def batch(self):
        return {"input_ids": tensor(self.ids[None].astype(np.int64))}


class Watch(WithAModel):
    def letters(self, result):
        found = {}
        for layer in result.windows[0].layers:
            for space in ("before", "model"):
                part = getattr(layer, space)
                found[layer.layer, space] = None if part is None else part.verdicts
            for head in layer.heads:
                found[layer.layer, head.head] = head.keys.verdicts
        return found

    def test_a_live_model_has_the_verdicts_of_its_files(self):
        model = self.live()
        with normscope.watch(model) as trace:
            model(**self.batch())
        self.assertIs(fake_torch.eager_attention_forward, fake_torch.ORIGINAL)
        self.assertEqual(model.hooks(), 0)
        self.assertTrue(trace.causal)
        for mask in ("causal", "full"):
            expected = normscope.scan(self.place, ids=self.ids, space=["before", "model", "head"], mask=mask)
            result = trace.scan(mask=mask, tokenizer=self.tokenizer)
            self.assertIsInstance(result, normscope.results.ScanResult)
            self.assertEqual(self.letters(result), self.letters(expected))
            self.assertEqual([layer.heads[0].wins.tolist() for layer in result.windows[0].layers],
                             [layer.heads[0].wins.tolist() for layer in expected.windows[0].layers])
            np.testing.assert_array_equal(result.windows[0].ids, expected.windows[0].ids)
            self.assertAlmostEqual(result.windows[0].layers[1].norm_in.along_ones, expected.windows[0].layers[1].norm_in.along_ones)
        self.assertEqual("".join(result.windows[0].tokens), "Once upon a time there")
        result.save("live")
        self.assertEqual(normscope.load_run("live").family, "gpt2")
        result.report("live.html")
        self.assertTrue("<svg" in result._repr_html_())

    def test_modules_by_name(self):
        model = self.live()
        model._children["attn0"]  # the names below are of these
        with normscope.watch(model, keys="attn{}.key", queries="attn{}.query", norms="ln{}", heads=2, causal=True) as trace:
            model(**self.batch())
        expected = normscope.scan(self.place, ids=self.ids, space=["before", "model", "head"])
        self.assertEqual(self.letters(trace.scan()), self.letters(expected))
        with normscope.watch(model, keys="attn{}.key", queries="attn{}.query", heads=2) as trace:
            model(**self.batch())
        self.assertEqual([space for space in trace.scan().settings.spaces], ["head"])

    def test_points_have_the_names_of_models_in_files(self):
        model = self.live()
        with normscope.watch(model) as trace:
            model(**self.batch())
        self.assertEqual(len(trace.points), 4 * self.layers)
        for point in ("layer.1.attn.norm.in", "layer.0.attn.norm.out", "layer.2.attn.query", "layer.1.attn.key"):
            np.testing.assert_array_equal(trace[point], self.passed[point])
        hooked = trace["blocks.1.attn.hook_k"]  # as TransformerLens has it
        self.assertEqual(hooked.shape[:2], (len(self.ids), self.heads))
        np.testing.assert_array_equal(hooked.reshape(len(self.ids), -1), self.passed["layer.1.attn.key"])
        for wrong in ("layer.9.attn.key", "blocks.0.hook_z", "layer.0.attn.value"):
            with self.assertRaisesRegex(ValueError, "there is no point"):
                trace[wrong]
        with self.assertRaises(IndexError):
            trace.point("layer.0.attn.key", 1)

    def test_points_of_transformer_lens_are_modules_by_name(self):
        model = self.live()
        for _, _, attention in model.points:  # batch × n × heads × width
            for each in (attention.key, attention.query):
                each.output = each.output.reshape(1, len(self.ids), self.heads, -1)
        with normscope.watch(model, keys="attn{}.key", queries="attn{}.query", norms="ln{}", heads=self.heads, causal=True) as trace:
            model(**self.batch())
        expected = normscope.scan(self.place, ids=self.ids, space=["before", "model", "head"])
        self.assertEqual(self.letters(trace.scan()), self.letters(expected))

    def test_bridges_of_transformer_lens_are_followed_through_its_points(self):
        class AttentionBridge(fake_torch.Module):
            def forward(self, hidden_states):
                self.query(hidden_states), self.key(hidden_states)

        class Model(fake_torch.Model):
            def forward(self, input_ids):
                for x, norm, attention in self.points:
                    attention(norm(x))

        model = Model(self.passed, self.layers, self.heads)
        model.cfg = types.SimpleNamespace(n_heads=self.heads, attention_dir="causal", positional_embedding_type="standard")
        model.hook_dict = {}
        for layer, (x, norm, attention) in enumerate(model.points):
            bridge = AttentionBridge(_original_component=attention, key=attention.key, query=attention.query)
            model._children[f"attn{layer}"] = bridge
            model.points[layer] = x, norm, bridge
            model.hook_dict.update({f"blocks.{layer}.attn.hook_k": bridge.key, f"blocks.{layer}.attn.hook_q": bridge.query})
        with normscope.watch(model) as trace:
            model(**self.batch())
        self.assertTrue(trace.causal)
        expected = normscope.scan(self.place, ids=self.ids, space=["before", "model", "head"])
        self.assertEqual(self.letters(trace.scan()), self.letters(expected))
        model.cfg.positional_embedding_type = "alibi"
        with self.assertRaisesRegex(ValueError, "adds offsets to its scores"), normscope.watch(model):
            pass
        self.assertEqual(model.hooks(), 0)

    def test_offsets_by_distance_are_part_of_the_question(self):
        model, n = self.live(), len(self.ids)
        by_distance = np.random.default_rng(1).standard_normal((2, 2 * n - 1)).astype("float32")
        bias = np.stack([[by_distance[head, n - 1 - place:2 * n - 1 - place] for place in range(n)] for head in (0, 1)])
        for _, _, attention in model.points:
            attention.extra = {"position_bias": tensor(bias[None])}
        with normscope.watch(model) as trace:
            model(**self.batch())
        found = trace.scan(mask="full", layers=[1]).windows[0].layers[0]
        for head in (0, 1):
            keys = self.passed["layer.1.attn.key"].reshape(n, 2, -1)[:, head].astype(float)
            # The best verdict of the places; scores are q·k / 2.
            decided = [normscope.decide_keys(keys, bias[head, place].astype(float) / 0.5).verdict for place in range(n)]
            best = "".join(min((words[token][0] for words in decided), key="stu".index) for token in range(n))
            self.assertEqual(found.heads[head].keys.verdicts, best)

    def test_older_releases_are_followed_through_their_maps(self):
        class Model(fake_torch.Model):
            def forward(self, input_ids):
                for x, norm, attention in self.points:
                    attention(norm(x))

        home = types.ModuleType("transformers.models.old")
        kind = type("OldAttention", (fake_torch.Module,), {
            "__module__": home.__name__, "num_heads": self.heads, "is_causal": True,
            "forward": lambda self, hidden_states: (self.query(hidden_states), self.key(hidden_states))})
        model = Model(self.passed, self.layers, self.heads)
        for layer, (x, norm, attention) in enumerate(model.points):
            old = kind(query=attention.query, key=attention.key)
            model._children[f"attn{layer}"] = old
            model.points[layer] = x, norm, old
        with mock.patch.dict(sys.modules, {home.__name__: home}), normscope.watch(model) as trace:
            model(**self.batch())
        expected = normscope.scan(self.place, ids=self.ids, space=["before", "model", "head"])
        self.assertEqual(self.letters(trace.scan()), self.letters(expected))

    def test_functions_of_transformers_are_put_back_as_they_were(self):
        class Interface(dict):  # what was registered, and before it what was set here
            def __init__(self):
                super().__init__(sdpa=fake_torch.eager_attention_forward, mine=len)
                self._local_mapping = {"mine": min}

            def __getitem__(self, name):
                return self._local_mapping.get(name, super().__getitem__(name))

            def __setitem__(self, name, value):
                self._local_mapping[name] = value

            def __delitem__(self, name):
                del self._local_mapping[name]

        interface, model = Interface(), self.live()
        transformers = types.SimpleNamespace(ALL_ATTENTION_FUNCTIONS=interface)
        with mock.patch.dict(sys.modules, {"transformers.modeling_utils": transformers}), mock.patch.object(
                fake_torch, "ALL_ATTENTION_FUNCTIONS", interface, create=True):
            with normscope.watch(model):
                self.assertEqual(set(interface._local_mapping), {"sdpa", "mine"})
                self.assertIsNot(interface["sdpa"], fake_torch.ORIGINAL)
            self.assertEqual(interface._local_mapping, {"mine": min})

    def test_layers_that_see_windows_of_different_lengths(self):
        model = self.live()
        for layer, (_, _, attention) in enumerate(model.points):
            attention.extra = {"sliding_window": 6 if layer % 2 else None}
        with normscope.watch(model) as trace:
            model(**self.batch())
        with self.assertRaisesRegex(ValueError, "windows of different lengths.*at most 6 tokens"):
            trace.scan()
        for _, _, attention in model.points:
            attention.extra = {"sliding_window": 6}
        with normscope.watch(model) as trace:
            model(**self.batch())
        self.assertEqual(trace.scan().settings.mask, "onesided:5")
        model.points[1][2].extra = {"sliding_window": len(self.ids)}  # which sees all of these
        model.points[0][2].extra = model.points[2][2].extra = {}
        with normscope.watch(model) as trace:
            model(**self.batch())
        self.assertEqual(trace.scan().settings.mask, "causal")

    def test_several_texts_and_padding(self):
        model = self.live()
        mask = tensor(np.array([[0] * 4 + [1] * (len(self.ids) - 4)]))
        with normscope.watch(model) as trace:
            model(**self.batch())
            model(**self.batch(), attention_mask=mask)
        result = trace.scan(layers=[0])
        self.assertEqual([len(window.ids) for window in result.windows], [len(self.ids), len(self.ids) - 4])
        trace.clear()
        with self.assertRaisesRegex(ValueError, "nothing was seen"):
            trace.scan()
        with normscope.watch(model) as trace:
            model(**self.batch(), attention_mask=tensor(np.zeros((1, len(self.ids)), int)))
        with self.assertRaisesRegex(ValueError, "all that was seen is padding"):
            trace.scan()

    def test_multihead_attention_of_torch(self):
        generator = np.random.default_rng(0)
        weight, bias = generator.standard_normal((12, 4)).astype("float32"), generator.standard_normal(12).astype("float32")
        model = OneLayer(attn=MultiheadAttention(weight, bias))
        x = tensor(generator.standard_normal((7, 1, 4)).astype("float32"))  # tokens first
        with normscope.watch(model) as trace:
            model(x)
        keys = (np.asarray(x)[:, 0] @ weight[4:8].T + bias[4:8]).astype("float32")
        for head in (0, 1):
            expected = normscope.decide_keys(keys[:, 2 * head:2 * head + 2], certificates=False)
            found = trace.scan().windows[0].layers[0].heads[head].keys.verdicts
            self.assertEqual(found, "".join(word[0] for word in expected.verdict))

    def test_wrong_calls(self):
        model = self.live()
        with normscope.watch(model) as trace:
            model(**self.batch())
        for call, kind, words in (
                (lambda: normscope.watch("gpt2"), TypeError, "PyTorch module, not str"),
                (lambda: normscope.watch(model, keys="attn{}.key"), ValueError, "go together"),
                (lambda: normscope.watch(model, keys="attn.key", queries="attn{}.query", heads=2), ValueError, "for the layer"),
                (lambda: normscope.watch(model, keys="a{}", queries="b{}", heads=2).__enter__(), ValueError, "no module 'a0'"),
                (lambda: normscope.watch(OneLayer(attn=type("Plain", (Linear,), {"__module__": "elsewhere"})())).__enter__(), ValueError, "give the names"),
                (lambda: trace.scan(space=["reachable"]), ValueError, "weights"),
                (lambda: trace.scan(samples=3), TypeError, "not samples"),
                (lambda: trace.scan(layers=[9]), ValueError, "9"),
                (lambda: trace.scan(mask="star"), ValueError, "star")):
            with self.assertRaisesRegex(kind, words):
                call()
        self.assertEqual(model.hooks(), 0)

    def test_numbers_that_are_none(self):
        model = self.live()
        model.points[1][2].k[0, 0, 3, 0] = np.nan
        with normscope.watch(model) as trace:
            model(**self.batch())
        with self.assertRaisesRegex(ValueError, "key of layer 1 is NaN at token 3"):
            trace.scan()

    def test_offsets_of_scores_are_refused(self):
        model = self.live()
        n = len(self.ids)
        offsets = tensor(np.broadcast_to(-0.5 * np.arange(n, dtype="float32"), (1, 2, n, n)).copy())
        model.points[0][2].extra = {"position_bias": offsets}
        with self.assertRaisesRegex(ValueError, "adds offsets to its scores"):
            with normscope.watch(model):
                model(**self.batch())
        hidden = np.triu(np.full((n, n), np.finfo("float32").min, "float32"), 1)
        model.points[0][2].extra = {"attention_mask": tensor(hidden[None, None])}  # a mask is none
        with normscope.watch(model) as trace:
            model(**self.batch())
        self.assertEqual(len(trace.passes[0].layers), 3)

    def test_what_is_changed_in_place_afterwards_is_told(self):
        model = self.live()
        key = model.points[1][2].k
        key._version = 0
        with normscope.watch(model) as trace:
            model(**self.batch())
        trace.scan()
        key += 1
        key._version = 1
        with self.assertRaisesRegex(ValueError, "changed in place"):
            trace.scan()

    def test_a_failing_model_leaves_no_hooks(self):
        model = self.live()
        with self.assertRaises(ZeroDivisionError):
            with normscope.watch(model):
                raise ZeroDivisionError
        self.assertEqual(model.hooks(), 0)
        self.assertIs(fake_torch.eager_attention_forward, fake_torch.ORIGINAL)


class Monitors(WithAModel):
    def test_rows(self):
        class Writer(list):
            def add_scalar(self, name, value, step):
                self.append((name, value, step))

        model, writer, called = self.live(), Writer(), []
        monitor = normscope.Monitor(model, every=10, sample=self.batch(), log="log.jsonl", writer=writer, call=called.append, tokens=12)
        rows = [monitor(step) for step in range(21)]
        self.assertEqual([row["step"] for row in rows if row], [0, 10, 20])
        self.assertEqual(called, monitor.history)
        lines = [json.loads(line) for line in pathlib.Path("log.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines], [0, 10, 20])
        self.assertTrue(model.training)
        self.assertEqual(model.hooks(), 0)
        row = monitor.history[0]
        self.assertEqual({name.split(".")[1] for name in row if name.startswith("layer.")}, {"0", "1", "2"})
        x = self.passed["layer.1.attn.norm.in"][:12].astype(float)
        self.assertAlmostEqual(row["layer.1.relative"], np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x), 5)
        singular = np.linalg.svd(x, compute_uv=False)
        share = singular / singular.sum()
        self.assertAlmostEqual(row["layer.1.effective_rank"], np.exp(-(share * np.log(share)).sum()), 4)
        expected = normscope.scan(self.place, ids=self.ids[:12], space=["before", "model", "head"]).windows[0].layers[2]
        self.assertEqual(row["layer.2.before"], expected.before.unselectable / 12)
        self.assertEqual(row["layer.2.head"], np.mean([head.keys.unselectable / 12 for head in expected.heads]))
        self.assertIn(("normscope/layer.2.before", row["layer.2.before"], 10), writer)

    def test_a_run_directory_for_the_server(self):
        model = self.live()
        monitor = normscope.Monitor(model, every=10, sample=self.batch(), out="watched", tokens=12)
        row = monitor.look(10)
        lines = [json.loads(line) for line in pathlib.Path("watched/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["layer"] for line in lines], ["layer 0", "layer 1", "layer 2"])
        self.assertEqual(lines[2]["before"], row["layer.2.before"])
        self.assertEqual(json.loads(pathlib.Path("watched/config.json").read_text())["command"], "monitor")
        with self.assertRaisesRegex(ValueError, "writing|process"):
            normscope.Monitor(model, sample=self.batch(), out="watched")
        del monitor
        normscope.Monitor(model, sample=self.batch(), out="watched").look(20)  # a training that goes on
        self.assertEqual(len(pathlib.Path("watched/metrics.jsonl").read_text().splitlines()), 6)
        with self.assertRaisesRegex(ValueError, "train lm"):
            normscope.Monitor(model, sample=self.batch(), out="lm")

    def test_callbacks(self):
        class State:
            global_step = 20

        monitor = normscope.Monitor(self.live(), every=10, sample=self.batch())
        monitor.on_train_begin(None, None, None)
        monitor.on_step_end(None, State, None, model=None)
        State.global_step = 30
        for batch in range(4):  # whose gradients are accumulated
            monitor.on_train_batch_end(State, None, None, None, batch)
        self.assertEqual([row["step"] for row in monitor.history], [20, 30])
        with self.assertRaises(AttributeError):
            monitor.steps

    def test_what_was_not_in_training_mode_is_not_afterwards(self):
        model = self.live()
        model.points[1][1].training = False  # frozen
        seen = []
        model.register_forward_pre_hook(lambda *_: seen.append([each.training for _, each in model.named_modules()]), with_kwargs=True)
        before = [each.training for _, each in model.named_modules()]
        normscope.Monitor(model, sample=self.batch()).look(0)
        self.assertEqual([each.training for _, each in model.named_modules()], before)
        self.assertEqual(before.count(False), 1)
        self.assertEqual(set(seen[0]), {False})

    def test_numbers_that_are_none_any_more_do_not_end_a_training(self):
        model = self.live()
        monitor = normscope.Monitor(model, every=1, sample=self.batch(), log="trouble.jsonl", out="trouble", writer=mock.Mock())
        monitor(0)
        model.points[1][2].k[0, 0, 3, 0] = np.nan
        with self.assertLogs("normscope", "WARNING"):
            row = monitor(1)
        self.assertRegex(row["trouble"], "key of layer 1 is NaN at token 3")
        self.assertEqual(set(row), {"step", "trouble", "seconds"})
        self.assertEqual(json.loads(pathlib.Path("trouble.jsonl").read_text().splitlines()[1])["trouble"], row["trouble"])
        self.assertEqual(len(pathlib.Path("trouble/metrics.jsonl").read_text().splitlines()), self.layers)
        model.points[0][2].extra = {"position_bias": tensor(np.full((1, 2, len(self.ids), len(self.ids)), np.nan, "float32"))}
        with self.assertLogs("normscope", "WARNING"):
            self.assertRegex(monitor(2)["trouble"], "offset of the scores of layer 0 is NaN")
        with self.assertRaisesRegex(ValueError, "padding"):  # what is wrong with the call is no trouble of the training
            normscope.Monitor(model, sample={**self.batch(), "attention_mask": tensor(np.zeros((1, len(self.ids)), int))}).look(0)

    def test_the_sample_goes_to_where_the_model_is(self):
        class Moved(fake_torch.Tensor):
            def to(self, device):
                moves.append(device)
                return self

        moves, model = [], self.live()
        batch = {"input_ids": self.batch()["input_ids"].view(Moved)}
        model.parameters = lambda: iter([types.SimpleNamespace(device="cuda:1")])
        normscope.Monitor(model, sample=batch).look(0)
        normscope.Monitor(model, sample=(batch["input_ids"],)).look(0)
        normscope.Monitor(model, sample=batch["input_ids"]).look(0)
        self.assertEqual(moves, ["cuda:1"] * 3)
        model.parameters = lambda: iter([types.SimpleNamespace(device=types.SimpleNamespace(type="meta"))])
        normscope.Monitor(model, sample=batch).look(0)
        self.assertEqual(len(moves), 3)

    def test_only_the_first_process_of_a_training_looks(self):
        model = self.live()
        for started in ({"RANK": "1"}, {"LOCAL_RANK": "2"}, {"RANK": "8", "LOCAL_RANK": "0"}):
            with mock.patch.dict(os.environ, started):
                monitor = normscope.Monitor(model, every=1, sample=self.batch(), out="of-another-process")
                self.assertIsNone(monitor(0))
        self.assertFalse(pathlib.Path("of-another-process").exists())
        with mock.patch.dict(os.environ, {"RANK": "0", "LOCAL_RANK": "0"}):
            self.assertEqual(normscope.Monitor(model, every=1, sample=self.batch())(0)["step"], 0)
        for rank in (0, 1):
            distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: rank)
            torch = types.SimpleNamespace(distributed=distributed, no_grad=contextlib.nullcontext)
            with mock.patch.dict(sys.modules, {"torch": torch}):
                self.assertEqual(normscope.Monitor(model, every=1, sample=self.batch())(0) is None, rank == 1)

    def test_wrong_calls_of_monitors(self):
        for options in ({"every": 0}, {"every": 1.5}, {"sample": None}, {"tokens": 1}):
            with self.assertRaises(ValueError):
                normscope.Monitor(self.live(), **{"sample": self.batch(), **options})


if __name__ == "__main__":
    unittest.main()
