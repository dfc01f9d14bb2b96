"""Weights as a GGUF file has them: rows of blocks of 32 small integers with their scales."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from radixgate.errors import ModelError

BLOCK: Final = 32  # elements
_BLOCK_BYTES: Final = {4: 20, 8: 34}
_MOST_STORED: Final = {"Q4_1": 4, "Q4_0": 4, "Q8_0": 8}


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """Rows of one weight as Q4_1 (`bits` 4) or Q8_0 (`bits` 8) blocks."""

    bits: int
    data: NDArray[np.uint8]  # [rows, bytes], in one piece

    @property
    def rows(self) -> int:
        return len(self.data)

    @property
    def depth(self) -> int:
        """Elements of a row."""
        return int(self.data.shape[1]) // _BLOCK_BYTES[self.bits] * BLOCK

    @property
    def address(self) -> int:
        return int(self.data.ctypes.data)

    @classmethod
    def of(cls, kind: str, stored: NDArray[np.uint8], name: str) -> "QuantizedRows":
        """From blocks of a GGUF storage type. Raises ModelError for a type without kernels.

        Q4_0 becomes Q4_1 of the very same numbers: d * (q - 8) is d * q - 8 * d.
        """
        if kind not in _MOST_STORED:
            known = ", ".join(_MOST_STORED)
            raise ModelError(
                f"the tensor {name} is stored as {kind}; --weights q4 multiplies {known} as they "
                "are, so start with --weights fp32 or give a file in one of these"
            )
        data = _with_least(stored) if kind == "Q4_0" else np.ascontiguousarray(stored)
        return cls(_MOST_STORED[kind], data)

    @classmethod
    def stacked(cls, parts: "Sequence[QuantizedRows]") -> "QuantizedRows":
        """Rows of several weights, one below the other. Raises ModelError if bits differ."""
        if len(parts) == 1:
            return parts[0]
        if len({part.bits for part in parts}) > 1:
            raise ModelError(
                "weights that are multiplied together are stored in 4 and in 8 bits; start with "
                "--weights fp32"
            )
        return cls(parts[0].bits, np.concatenate([part.data for part in parts]))


class LazyRows(Mapping[str, QuantizedRows]):
    """The quantized weights of a file, read one by one when asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[str], QuantizedRows]) -> None:
        self._names = dict.fromkeys(names)
        self._read = read

    def __getitem__(self, name: str) -> QuantizedRows:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _with_least(stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Q4_0 blocks (scale, 16 bytes) as Q4_1 blocks (scale, least, 16 bytes)."""
    rows = len(stored)
    blocks = stored.reshape(rows, -1, 18)
    least = (blocks[:, :, :2].copy().view(np.float16) * np.float16(-8)).view(np.uint8)
    return np.concatenate((blocks[:, :, :2], least, blocks[:, :, 2:]), axis=2).reshape(rows, -1)
