"""record_models.py [--minilm DIRECTORY] [--stories FILE] [DIRECTORY]

Makes a tiny model of every family with random weights, passes two texts through it in Hugging Face transformers, and
records what our forward pass must reproduce: models/NAME/config.json and model.safetensors as save_pretrained writes them
(two models also in shards), and models/values.safetensors, in the directory of this file unless another is named. With
--minilm and --stories (what `normscope data path minilm` and `normscope data path stories15m` tell) the real weights too:
models/real.safetensors. Prints how far float32 is from float64, and refuses to record where that is above 1e-5 of the
largest number: two correct programs could not be told from two different ones.

Needs PyTorch 1.13 (Debian: python3-torch) and, of the Python package index, transformers 4.44: later ones want a newer
PyTorch, and names of weights and the eager attention are those of this release.

    python3 -m pip install --target SITE 'transformers==4.44.2'
    PYTHONPATH=SITE /usr/bin/python3 tests/golden/record_models.py

values.safetensors, for each model NAME and each text T (0: 7 tokens, 1: 12 tokens)

  NAME.T.ids     tokens, int32
  NAME.T.hidden  (layers + 1) × tokens × d, float32: [0] what enters the first layer, [l] what leaves layer l
  NAME.T.final   tokens × d: after the final norm, where there is one
  NAME.T.logits  tokens × vocabulary, where there is a head

real.safetensors, for minilm and stories15m

  NAME.ids, NAME.columns  int32; the columns that are recorded
  NAME.hidden    (layers + 1) × tokens × columns; NAME.norms: (layers + 1) × tokens, ‖token‖ over all columns
  NAME.final     tokens × columns
  minilm.cosines 3: of the mean-pooled first sentence with each of the others
  stories15m.continuation: the 40 likeliest next tokens, one after the other
"""
import argparse
import pathlib
import struct
import tempfile

import numpy
import safetensors.numpy
import safetensors.torch
import tokenizers
import torch
import transformers

MOST_ROUNDING = 1e-5
LEAST_GAP = 1e-3  # of the two best logits of a greedy step: rounding must not decide it
VOCABULARY, WIDTH, LAYERS, HEADS, FEED_FORWARD = 50, 16, 3, 4, 24
SHARDED = {"bert": "bert-sharded", "llama": "llama-sharded"}


# --- the tiny models ---


def bert_like(**more):
    return dict(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                intermediate_size=FEED_FORWARD, max_position_embeddings=16, **more)


def llama_like(**more):
    return dict(dict(bert_like(), num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, use_cache=False,
                     pad_token_id=None, bos_token_id=1, eos_token_id=2), **more)


def t5_like(**more):
    return dict(vocab_size=VOCABULARY, d_model=WIDTH, num_layers=LAYERS, num_heads=HEADS, d_ff=FEED_FORWARD,
                relative_attention_num_buckets=8, relative_attention_max_distance=10, **more)


def models():
    """(name, model): shapes are small, and odd where families allow it."""
    t = transformers
    yield "bert", t.BertForMaskedLM(t.BertConfig(**bert_like()))
    yield "roberta", t.RobertaForMaskedLM(t.RobertaConfig(**dict(bert_like(type_vocab_size=1, layer_norm_eps=1e-5),
                                                                 max_position_embeddings=18)))
    yield "distilbert", t.DistilBertForMaskedLM(t.DistilBertConfig(
        vocab_size=VOCABULARY, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=FEED_FORWARD,
        max_position_embeddings=16))
    yield "albert", t.AlbertForMaskedLM(t.AlbertConfig(embedding_size=8, **bert_like()))
    yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(
        vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_inner=FEED_FORWARD, n_positions=16,
        use_cache=False, bos_token_id=1, eos_token_id=2))
    yield "llama", t.LlamaForCausalLM(t.LlamaConfig(**llama_like()))
    yield "llama-bias", t.LlamaForCausalLM(t.LlamaConfig(**llama_like(attention_bias=True, mlp_bias=True, rope_theta=5e5)))
    yield "llama-linear", t.LlamaForCausalLM(t.LlamaConfig(**llama_like(
        rope_scaling={"type": "linear", "factor": 2.5})))
    # Heads of 8: of the four wavelengths 6, 63, 628, 6283 one is kept, one blended, two are stretched.
    yield "llama3", t.LlamaForCausalLM(t.LlamaConfig(**llama_like(
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 64})))
    yield "mistral", t.MistralForCausalLM(t.MistralConfig(**llama_like(sliding_window=4, head_dim=6)))
    yield "qwen2", t.Qwen2ForCausalLM(t.Qwen2Config(**llama_like(tie_word_embeddings=True)))
    yield "t5", t.T5EncoderModel(t.T5Config(d_kv=4, feed_forward_proj="relu", **t5_like()))
    yield "t5-gated", t.T5EncoderModel(t.T5Config(d_kv=6, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
                                                  **t5_like()))


