"""The roundings that make up a mode's arithmetic: of what is cached, and of what is multiplied.

Both the kernels and the plain reference round by these rules, so that a mode can be checked.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import torch

_BLOCK = 32  # activations that share one scale
_MOST = 127.0


class KvDtype(StrEnum):
    """In what form keys and values are kept; attention itself always computes in float32."""

    FP32 = "fp32"
    FP16 = "fp16"
    INT8 = "int8"  # with one float32 scale for each token, layer and head

    @property
    def torch_dtype(self) -> torch.dtype:
        return _TORCH[self]

    def token_bytes(self, head_dim: int) -> int:
        """Of one token's keys (or values) in one layer and head."""
        scale = 4 if self is KvDtype.INT8 else 0
        return head_dim * self.torch_dtype.itemsize + scale

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        """What is read back after x [..., head_dim] was stored: float32."""
        if self is KvDtype.INT8:
            numbers, scales = to_int8(x)
            return from_int8(numbers, scales)
        return x.to(self.torch_dtype).to(torch.float32)


_TORCH = {
    KvDtype.FP32: torch.float32,
    KvDtype.FP16: torch.float16,
    KvDtype.INT8: torch.int8,
}


class WeightsMode(StrEnum):
    """In what form weights are multiplied."""

    FP32 = "fp32"
    Q4 = "q4"  # as 4-bit blocks (the head as 8-bit ones), with activations rounded to 8 bits


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a process computes with; chosen at start, the same for every request and batch."""

    kv: KvDtype = KvDtype.FP32
    weights: WeightsMode = WeightsMode.FP32


FLOAT32: Final = Arithmetic()


def to_int8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers in -127..127 in x's shape, and a float32 scale for each vector of the last axis."""
    scales = x.abs().amax(dim=-1) / _MOST
    divisors = torch.where(scales > 0, scales, 1.0).unsqueeze(-1)
    return (x / divisors).round_().clamp_(-_MOST, _MOST).to(torch.int8), scales


def from_int8(numbers: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The float32 vectors that `to_int8` stands for."""
    return numbers.to(torch.float32) * scales.unsqueeze(-1)


def rounded_activations(x: torch.Tensor) -> torch.Tensor:
    """x [..., elements] with each 32 neighbours as 8-bit numbers times one scale: float32."""
    blocks = x.reshape(*x.shape[:-1], -1, _BLOCK)
    return from_int8(*to_int8(blocks)).flatten(-2)
