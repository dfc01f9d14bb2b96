"""Products, norms and rotations by the compiled kernels, weights in float32 or in 4-bit blocks.

A row's result is the same to the last bit however many rows are computed beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import torch

from radixgate.errors import ModelError
from radixgate.worker.forward.kernels import Product, QkvRows, stacked_bias
from radixgate.worker.forward.native_library import NativeLibrary
from radixgate.worker.forward.rope import Rotation
from radixgate.worker.weights.quantized import QuantizedRows

_PLAIN: Final = 0
_ADDED: Final = 1
_GATED: Final = 2


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a packed weight lies, for kernels that call kernels."""

    bits: int  # of a stored weight; 32: float
    address: int
    depth: int
    columns: int
    bias: int | None  # address


class _Packed(Protocol):
    """A weight in panels, and who multiplies it."""

    bits: int
    address: int
    depth: int

    def multiply(self, x: torch.Tensor, out: torch.Tensor, bias: int | None, finish: int) -> None:
        """x [rows, depth] to out [rows, columns], both with rows in one piece."""
        ...


class CpuKernels:
    """Takes the weights from `quantized` if given, otherwise from `tensors` as float32.

    Every weight is copied once into the order in which the kernels read it.
    """

    def __init__(
        self,
        native: NativeLibrary,
        tensors: Mapping[str, torch.Tensor],
        quantized: Mapping[str, QuantizedRows] | None = None,
    ) -> None:
        self._native = native
        self._tensors = tensors
        self._quantized = quantized
        self._placed: dict[Product, Placed] = {}

    def placed(self, product: Product) -> Placed:
        """Where a product that was made here lies, as long as it lives."""
        return self._placed[product]

    def linear(self, names: Sequence[str]) -> Product:
        bias = stacked_bias(self._tensors, names)
        if self._quantized is not None:
            blocks = QuantizedRows.stacked([self._blocks(name) for name in names])
            packed: _Packed = _QuantPanels(self._native, blocks, None)
            return self._made(packed, blocks.rows, bias, _PLAIN)
        weights = [self._weight(name) for name in names]
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        packed = _FloatPanels(self._native, weight, None)
        return self._made(packed, len(weight), bias, _PLAIN)

    def gated(self, gate: str, up: str) -> Product:
        if self._quantized is not None:
            blocks = self._blocks(gate)
            packed: _Packed = _QuantPanels(self._native, blocks, self._blocks(up))
            return self._made(packed, blocks.rows, None, _GATED)
        weight = self._weight(gate)
        packed = _FloatPanels(self._native, weight, self._weight(up))
        return self._made(packed, len(weight), None, _GATED)

    def norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        rows, size = x.shape
        assert x.stride(1) == 1
        out = torch.empty(rows, size)
        self._native.norm(
            x.data_ptr(), x.stride(0), rows, size, weight.data_ptr(), eps, out.data_ptr()
        )
        return out

    def rotated(
        self,
        qkv: torch.Tensor,
        heads: int,
        rotation: Rotation,
        norm: tuple[torch.Tensor, float] | None,
    ) -> QkvRows:
        rows, vectors, head_dim = qkv.shape
        turned = (vectors + heads) // 2  # heads + kv_heads
        cos, sin = rotation
        half = head_dim // 2
        self._native.rotate(
            qkv.data_ptr(),
            qkv.stride(0),
            rows,
            turned,
            head_dim,
            cos.data_ptr(),
            # The first half is negated, see Rotation.
            sin.data_ptr() + half * sin.itemsize,
            head_dim,
            norm[0].data_ptr() if norm else None,
            norm[1] if norm else 0.0,
        )
        return qkv[:, :heads], qkv[:, heads:turned], qkv[:, turned:]

    def _made(
        self, packed: _Packed, columns: int, bias: torch.Tensor | None, finish: int
    ) -> Product:
        product = _NativeProduct(packed, columns, bias, finish)
        at = None if bias is None else bias.data_ptr()
        self._placed[product] = Placed(packed.bits, packed.address, packed.depth, columns, at)
        return product

    def _weight(self, name: str) -> torch.Tensor:
        return self._tensors[name + ".weight"].detach().to(torch.float32).contiguous()

    def _blocks(self, name: str) -> QuantizedRows:
        assert self._quantized is not None
        try:
            return self._quantized[name + ".weight"]
        except KeyError as exc:
            raise ModelError(f"the tensor {name}.weight is not there in blocks") from exc


class _NativeProduct:
    def __init__(
        self, packed: _Packed, columns: int, bias: torch.Tensor | None, finish: int
    ) -> None:
        self._packed = packed
        self._columns = columns
        self._bias = bias  # kept for its memory
        self._bias_address = None if bias is None else bias.data_ptr()
        self._finish = finish

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(len(x), self._columns)
        self._packed.multiply(x, out, self._bias_address, self._finish)
        return out

    def add_to(self, y: torch.Tensor, x: torch.Tensor) -> None:
        assert self._finish == _PLAIN
        self._packed.multiply(x, y, self._bias_address, _ADDED)


class _FloatPanels:
    def __init__(
        self, native: NativeLibrary, weight: torch.Tensor, second: torch.Tensor | None
    ) -> None:
        rows, self.depth = weight.shape
        self.bits = 32
        columns = native.panel_columns
        each = columns if second is None else columns // 2
        self._panels = torch.empty(-(-rows // each), self.depth, columns)
        self.address = self._panels.data_ptr()
        native.use_large_pages(self.address, self._panels.nbytes)
        self._linear = native.linear_f32
        other = None if second is None else second.data_ptr()
        native.pack_f32(weight.data_ptr(), other, rows, self.depth, self.address)

    def multiply(self, x: torch.Tensor, out: torch.Tensor, bias: int | None, finish: int) -> None:
        rows, stride = len(x), x.stride(0)
        assert x.shape[1] == self.depth
        self._linear(
            *(x.data_ptr(), stride, rows, self.depth, self.address),
            *(out.data_ptr(), out.stride(0), out.shape[1], bias, finish),
        )


class _QuantPanels:
    def __init__(
        self, native: NativeLibrary, blocks: QuantizedRows, second: QuantizedRows | None
    ) -> None:
        self.depth = blocks.depth
        self.bits = blocks.bits
        columns = native.panel_columns
        each = columns if second is None else columns // 2
        size = -(-blocks.rows // each) * native.quant_panel_bytes(self.bits, self.depth)
        self._panels = torch.empty(size, dtype=torch.uint8)
        self.address = self._panels.data_ptr()
        native.use_large_pages(self.address, size)
        self._linear = native.linear_quant
        other = None if second is None else second.address
        native.pack_quant(self.bits, blocks.address, other, blocks.rows, self.depth, self.address)

    def multiply(self, x: torch.Tensor, out: torch.Tensor, bias: int | None, finish: int) -> None:
        rows, stride = len(x), x.stride(0)
        assert x.shape[1] == self.depth
        failed = self._linear(
            *(self.bits, x.data_ptr(), stride, rows, self.depth, self.address),
            *(out.data_ptr(), out.stride(0), out.shape[1], bias, finish),
        )
        if failed:
            raise MemoryError(f"no memory to multiply {rows} rows")
