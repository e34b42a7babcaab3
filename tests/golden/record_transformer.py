"""record_transformer.py [OUTPUT.json]

Trains GPT-2 and BERT of Hugging Face transformers, without dropout, and records what our trainer must reproduce:
transformer.json beside this file unless another output is named. Prints, per case, the first and last loss.

Needs PyTorch 1.13 or newer and transformers 4.44. Run from the top of the source tree, about 3 minutes on one core:

    python3 tests/golden/record_transformer.py

Parameters and tokens are not in the file: both sides draw them from the same formula, `draw` below. In the file:

  losses      of the batch of each step, before that step
  gradients   of the first batch's loss, by our names, row by row (matrices out × in); of "word", rows["word"] only
  word_dot    the sum of all gradients of "word", each times draw(9000, its place): it depends on every one
"""
import json
import pathlib
import sys

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

STEPS = 50
LEARNING_RATE = 3e-3  # where a case does not name its own
CASES = [
    {"name": "gpt2 as published", "family": "gpt2", "norm": "layernorm", "vocabulary": 50257, "positions": 1024,
     "d": 8, "layers": 4, "heads": 4, "feed_forward": 32, "texts": 2, "length": 160, "weight_decay": 0.0},
    {"name": "gpt2 without scaling", "family": "gpt2", "norm": "center", "vocabulary": 50257, "positions": 1024,
     "d": 8, "layers": 4, "heads": 4, "feed_forward": 32, "texts": 2, "length": 96, "weight_decay": 0.0},
    {"name": "gpt2, small vocabulary, weight decay", "family": "gpt2", "norm": "layernorm", "vocabulary": 321,
     "positions": 64, "d": 12, "layers": 2, "heads": 3, "feed_forward": 40, "texts": 4, "length": 45,
     "weight_decay": 0.1},
    {"name": "bert without norms as published", "family": "bert", "norm": "none", "vocabulary": 28996,
     "positions": 512, "d": 8, "layers": 4, "heads": 4, "feed_forward": 3072, "texts": 8, "length": 50, "classes": 2,
     "weight_decay": 0.0, "learning_rate": 3e-4},
    {"name": "bert with norms", "family": "bert", "norm": "layernorm", "vocabulary": 200, "positions": 64, "d": 12,
     "layers": 2, "heads": 3, "feed_forward": 30, "texts": 6, "length": 40, "classes": 3, "weight_decay": 0.0},
]


