"""Writes a safetensors file one tensor at a time, so that a model need not fit in memory twice."""

import json
import struct
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_ITEM = 4  # bytes of a float32


def write_float32(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]],
    tensors: Iterable[tuple[str, NDArray[np.float32]]],
) -> None:
    """Write `tensors`, which come in the order of `shapes`. Raises OSError from the disk."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + _ITEM * prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data must begin aligned to be mapped
    expected = iter(shapes.items())
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for name, values in tensors:
            assert (name, values.shape) == next(expected), f"{name} {values.shape} is out of turn"
            file.write(np.ascontiguousarray(values, "<f4").data)
    assert next(expected, None) is None, "tensors are missing"
