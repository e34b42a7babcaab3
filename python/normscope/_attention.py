"""Where the attention of a live PyTorch model is seen: through the functions that transformers calls, in torch.nn, in older
releases, in modules that are named."""
from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Mapping
from typing import Any, Callable

import numpy as np

_FAR = -1e4  # scores below this mean: not seen
_NORMS_KEPT = 6
# What older releases of transformers call the maps to queries and keys; of GPT-2 one map makes both, and the values.
_MAPS = (("query", "key"), ("q_lin", "k_lin"), ("q_proj", "k_proj"), ("c_attn", "c_attn"))
_HEADS = ("num_attention_heads", "num_heads", "n_heads")
_KEY_HEADS = ("num_key_value_heads",)
# TransformerLens's points of queries and keys, the rotated ones first; and how it calls positions that are offsets of scores.
_LENS = ("blocks.{}.attn.hook_rot_", "blocks.{}.attn.hook_")
_LENS_OFFSETS = ("alibi", "relative_positional_bias")

_OFFSETS = ("this model adds offsets to its scores that are not of the distance alone, which a live scan does not know; "
            "save it and scan its directory")


def is_tensor(value: Any) -> bool:
    return hasattr(value, "detach") and hasattr(value, "shape")


def numbers(tensor: Any) -> Any:
    tensor = tensor.detach()
    if hasattr(tensor, "cpu"):
        tensor = tensor.cpu()
    return np.asarray(tensor.float() if hasattr(tensor, "float") else tensor, dtype=np.float32)


def first(args: Any, kwargs: Any, *names: str) -> Any:
    for name in names:
        if kwargs.get(name) is not None:
            return kwargs[name]
    return args[0] if args else None


def _attribute(module: Any, names: tuple[str, ...], otherwise: Any = None) -> Any:
    for holder in (module, getattr(module, "config", None)):
        for name in names:
            if isinstance(getattr(holder, name, None), int):
                return getattr(holder, name)
    return otherwise


def _same_memory(a: Any, b: Any) -> bool:
    if b is None or not hasattr(a, "data_ptr") or not hasattr(b, "data_ptr"):
        return False
    return bool(a.data_ptr() == b.data_ptr() and tuple(a.shape) == tuple(b.shape))


def by_distance(bias: Any) -> Any:
    """heads × (2n − 1), by j − i + n − 1, of what is added to the scores of one text, heads × n × n."""
    values = numbers(bias[0])
    if len(bias) != 1 or values.shape[1] != values.shape[2] or np.any(values < _FAR) or not np.array_equal(
            values[:, 1:, 1:], values[:, :-1, :-1], equal_nan=True):  # what is none is told by the scan
        raise ValueError(_OFFSETS)
    return np.concatenate([values[:, -1, :-1], values[:, 0]], axis=1)


def _attention_in(modules: dict[str, Any]) -> list[Any]:
    return [each for name, each in modules.items()
            if "attention" in type(each).__name__.lower() or name.split(".")[-1] in ("attn", "attention")]


def _is_bridge(module: Any) -> bool:
    return "_original_component" in dict(module.named_children()) if hasattr(module, "named_children") else False


