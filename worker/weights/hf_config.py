"""The shape of a model as a Hugging Face config.json tells it, family by family."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from radixgate.errors import ModelError
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.rope_scaling import (
    TRAINED_CONTEXT,
    check_scaling,
    scaled_context,
    scaling_type,
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Family:
    """What sets one `model_type` apart, and what its config.json may leave out."""

    attention_bias: Callable[[Json], bool]  # on q, k and v
    output_bias: Callable[[Json], bool]
    head_dim: int | None = None  # None: hidden_size / heads
    qk_norm: bool = False


def _never(raw: Json) -> bool:
    return False


def _always(raw: Json) -> bool:
    return True


def _as_said(raw: Json) -> bool:
    return bool(raw.get("attention_bias"))


FAMILIES: Final = {
    "llama": _Family(attention_bias=_as_said, output_bias=_as_said),
    "qwen2": _Family(attention_bias=_always, output_bias=_never),
    "qwen3": _Family(attention_bias=_as_said, output_bias=_as_said, head_dim=128, qk_norm=True),
}

# Keys that change the arithmetic in a way that is not built, and the values that do not.
_REFUSED: Final[dict[str, tuple[object, ...]]] = {
    "quantization_config": (None,),
    "hidden_act": (None, "silu"),
    "mlp_bias": (None, False),
    "use_sliding_window": (None, False),
    "partial_rotary_factor": (None, 1, 1.0),
}


def read_hf_config(raw: Json, folder: Path) -> ModelConfig:
    """Raises ModelError that names the folder, and the key that is missing or not supported."""
    kind = raw.get("model_type")
    family = FAMILIES.get(str(kind))
    if family is None:
        known = ", ".join(FAMILIES)
        raise ModelError(f"{folder}: model_type {kind!r} is not supported, only {known}")
    for key, allowed in _REFUSED.items():
        if raw.get(key) not in allowed:
            raise ModelError(f"{folder}: {key} {raw[key]!r} is not supported")
    if "sliding_attention" in (raw.get("layer_types") or ()):
        raise ModelError(f"{folder}: layer_types: sliding_attention is not supported")
    try:
        config = _config(raw, str(kind), family)
        check_scaling(config)
    except (ModelError, TypeError, ValueError, ZeroDivisionError) as exc:
        raise ModelError(f"{folder}/config.json: {exc}") from exc
    return config


def _config(raw: Json, kind: str, family: _Family) -> ModelConfig:
    heads = _need(raw, "num_attention_heads")
    hidden = _need(raw, "hidden_size")
    context = _need(raw, "max_position_embeddings")
    rope = _rope(raw)
    base = float(rope.pop("rope_theta", None) or 10_000.0)
    scaled = scaling_type(rope) != "default"
    return ModelConfig(
        architecture=kind,
        vocab_size=_need(raw, "vocab_size"),
        hidden_size=hidden,
        layers=_need(raw, "num_hidden_layers"),
        heads=heads,
        kv_heads=raw.get("num_key_value_heads") or heads,
        head_dim=raw.get("head_dim") or family.head_dim or hidden // heads,
        intermediate_size=_need(raw, "intermediate_size"),
        rope_base=base,
        rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
        context_length=scaled_context(context, rope),
        tied_embeddings=bool(raw.get("tie_word_embeddings", False)),
        rope_scaling=rope if scaled else None,
        qk_norm=family.qk_norm,
        attention_bias=family.attention_bias(raw),
        attention_output_bias=family.output_bias(raw),
    )


def _rope(raw: Json) -> Json:
    """Base and scaling as one object: newer files have it so, older ones in two places."""
    rope = dict(raw.get("rope_parameters") or raw.get("rope_scaling") or {})
    for key, value in rope.items():
        if isinstance(value, dict):
            raise ModelError(f"rope parameters by kind of layer ({key!r}) are not supported")
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise ModelError(
            f"partial_rotary_factor {rope['partial_rotary_factor']}: rotating a part of a head is "
            "not supported"
        )
    rope["rope_type"] = rope.pop("type", None) or rope.get("rope_type") or "default"
    if "rope_theta" in raw:
        rope.setdefault("rope_theta", raw["rope_theta"])
    if rope["rope_type"] in ("llama3", "yarn"):
        rope.setdefault(TRAINED_CONTEXT, _need(raw, "max_position_embeddings"))
    return rope


def _need(raw: Json, key: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int):
        raise ModelError(f"{key} is {value!r}, a number is needed")
    return value
