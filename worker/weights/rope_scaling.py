"""How fast rotary angles grow, and how they are stretched for contexts beyond the trained one."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch

from radixgate.errors import ModelError
from radixgate.worker.weights.model_config import ModelConfig

Scaling = Mapping[str, object]

# Our own name for what a GGUF file stores as rope_freqs.weight: one divisor a frequency.
DIVISORS: Final = "divisors"

TRAINED_CONTEXT: Final = "original_max_position_embeddings"

# What is left out on purpose, and why.
_REFUSED: Final = {
    "dynamic": "its angles depend on the length of the whole text, so cached keys would turn wrong",
    "longrope": "it has other angles for long texts than for short ones",
}


def inverse_frequencies(config: ModelConfig) -> torch.Tensor:
    """Radians a position, float64 [head_dim / 2], after the config's rope_scaling.

    Raises ModelError for a scaling that is not known, or a number in it that is missing.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    frequencies = config.rope_base**-exponents
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    kind = scaling_type(scaling)
    scale = _SCALINGS.get(kind)
    if scale is None:
        reason = f": {_REFUSED[kind]}; it can be" if kind in _REFUSED else ", only"
        raise ModelError(
            f"rope_scaling type {kind!r} is not supported{reason} {', '.join(_SCALINGS)}"
        )
    return scale(frequencies, scaling, config)


def attention_factor(config: ModelConfig) -> float:
    """What cosines and sines are multiplied by: 1 for all but yarn. Raises ModelError."""
    scaling = config.rope_scaling
    if scaling is None or scaling_type(scaling) != "yarn":
        return 1.0
    if scaling.get("attention_factor") is not None:
        return _number(scaling, "attention_factor")
    factor = _number(scaling, "factor")
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        numerator = _sharpening(factor, _number(scaling, "mscale"))
        return numerator / _sharpening(factor, _number(scaling, "mscale_all_dim"))
    return _sharpening(factor, 1.0)


def check_scaling(config: ModelConfig) -> None:
    """Raises ModelError as the functions above do, so that a start need not wait for weights."""
    inverse_frequencies(config)
    attention_factor(config)


def scaled_context(stated: int, scaling: Scaling) -> int:
    """Tokens of context after scaling; files state the length before or after it.

    As SGLang and vLLM read them: yarn reaches factor times the trained context; linear reaches
    factor times the stated length, unless the trained context stands beside it.
    """
    factor = scaling.get("factor")
    if not isinstance(factor, (int, float)):
        return stated
    if scaling_type(scaling) == "linear" and TRAINED_CONTEXT not in scaling:
        return int(stated * factor)
    if scaling_type(scaling) == "yarn":
        return max(stated, int(_number(scaling, TRAINED_CONTEXT) * factor))
    return stated


def scaling_type(scaling: Scaling) -> str:
    """Newer configs say `rope_type`, older ones `type`."""
    return str(scaling.get("rope_type", scaling.get("type")))


def _unscaled(frequencies: torch.Tensor, scaling: Scaling, config: ModelConfig) -> torch.Tensor:
    return frequencies


def _linear(frequencies: torch.Tensor, scaling: Scaling, config: ModelConfig) -> torch.Tensor:
    return frequencies / _number(scaling, "factor")


def _llama3(frequencies: torch.Tensor, scaling: Scaling, config: ModelConfig) -> torch.Tensor:
    """Slow waves are stretched by the factor, fast ones kept, those between blended."""
    low, high = _number(scaling, "low_freq_factor"), _number(scaling, "high_freq_factor")
    if not low < high:
        raise ModelError(
            f"rope_scaling: low_freq_factor {low} must be below high_freq_factor {high}"
        )
    trained_context = _number(scaling, TRAINED_CONTEXT)
    turns = trained_context * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return _blend(frequencies, kept, _number(scaling, "factor"))


def _yarn(frequencies: torch.Tensor, scaling: Scaling, config: ModelConfig) -> torch.Tensor:
    """Like llama3, but the blend is a ramp over the index of the frequency."""
    trained_context = _number(scaling, TRAINED_CONTEXT)
    fast, slow = (_number(scaling, key, _YARN_TURNS[key]) for key in ("beta_fast", "beta_slow"))

    def index_that_turns(times: float) -> float:
        wave = trained_context / (times * 2 * math.pi)
        return config.head_dim * math.log(wave) / (2 * math.log(config.rope_base))

    first, last = index_that_turns(fast), index_that_turns(slow)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, config.head_dim - 1)
    places = torch.arange(len(frequencies), dtype=torch.float64)
    # Where both ends meet, the ramp is a step.
    ramp = ((places - first) / ((last - first) or 0.001)).clamp(0, 1)
    return _blend(frequencies, 1 - ramp, _number(scaling, "factor"))


def _divided(frequencies: torch.Tensor, scaling: Scaling, config: ModelConfig) -> torch.Tensor:
    divisors = scaling.get(DIVISORS)
    if not isinstance(divisors, Sequence) or len(divisors) != len(frequencies):
        found = len(divisors) if isinstance(divisors, Sequence) else divisors
        raise ModelError(f"rope_scaling: {found} divisors for {len(frequencies)} frequencies")
    return frequencies / torch.tensor(divisors, dtype=torch.float64)


def _blend(frequencies: torch.Tensor, kept: torch.Tensor, factor: float) -> torch.Tensor:
    return frequencies * (kept + (1 - kept) / factor)


def _sharpening(factor: float, weight: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _number(scaling: Scaling, key: str, default: float | None = None) -> float:
    value = scaling.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, (int, float)) or value <= 0:
        raise ModelError(f"rope_scaling: {key} is {value!r}, it must be a number above 0")
    return float(value)


# Turns within the trained context above which a wave is kept, and below which it is stretched.
_YARN_TURNS: Final = {"beta_fast": 32.0, "beta_slow": 1.0}

_SCALINGS: Final[dict[str, Callable[[torch.Tensor, Scaling, ModelConfig], torch.Tensor]]] = {
    "default": _unscaled,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
    DIVISORS: _divided,
}
