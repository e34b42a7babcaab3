"""An example of each question, run by the tests in a directory that has a trained model, `model`, and a text, story.txt."""

EXAMPLES = {
    "keys": """\
>>> import normscope
>>> square = [[1., 1], [1, -1], [-1, 1], [-1, -1], [0, 0]]
>>> result = normscope.keys(square)
>>> [key.verdict for key in result.sets[0].keys]
['selectable', 'selectable', 'selectable', 'selectable', 'unselectable']
>>> normscope.keys(square, norm="unit").sets[0].counts.unselectable
1""",
    "scan": """\
>>> import normscope
>>> result = normscope.scan("model", text="story.txt", layers=[0], window=16, samples=1)
>>> result.family
'gpt2'
>>> len(result.windows[0].tokens)
16""",
    "vocab": """\
>>> import normscope
>>> result = normscope.vocab([[1., 0], [-1, 0], [0, 0]], bias=[0, 0, -1])
>>> (result.tokens, result.counts.unselectable)
(3, 1)""",
    "ablate": """\
>>> import normscope
>>> result = normscope.ablate("model", text="story.txt", norm=["none"], window=16, prompts=0)
>>> result.command
'ablate'""",
    "heatmap": """\
>>> import normscope
>>> result = normscope.heatmap(n="4:8:4", d=3, draws=10, norm="layernorm")
>>> [cell.n for cell in result.cells]
[4, 8]""",
    "mask": """\
>>> import normscope
>>> normscope.mask("window:1", 128).masks[0].radius
64
>>> normscope.mask("causal", 3)["allowed"].astype(int).tolist()
[[1, 0, 0], [1, 1, 0], [1, 1, 1]]""",
    "collapse": """\
>>> import normscope
>>> result = normscope.collapse(variant="san", mask=["full", "causal"], tokens=8, dim=4, layers=6)
>>> [curve.mask for curve in result.curves]
['full', 'causal']
>>> result.curves[0].measures["mu"].mean.shape
(7,)""",
    "equilibria": """\
>>> import normscope
>>> result = normscope.equilibria(w=2, starts=100, steps=100, angles=36)
>>> result.starts
100""",
    "train.majority": """\
>>> import normscope
>>> result = normscope.train.majority(norm="layernorm", steps=2, samples=200, classes=3, length=4, margin=1)
>>> result.runs[0].step
2""",
    "train.lm": """\
>>> import normscope
>>> result = normscope.train.lm(corpus="grammar", tokenizer="bytes", tokens=5000, context=16, batch=2, steps=2)
>>> result.runs[0].norm
'layernorm'""",
    "train.sentiment": """\
>>> import normscope
>>> with open("reviews.tsv", "w") as file:
...     _ = file.write("sentence\\tlabel\\n" + "".join(f"good {i}\\t1\\nbad {i}\\t0\\n" for i in range(20)))
>>> result = normscope.train.sentiment(data="reviews.tsv", tokenizer="words", steps=2, batch=2, test_share=0.2)
>>> result.data.classes
['0', '1']""",
    "paper": """\
>>> import normscope
>>> result = normscope.paper(only="wu5")
>>> {"where", "verdict"} <= set(result.table(library="none")[0])
True""",
}
