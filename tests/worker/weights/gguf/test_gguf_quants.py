"""Every way a GGUF file stores numbers, against the format written down number by number."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, quants
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray

from quantized_blocks import random_blocks
from radixgate.errors import ModelError
from radixgate.worker.weights.gguf.file import GgufFile

ROWS = 5


def half(data: bytes) -> float:
    return float(struct.unpack("<e", data)[0])


def floats(block: bytes) -> Iterator[float]:
    yield from struct.unpack("<f", block)


def halves(block: bytes) -> Iterator[float]:
    yield half(block)


def brain_floats(block: bytes) -> Iterator[float]:
    """The upper half of a float32."""
    yield from struct.unpack("<f", b"\0\0" + block)


def nibbles(data: bytes) -> list[int]:
    """All lower halves, then all upper ones."""
    return [byte & 15 for byte in data] + [byte >> 4 for byte in data]


def q4_0(block: bytes) -> Iterator[float]:
    for number in nibbles(block[2:]):
        yield half(block[:2]) * (number - 8)


def q4_1(block: bytes) -> Iterator[float]:
    for number in nibbles(block[4:]):
        yield half(block[:2]) * number + half(block[2:4])


def q5_0(block: bytes) -> Iterator[float]:
    fifth_bits = int.from_bytes(block[2:6], "little")
    for place, number in enumerate(nibbles(block[6:])):
        yield half(block[:2]) * ((number | (fifth_bits >> place & 1) << 4) - 16)


def q8_0(block: bytes) -> Iterator[float]:
    for number in struct.unpack("<32b", block[2:]):
        yield half(block[:2]) * number


def q4_k(block: bytes) -> Iterator[float]:
    """Eight groups of 32; their scales and minimums have 6 bits each, packed into 12 bytes."""
    scales = block[4:16]
    for group in range(8):
        low = group % 4
        if group < 4:
            scale, minimum = scales[low] & 63, scales[low + 4] & 63
        else:
            scale = scales[low + 8] & 15 | scales[low] >> 6 << 4
            minimum = scales[low + 8] >> 4 | scales[low + 4] >> 6 << 4
        shared = block[16 + group // 2 * 32 :][:32]  # two groups share 32 bytes
        for byte in shared:
            number = byte >> 4 if group % 2 else byte & 15
            yield half(block[:2]) * scale * number - half(block[2:4]) * minimum


def q6_k(block: bytes) -> Iterator[float]:
    """Sixteen groups of 16; four bits of each number lie in one place, two in another."""
    low_bits, high_bits = block[:128], block[128:192]
    scales = struct.unpack("<16b", block[192:208])
    for place in range(256):
        part, quarter, column = place // 128, place % 128 // 32, place % 32
        low = low_bits[part * 64 + quarter % 2 * 32 + column] >> quarter // 2 * 4 & 15
        high = high_bits[part * 32 + column] >> 2 * quarter & 3
        yield half(block[208:]) * scales[place // 16] * ((low | high << 4) - 32)


FORMATS: dict[Kind, Callable[[bytes], Iterator[float]]] = {
    Kind.F32: floats,
    Kind.F16: halves,
    Kind.BF16: brain_floats,
    Kind.Q4_0: q4_0,
    Kind.Q4_1: q4_1,
    Kind.Q5_0: q5_0,
    Kind.Q8_0: q8_0,
    Kind.Q4_K: q4_k,
    Kind.Q6_K: q6_k,
}


def written(path: Path, stored: NDArray[np.uint8], kind: Kind) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("odd", np.zeros(3, np.float32))  # so that the other begins anywhere
    writer.add_tensor("numbers", stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_numbers_are_read_as_the_format_has_them(tmp_path: Path, kind: Kind) -> None:
    stored = random_blocks(kind, (ROWS, 512))
    with GgufFile(written(tmp_path / "m.gguf", stored, kind)) as file:
        read = file.read("numbers")
    size = GGML_QUANT_SIZES[kind][1]
    data = stored.tobytes()
    expected = [x for at in range(0, len(data), size) for x in FORMATS[kind](data[at : at + size])]
    assert read.shape == (ROWS, 512)
    assert read.dtype == np.float32
    np.testing.assert_allclose(read.ravel(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(read, quants.dequantize(stored, kind))


@pytest.mark.parametrize("kind", [Kind.F64, Kind.I32, Kind.Q8_K], ids=lambda kind: kind.name)
def test_a_type_that_cannot_be_read_is_named_with_its_tensor(tmp_path: Path, kind: Kind) -> None:
    elements, size = GGML_QUANT_SIZES[kind]
    stored = np.zeros((ROWS, 512 // elements * size), np.uint8)
    with (
        GgufFile(written(tmp_path / "m.gguf", stored, kind)) as file,
        pytest.raises(ModelError, match=f"the tensor numbers is {kind.name}, which cannot be read"),
    ):
        file.read("numbers")


def test_a_type_that_came_later_is_named_by_its_number(tmp_path: Path) -> None:
    path = written(tmp_path / "m.gguf", np.zeros((ROWS, 34 * 16), np.uint8), Kind.Q8_0)
    data = path.read_bytes()
    kind = data.index(b"numbers") + len(b"numbers") + 4 + 2 * 8
    assert data[kind : kind + 4] == struct.pack("<I", Kind.Q8_0)
    path.write_bytes(data[:kind] + struct.pack("<I", 999) + data[kind + 4 :])
    with pytest.raises(ModelError, match=r"numbers \(5, 512\) cannot be of storage type 999"):
        GgufFile(path)
