"""Places in a model, by our names and by those of TransformerLens."""
from __future__ import annotations

import re
from typing import Any

_HOOKS = {
    "hook_resid_pre": "attn.norm.in", "ln1.hook_normalized": "attn.norm.out", "attn.hook_q": "attn.query",
    "attn.hook_k": "attn.key", "attn.hook_rot_q": "attn.query", "attn.hook_rot_k": "attn.key", "attn.hook_v": "attn.value",
    "hook_attn_out": "attn.out", "hook_resid_post": "out",
}
_TURNED = {"attn.hook_q": "attn.hook_rot_q", "attn.hook_k": "attn.hook_rot_k"}
_HOOK = re.compile(r"blocks\.([0-9]+)\.(.+)")
_HEADS = {"attn.query": "heads", "attn.key": "key_heads", "attn.value": "key_heads"}


def named_points(asked: Any, points: list[str], rotated: bool = False) -> dict[str, list[str]]:
    """asked → its point; a name without a layer means those of all layers. rotated: whether queries and keys are turned before
    they are scored, which points hold and TransformerLens's hook_q and hook_k do not."""
    names = {}
    for each in [asked] if isinstance(asked, str) else asked:
        hook = _HOOK.fullmatch(each)
        if each == "all":
            names.update({name: [name] for name in points})
            continue
        if hook and rotated and hook[2] in _TURNED:
            raise ValueError(f"'{each}' is before the rotation; queries and keys are told as they are scored: "
                             f"'blocks.{hook[1]}.{_TURNED[hook[2]]}'")
        if hook and hook[2] in _HOOKS:
            found = [f"layer.{int(hook[1])}.{_HOOKS[hook[2]]}"]
        elif each in points:
            found = [each]
        else:
            found = [name for name in points if name.split(".", 2)[2] == each]
        if not found or not set(found) <= set(points):
            raise ValueError(f"there is no point '{each}'; points are such as '{points[0] if points else 'layer.0.attn.key'}', "
                             f"'attn.key' (of every layer), TransformerLens's 'blocks.0.attn.hook_k', or 'all'")
        names.update({name: [name] for name in found} if len(found) > 1 else {each: found})
    return names


def by_heads(asked: str, place: str, values: Any, counts: Any) -> Any:
    """TransformerLens's names have an axis for the heads. place: the point without its layer; counts: heads and key_heads."""
    heads = _HEADS.get(place)
    return values.reshape(len(values), counts[heads], -1) if asked.startswith("blocks.") and heads else values
