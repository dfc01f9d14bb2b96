"""A GGUF model in the form the engine runs: ModelConfig, and tensors as Hugging Face has them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from radixgate.worker.checkpoint import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    check_shapes,
    tensor_shapes,
)
from radixgate.worker.gguf_config import ARCHITECTURES, ROPE_FREQUENCIES, read_gguf_config
from radixgate.worker.gguf_file import GgufFile
from radixgate.worker.model_config import ModelConfig

Float32 = NDArray[np.float32]

_OUTSIDE = {EMBEDDING: "token_embd.weight", FINAL_NORM: "output_norm.weight", HEAD: "output.weight"}
_INSIDE = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def read_config(file: GgufFile) -> ModelConfig:
    """The model's shape; all tensors are there and fit. Raises ModelError that names what is not.

    Tensors are named as in Hugging Face's checkpoints, in errors too.
    """
    config = read_gguf_config(file)
    shapes = {_hf_name(name): tensor.shape for name, tensor in file.tensors.items()}
    shapes.pop(ROPE_FREQUENCIES, None)  # is in the config
    check_shapes(config, shapes, file.path)
    return config


def read_tensors(file: GgufFile, config: ModelConfig) -> Iterator[tuple[str, Float32]]:
    """Every tensor under its Hugging Face name, one in memory at a time.

    About 1.5 s for 135 M parameters. Raises ModelError for a missing tensor.
    """
    interleaved = ARCHITECTURES[config.architecture].interleaved_rotation
    for name in tensor_shapes(config):
        values = file.read(_gguf_name(name))
        if interleaved and ".self_attn.q_proj." in name:
            values = halves_from_neighbours(values, config.heads)
        elif interleaved and ".self_attn.k_proj." in name:
            values = halves_from_neighbours(values, config.kv_heads)
        yield name, values


def halves_from_neighbours(rows: Float32, heads: int) -> Float32:
    """Undo llama.cpp's order of rows: (pair 0, pair 1, ...) to (all firsts, all seconds).

    `rows` is a weight [heads * head_dim, inputs] or a bias [heads * head_dim]. Left undone, the
    model writes fluent nonsense.
    """
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def _gguf_name(name: str) -> str:
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    _, _, layer, rest = name.split(".", 3)
    part, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{_INSIDE[part]}.{kind}"


_HF_OUTSIDE = {theirs: ours for ours, theirs in _OUTSIDE.items()}
_HF_INSIDE = {theirs: ours for ours, theirs in _INSIDE.items()}


def _hf_name(name: str) -> str:
    """The Hugging Face name; a name that has none stays, and is refused as not of the model."""
    if name in _HF_OUTSIDE:
        return _HF_OUTSIDE[name]
    prefix, _, rest = name.partition(".")
    layer, _, rest = rest.partition(".")
    part, _, kind = rest.rpartition(".")
    if prefix != "blk" or part not in _HF_INSIDE:
        return name
    return f"model.layers.{layer}.{_HF_INSIDE[part]}.{kind}"
