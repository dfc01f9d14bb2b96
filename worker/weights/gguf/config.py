"""The shape of a model as a GGUF file's metadata tells it, architecture by architecture."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from radixgate.errors import ModelError
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.rope_scaling import (
    DIVISORS,
    TRAINED_CONTEXT,
    check_scaling,
    scaled_context,
)

# What every frequency is divided by: how the conversion for llama.cpp stores llama3 scaling.
ROPE_FREQUENCIES: Final = "rope_freqs.weight"

_EMBEDDING: Final = "token_embd.weight"


@dataclass(frozen=True, slots=True)
class GgufArchitecture:
    """What a value of `general.architecture` means for us."""

    # llama.cpp rotates neighbours (0, 1), (2, 3) of a head where Hugging Face rotates its two
    # halves; files of such an architecture have the rows of Q and K reordered to suit.
    interleaved_rotation: bool = False
    always_bias: bool = False  # on q, k and v; else where the first layer has one
    qk_norm: bool = False


ARCHITECTURES: Final = {
    "llama": GgufArchitecture(interleaved_rotation=True),
    "qwen2": GgufArchitecture(always_bias=True),
    "qwen3": GgufArchitecture(qk_norm=True),
}

# Keys below the architecture's name that change the arithmetic, and the values that do not.
_REFUSED: Final[dict[str, tuple[object, ...]]] = {
    "expert_count": (0,),
    "attention.sliding_window": (0,),
    "attention.scale": (0.0,),
    "rope.scaling.attn_factor": (1.0,),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.yarn_ext_factor": (-1.0, 1.0),
    "rope.scaling.yarn_log_multiplier": (0.0,),
}


def read_gguf_config(file: GgufFile) -> ModelConfig:
    """Raises ModelError that names the file, and the key that is missing or not supported."""
    name = file.need("general.architecture", str)
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(
            f"{file.path}: general.architecture {name!r} is not supported, only {known}"
        )
    if (file.find("split.count", int) or 1) > 1:
        raise ModelError(
            f"{file.path}: split.count is {file.find('split.count', int)}: a model in several "
            "files is not supported; join them with llama-gguf-split --merge"
        )
    for key, neutral in _REFUSED.items():
        value = file.metadata.get(f"{name}.{key}")
        if value is not None and value not in neutral:
            raise ModelError(f"{file.path}: {name}.{key} {value} is not supported")
    try:
        config = _config(file, name, ARCHITECTURES[name])
        check_scaling(config)
    except (ModelError, ZeroDivisionError) as exc:
        where = str(file.path)
        raise ModelError(str(exc) if where in str(exc) else f"{where}: {exc}") from exc
    return config


def _config(file: GgufFile, name: str, architecture: GgufArchitecture) -> ModelConfig:
    hidden = file.need(f"{name}.embedding_length", int)
    heads = file.need(f"{name}.attention.head_count", int)
    head_dim = file.find(f"{name}.attention.key_length", int) or hidden // heads
    for key in ("rope.dimension_count", "attention.value_length"):
        length = file.find(f"{name}.{key}", int) or head_dim
        if length != head_dim:
            raise ModelError(
                f"{file.path}: {name}.{key} is {length} and a head has {head_dim} elements; "
                "a part of a head is not supported"
            )
    if _EMBEDDING not in file.tensors:
        raise ModelError(f"{file.path}: the tensor {_EMBEDDING} is missing")
    context = file.need(f"{name}.context_length", int)
    scaling = _rope_scaling(file, name, context)
    return ModelConfig(
        architecture=name,
        vocab_size=file.tensors[_EMBEDDING].shape[0],
        hidden_size=hidden,
        layers=file.need(f"{name}.block_count", int),
        heads=heads,
        kv_heads=file.find(f"{name}.attention.head_count_kv", int) or heads,
        head_dim=head_dim,
        intermediate_size=file.need(f"{name}.feed_forward_length", int),
        rope_base=_shortest(file.find(f"{name}.rope.freq_base", float) or 10_000.0),
        # A float32 in the file; as a double it would be 9.999999747378752e-06.
        rms_eps=_shortest(file.need(f"{name}.attention.layer_norm_rms_epsilon", float)),
        context_length=context if scaling is None else scaled_context(context, scaling),
        tied_embeddings="output.weight" not in file.tensors,
        rope_scaling=scaling,
        qk_norm=architecture.qk_norm,
        attention_bias=architecture.always_bias or "blk.0.attn_q.bias" in file.tensors,
        attention_output_bias="blk.0.attn_output.bias" in file.tensors,
    )


def _rope_scaling(file: GgufFile, name: str, context: int) -> dict[str, object] | None:
    prefix = f"{name}.rope.scaling"
    kind = file.find(f"{prefix}.type", str) or "none"
    if kind not in ("none", "linear", "yarn"):
        raise ModelError(f"{file.path}: {prefix}.type {kind!r} is not supported")
    if ROPE_FREQUENCIES in file.tensors:
        if kind != "none":
            raise ModelError(
                f"{file.path}: {prefix}.type {kind!r} together with the tensor {ROPE_FREQUENCIES} "
                "is not supported"
            )
        return {"rope_type": DIVISORS, DIVISORS: file.read(ROPE_FREQUENCIES).tolist()}
    if kind == "none":
        factor = file.find(f"{name}.rope.scale_linear", float)  # as files of 2023 have it
        return None if factor in (None, 1.0) else {"rope_type": "linear", "factor": factor}
    scaling: dict[str, object] = {
        "rope_type": kind,
        "factor": _shortest(file.need(f"{prefix}.factor", float)),
    }
    trained = file.find(f"{prefix}.original_context_length", int)
    if trained or kind == "yarn":
        scaling[TRAINED_CONTEXT] = trained or context
    for key in ("beta_fast", "beta_slow"):
        turns = file.find(f"{prefix}.yarn_{key}", float)
        if turns is not None and kind == "yarn":
            scaling[key] = _shortest(turns)
    return scaling


def _shortest(value: float) -> float:
    """The double that reads like the float32 in the file."""
    return float(str(np.float32(value)))
