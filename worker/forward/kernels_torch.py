"""Products, norms and rotations in torch operations: the reference, for any device."""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as functional

from radixgate.worker.forward.kernels import Product, QkvRows, stacked_bias
from radixgate.worker.forward.linear import Linear
from radixgate.worker.forward.rope import Rotation, rotate
from radixgate.worker.weights.rounding import rounded_activations


class TorchKernels:
    """Float32 weights; with `round_activations` what they multiply is rounded to 8 bits a block.

    The latter is how weights in 4-bit blocks are multiplied directly (`--weights q4`), so that
    mode can be had without native code, if not its speed.
    """

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], *, round_activations: bool = False
    ) -> None:
        self._tensors = tensors
        self._round = round_activations

    def linear(self, names: Sequence[str]) -> Product:
        return _TorchProduct(self._stacked(names), self._round)

    def gated(self, gate: str, up: str) -> Product:
        return _GatedProduct(self._stacked([gate, up]), self._round)

    def norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        return _norm(x, weight, eps)

    def rotated(
        self,
        qkv: torch.Tensor,
        heads: int,
        rotation: Rotation,
        norm: tuple[torch.Tensor, float] | None,
    ) -> QkvRows:
        turned = (qkv.shape[1] + heads) // 2  # heads + kv_heads
        qk = qkv[:, :turned]
        if norm is not None:
            qk = _norm(qk, *norm)
        qk = rotate(qk, rotation)
        return qk[:, :heads], qk[:, heads:], qkv[:, turned:]

    def _stacked(self, names: Sequence[str]) -> Linear:
        weights = [self._tensors[name + ".weight"] for name in names]
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        return Linear(weight, stacked_bias(self._tensors, names))


class _TorchProduct:
    def __init__(self, linear: Linear, round_activations: bool) -> None:
        self._linear = linear
        self._round = round_activations

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._linear(rounded_activations(x) if self._round else x)

    def add_to(self, y: torch.Tensor, x: torch.Tensor) -> None:
        y += self(x)


class _GatedProduct(_TorchProduct):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = super().__call__(x).chunk(2, dim=-1)
        return functional.silu(gate).mul_(up)


def _norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    # Half the memory traffic of functional.rms_norm, which is not one kernel on CPU.
    mean_square = x.square().mean(-1, keepdim=True)
    return (x * mean_square.add_(eps).rsqrt_()).mul_(weight)
