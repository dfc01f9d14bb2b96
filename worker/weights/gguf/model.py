"""A GGUF model in the form the engine runs: ModelConfig, and tensors as Hugging Face has them."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from radixgate.worker.weights.checkpoint import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    check_shapes,
    tensor_shapes,
)
from radixgate.worker.weights.gguf.config import ARCHITECTURES, ROPE_FREQUENCIES, read_gguf_config
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.quantized import LazyRows, QuantizedRows

AnyRows = TypeVar("AnyRows", NDArray[np.float32], NDArray[np.uint8])

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


def read_tensors(file: GgufFile, config: ModelConfig) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Every tensor under its Hugging Face name, one in memory at a time.

    About 1.5 s for 135 M parameters. Raises ModelError for a missing tensor.
    """
    for name in tensor_shapes(config):
        yield name, _in_our_order(file.read(_gguf_name(name)), name, config)


def quantized_weights(path: Path, config: ModelConfig) -> Mapping[str, QuantizedRows]:
    """The matrices of a file by Hugging Face name as they are stored, each read when asked for.

    The file is opened by the first who asks, and stays so as long as the mapping lives. Asking
    raises ModelError for a storage type that cannot be multiplied as it is.
    """

    @cache
    def file() -> GgufFile:
        return GgufFile(path)

    def read(name: str) -> QuantizedRows:
        kind, stored = file().stored(_gguf_name(name))
        return QuantizedRows.of(kind, _in_our_order(stored, name, config), name)

    return LazyRows([name for name, shape in tensor_shapes(config).items() if len(shape) > 1], read)


def _in_our_order(rows: AnyRows, name: str, config: ModelConfig) -> AnyRows:
    """With the rows of Q and K as Hugging Face has them."""
    if not ARCHITECTURES[config.architecture].interleaved_rotation:
        return rows
    if ".self_attn.q_proj." in name:
        return halves_from_neighbours(rows, config.heads)
    if ".self_attn.k_proj." in name:
        return halves_from_neighbours(rows, config.kv_heads)
    return rows


def halves_from_neighbours(rows: AnyRows, heads: int) -> AnyRows:
    """Undo llama.cpp's order of rows: (pair 0, pair 1, ...) to (all firsts, all seconds).

    `rows` is a weight [heads * head_dim, inputs (or bytes)] or a bias [heads * head_dim]. Left
    undone, the model writes fluent nonsense.
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
