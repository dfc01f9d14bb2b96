"""Blocks of numbers as GGUF stores them, made of random bits with scales that keep them small."""

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray

# Where in a block the float16 lie that the rest is multiplied with; to start at 0.
_SCALES = {
    Kind.Q4_0: (0,),
    Kind.Q4_1: (0, 2),
    Kind.Q5_0: (0,),
    Kind.Q8_0: (0,),
    Kind.Q4_K: (0, 2),
    Kind.Q6_K: (208,),
}
_LARGEST = {Kind.Q8_0: 127, Kind.Q4_K: 63 * 15, Kind.Q6_K: 127 * 32}


def random_blocks(
    kind: Kind, shape: tuple[int, int], seed: int = 0, spread: float = 1.0
) -> NDArray[np.uint8]:
    """[rows, bytes of a row] that stand for `shape` numbers of about `spread`."""
    random = np.random.default_rng(seed)
    if kind not in _SCALES:
        return _unblocked(kind, random.normal(0, spread, shape).astype(np.float32))
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (shape[0], shape[1] // elements, size), dtype=np.uint8)
    for at in _SCALES[kind]:
        scale = random.uniform(0.5, 2.0, blocks.shape[:2]) * spread * 2 / _LARGEST.get(kind, 16)
        blocks[..., at : at + 2] = scale.astype("<f2")[..., None].view(np.uint8)
    return blocks.reshape(shape[0], -1)


def _unblocked(kind: Kind, numbers: NDArray[np.float32]) -> NDArray[np.uint8]:
    if kind == Kind.F16:
        return numbers.astype("<f2").view(np.uint8)
    stored = numbers.astype("<f4").view(np.uint8)
    if kind == Kind.F32:
        return stored
    halves = stored.reshape(len(stored), -1, 2, 2)  # a bfloat16 is the upper one
    return np.ascontiguousarray(halves[:, :, 1]).reshape(len(stored), -1)
