"""The seam between the model and how its products, norms and rotations are computed."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch

from radixgate.worker.forward.rope import Rotation

QkvRows = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Product(Protocol):
    """One or several weights, laid out for whoever multiplies them."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x [rows, in] to [rows, out], float32."""
        ...

    def add_to(self, y: torch.Tensor, x: torch.Tensor) -> None:
        """Add the product of x to y [rows, out], in place."""
        ...


class Kernels(Protocol):
    """What a model computes with, but for attention. Weights are named as in the checkpoint."""

    def linear(self, names: Sequence[str]) -> Product:
        """x W^T + b of some weights, their outputs side by side; names without `.weight`."""
        ...

    def gated(self, gate: str, up: str) -> Product:
        """silu(x G^T) * (x U^T)"""
        ...

    def norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """RMSNorm over the last axis of x [rows, size]."""
        ...

    def rotated(
        self,
        qkv: torch.Tensor,
        heads: int,
        rotation: Rotation,
        norm: tuple[torch.Tensor, float] | None,
    ) -> QkvRows:
        """qkv [rows, heads + 2 * kv_heads, head_dim] parted, with q and k turned.

        `norm` (weight [heads + kv_heads, head_dim], eps): q and k are normed before. May change
        qkv in place.
        """
        ...


def stacked_bias(tensors: Mapping[str, torch.Tensor], names: Sequence[str]) -> torch.Tensor | None:
    """The biases of some weights end to end, float32; None: they have none."""
    biases = [tensors[name + ".bias"] for name in names if name + ".bias" in tensors]
    assert len(biases) in (0, len(names)), f"some of {names} have a bias and some have not"
    return torch.cat(biases).detach().to(torch.float32) if biases else None
