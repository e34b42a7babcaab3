"""Which tokens of your text can the layers and heads of a trained model select?

    python examples/model_on_your_text.py MODEL TEXT

MODEL is a Hugging Face directory, an id in its local cache, or what `normscope data get` fetched.
"""
from __future__ import annotations

import sys

import normscope


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit(__doc__)
    model, text = arguments
    result = normscope.scan(model, text=text, window=64, samples=2)
    print(result.verdict)
    for name, space in result.spaces.items():
        print(f"{name:>10}: {space.unselectable_in_some} of {space.tokens} tokens cannot be selected in some of {space.sets} sets")
    rows = result.table(library="none")
    hardest = max(rows, key=lambda row: row.get("keys.unselectable") or 0)
    print(f"the head with most unselectable keys: layer {hardest['layer']}, head {hardest['head']}, {hardest['keys.unselectable']} tokens")
    result.report("scan.html")
    print("scan.html marks them in the text")


if __name__ == "__main__":
    main(sys.argv[1:])
