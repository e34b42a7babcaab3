"""Live models of the real libraries, where they are installed: PyTorch with transformers, its Trainer, TensorBoard, Lightning, TransformerLens."""
import importlib.util
import json
import os
import pathlib
import tempfile
import unittest
from importlib.metadata import version

import numpy as np

import normscope


def needs(*names):
    lacking = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(lacking, f"not installed: {', '.join(lacking)}")


def small_gpt2():
    import torch
    import transformers

    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=40, n_embd=8, n_layer=2, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=0))


def some_ids(count=1, length=12):
    import torch

    torch.manual_seed(1)
    return torch.randint(2, 39, (count, length))


class InADirectory(unittest.TestCase):
    def setUp(self):
        self.home, self.before = tempfile.TemporaryDirectory(), os.getcwd()
        os.chdir(self.home.name)

    def tearDown(self):
        os.chdir(self.before)
        self.home.cleanup()


@needs("torch", "transformers")
class Transformers(InADirectory):
    def test_a_live_scan_is_the_scan_of_the_directory_for_every_family(self):
        import record_live
        import transformers

        models = {**record_live.MODELS,
                  "xlm-roberta": (transformers.XLMRobertaModel, transformers.XLMRobertaConfig(**record_live.SMALL, pad_token_id=1)),
                  "camembert": (transformers.CamembertModel, transformers.CamembertConfig(**record_live.SMALL, pad_token_id=1))}
        for name, (kind, config) in models.items():
            with self.subTest(name):
                _, live, kept = record_live.seen_and_kept(kind, config, name)
                self.assertEqual(live, kept)
                self.assertEqual(len([place for place in live if "head" in place]), 4)

    @needs("accelerate")
    def test_a_monitor_is_a_callback_of_the_trainer(self):
        import transformers

        model = small_gpt2()
        monitor = normscope.Monitor(model, every=2, sample={"input_ids": some_ids()}, log="log.jsonl")
        texts = [{"input_ids": ids, "labels": ids} for ids in some_ids(12)]
        options = transformers.TrainingArguments("out", max_steps=5, per_device_train_batch_size=2, report_to=[], use_cpu=True,
                                                 save_steps=3, disable_tqdm=True)
        transformers.Trainer(model, options, train_dataset=texts, callbacks=[monitor]).train()
        self.assertEqual([row["step"] for row in monitor.history], [2, 4])
        self.assertEqual(len(pathlib.Path("log.jsonl").read_text().splitlines()), 2)
        self.assertNotEqual(monitor.history[0]["layer.1.relative"], monitor.history[1]["layer.1.relative"])  # it learns meanwhile


@needs("torch", "transformers", "tensorboard")
class TensorBoard(InADirectory):
    def test_a_plain_loop_writes_what_the_monitor_tells(self):
        import torch
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from torch.utils.tensorboard import SummaryWriter

        model = small_gpt2()
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
        with SummaryWriter("board") as writer:
            monitor = normscope.Monitor(model, every=2, sample={"input_ids": some_ids()}, writer=writer)
            for step in range(5):
                loss = model(input_ids=some_ids(), labels=some_ids()).loss
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                monitor(step)
        events = EventAccumulator("board")
        events.Reload()
        for measure in ("before", "model", "head", "relative", "effective_rank", "along_ones"):
            told = events.Scalars(f"normscope/layer.1.{measure}")
            self.assertEqual([each.step for each in told], [0, 2, 4])
            np.testing.assert_allclose([each.value for each in told], [row[f"layer.1.{measure}"] for row in monitor.history], rtol=1e-6)


