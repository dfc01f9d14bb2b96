"""Rotary positions: the halves of each head's vector are turned by an angle per position."""

from typing import NamedTuple

import torch

from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.rope_scaling import attention_factor, inverse_frequencies


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
        factor = attention_factor(config)
        self._cos = (angles.cos() * factor).to(device, torch.float32)
        self._sin = (angles.sin() * factor).to(device, torch.float32)

    def at(self, positions: torch.Tensor) -> Rotation:
        """The rotation of rows at these positions, int64 [rows]; once a pass, for all layers."""
        cos, sin = self._cos[positions], self._sin[positions]
        return Rotation(
            torch.cat((cos, cos), dim=-1).unsqueeze(1), torch.cat((-sin, sin), dim=-1).unsqueeze(1)
        )


def rotate(x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """x [rows, heads, head_dim] turned. Element i pairs with element i + head_dim / 2."""
    return torch.addcmul(x * rotation.cos, x.roll(x.shape[-1] // 2, dims=-1), rotation.sin)