def randomise(model, generator):
    """Weights of noticeable size: no gain is 1, no bias is 0, attention is far from uniform."""
    norms = {id(p) for m in model.modules() if "Norm" in type(m).__name__ for p in [getattr(m, "weight", None)]}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if id(parameter) in norms:
                parameter.copy_(1 + 0.2 * noise)
            else:
                parameter.copy_((0.1 if name.endswith("bias") else 0.3) * noise)


# --- what is recorded of a pass ---


def layers_of(model):
    """The modules whose outputs are those of the layers; ALBERT's one is called once for each layer."""
    for path in ["encoder.layer", "transformer.layer", "encoder.albert_layer_groups", "h", "layers", "encoder.block"]:
        found = model.base_model
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return list(found)
    raise SystemExit(f"no layers in {type(model).__name__}")


def run(model, ids):
    """{"hidden", "final", "logits"} as tensors."""
    outputs = []
    hooks = [layer.register_forward_hook(lambda _m, _i, output: outputs.append(output[0][0]))
             for layer in layers_of(model)]
    with torch.no_grad():
        result = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    states = result.hidden_states
    assert len(outputs) == len(states) - 1 == model.config.num_hidden_layers
    for ours, theirs in zip(outputs[:-1], states[1:-1]):
        assert torch.equal(ours, theirs[0])
    recorded = {"hidden": torch.stack([states[0][0], *outputs]), "final": states[-1][0]}
    if getattr(result, "logits", None) is not None:
        recorded["logits"] = result.logits[0]
    return recorded


def checked(name, model, ids):
    """The pass in float32, after it was held against the one in float64."""
    single = run(model.float(), ids)
    double = run(model.double(), ids)
    model.float()
    worst = max(float((single[key].double() - double[key]).abs().max() / double[key].abs().max()) for key in single)
    print(f"{name:13} {len(ids):3} tokens: float32 within {worst:.1e} of float64")
    if not worst <= MOST_ROUNDING:
        raise SystemExit(f"{name}: float32 is too far from float64 to be compared with")
    return single


def array(tensor):
    return numpy.ascontiguousarray(tensor.detach().numpy())


# --- real weights ---


def minilm(directory):
    config = transformers.BertConfig.from_json_file(directory / "config.json")
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    weights = {name: value.float() for name, value in
               safetensors.torch.load_file(directory / "model.fp16.safetensors").items() if not name.startswith("pooler.")}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if any("position_ids" not in name for name in [*missing, *unexpected]):
        raise SystemExit(f"minilm: missing {missing}, unexpected {unexpected}")
    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def pooled(sentence):
        state = run(model, tokenizer.encode(sentence).ids)["final"].double().mean(0)
        return state / state.norm()

    first, *others = map(pooled, ["That is a happy person", "That is a very happy person", "That is a happy dog",
                                  "Today is a sunny day"])
    cosines = torch.stack([first @ other for other in others])
    print("minilm cosines:", [round(float(c), 6) for c in cosines])
    ids = tokenizer.encode("Some keys lie between the others, and no query of attention can select them.").ids
    return {**subset("minilm", model, ids, 12), "minilm.cosines": array(cosines.float())}


