"""Records what `watch` sees in tiny random models of real PyTorch and transformers, beside their directories:

    PYTHONPATH=build/python python3 tests/python/record_live.py [FAMILY…]

Needs torch and transformers (recorded with 2.15 and 5.23), and nothing else does: live_test.py holds `scan` of the directories against what was
recorded. Fails if the two differ here.
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers as tf

import normscope

HERE = pathlib.Path(__file__).resolve().parent / "live"
SMALL = dict(vocab_size=40, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, max_position_embeddings=32)
T5 = dict(vocab_size=40, d_model=8, d_kv=4, d_ff=16, num_layers=2, num_heads=2, relative_attention_num_buckets=8, relative_attention_max_distance=12)
MODELS = {
    "bert": (tf.BertModel, tf.BertConfig(**SMALL)),
    "roberta": (tf.RobertaModel, tf.RobertaConfig(**SMALL, pad_token_id=1)),
    "distilbert": (tf.DistilBertModel, tf.DistilBertConfig(vocab_size=40, dim=8, n_layers=2, n_heads=2, hidden_dim=16, max_position_embeddings=32)),
    "albert": (tf.AlbertModel, tf.AlbertConfig(**SMALL, embedding_size=4)),
    "gpt2": (tf.GPT2LMHeadModel, tf.GPT2Config(vocab_size=40, n_embd=8, n_layer=2, n_head=2, n_positions=32)),
    "llama": (tf.LlamaForCausalLM, tf.LlamaConfig(**SMALL, num_key_value_heads=1)),
    "mistral": (tf.MistralForCausalLM, tf.MistralConfig(**SMALL, num_key_value_heads=1, sliding_window=6)),
    "qwen2": (tf.Qwen2ForCausalLM, tf.Qwen2Config(**SMALL, num_key_value_heads=2)),
    "t5": (tf.T5EncoderModel, tf.T5Config(**T5)),
    "mt5": (tf.MT5EncoderModel, tf.MT5Config(**T5)),
    "umt5": (tf.UMT5EncoderModel, tf.UMT5Config(**T5)),
}


def letters(result):
    """What was decided: layer and space or head → a letter per token."""
    found = {}
    for layer in result.windows[0].layers:
        for space in ("before", "model"):
            if getattr(layer, space) is not None:
                found[f"{layer.layer}.{space}"] = getattr(layer, space).verdicts
        for head in layer.heads:
            found[f"{layer.layer}.head.{head.head}"] = head.keys.verdicts
    return found


def seen_and_kept(kind, config, folder, seed=0):
    """The ids of a text, what `watch` saw of it in a random model, and what `scan` of the model's directory finds. The same whichever way
    attention is computed."""
    torch.manual_seed(seed)
    ids = torch.randint(2, 39, (1, 16))
    model = kind(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.4)
    seen = []
    for implementation in ("eager", "sdpa"):
        model.set_attn_implementation(implementation)
        with torch.no_grad(), normscope.watch(model) as trace:
            model(input_ids=ids)
        seen.append(letters(trace.scan()))
    assert seen[0] == seen[1], (kind, seen)
    model.save_pretrained(folder)
    kept = letters(normscope.scan(folder, ids=ids[0].tolist(), space=["before", "model", "head"]))
    # What a live scan cannot see is a norm that the model has not in front of this layer.
    return ids[0].tolist(), seen[0], {place: kept[place] for place in seen[0]}


def main(names):
    for name in names or MODELS:
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        ids, live, kept = seen_and_kept(*MODELS[name], folder, seed=sum(name.encode()))
        assert live == kept, (name, live, kept)
        for extra in folder.iterdir():
            if extra.name not in ("config.json", "model.safetensors"):
                extra.unlink()
        (folder / "recorded.json").write_text(json.dumps({"ids": ids, "live": live}) + "\n", encoding="utf-8")
        print(name, len(live), "sets")


if __name__ == "__main__":
    main(sys.argv[1:])