class Attention:
    """Hooks on a model that show each layer of a pass: see(query, key, heads=…, key_heads=…, scale=…, norm_in=…, norm_out=…,
    offsets=…), tensors of batch × n × d or batch × heads × n × width."""

    def __init__(self, model: Any, see: Callable[..., None], names: dict[str, str | None], heads: int | None,
                 key_heads: int | None) -> None:
        self.model, self._see = model, see
        self._names, self._heads, self._key_heads = names, heads, key_heads
        self._hooks: list[Any] = []
        self._undo: list[Callable[[], Any]] = []
        self._inputs: dict[int, Any] = {}
        self._normed: list[tuple[Any, Any]] = []
        self._current: Any = None
        self._bias: tuple[Any, Any] = (None, None)
        self.slides: set[int] = set()  # of layers, how many tokens each sees; 0: all
        self.causal: bool | None = None

    @property
    def watching(self) -> bool:
        return bool(self._hooks)

    def sliding(self, longest: int) -> int:
        """How many tokens all layers see of texts of that length; 0: all."""
        found = {each if 0 < each < longest else 0 for each in self.slides}
        if len(found) > 1:
            raise ValueError("layers of this model see windows of different lengths, which a live scan does not know; "
                             f"give it texts of at most {min(each for each in found if each)} tokens")
        return found.pop() if found else 0

    def begin(self, before: Callable[..., None]) -> None:
        """before: called when a pass begins, as a hook is."""
        def forget(*given: Any) -> None:
            self._normed.clear()
            before(*given)

        self._hook(self.model, forget, before=True)
        modules = dict(self.model.named_modules())
        points = {**modules, **(getattr(self.model, "hook_dict", None) or {})}
        lens = next((pattern for pattern in _LENS if pattern.format(0) + "k" in points), None)
        if self._names["keys"]:
            self._follow_named(modules, self._names)
        elif lens:
            self._follow_lens(modules, points, lens)
        else:
            self._follow_found(modules)

    def end(self) -> None:
        for undo in reversed(self._undo):
            undo()
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._undo = [], []
        self._inputs.clear()
        self._normed.clear()
        self._current, self._bias = None, (None, None)

    def _hook(self, module: Any, call: Any, before: bool = False) -> None:
        add = module.register_forward_pre_hook if before else module.register_forward_hook
        self._hooks.append(add(call, with_kwargs=True))

    def _replace(self, module: Any, name: str, made: Any) -> None:
        original = getattr(module, name)
        setattr(module, name, made)
        self._undo.append(lambda: setattr(module, name, original))

    def _replace_item(self, interface: Any, name: str, made: Any) -> None:
        # transformers looks at what was set here before what was registered, so that nothing may stay.
        before = getattr(interface, "_local_mapping", interface).get(name)
        interface[name] = made
        self._undo.append(lambda: interface.__delitem__(name) if before is None else interface.__setitem__(name, before))

    # ---- norms

    def _end_norm(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        entered = first(args, kwargs, "hidden_states", "input")
        if is_tensor(entered) and is_tensor(output):
            self._normed.append((output, entered))
            del self._normed[:-_NORMS_KEPT]

    def _before_attention(self, module: Any, args: Any, kwargs: Any) -> None:
        entered = first(args, kwargs, "hidden_states", "query")
        self._current = module
        if is_tensor(entered):
            self._inputs[id(module)] = entered

    def _norm_of(self, entered: Any) -> tuple[Any, Any]:
        """What entered and left the norm whose output is this; None: no norm's."""
        for output, before in reversed(self._normed):
            if output is entered or _same_memory(output, entered):
                return before, output
        return None, None

    def _seen(self, module: Any, query: Any, key: Any, heads: int, key_heads: int, scale: float, offsets: Any = None) -> None:
        norm_in, norm_out = self._norm_of(self._inputs.get(id(module)))
        self._see(query, key, heads=heads, key_heads=key_heads, scale=scale, norm_in=norm_in, norm_out=norm_out, offsets=offsets)

    # ---- the attention of transformers, and of torch.nn

    def _follow_found(self, modules: dict[str, Any]) -> None:
        attention = _attention_in(modules)
        if len({bool(each.is_decoder) for each in attention if hasattr(each, "is_decoder")}) > 1:
            raise ValueError("this model has an encoder and a decoder: watch one of them, watch(model.get_encoder())")
        self._follow_norms(modules)
        multihead = [each for each in attention if hasattr(each, "in_proj_weight") and hasattr(each, "num_heads")]
        for each in multihead:
            self._hook(each, self._multihead, before=True)
        others = [each for each in attention if not hasattr(each, "in_proj_weight")]
        for each in others:
            self._hook(each, self._before_attention, before=True)
        if not (bool(multihead) | self._follow_interface(others)) and not self._follow_maps(others):
            raise ValueError("no attention was found that can be watched: give the names of its modules, "
                             "watch(model, keys='blocks.{}.attn.key', queries='blocks.{}.attn.query', heads=4)")

    def _follow_norms(self, modules: dict[str, Any]) -> None:
        for each in modules.values():
            kind = type(each).__name__.lower()
            if ("norm" in kind or kind.startswith("ln")) and (_is_bridge(each) or not list(each.children())):
                self._hook(each, self._end_norm)

    def _follow_interface(self, attention: list[Any]) -> bool:
        """The functions that transformers' attention modules call, each seen on its way."""
        followed = False
        own = {id(each) for each in attention}
        homes = {type(each).__module__ for each in attention}
        try:
            interface = importlib.import_module("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS if any(
                home.startswith("transformers.") or home in sys.modules and hasattr(sys.modules[home], "ALL_ATTENTION_FUNCTIONS")
                for home in homes) else {}
        except (ImportError, AttributeError):
            interface = {}
        for home in homes:
            module = sys.modules.get(home)
            interface = interface or getattr(module, "ALL_ATTENTION_FUNCTIONS", {})
            eager = getattr(module, "eager_attention_forward", None)
            if eager is not None:
                self._replace(module, "eager_attention_forward", self._on_its_way(eager, own))
                followed = True
        if followed:
            for name in list(interface):
                self._replace_item(interface, name, self._on_its_way(interface[name], own))
        return followed

    def _on_its_way(self, attend: Any, own: set[int]) -> Any:
        def watched(module: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            if id(module) in own:
                self._attended(module, query, key, args, kwargs)
            return attend(module, query, key, value, *args, **kwargs)

        return watched

    def _attended(self, module: Any, query: Any, key: Any, args: Any, kwargs: Any) -> None:
        scale = kwargs.get("scaling")
        if scale is None:
            scale = getattr(module, "scaling", None)
        if not isinstance(scale, (int, float)):
            scale = 1 / math.sqrt(query.shape[-1])
        bias = kwargs.get("position_bias")
        for value in (*args, *kwargs.values()):
            if value is not bias:
                _require_mask(value)
        if self.causal is None:
            self.causal = bool(kwargs["is_causal"] if kwargs.get("is_causal") is not None else getattr(module, "is_causal", False))
        self.slides.add(int(kwargs.get("sliding_window") or 0))
        self._seen(module, query, key, query.shape[1], key.shape[1], float(scale), self._offsets(bias))

    def _offsets(self, bias: Any) -> Any:
        if not is_tensor(bias):
            return None
        if self._bias[0] is not bias:  # layers share it
            self._bias = bias, by_distance(bias)
        return self._bias[1]

    def _multihead(self, module: Any, args: Any, kwargs: Any) -> None:
        query = first(args, kwargs, "query")
        key = kwargs.get("key", args[1] if len(args) > 1 else None)
        if key is None or query is None or getattr(module, "in_proj_weight", None) is None:
            return
        norm_in, norm_out = self._norm_of(query)
        weight, bias, width = module.in_proj_weight, module.in_proj_bias, module.embed_dim

        def mapped(tokens: Any, part: int) -> Any:
            made = tokens.detach() @ weight.detach()[part * width:(part + 1) * width].T
            made = made if bias is None else made + bias.detach()[part * width:(part + 1) * width]
            return made if getattr(module, "batch_first", False) else made.transpose(0, 1)

        if norm_in is not None and not getattr(module, "batch_first", False):
            norm_in, norm_out = norm_in.transpose(0, 1), norm_out.transpose(0, 1)
        self.causal = bool(self.causal or kwargs.get("is_causal", False))
        self._see(mapped(query, 0), mapped(key, 1), heads=module.num_heads, key_heads=module.num_heads,
                  scale=1 / math.sqrt(width // module.num_heads), norm_in=norm_in, norm_out=norm_out)

    # ---- releases of transformers whose attention calls no function: its linear maps, or the rotation after them

    def _follow_maps(self, attention: list[Any]) -> bool:
        followed = False
        for each in attention:
            names = next((names for names in _MAPS if all(hasattr(each, name) for name in names)), None)
            heads = _attribute(each, _HEADS)
            if names is None or heads is None or not type(each).__module__.startswith("transformers."):
                continue
            if getattr(each, "position_embedding_type", "absolute") != "absolute":
                raise ValueError(_OFFSETS)
            rotation = sys.modules[type(each).__module__]
            if hasattr(rotation, "apply_rotary_pos_emb"):
                if not hasattr(rotation.apply_rotary_pos_emb, "followed"):
                    self._replace(rotation, "apply_rotary_pos_emb", self._rotated(rotation.apply_rotary_pos_emb))
            else:
                self._follow_pair(each, names, heads, _attribute(each, _KEY_HEADS, heads))
            causal = getattr(each, "is_causal", None)
            self.causal = bool(names[0] == "c_attn" or hasattr(rotation, "apply_rotary_pos_emb") if causal is None else causal)
            self.slides.add(int(getattr(getattr(each, "config", None), "sliding_window", None) or 0))
            followed = True
        return followed

    def _rotated(self, rotate: Any) -> Any:
        def watched(query: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
            turned = rotate(query, key, *args, **kwargs)
            module = self._current
            if module is not None:
                if query.shape[1] * query.shape[-1] != module.q_proj.weight.shape[0]:
                    raise ValueError("this model turns a part of its queries only, which cannot be seen with this release of transformers; "
                                     "save it and scan its directory")
                self._seen(module, turned[0], turned[1], query.shape[1], key.shape[1], 1 / math.sqrt(query.shape[-1]))
            return turned

        watched.followed = True  # type: ignore[attr-defined]
        return watched

    def _follow_pair(self, module: Any, names: tuple[str, str], heads: int, key_heads: int) -> None:
        parts: dict[str, Any] = {}

        def end(name: str) -> Any:
            def note(_: Any, args: Any, kwargs: Any, output: Any) -> None:
                parts[name] = output
                if len(parts) < len(set(names)):
                    return
                query, key = (parts[each] for each in names)
                if names[0] == names[1]:  # queries, keys and values side by side
                    width = query.shape[-1] // 3
                    query, key = query[..., :width], query[..., width:2 * width]
                scaled = getattr(module, "scale_attn_weights", True)
                self._seen(module, query, key, heads, key_heads, 1 / math.sqrt(query.shape[-1] // heads) if scaled else 1.0)
                parts.clear()

            return note

        for name in set(names):
            self._hook(getattr(module, name), end(name))

    # ---- TransformerLens: models of its own, and bridges, its frames around models of others

    def _follow_lens(self, modules: dict[str, Any], points: dict[str, Any], pattern: str) -> None:
        config = getattr(self.model, "cfg", None)
        if getattr(config, "positional_embedding_type", None) in _LENS_OFFSETS:
            raise ValueError(_OFFSETS)
        self.causal = getattr(config, "attention_dir", "causal") == "causal"
        inner = getattr(getattr(self.model, "original_model", None), "config", None)
        self.slides.add(int(getattr(inner, "sliding_window", None) or 0))
        names = {"keys": pattern + "k", "queries": pattern + "q"}
        bridges = [each for each in _attention_in(modules) if _is_bridge(each)]
        if not bridges:
            return self._follow_named(points, {**names, "norms": "blocks.{}.ln1"})
        heads = int(getattr(config, "n_heads", 1))
        key_heads = int(getattr(config, "n_key_value_heads", None) or heads)
        self._follow_norms(modules)
        for each in bridges:
            self._hook(each, self._before_attention, before=True)

        def see(query: Any, key: Any) -> None:  # as the framed model has them: batch × n × d, or batch × heads × n × width
            width = key.shape[-1] if len(key.shape) == 4 else key.shape[-1] // key_heads
            self._seen(self._current, query, key, heads, key_heads, 1 / math.sqrt(width))

        self._follow_named(points, names, see)

    # ---- modules by name

    def _follow_named(self, modules: dict[str, Any], names: Mapping[str, str | None],
                      see: Callable[[Any, Any], None] | None = None) -> None:
        """see: is given queries and keys of a layer, in place of what is known of its norm and heads here."""
        given = {kind: pattern for kind, pattern in names.items() if pattern}
        layer = 0
        while given["keys"].format(layer) in modules:
            parts = {kind: modules.get(pattern.format(layer)) for kind, pattern in given.items()}
            missing = [given[kind] for kind, module in parts.items() if module is None]
            if missing:
                raise ValueError(f"there is no module '{missing[0].format(layer)}'")
            self._follow_layer(parts, see)
            layer += 1
        if layer == 0:
            raise ValueError(f"there is no module '{given['keys'].format(0)}'; modules are such as "
                             f"{', '.join(list(modules)[1:6])}")

    def _follow_layer(self, parts: dict[str, Any], see: Callable[[Any, Any], None] | None) -> None:
        seen: dict[str, Any] = {}

        def end(kind: str) -> Any:
            def note(module: Any, args: Any, kwargs: Any, output: Any) -> None:
                seen[kind] = (first(args, kwargs, "hidden_states", "input"), output)
                if "keys" not in seen or "queries" not in seen:
                    return
                query, key = seen["queries"][1], seen["keys"][1]
                if see is not None:
                    seen.clear()
                    return see(query, key)
                heads, key_heads = self._heads or 1, self._key_heads or self._heads or 1
                if len(key.shape) == 4:  # batch × n × heads × width, as TransformerLens has them
                    heads, key_heads = query.shape[2], key.shape[2]
                    query, key = query.transpose(1, 2), key.transpose(1, 2)
                    width = key.shape[-1]
                else:
                    width = key.shape[-1] // key_heads
                norm_in, norm_out = seen.get("norms", (None, None))
                self._see(query, key, heads=heads, key_heads=key_heads, scale=1 / math.sqrt(width), norm_in=norm_in, norm_out=norm_out)
                seen.clear()

            return note

        for kind, module in parts.items():
            self._hook(module, end(kind))


def _require_mask(mask: Any) -> None:
    """Offsets of scores (ALiBi) would be part of the question; a few rows tell them from a mask."""
    if not is_tensor(mask) or len(mask.shape) != 4 or "float" not in str(getattr(mask, "dtype", "")):
        return
    row = numbers(mask[0, :, -2:])
    if np.any((row < 0) & (row > _FAR)) or np.any(row > 0):
        raise ValueError(_OFFSETS)
