"""As much of PyTorch and of a model of transformers as a live scan asks for, where there are none: values are those of a pass
of a model in files."""
import numpy as np


class Tensor(np.ndarray):
    """As much of a tensor as is asked for."""

    def detach(self):
        return self

    def clone(self):
        return self.copy()

    def float(self):
        return self.astype(np.float32)

    def cpu(self):
        return self

    def data_ptr(self):
        return self.__array_interface__["data"][0]

    def transpose(self, *axes):
        return np.swapaxes(self, *axes) if len(axes) == 2 else super().transpose(*axes)


def tensor(values):
    return np.array(values).view(Tensor)


class Handle:
    def __init__(self, hooks, hook):
        self.hooks, self.hook = hooks, hook

    def remove(self):
        self.hooks.remove(self.hook)


class Module:
    training = True

    def __init__(self, **children):
        self._before, self._after, self._children = [], [], children
        self.__dict__.update(children)

    def children(self):
        return self._children.values()

    def named_children(self):
        return self._children.items()

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self._children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def register_forward_pre_hook(self, hook, with_kwargs):
        self._before.append(hook)
        return Handle(self._before, hook)

    def register_forward_hook(self, hook, with_kwargs):
        self._after.append(hook)
        return Handle(self._after, hook)

    def __call__(self, *args, **kwargs):
        for hook in list(self._before):
            hook(self, args, kwargs)
        output = self.forward(*args, **kwargs)
        for hook in list(self._after):
            hook(self, args, kwargs, output)
        return output

    def hooks(self):
        return sum(len(each._before) + len(each._after) for _, each in self.named_modules())

    def eval(self):
        for _, each in self.named_modules():
            each.training = False

    def train(self):
        for _, each in self.named_modules():
            each.training = True


def eager_attention_forward(module, query, key, value, attention_mask=None, scaling=None, **kwargs):
    return value


ORIGINAL = eager_attention_forward


class LayerNorm(Module):
    """Gives what it was told to."""

    def forward(self, x):
        return self.output


class Linear(Module):
    def forward(self, x):
        return self.output


class FakeAttention(Module):
    is_causal, extra = True, {}

    def forward(self, hidden_states):
        return eager_attention_forward(self, self.q, self.k, self.k, scaling=0.5, **self.extra)


class Model(Module):
    """Shows, layer by layer, what a pass of a model in files showed."""

    class config:
        model_type = "gpt2"
        _name_or_path = "fake"

    def __init__(self, passed, layers, heads):
        self.points = []
        children = {}
        for layer in range(layers):
            x, y, q, k = (tensor(passed[f"layer.{layer}.{point}"][None]) for point in ("attn.norm.in", "attn.norm.out", "attn.query", "attn.key"))
            norm, attention = LayerNorm(), FakeAttention(key=Linear(), query=Linear())
            norm.output, attention.key.output, attention.query.output = y, k, q
            n, width = q.shape[1], q.shape[2] // heads
            attention.q, attention.k = (each.reshape(1, n, heads, width).swapaxes(1, 2) for each in (q, k))
            children[f"ln{layer}"], children[f"attn{layer}"] = norm, attention
            self.points.append((x, norm, attention))
        super().__init__(**children)

    def forward(self, input_ids, attention_mask=None):
        for x, norm, attention in self.points:
            y = norm(x)
            attention.key(y), attention.query(y)
            attention(y)


class MultiheadAttention(Module):
    """The shape of torch.nn's."""

    batch_first, num_heads, embed_dim = False, 2, 4

    def __init__(self, weight, bias):
        super().__init__()
        self.in_proj_weight, self.in_proj_bias = tensor(weight), tensor(bias)

    def forward(self, query, key, value, **kwargs):
        return query


class OneLayer(Module):
    def forward(self, x):
        return self.attn(x, x, x)
