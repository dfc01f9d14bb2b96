"""The model in its plainest form: no cache, no pages, no batch. Tests take it for the truth."""

from collections.abc import Mapping, Sequence

import torch

from radixgate.worker.model_config import ModelConfig
from radixgate.worker.rope_scaling import attention_factor, inverse_frequencies

Tensors = Mapping[str, torch.Tensor]


def reference_greedy(
    config: ModelConfig, tensors: Tensors, prompt_ids: Sequence[int], new_tokens: int
) -> list[int]:
    """The `new_tokens` most likely ids after the prompt, end-of-sequence ids among them.

    Runs the whole sequence again for every token.
    """
    ids = list(prompt_ids)
    for _ in range(new_tokens):
        ids.append(int(reference_logits(config, tensors, ids)[-1].argmax()))
    return ids[len(prompt_ids) :]


@torch.no_grad()
def reference_logits(config: ModelConfig, tensors: Tensors, ids: Sequence[int]) -> torch.Tensor:
    """Logits after every token of one sequence, float32 [tokens, vocab]."""
    embedding = tensors["model.embed_tokens.weight"]
    x = embedding[torch.tensor(ids, dtype=torch.int64)]
    for index in range(config.layers):
        weights = _Layer(tensors, f"model.layers.{index}.")
        x = x + _attention(config, weights, _norm(config, x, weights["input_layernorm.weight"]))
        x = x + _mlp(weights, _norm(config, x, weights["post_attention_layernorm.weight"]))
    head = embedding if config.tied_embeddings else tensors["lm_head.weight"]
    return _norm(config, x, tensors["model.norm.weight"]) @ head.T


class _Layer:
    """The tensors whose names start with one prefix."""

    def __init__(self, tensors: Tensors, prefix: str) -> None:
        self._tensors = tensors
        self._prefix = prefix

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._tensors[self._prefix + name]

    def linear(self, name: str, x: torch.Tensor, *, bias: bool = False) -> torch.Tensor:
        y = x @ self[name + ".weight"].T
        return y + self[name + ".bias"] if bias else y


def _attention(config: ModelConfig, weights: _Layer, x: torch.Tensor) -> torch.Tensor:
    tokens, head_dim = len(x), config.head_dim
    bias = config.attention_bias
    q = weights.linear("self_attn.q_proj", x, bias=bias).view(tokens, config.heads, head_dim)
    k = weights.linear("self_attn.k_proj", x, bias=bias).view(tokens, config.kv_heads, head_dim)
    v = weights.linear("self_attn.v_proj", x, bias=bias).view(tokens, config.kv_heads, head_dim)
    if config.qk_norm:
        q = _norm(config, q, weights["self_attn.q_norm.weight"])
        k = _norm(config, k, weights["self_attn.k_norm.weight"])
    q, k = _rotated(config, q), _rotated(config, k)
    group = config.heads // config.kv_heads
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    heads = []
    for head in range(config.heads):
        scores = q[:, head] @ k[:, head // group].T / head_dim**0.5
        share = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        heads.append(share @ v[:, head // group])
    mixed = torch.cat(heads, dim=-1)
    return weights.linear("self_attn.o_proj", mixed, bias=config.attention_output_bias)


def _rotated(config: ModelConfig, x: torch.Tensor) -> torch.Tensor:
    angles = torch.outer(torch.arange(len(x)).double(), inverse_frequencies(config))
    factor = attention_factor(config)
    cos, sin = (factor * angles.cos()).float()[:, None], (factor * angles.sin()).float()[:, None]
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def _mlp(weights: _Layer, x: torch.Tensor) -> torch.Tensor:
    gate, up = weights.linear("mlp.gate_proj", x), weights.linear("mlp.up_proj", x)
    return weights.linear("mlp.down_proj", torch.nn.functional.silu(gate) * up)


def _norm(config: ModelConfig, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + config.rms_eps).sqrt() * weight
