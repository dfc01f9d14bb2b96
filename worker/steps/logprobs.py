"""Log probabilities of one position, for those who ask."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from radixgate.worker.requests.logits import Row
from radixgate.worker.schedule.chunks import Chunk


@dataclass(frozen=True, slots=True)
class RowLogprobs:
    """Natural logs, of the model's own distribution: before penalties, biases and temperature."""

    chosen: float
    top: Sequence[tuple[int, float]]  # most likely first
    of_ids: Sequence[tuple[int, float]]  # in the order asked


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """A token of a prompt."""

    token_id: int
    logprobs: RowLogprobs | None  # None: the first token of a prompt has none


def prompt_logprobs(logits: torch.Tensor, chunk: Chunk) -> list[ScoredToken]:
    """The scored positions of a chunk. `logits` has their rows; O(rows * vocabulary)."""
    sampling = chunk.sequence.request.sampling
    ids, rows = chunk.sequence.ids, iter(logits.cpu().numpy())
    top, of_ids = sampling.top_logprobs or 0, sampling.token_ids_logprob
    return [
        ScoredToken(
            ids[position],
            row_logprobs(next(rows), ids[position], top, of_ids) if position else None,
        )
        for position in chunk.scored
    ]


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
