"""The model in its plainest form: no cache, no pages, no batch. Tests take it for the truth.

An arithmetic with roundings is the same forward with those roundings in it, and nothing else.
"""

from collections.abc import Mapping, Sequence

import torch

from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.rope_scaling import attention_factor, inverse_frequencies
from radixgate.worker.weights.rounding import FLOAT32, Arithmetic, WeightsMode, rounded_activations

Tensors = Mapping[str, torch.Tensor]


def reference_greedy(
    config: ModelConfig,
    tensors: Tensors,
    prompt_ids: Sequence[int],
    new_tokens: int,
    arithmetic: Arithmetic = FLOAT32,
) -> list[int]:
    """The `new_tokens` most likely ids after the prompt, end-of-sequence ids among them.

    Runs the whole sequence again for every token.
    """
    ids = list(prompt_ids)
    for _ in range(new_tokens):
        ids.append(int(reference_logits(config, tensors, ids, arithmetic)[-1].argmax()))
    return ids[len(prompt_ids) :]


@torch.no_grad()
def reference_logits(
    config: ModelConfig,
    tensors: Tensors,
    ids: Sequence[int],
    arithmetic: Arithmetic = FLOAT32,
) -> torch.Tensor:
    """Logits after every token of one sequence, float32 [tokens, vocab]."""
    embedding = tensors["model.embed_tokens.weight"]
    x = embedding[torch.tensor(ids, dtype=torch.int64)]
    for index in range(config.layers):
        layer = _Layer(tensors, f"model.layers.{index}.", arithmetic)
        x = x + _attention(config, layer, _norm(config, x, layer["input_layernorm.weight"]))
        x = x + _mlp(layer, _norm(config, x, layer["post_attention_layernorm.weight"]))
    head = embedding if config.tied_embeddings else tensors["lm_head.weight"]
    return _product(_norm(config, x, tensors["model.norm.weight"]), head, arithmetic)


class _Layer:
    """The tensors whose names start with one prefix."""

    def __init__(self, tensors: Tensors, prefix: str, arithmetic: Arithmetic) -> None:
        self._tensors = tensors
        self._prefix = prefix
        self.arithmetic = arithmetic

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._tensors[self._prefix + name]

    def linear(self, name: str, x: torch.Tensor, *, bias: bool = False) -> torch.Tensor:
        y = _product(x, self[name + ".weight"], self.arithmetic)
        return y + self[name + ".bias"] if bias else y


def _product(x: torch.Tensor, weight: torch.Tensor, arithmetic: Arithmetic) -> torch.Tensor:
    if arithmetic.weights is WeightsMode.Q4:
        x = rounded_activations(x)
    return x @ weight.T


def _attention(config: ModelConfig, layer: _Layer, x: torch.Tensor) -> torch.Tensor:
    tokens, head_dim = len(x), config.head_dim
    bias = config.attention_bias
    q = layer.linear("self_attn.q_proj", x, bias=bias).view(tokens, config.heads, head_dim)
    k = layer.linear("self_attn.k_proj", x, bias=bias).view(tokens, config.kv_heads, head_dim)
    v = layer.linear("self_attn.v_proj", x, bias=bias).view(tokens, config.kv_heads, head_dim)
    if config.qk_norm:
        q = _norm(config, q, layer["self_attn.q_norm.weight"])
        k = _norm(config, k, layer["self_attn.k_norm.weight"])
    q, k = _rotated(config, q), _rotated(config, k)
    k, v = layer.arithmetic.kv.rounded(k), layer.arithmetic.kv.rounded(v)
    group = config.heads // config.kv_heads
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    heads = []
    for head in range(config.heads):
        scores = q[:, head] @ k[:, head // group].T / head_dim**0.5
        share = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        heads.append(share @ v[:, head // group])
    mixed = torch.cat(heads, dim=-1)
    return layer.linear("self_attn.o_proj", mixed, bias=config.attention_output_bias)


def _rotated(config: ModelConfig, x: torch.Tensor) -> torch.Tensor:
    angles = torch.outer(torch.arange(len(x)).double(), inverse_frequencies(config))
    factor = attention_factor(config)
    cos, sin = (factor * angles.cos()).float()[:, None], (factor * angles.sin()).float()[:, None]
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def _mlp(layer: _Layer, x: torch.Tensor) -> torch.Tensor:
    gate, up = layer.linear("mlp.gate_proj", x), layer.linear("mlp.up_proj", x)
    return layer.linear("mlp.down_proj", torch.nn.functional.silu(gate) * up)


def _norm(config: ModelConfig, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + config.rms_eps).sqrt() * weight