def draw(slot, count):
    """Numbers in [-1, 1) that depend on a slot and their place in it (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=np.uint64) + np.uint64(slot << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2**23 - 1


class Center(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(-1, keepdim=True)


def gpt2(case):
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=case["vocabulary"], n_positions=case["positions"], n_embd=case["d"], n_layer=case["layers"],
        n_head=case["heads"], n_inner=case["feed_forward"], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    names = [("word", "transformer.wte.weight", False), ("position", "transformer.wpe.weight", False)]
    for l, block in enumerate(model.transformer.h):
        # Frozen as published: gain and bias of ln_1, and the bias of queries, keys and values.
        if case["norm"] == "center":
            block.ln_1 = Center()
        else:
            block.ln_1.weight.requires_grad = block.ln_1.bias.requires_grad = False
        block.attn.c_attn.bias.requires_grad = False
        ours, theirs = f"layers.{l}.", f"transformer.h.{l}."
        names += [(ours + "attention.qkv.weight", theirs + "attn.c_attn.weight", True),
                  (ours + "attention.out.weight", theirs + "attn.c_proj.weight", True),
                  (ours + "attention.out.bias", theirs + "attn.c_proj.bias", False),
                  (ours + "norm2.gain", theirs + "ln_2.weight", False),
                  (ours + "norm2.bias", theirs + "ln_2.bias", False),
                  (ours + "up.weight", theirs + "mlp.c_fc.weight", True),
                  (ours + "up.bias", theirs + "mlp.c_fc.bias", False),
                  (ours + "down.weight", theirs + "mlp.c_proj.weight", True),
                  (ours + "down.bias", theirs + "mlp.c_proj.bias", False)]
    names += [("final_norm.gain", "transformer.ln_f.weight", False),
              ("final_norm.bias", "transformer.ln_f.bias", False)]
    return model, names


def bert(case):
    model = BertForSequenceClassification(BertConfig(
        vocab_size=case["vocabulary"], max_position_embeddings=case["positions"], hidden_size=case["d"],
        num_hidden_layers=case["layers"], num_attention_heads=case["heads"], intermediate_size=case["feed_forward"],
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=case["classes"]))
    normed = case["norm"] == "layernorm"
    names = [("word", "bert.embeddings.word_embeddings.weight", False),
             ("position", "bert.embeddings.position_embeddings.weight", False),
             ("type", "bert.embeddings.token_type_embeddings.weight", False)]

    def norm(ours, theirs, holder):
        if normed:
            names.extend([(ours + ".gain", theirs + ".weight", False), (ours + ".bias", theirs + ".bias", False)])
        else:
            holder.LayerNorm = torch.nn.Identity()

    norm("embedding_norm", "bert.embeddings.LayerNorm", model.bert.embeddings)
    for l, layer in enumerate(model.bert.encoder.layer):
        ours, theirs = f"layers.{l}.", f"bert.encoder.layer.{l}."
        norm(ours + "norm1", theirs + "attention.output.LayerNorm", layer.attention.output)
        qkv = [theirs + f"attention.self.{part}" for part in ("query", "key", "value")]
        names.append((ours + "attention.qkv.weight", [name + ".weight" for name in qkv], False))
        names.append((ours + "attention.qkv.bias", [name + ".bias" for name in qkv], False))
        names += [(ours + "attention.out.weight", theirs + "attention.output.dense.weight", False),
                  (ours + "attention.out.bias", theirs + "attention.output.dense.bias", False)]
        norm(ours + "norm2", theirs + "output.LayerNorm", layer.output)
        names += [(ours + "up.weight", theirs + "intermediate.dense.weight", False),
                  (ours + "up.bias", theirs + "intermediate.dense.bias", False),
                  (ours + "down.weight", theirs + "output.dense.weight", False),
                  (ours + "down.bias", theirs + "output.dense.bias", False)]
    names += [("pooler.weight", "bert.pooler.dense.weight", False), ("pooler.bias", "bert.pooler.dense.bias", False),
              ("classifier.weight", "classifier.weight", False), ("classifier.bias", "classifier.bias", False)]
    return model, names


def record(case):
    case = {"learning_rate": LEARNING_RATE, **case}
    torch.manual_seed(0)
    model, names = (gpt2 if case["family"] == "gpt2" else bert)(case)
    parameters = dict(model.named_parameters())
    parts = lambda theirs: [parameters[name] for name in (theirs if isinstance(theirs, list) else [theirs])]
    with torch.no_grad():
        for slot, (ours, theirs, transposed) in enumerate(names):
            count = sum(part.numel() for part in parts(theirs))
            values = torch.tensor(0.1 * draw(slot, count) + (1 if ours.endswith(".gain") else 0), dtype=torch.float32)
            for part in parts(theirs):
                own, values = values[:part.numel()], values[part.numel():]
                part.copy_(own.view(part.shape[::-1]).t() if transposed else own.view(part.shape))
        for l in range(case["layers"]):
            if case["family"] == "gpt2":
                parameters[f"transformer.h.{l}.attn.c_attn.bias"].zero_()
    trained = [part for _, theirs, _ in names for part in parts(theirs)]
    optimizer = torch.optim.AdamW(trained, lr=case["learning_rate"], weight_decay=case["weight_decay"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / STEPS)
    texts, length = case["texts"], case["length"]
    losses, recorded = [], {}
    for step in range(STEPS):
        # Three batches in turn, of tokens of which some are frequent: there is something to learn.
        tokens = (((draw(5000 + step % 3, texts * length) + 1) / 2) ** 4 * case["vocabulary"]).astype(np.int64)
        # BERT's word 0 is padding, which transformers does not train.
        tokens = torch.tensor(np.maximum(tokens, 1)).view(texts, length)
        if case["family"] == "gpt2":
            # The last token of a text has no target.
            loss = model(tokens, labels=tokens).loss
        else:
            lengths = torch.tensor([1 + (7 * text + 3 * (step % 3)) % length for text in range(texts)])
            mask = (torch.arange(length)[None, :] < lengths[:, None]).long()
            labels = torch.tensor([(text + step % 3) % case["classes"] for text in range(texts)])
            loss = model(tokens, attention_mask=mask, labels=labels).loss
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradients = {}
            for ours, theirs, transposed in names:
                flat = torch.cat([(part.grad.t() if transposed else part.grad).reshape(-1) for part in parts(theirs)])
                gradients[ours] = flat.numpy().astype(np.float64)
            word = gradients["word"].reshape(case["vocabulary"], case["d"])
            rows = sorted({int(t) for t in tokens.reshape(-1)[:12]} | {0, 1, case["vocabulary"] - 1})
            recorded = {"word_dot": float(np.dot(gradients["word"], draw(9000, gradients["word"].size))),
                        "rows": {str(row): [float(f"{v:.7g}") for v in word[row]] for row in rows}}
            # Wide layers: a sample of them.
            recorded["gradients"] = {
                name: [float(f"{v:.7g}") for v in (values if values.size < 500 else values[:: values.size // 250])]
                for name, values in gradients.items() if name != "word"}
        optimizer.step()
        schedule.step()
    print(f"{case['name']}: {losses[0]:.6f} to {losses[-1]:.6f}")
    return {**case, **recorded, "losses": losses}


def main():
    output = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("transformer.json")
    with open(output, "w") as file:
        json.dump({"cases": [record(case) for case in CASES]}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
