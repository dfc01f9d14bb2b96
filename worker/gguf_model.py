"""A GGUF model in the form the engine runs: ModelConfig, and tensors as Hugging Face has them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from radixgate.errors import ModelError
from radixgate.worker.checkpoint import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    check_shapes,
    tensor_shapes,
)
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


@dataclass(frozen=True, slots=True)
class GgufArchitecture:
    """What a value of `general.architecture` means for us."""

    config: Callable[[GgufFile], ModelConfig]
    # llama.cpp rotates neighbours (0, 1), (2, 3) of a head where Hugging Face rotates its two
    # halves; files of such an architecture have the rows of Q and K reordered to suit.
    interleaved_rotation: bool


def read_config(file: GgufFile) -> ModelConfig:
    """The model's shape. Raises ModelError for an unknown architecture or what is not llama."""
    config = _architecture(file).config(file)
    check_shapes(config, {_hf_name(n): t.shape for n, t in file.tensors.items()}, file.path)
    return config


def read_tensors(file: GgufFile, config: ModelConfig) -> Iterator[tuple[str, Float32]]:
    """Every tensor under its Hugging Face name, one in memory at a time.

    About 1.5 s for 135 M parameters. Raises ModelError for a missing tensor.
    """
    interleaved = _architecture(file).interleaved_rotation
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


def _llama_config(file: GgufFile) -> ModelConfig:
    if file.find("llama.expert_count", int):
        raise ModelError(f"{file.path}: llama.expert_count: mixtures of experts are not supported")
    hidden = file.need("llama.embedding_length", int)
    heads = file.need("llama.attention.head_count", int)
    head_dim = file.find("llama.attention.key_length", int) or hidden // heads
    rotated = file.find("llama.rope.dimension_count", int) or head_dim
    if rotated != head_dim:
        raise ModelError(
            f"{file.path}: llama.rope.dimension_count is {rotated} and a head has {head_dim}; "
            "rotating a part of a head is not supported"
        )
    if "token_embd.weight" not in file.tensors:
        raise ModelError(f"{file.path}: the tensor token_embd.weight is missing")
    return ModelConfig(
        architecture="llama",
        vocab_size=file.tensors["token_embd.weight"].shape[0],
        hidden_size=hidden,
        layers=file.need("llama.block_count", int),
        heads=heads,
        kv_heads=file.find("llama.attention.head_count_kv", int) or heads,
        head_dim=head_dim,
        intermediate_size=file.need("llama.feed_forward_length", int),
        rope_base=file.find("llama.rope.freq_base", float) or 10_000.0,
        # A float32 in the file; as a double it would be 9.999999747378752e-06.
        rms_eps=_shortest(file.need("llama.attention.layer_norm_rms_epsilon", float)),
        context_length=file.need("llama.context_length", int),
        tied_embeddings="output.weight" not in file.tensors,
        rope_scaling=_rope_scaling(file),
        attention_bias="blk.0.attn_q.bias" in file.tensors,
        attention_output_bias="blk.0.attn_output.bias" in file.tensors,
    )


def _rope_scaling(file: GgufFile) -> dict[str, object] | None:
    kind = file.find("llama.rope.scaling.type", str) or "none"
    if kind == "none":
        return None
    if kind == "linear":
        return {"rope_type": "linear", "factor": file.need("llama.rope.scaling.factor", float)}
    raise ModelError(f"{file.path}: llama.rope.scaling.type {kind!r} is not supported")


def _shortest(value: float) -> float:
    return float(str(np.float32(value)))


ARCHITECTURES = {"llama": GgufArchitecture(_llama_config, interleaved_rotation=True)}


def _architecture(file: GgufFile) -> GgufArchitecture:
    name = file.need("general.architecture", str)
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(
            f"{file.path}: general.architecture {name!r} is not supported, only {known}"
        )
    return ARCHITECTURES[name]


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
