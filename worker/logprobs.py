"""Log probabilities of one position, for those who ask."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from radixgate.worker.logits import Row


@dataclass(frozen=True, slots=True)
class RowLogprobs:
    """Natural logs, of the model's own distribution: before penalties, biases and temperature."""

    chosen: float
    top: Sequence[tuple[int, float]]  # most likely first
    of_ids: Sequence[tuple[int, float]]  # in the order asked


def row_logprobs(logits: Row, token_id: int, top: int, of_ids: Sequence[int]) -> RowLogprobs:
    """O(vocabulary); `top` may be 0."""
    best = float(logits.max())
    norm = best + float(np.log(np.exp(logits - np.float32(best)).sum(dtype=np.float64)))
    ranked: list[int] = []
    if top:
        # On a CPU numpy's partition takes five times as long.
        ranked = torch.from_numpy(logits).topk(min(top, len(logits))).indices.tolist()
    return RowLogprobs(
        float(logits[token_id]) - norm,
        [(token, float(logits[token]) - norm) for token in ranked],
        [(token, float(logits[token]) - norm) for token in of_ids],
    )
