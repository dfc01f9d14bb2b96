"""Reads a GGUF file: its metadata, its table of tensors, and a tensor's numbers as float32."""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from radixgate.errors import ModelError

T = TypeVar("T", str, int, float, bool)

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING: Final = 8
_ARRAY: Final = 9
_SCALAR_TYPES: Final[dict[int, np.dtype[Any]]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}
_MOST_DIMENSIONS: Final = 4


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where one tensor lies, and how it is stored."""

    name: str
    shape: tuple[int, ...]  # outermost first, as everywhere but in GGUF
    kind: GGMLQuantizationType
    start: int  # bytes from the start of the file
    size: int  # bytes


class GgufFile:
    """One open file. Opening reads metadata and table only: 0.1 s for a vocabulary of 49k.

    (The `gguf` package reads metadata element by element and takes a hundred times as long, so
    only its dequantization is used.) Every error is a ModelError that names file and key.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as exc:  # ValueError: an empty file cannot be mapped
            raise ModelError(f"{path}: {exc}") from exc
        try:
            reader = _Reader(self._map, path)
            tensors, entries = reader.header()
            self.metadata = dict(reader.entry() for _ in range(entries))
            table = [reader.tensor() for _ in range(tensors)]
            self.tensors = self._placed(table, reader.position)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmap the file; nothing can be read afterwards."""
        self._map.close()

    def find(self, key: str, kind: type[T]) -> T | None:
        """A metadata value, None if the key is absent. Raises ModelError if it has another type."""
        value = self.metadata.get(key)
        if value is None:
            return None
        if kind is float and isinstance(value, int):
            value = float(value)
        if type(value) is not kind:
            found = type(value).__name__
            raise ModelError(f"{self.path}: {key} is of type {found}, not {kind.__name__}")
        return value

    def need(self, key: str, kind: type[T]) -> T:
        """A metadata value that must be there."""
        value = self.find(key, kind)
        if value is None:
            raise ModelError(f"{self.path}: the key {key} is missing")
        return value

    def need_list(self, key: str, kind: type[T]) -> list[T]:
        """A metadata array that must be there. O(length)."""
        values = self.metadata.get(key)
        if values is None:
            raise ModelError(f"{self.path}: the key {key} is missing")
        if not isinstance(values, list) or any(type(value) is not kind for value in values):
            raise ModelError(f"{self.path}: {key} is not a list of {kind.__name__}")
        return values

    def read(self, name: str) -> NDArray[np.float32]:
        """A tensor's numbers, dequantized; the array is the caller's own. O(elements)."""
        kind, stored = self.stored(name)
        try:
            values: NDArray[np.float32] = dequantize(stored, GGMLQuantizationType[kind])
        except NotImplementedError as exc:
            raise ModelError(
                f"{self.path}: the tensor {name} is {kind}, which cannot be read"
            ) from exc
        # float32 tensors come back as a view of the file, which would keep it from being closed.
        return values if values.flags.writeable else values.copy()

    def stored(self, name: str) -> tuple[str, NDArray[np.uint8]]:
        """Name of a tensor's storage type, and its bytes [..., row bytes]: a view of the file."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ModelError(f"{self.path}: the tensor {name} is missing")
        data = np.frombuffer(self._map, np.uint8, tensor.size, tensor.start)
        row_bytes = _bytes_of(tensor.kind, tensor.shape[-1])
        return tensor.kind.name, data.reshape(*tensor.shape[:-1], row_bytes)

    def _placed(self, table: list[GgufTensor], end: int) -> dict[str, GgufTensor]:
        alignment = self.find("general.alignment", int) or 32
        base = -(-end // alignment) * alignment
        placed = {}
        for tensor in table:
            start = base + tensor.start
            if start + tensor.size > len(self._map):
                raise ModelError(
                    f"{self.path}: the tensor {tensor.name} ends at byte {start + tensor.size}, "
                    f"but the file has {len(self._map)} bytes; it was not copied whole"
                )
            placed[tensor.name] = GgufTensor(
                tensor.name, tensor.shape, tensor.kind, start, tensor.size
            )
        return placed


class _Reader:
    """A position in the mapped file that only moves forward, and never past its end."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._path = path
        self.position = 0

    def header(self) -> tuple[int, int]:
        """How many tensors and metadata entries there are."""
        if self._take(4) != _MAGIC:
            raise ModelError(f"{self._path}: not a GGUF file")
        version = self._integer("<I")
        if version not in _VERSIONS:
            raise ModelError(f"{self._path}: GGUF version {version}, only 2 and 3 are supported")
        return self._integer("<Q"), self._integer("<Q")

    def entry(self) -> tuple[str, object]:
        key = self._string()
        kind = self._integer("<I")
        if kind != _ARRAY:
            return key, self._values(key, kind, 1)[0]
        item_kind = self._integer("<I")
        return key, self._values(key, item_kind, self._integer("<Q"))

    def tensor(self) -> GgufTensor:
        """One row of the table; `start` still counts from the end of the header."""
        name = self._string()
        dimensions = self._integer("<I")
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise ModelError(f"{self._path}: the tensor {name} has {dimensions} dimensions")
        shape = tuple(self._integer("<Q") for _ in range(dimensions))[::-1]
        number = self._integer("<I")
        try:
            kind = GGMLQuantizationType(number)
            size = _bytes_of(kind, shape[-1])
        except (ValueError, KeyError) as exc:
            raise ModelError(
                f"{self._path}: the tensor {name} {shape} cannot be of storage type {number}"
            ) from exc
        for length in shape[:-1]:
            size *= length
        return GgufTensor(name, shape, kind, self._integer("<Q"), size)

    def _values(self, key: str, kind: int, count: int) -> list[object]:
        if kind == _STRING:
            # A string takes 8 bytes at least, which bounds a count that lies.
            self._bounded(8 * count)
            return [self._string() for _ in range(count)]
        dtype = _SCALAR_TYPES.get(kind)
        if dtype is None:
            raise ModelError(f"{self._path}: {key} has a value of unknown type {kind}")
        items: list[object] = np.frombuffer(self._take(count * dtype.itemsize), dtype).tolist()
        return items

    def _string(self) -> str:
        data = self._take(self._integer("<Q"))
        try:
            return data.decode()
        except UnicodeDecodeError as exc:
            raise ModelError(
                f"{self._path}: the string before byte {self.position} is not UTF-8"
            ) from exc

    def _integer(self, form: str) -> int:
        (value,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return int(value)

    def _take(self, length: int) -> bytes:
        self._bounded(length)
        self.position += length
        return self._data[self.position - length : self.position]

    def _bounded(self, length: int) -> None:
        if length > len(self._data) - self.position:
            raise ModelError(
                f"{self._path}: ends within its header, {length} bytes are wanted "
                f"at byte {self.position} of {len(self._data)}"
            )


def _bytes_of(kind: GGMLQuantizationType, elements: int) -> int:
    """Bytes of one row. Raises ValueError if it is not whole blocks, KeyError for a new type."""
    block_elements, block_bytes = GGML_QUANT_SIZES[kind]
    if elements % block_elements:
        raise ValueError(f"{elements} elements are not whole blocks of {block_elements}")
    return elements // block_elements * block_bytes