def stories15m(path):
    """llama2.c's layout: seven integers, then matrices of all layers, kind by kind, out × in."""
    data = path.read_bytes()
    d, f, layers, heads, key_heads, vocabulary, positions = struct.unpack("<7i", data[:28])
    offset = 28

    def take(*shape):
        nonlocal offset
        count = int(numpy.prod(shape))
        values = numpy.frombuffer(data, "<f4", count, offset).reshape(shape)
        offset += 4 * count
        return torch.tensor(values)

    def halves(weight, count):
        """Pairs are neighbours in llama2.c, (2m, 2m + 1); here (m, m + half a head)."""
        return weight.view(count, -1, 2, d).transpose(1, 2).reshape(-1, d)

    width = d // heads * key_heads
    state = {"model.embed_tokens.weight": take(vocabulary, d)}
    parts = [("input_layernorm", (d,)), ("self_attn.q_proj", (d, d)), ("self_attn.k_proj", (width, d)),
             ("self_attn.v_proj", (width, d)), ("self_attn.o_proj", (d, d)), ("post_attention_layernorm", (d,)),
             ("mlp.gate_proj", (f, d)), ("mlp.down_proj", (d, f)), ("mlp.up_proj", (f, d))]
    for part, shape in parts:
        for layer, weight in enumerate(take(layers, *shape)):
            if part in ("self_attn.q_proj", "self_attn.k_proj"):
                weight = halves(weight, heads if part == "self_attn.q_proj" else key_heads)
            state[f"model.layers.{layer}.{part}.weight"] = weight
    state["model.norm.weight"] = take(d)
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=d, intermediate_size=f, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=key_heads, max_position_embeddings=positions, rms_norm_eps=1e-5, use_cache=False)).eval()
    model.load_state_dict(state)

    ids = [1, 9038, 2501, 263, 931]  # <s> "Once upon a time"
    continued, least_gap = list(ids), float("inf")
    for _ in range(40):
        best = run(model, continued)["logits"][-1].topk(2)
        least_gap = min(least_gap, float(best.values[0] - best.values[1]))
        continued.append(int(best.indices[0]))
    print(f"stories15m: least gap of two logits {least_gap:.2g}; {continued[len(ids):]}")
    if least_gap < LEAST_GAP:
        raise SystemExit("stories15m: rounding could change the continuation")
    return {**subset("stories15m", model, ids, 9),
            "stories15m.continuation": numpy.array(continued[len(ids):], "int32")}


def subset(name, model, ids, step):
    states = checked(name, model, ids)
    columns = numpy.arange(0, states["final"].shape[1], step, dtype="int32")
    return {f"{name}.ids": numpy.array(ids, "int32"), f"{name}.columns": columns,
            f"{name}.hidden": array(states["hidden"])[:, :, columns].copy(),
            f"{name}.norms": array(states["hidden"].double().norm(dim=-1).float()),
            f"{name}.final": array(states["final"])[:, columns].copy()}


# --- files ---


def keep(model, target, **options):
    """config.json and weights as save_pretrained writes them, without the files for generation."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch, safe_serialization=True, **options)
        for path in pathlib.Path(scratch).iterdir():
            if path.name == "config.json" or path.name.startswith("model"):
                (target / path.name).write_bytes(path.read_bytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minilm", type=pathlib.Path)
    parser.add_argument("--stories", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path, nargs="?", default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    target = arguments.directory / "models"
    generator = torch.Generator().manual_seed(17)
    values = {}
    for name, model in models():
        model.eval()
        assert model.config._attn_implementation == "eager"  # PyTorch 1.13 has no other
        randomise(model, generator)
        keep(model, target / name)
        if name in SHARDED:
            half = sum(p.numel() for p in model.parameters()) * 4 * 6 // 10
            keep(model, target / SHARDED[name], max_shard_size=half)
            assert len(list((target / SHARDED[name]).glob("*.safetensors"))) == 2
        for text, length in enumerate([7, 12]):
            # Ids from 5 on: none of them is padding or another special token in any family.
            ids = torch.randint(5, VOCABULARY, (length,), generator=generator).tolist()
            recorded = checked(name, model, ids)
            values[f"{name}.{text}.ids"] = numpy.array(ids, "int32")
            values |= {f"{name}.{text}.{key}": array(value) for key, value in recorded.items()}
    safetensors.numpy.save_file(values, target / "values.safetensors")

    real = {}
    if arguments.minilm:
        real |= minilm(arguments.minilm)
    if arguments.stories:
        real |= stories15m(arguments.stories)
    if real:
        safetensors.numpy.save_file(real, target / "real.safetensors")


if __name__ == "__main__":
    main()
