"""A Llama whose layers are one call of the compiled kernels."""

from collections.abc import Sequence
from ctypes import Structure, addressof, c_double, c_int64, c_void_p

import torch

from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.batch import ForwardBatch
from radixgate.worker.forward.kernels_cpu import CpuKernels, Placed
from radixgate.worker.forward.llama import Layer, Llama
from radixgate.worker.forward.native_library import NativeLibrary


# In the order of layers.cpp; every field is 8 bytes wide.
class _Product(Structure):
    _fields_ = [
        ("bits", c_int64),
        ("packed", c_void_p),
        ("depth", c_int64),
        ("columns", c_int64),
        ("bias", c_void_p),
    ]


class _Layer(Structure):
    _fields_ = [
        ("qkv", _Product),
        ("output", _Product),
        ("gate_up", _Product),
        ("down", _Product),
        ("attention_norm", c_void_p),
        ("qk_norm", c_void_p),
        ("mlp_norm", c_void_p),
        ("keys", c_void_p),
        ("values", c_void_p),
        ("key_scales", c_void_p),
        ("value_scales", c_void_p),
    ]


class _Shape(Structure):
    _fields_ = [
        ("size", c_int64),
        ("heads", c_int64),
        ("kv_heads", c_int64),
        ("dim", c_int64),
        ("kind", c_int64),
        ("eps", c_double),
    ]


class _Rows(Structure):
    _fields_ = [
        ("count", c_int64),
        ("hidden", c_void_p),
        ("cos", c_void_p),
        ("sin", c_void_p),
        ("angle_stride", c_int64),
        ("normed", c_void_p),
        ("qkv", c_void_p),
        ("mixed", c_void_p),
        ("gated", c_void_p),
    ]


class CpuLlama:
    """Computes what its Llama computes, to the last bit, over the pool of one CpuAttention.

    Saves some 40 us a layer, and others get the interpreter while it runs.
    """

    def __init__(
        self, llama: Llama, kernels: CpuKernels, attention: CpuAttention, native: NativeLibrary
    ) -> None:
        """`kernels` are those that `llama` was made with."""
        config = llama.config
        self._llama = llama
        self._native = native
        self._attention = attention  # its memory is written through the addresses below
        self._layers = (_Layer * config.layers)()
        for place, layer, pool in zip(self._layers, llama.layers, attention.addresses, strict=True):
            _fill(place, kernels, layer, pool)
        self._shape = _Shape(
            config.hidden_size,
            config.heads,
            config.kv_heads,
            config.head_dim,
            attention.kind,
            config.rms_eps,
        )
        first = self._layers[0]
        widths = (first.qkv.depth, first.qkv.columns, first.output.depth, first.gate_up.columns)
        self._widths: tuple[int, int, int, int] = widths

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, attention: AttentionBackend) -> torch.Tensor:
        """As Llama.forward, with the attention it was made for."""
        assert attention is self._attention, "made for another pool"
        attention.plan(batch)
        hidden, rotation = self._llama.begin(batch)
        rows = len(hidden)
        cos, sin = rotation
        normed, qkv, mixed, gated = (torch.empty(rows, width) for width in self._widths)
        half = cos.shape[-1] // 2
        these = _Rows(
            rows,
            hidden.data_ptr(),
            cos.data_ptr(),
            # The first half is negated, see Rotation.
            sin.data_ptr() + half * sin.itemsize,
            cos.shape[-1],
            normed.data_ptr(),
            qkv.data_ptr(),
            mixed.data_ptr(),
            gated.data_ptr(),
        )
        failed = self._native.layers(
            addressof(self._layers),
            len(self._layers),
            addressof(self._shape),
            addressof(these),
            self._attention.handle,
        )
        if failed:
            raise MemoryError(f"no memory to compute {rows} rows")
        return self._llama.finish(batch, hidden, mixed)


def _fill(place: _Layer, kernels: CpuKernels, layer: Layer, pool: Sequence[int | None]) -> None:
    place.qkv = _product(kernels.placed(layer.qkv))
    place.output = _product(kernels.placed(layer.output))
    place.gate_up = _product(kernels.placed(layer.gate_up))
    place.down = _product(kernels.placed(layer.down))
    place.attention_norm = layer.attention_norm.data_ptr()
    place.qk_norm = layer.qk_norm[0].data_ptr() if layer.qk_norm else None
    place.mlp_norm = layer.mlp_norm.data_ptr()
    place.keys, place.values, place.key_scales, place.value_scales = pool


def _product(placed: Placed) -> _Product:
    return _Product(placed.bits, placed.address, placed.depth, placed.columns, placed.bias)
