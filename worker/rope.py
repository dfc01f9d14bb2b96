"""Rotary positions: the halves of each head's vector are turned by an angle per position."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from radixgate.errors import ModelError
from radixgate.worker.model_config import ModelConfig


class Rotation(NamedTuple):
    """Cosines and signed sines of some rows' angles: both [rows, 1, head_dim]."""

    cos: torch.Tensor
    sin: torch.Tensor  # negated in the first half, as rotate() needs it


class Rope:
    """The angles of every position up to the context length, computed once.

    Holds 2 * context_length * head_dim / 2 floats. Raises ModelError for a scaling it does not
    know.
    """

    def __init__(self, config: ModelConfig, device: torch.device | str = "cpu") -> None:
        # In float64: at position 100,000 a float32 angle is off by 0.01.
        positions = torch.arange(config.context_length, dtype=torch.float64)
        angles = torch.outer(positions, inverse_frequencies(config))
        self._cos = angles.cos().to(device, torch.float32)
        self._sin = angles.sin().to(device, torch.float32)

    def at(self, positions: torch.Tensor) -> Rotation:
        """The rotation of rows at these positions, int64 [rows]; once a pass, for all layers."""
        cos, sin = self._cos[positions], self._sin[positions]
        return Rotation(
            torch.cat((cos, cos), dim=-1).unsqueeze(1), torch.cat((-sin, sin), dim=-1).unsqueeze(1)
        )


def rotate(x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """x [rows, heads, head_dim] turned. Element i pairs with element i + head_dim / 2."""
    return torch.addcmul(x * rotation.cos, x.roll(x.shape[-1] // 2, dims=-1), rotation.sin)


def inverse_frequencies(config: ModelConfig) -> torch.Tensor:
    """Radians a position, float64 [head_dim / 2], after the config's rope_scaling."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    frequencies = config.rope_base**-exponents
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    kind = scaling.get("rope_type", scaling.get("type"))
    scale = _SCALINGS.get(str(kind))
    if scale is None:
        known = ", ".join(_SCALINGS)
        raise ModelError(f"rope_scaling type {kind!r} is not supported, only {known}")
    return scale(frequencies, scaling)


def _unscaled(frequencies: torch.Tensor, scaling: Mapping[str, object]) -> torch.Tensor:
    return frequencies


def _linear(frequencies: torch.Tensor, scaling: Mapping[str, object]) -> torch.Tensor:
    return frequencies / _number(scaling, "factor")


def _llama3(frequencies: torch.Tensor, scaling: Mapping[str, object]) -> torch.Tensor:
    """Slow waves are stretched by the factor, fast ones kept, those between blended."""
    low, high = _number(scaling, "low_freq_factor"), _number(scaling, "high_freq_factor")
    if not low < high:
        raise ModelError(
            f"rope_scaling: low_freq_factor {low} must be below high_freq_factor {high}"
        )
    trained_context = _number(scaling, "original_max_position_embeddings")
    turns = trained_context * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / _number(scaling, "factor"))


def _number(scaling: Mapping[str, object], key: str) -> float:
    value = scaling.get(key)
    if not isinstance(value, (int, float)) or value <= 0:
        raise ModelError(f"rope_scaling: {key} is {value!r}, it must be a number above 0")
    return float(value)


_SCALINGS: dict[str, Callable[[torch.Tensor, Mapping[str, object]], torch.Tensor]] = {
    "default": _unscaled,
    "linear": _linear,
    "llama3": _llama3,
}