@needs("torch", "transformers", "lightning")
class Lightning(InADirectory):
    def test_a_monitor_is_a_callback(self):
        import lightning
        import torch

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.inner = small_gpt2()

            def training_step(self, batch, index):
                return self.inner(input_ids=batch, labels=batch).loss

            def configure_optimizers(self):
                return torch.optim.AdamW(self.parameters(), lr=1e-2)

        module = Module()
        monitor = normscope.Monitor(module.inner, every=2, sample={"input_ids": some_ids()}, out="watched")
        trainer = lightning.Trainer(max_steps=5, callbacks=[monitor], logger=False, enable_progress_bar=False, enable_model_summary=False,
                                    accelerator="cpu", default_root_dir="out")
        trainer.fit(module, torch.utils.data.DataLoader(list(some_ids(12)), batch_size=2))
        self.assertEqual([row["step"] for row in monitor.history], [2, 4])
        self.assertTrue(module.inner.training)
        trainer.save_checkpoint("kept.ckpt")
        self.assertTrue(pathlib.Path("kept.ckpt").exists())
        lines = [json.loads(line) for line in pathlib.Path("watched/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([(line["step"], line["layer"]) for line in lines], [(step, layer) for step in (2, 4) for layer in ("layer 0", "layer 1")])


@needs("torch", "transformers", "transformer_lens")
class TransformerLens(InADirectory):
    def check(self, model, ids):
        """What is seen is what the library itself caches, by its own names; verdicts are those of these keys."""
        import torch

        with torch.no_grad(), normscope.watch(model) as trace:
            model(ids)
        _, cache = model.run_with_cache(ids)
        self.assertTrue(trace.causal)
        result = trace.scan(mask="full")  # of all keys, as decide_keys is given them
        self.assertEqual(len(result.windows[0].layers), 2)
        for layer in (0, 1):
            for name in ("attn.hook_k", "attn.hook_q", "hook_resid_pre"):
                np.testing.assert_allclose(trace[f"blocks.{layer}.{name}"], cache[f"blocks.{layer}.{name}"][0].numpy(), rtol=1e-6, atol=1e-7)
            keys = cache[f"blocks.{layer}.attn.hook_k"][0].numpy()
            for head in (0, 1):
                decided = normscope.decide_keys(np.ascontiguousarray(keys[:, head]), certificates=False).verdict
                self.assertEqual(result.windows[0].layers[layer].heads[head].keys.verdicts, "".join(word[0] for word in decided))
        return trace.scan()

    def small(self):
        return dict(n_layers=2, d_model=16, n_ctx=32, d_head=8, n_heads=2, d_vocab=40, act_fn="gelu", normalization_type="LN", seed=1)

    def saved(self, name):
        """A random model of transformers in a directory of its name."""
        import record_live
        import transformers

        kind, config = record_live.MODELS[name]
        model = (transformers.BertForMaskedLM if name == "bert" else kind)(config).eval()
        model.save_pretrained(name)
        return model

    def test_hooked_transformers_of_releases_before_4(self):
        if int(version("transformer_lens").split(".")[0]) >= 4:
            self.skipTest("TransformerLens has none from release 4 on")
        from transformer_lens import HookedTransformer, HookedTransformerConfig

        self.check(HookedTransformer(HookedTransformerConfig(**self.small())), some_ids())

    def test_bridges(self):
        if int(version("transformer_lens").split(".")[0]) < 3:
            self.skipTest("TransformerLens has bridges from release 3 on")
        import record_live
        import torch
        from transformer_lens.model_bridge import TransformerBridge

        if hasattr(TransformerBridge, "boot_native"):
            self.check(TransformerBridge.boot_native(self.small()), some_ids())
        self.check(TransformerBridge.boot_transformers("gpt2", hf_model=self.saved("gpt2")), some_ids())
        for name in ("gpt2", "bert", "qwen2"):
            with self.subTest(name), torch.no_grad():
                bridge = TransformerBridge.boot_transformers(name, hf_model=self.saved(name))
                with normscope.watch(bridge) as trace:
                    bridge(some_ids())
                kept = normscope.scan(name, ids=some_ids()[0].tolist(), space=["before", "model", "head"])
                self.assertEqual(record_live.letters(trace.scan()), record_live.letters(kept))


if __name__ == "__main__":
    unittest.main()
